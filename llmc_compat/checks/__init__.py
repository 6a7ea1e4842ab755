"""What `llmc_compat.check` looks for: one module for each kind of file, and some for files together.

docs/llmc-check.md lists every place of llm.c's source where a file can make it abort or train on nonsense, with what is
said here about it.
"""
