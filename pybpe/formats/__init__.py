"""Tokenizer files, one format a module: tokenizer.json, vocab.json + merges.txt, tokenizer.bin (in C)."""
