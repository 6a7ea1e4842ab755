"""Packs documents into rows of exactly T tokens, so that training sees whole documents.

    stream of llm.c's shards, T = 6     | 1 2 3 4 | 5 6 7 8 9 10 11 | 12        (| is <|endoftext|>)
    rows, each beginning with a mark    | 1 2 3 4 .    | 5 6 7 8 9    | 10 11 | 12 .     (. is padding)

A document of up to T tokens, its mark included, stays whole. A longer one is cut into full rows and a rest; each part
begins with a mark, so that nothing looks like the continuation of the document before it. llm.c steps through a shard
by B * T tokens from its first token, so rows stay whole in its batches, shuffled or not, for any number of processes.

pieces.py finds the documents, best_fit.py chooses their rows, layout.py puts the rows in order, shards.py writes them,
writing.py has the function that users call, rows.py checks the result.
"""

from .layout import METHODS as METHODS
from .row_files import ROW_FORMATS as ROW_FORMATS
from .rows import row_fault as row_fault
from .writing import pack as pack
