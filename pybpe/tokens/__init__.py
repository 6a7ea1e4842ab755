"""Token files: documents become shards, which are split, counted and hashed. `pybpe` exports the functions of this
package.

binarization.py  binarize, encode_files     preparation.py  prepare     joining.py  join
pack/            packed rows                mix/            mixtures of several sources
run.py           one run: tasks, which task_encoder.py encodes, and then shards
provenance.py    which input and record each document came from
manifest.py      what is in a folder         output_folder.py  when a call may fill it, and how
formats.py, token_files.py, token_folders.py     how token files are written and read     verification.py  verify
"""
