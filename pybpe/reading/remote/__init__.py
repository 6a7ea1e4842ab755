"""Reads inputs that URLs name: s3://, gs://, hf://, https:// and http://.

`RemoteFile` (remote_file.py) and `remote_files` (listing.py) are what the rest of pybpe uses. InputFile holds a
RemoteFile, and opens it at an offset like a local file, so nothing else needs to know where a file is. objects.py asks
the servers, with obstore, which is imported by the first request.
"""
