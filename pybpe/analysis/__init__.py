"""What a tokenizer does on a corpus: which tokens it uses, two tokenizers compared, the compression curve."""
