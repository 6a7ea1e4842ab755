"""Training: from texts to word counts to merges."""
