"""Token files: texts become shards, which are split, counted and hashed. `pybpe` exports the functions of this room.

binarization.py  binarize               preparation.py  prepare        joining.py  join
array_output.py  encode_files           pack/           packed rows    mix/        mixtures of sources
run.py           one run: tasks -> a store -> shards                   parts.py    its log
manifest.py, formats/, token_files.py   what `pybpe.loading` and other readers share with the writers
"""
