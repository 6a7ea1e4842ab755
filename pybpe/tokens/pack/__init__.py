"""Packs documents into rows of exactly T tokens, so that training sees whole documents.

    stream of llm.c's shards, T = 6     | 1 2 3 4 | 5 6 7 8 9 10 11 | 12        (| is <|endoftext|>)
    rows, which all begin with a mark   | 1 2 3 4 .    | 5 6 7 8 9    | 10 11 | 12 .     (. is padding)

A document of up to T tokens, its mark included, stays whole. A longer one is cut into full rows and a rest. Every part
begins with a mark, so that nothing looks like the continuation of the document before it. llm.c steps through a shard
by B * T tokens from its first token, so rows stay whole in its batches, shuffled or not, for any number of processes.

packing.py   the function that users call       spans.py    finds the documents, and chooses their rows
rows.py      makes rows, checks and writes them
"""

from .packing import pack as pack
