"""Training: from text to word counts to merges."""
