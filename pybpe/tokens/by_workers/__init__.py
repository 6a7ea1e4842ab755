"""Workers that write the token files themselves, for corpora of any size. The door is `SharedStore`.

Otherwise every token travels from a worker through the scheduler to the client, the process that called `binarize`; the
client can take only about as much as a few workers make. Here workers and client share the output folder, and tokens go
from the workers to the disk. Only facts of a few hundred bytes travel:

    client                      a worker                                    the shared folder
    plans tasks, 1 to 64        encodes the tasks of a bundle          ->   bundle-N-n: ids by split, with facts
      per bundle           <-   tokens of each split in the bundle
    adds these up: what each
      shard consists of         copies its parts from the bundles,     ->   shard-SPLIT-I, and its record
      (index)                     and hashes them on the way
                           <-   "done"
    renames the shards, writes the manifest                            ->   NAME_train_000000.bin ...

Why so, and not otherwise:

- The text is encoded once. How many tokens come before a task is known only when all earlier tasks are encoded, so the
  shards need either a second encoding or a copy of the ids. Copying and hashing them costs a tenth of encoding.
- A shard is written by one worker, from its first byte to its last, and hashed as it is written. So no two machines
  write to one file, which network file systems do not do well, and no file is read again for its hash.
- Whether a bundle begins inside a document depends on the bundles before it. A worker does not know that; it stores
  what is needed for both cases (unknown_start.py), and the client decides.
- A message must not grow with the corpus. The tokenizer is in a file that each worker reads once (area.py), as are the
  list of bundles, and the names of many small files.

The result is that of one machine, manifest included, since tasks and segments are the same. All names
in the shared folder contain what their content depends on. So a worker that was given up, and continues, can only write
what is there already.

If the client is killed, the next run resumes with the bundles in the log (parts.log, one line each) and the shards
whose records exist. A worker that is killed leaves an incomplete file with another name, which is removed at the end.

That the folder is shared is not believed: each worker must find the run's random number in it (area.py), and the client
looks at the size of each file that a worker wrote.
"""

from .shards import check_format as check_format
from .store import SharedStore as SharedStore
