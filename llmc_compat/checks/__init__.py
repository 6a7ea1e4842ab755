"""The checks of `llmc_compat.check`: one module per kind of file, and some for files together.

docs/llmc-check.md lists every place in llm.c's source where a file can make it abort or train on nonsense, with the
matching message.
"""
