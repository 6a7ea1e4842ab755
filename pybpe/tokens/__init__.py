"""Token files: documents become shards, which are split, counted and hashed. `pybpe` exports the functions of this
room.

binarization.py  binarize, encode_files     preparation.py  prepare     joining.py  join
pack/            packed rows                mix/            mixtures of several sources
run.py           one run: tasks, which task_encoder.py encodes, and then shards
finished.py      the content of an output folder; folders of finished token files
manifest.py, formats.py, token_files.py     what `pybpe.loading` and other readers share with the writers
"""
