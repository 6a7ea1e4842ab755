"""Tokenizer files, one format per module: tokenizer.json, vocab.json + merges.txt, tokenizer.bin (in C)."""
