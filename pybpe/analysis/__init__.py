"""Measures tokenizers on a corpus: the tokens that they use, the differences between them, the compression curve."""
