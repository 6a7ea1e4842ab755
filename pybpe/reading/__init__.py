"""Reads all inputs: files, folders, JSON lines, parquet and Arrow, compressed or not. Divides them into documents,
pieces, splits and tasks. Training, datasets and the cleaning of a corpus use this package.
"""
