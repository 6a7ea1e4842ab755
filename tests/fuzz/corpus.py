"""Packs a folder of inputs into a zip file: the same inputs always give the same bytes.

    python tests/fuzz/corpus.py FOLDER FILE.zip

tests/fuzz/corpus has one such file per fuzz target. `make fuzz-keep` makes them, seeds.py unpacks them next to the
generated seeds, and OSS-Fuzz takes them as they are.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

FIRST_TIME = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, file: Path) -> int:
    """Returns the number of inputs. Each is named after its hash."""
    contents = {path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    inputs = {hashlib.sha256(data).hexdigest()[:16]: data for data in contents}
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(inputs):
            archive.writestr(zipfile.ZipInfo(name, FIRST_TIME), inputs[name], zipfile.ZIP_DEFLATED, 9)
    return len(inputs)


if __name__ == "__main__":
    print(f"{sys.argv[2]}: {pack(Path(sys.argv[1]), Path(sys.argv[2]))} inputs")
