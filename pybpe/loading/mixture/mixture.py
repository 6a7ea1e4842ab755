"""What users mix: sources by name, and weights. Opens the sources and checks that they belong together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._numpy import numpy
from ...arguments import instance, shown, whole_number
from ...errors import ArgumentError
from ...tokenizer import Tokenizer
from ...tokens.finished import check_finished
from ...tokens.formats import FORMATS
from ...tokens.manifest import Manifest, split_paths
from ...tokens.token_files import Paths
from ..windows import PackedSequences
from .blending import Described, Weights, checked_weights


@dataclass(frozen=True)
class Mixture:
    """Sources of tokens that training sees mixed by weight, for `create_dataloader`.

    Attributes:
        sources: by name: a folder that `binarize`, `prepare` or `pack` wrote; or token files or an array of ids, as
            PackedSequences takes them. The order of the names does not matter.
        weights: the share of each source in every epoch, by name. Only their ratio counts; 0 leaves a source out. None
            means the number of its windows, so that an epoch sees each window once. They can change between epochs:
            `loader.sampler.set_weights(...)`.
        split: the split of folders to read.
        epoch_samples: the number of windows in an epoch, over all processes; None means as many as there are in all
            sources.

    Raises:
        ArgumentError: a value is invalid.
    """

    sources: Mapping[str, Paths | numpy.ndarray[Any, Any]]
    weights: Weights | None = None
    split: str = "train"
    epoch_samples: int | None = None

    def __post_init__(self) -> None:
        instance("sources", self.sources, Mapping, "a mapping from names to folders, token files or arrays")
        if not self.sources or not all(isinstance(name, str) for name in self.sources):
            raise ArgumentError(f"sources must have names that are strings, not {shown(list(self.sources))}")
        if self.weights is not None:
            checked_weights(self.weights, sorted(self.sources))
        if self.epoch_samples is not None:
            whole_number("epoch_samples", self.epoch_samples, 1)

    def facts(self, opened: Mapping[str, PackedSequences]) -> tuple[list[Described], Weights, int]:
        """Returns descriptions of the opened sources, the weights, and the samples per epoch."""
        described = [Described(name, len(each), each.stream.fingerprint()) for name, each in opened.items()]
        weights = self.weights or {each.name: each.windows for each in described}
        return described, weights, self.epoch_samples or sum(each.windows for each in described)


def open_sources(mixture: Mixture, length: int, tokenizer: Tokenizer | None) -> dict[str, PackedSequences]:
    """Opens the sources of a mixture, sorted by name.

    Raises:
        ArgumentError: a folder has no such split, or files without ids in a row; its run has not finished; a source is
            too short; another tokenizer made one of them. FileError, FormatError: see TokenStream and Manifest.
    """
    opened = {name: _open(name, mixture.sources[name], mixture.split, length) for name in sorted(mixture.sources)}
    made_by = {name: each.stream.made_by[1] for name, each in opened.items() if each.stream.made_by is not None}
    for name, fingerprint in made_by.items():
        first, expected = next(iter(made_by.items()))
        if fingerprint != expected:
            raise ArgumentError(f"{first} and {name} have different tokenizers: encode all sources with one")
    if tokenizer is not None:
        for each in opened.values():
            each.stream.check_tokenizer(tokenizer)
    return opened


def _open(name: str, source: Any, split: str, length: int) -> PackedSequences:
    is_folder = isinstance(source, (str, os.PathLike)) and os.path.isdir(source)
    windows = PackedSequences(folder_paths(os.fspath(source), split) if is_folder else source, length)
    if not len(windows):
        raise ArgumentError(
            f"{name}: {len(windows.stream)} tokens are too few for one window, which needs {length + 1}"
        )
    return windows


def folder_paths(folder: str, split: str = "train") -> list[str]:
    """Returns the token files of one split of a folder.

    Raises:
        ArgumentError: its files do not hold ids in a row; its run has not finished. Otherwise see Manifest.load and
            split_paths.
    """
    manifest = Manifest.load(folder)
    check_finished(folder)
    form = FORMATS.get(str(manifest.settings.get("format")))
    if form is None or not form.is_flat:
        flat = ", ".join(name for name, each in FORMATS.items() if each.is_flat)
        raise ArgumentError(f"{folder}: its files are {manifest.settings.get('format')}, not one of {flat}")
    return split_paths(folder, manifest, split)
