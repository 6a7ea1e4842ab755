"""Reads inputs that URLs name: s3://, gs://, hf://, https:// and http://.

`RemoteFile` (remote_file.py) and `remote_files` (listing.py) are what the rest of pybpe uses. InputFile holds a
RemoteFile, and opens it at an offset like a local file, so nothing else needs to know where a file is.

    remote_file.py   one object as a run first saw it; a stream of it that reads ahead (stream.py)
    listing.py       folders and globs
    transfer.py      reads a range, with retries
    web.py           https and http, with urllib3
    buckets.py       the other schemes, with fsspec

Nothing here is imported before the user passes a URL, except `address.py` and the definitions of these classes; urllib3
and fsspec are imported by the first request.
"""
