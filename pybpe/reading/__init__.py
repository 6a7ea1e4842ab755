"""Every way in: files, folders, JSON lines and parquet, compressed or not; how they are divided into documents, pieces,
splits and tasks. Training, datasets and the cleaning of a corpus use it.
"""
