"""The files of a folder that are a corpus: all but hidden ones and what pybpe wrote there.

An output may lie in the folder that is read: `pybpe binarize data -o data/out`. It must not become input when the same
command runs again, after a kill too. So these are left out:

- the outputs of this run, and what lies in them;
- the files that a manifest.json of `pybpe binarize` lists, the manifest, and the tokenizer beside it;
- token files beside the hidden folder of a run that was killed;
- files that temporary names show to be unfinished.

Tokenizers, token shards and the like are also left out where their content shows what they are (file_types.py).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence

from .errors import file_error
from .locking import FOLDER
from .warning import warn

_LOST = "lost+found"  # of a disk; only the superuser can read it, and no text is there
_MANIFESTS = ("manifest.json", "_manifest.json")
_TOKENIZER_FILES = frozenset(
    ("tokenizer.json", "tokenizer.bin", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    + ("vocab.json", "merges.txt", "chat_template.jinja", "meta.pkl")
)
_TOKEN_FILE = re.compile(r"(?:.*_)?(?:train|val|test)(?:_\d+)?\.(?:bin|npy|idx|parquet|tar)")
_UNFINISHED = re.compile(r".*\.\d+-\d+\.tmp")


def corpus_of_folder(folder: str, outputs: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The files of a folder and of those in it, sorted; and those that were left out. Links to folders are not
    followed, as by grep -r and tar: they may lead anywhere. One that leads out of the folder is said.

    Args:
        folder: its path.
        outputs: real paths of what this run writes.

    Raises:
        FileError: a folder cannot be read.
    """
    kept, left_out = list[str](), list[str]()
    real = os.path.realpath(folder)
    links = list[str]()
    for place, folders, names in os.walk(folder, onerror=_cannot_list):
        inside = os.path.join(real, os.path.relpath(place, folder)) if outputs else place
        own = _own_files(place, folders, names)
        folders[:] = [name for name in folders if not _is_hidden(name) and not _is_output(inside, name, outputs)]
        links += [path for name in folders if os.path.islink(path := os.path.join(place, name))]
        for name in names:
            if not _is_hidden(name):
                is_own = name in own or _is_output(inside, name, outputs)
                (left_out if is_own else kept).append(os.path.join(place, name))
    # A link to a file that is not there stays, so that its reader says so.
    kept = [path for path in kept if os.path.isfile(path) or not os.path.exists(path)]
    _tell_of_links(sorted(links), real)
    return sorted(kept), sorted(left_out)


def _tell_of_links(links: Sequence[str], real: str) -> None:
    away = [link for link in links if not f"{os.path.realpath(link)}/".startswith(f"{real}/")]
    if away:
        more = f" and {len(away) - 1} more" if away[1:] else ""
        warn(f"{away[0]}{more}: a link to a folder, which is not followed; name the folder itself to read it too")


def _cannot_list(error: OSError) -> None:
    """os.walk leaves out what it cannot list, unless this raises."""
    if os.path.basename(error.filename) != _LOST:
        raise file_error(error.errno or 0, f"{error.filename}: cannot be read: {error.strerror}") from None


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _is_output(place: str, name: str, outputs: Collection[str]) -> bool:
    if _UNFINISHED.fullmatch(name):
        return True
    return bool(outputs) and os.path.normpath(os.path.join(place, name)) in outputs


def _own_files(place: str, folders: Sequence[str], names: Sequence[str]) -> Collection[str]:
    """Which of the names in a folder are those of files that pybpe wrote."""
    own: set[str] = set()
    for manifest in _MANIFESTS:
        if manifest in names:
            own |= set(_listed(os.path.join(place, manifest)))
    if FOLDER in folders:
        own |= {name for name in names if _TOKEN_FILE.fullmatch(name)}
    if own or "tokenizer_config.json" in names:
        own |= {name for name in names if name in _TOKENIZER_FILES}
    return own


def _listed(manifest: str) -> Iterator[str]:
    """The files that a manifest lists, and the manifest; nothing if it is none of pybpe's."""
    try:
        with open(manifest, encoding="utf-8", errors="surrogateescape") as stream:
            content = json.load(stream)
        if content["tokenizer"]["fingerprint"] and content["settings"]:
            records = [record for split in content["shards"].values() for record in split] + content["files"]
            yield from [str(record["file"]) for record in records] + [os.path.basename(manifest)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
