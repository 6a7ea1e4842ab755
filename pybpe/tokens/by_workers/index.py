"""Where the tokens of each split are, over all bundles."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from .area import Area
from .bundles import Bundle


class BundlePlace(NamedTuple):
    """The tokens of a split in a bundle.

    Attributes:
        bundle: the name of the bundle's file.
        tokens: how many there are in the split, without those that are dropped.
        dropped: how many tokens at the start of the bundle's do not belong to the split.
        documents: how many documents that begin in the bundle's tokens do not begin in those of the split.
    """

    bundle: str
    tokens: int
    dropped: int
    documents: int


def places(bundles: Sequence[Bundle], split: int) -> Iterator[BundlePlace]:
    """Yields the places of a split's tokens. Decides for each bundle whether it begins inside a document."""
    is_open = 0
    for bundle in bundles:
        start = bundle.starts[split]
        dropped = start.dropped[is_open]
        documents = start.documents if is_open else 0
        yield BundlePlace(bundle.name, bundle.tokens[split] - dropped, dropped, documents)
        is_open = start.is_open[is_open]


class Index:
    """The places of a split's tokens, for looking up.

    Args:
        found: all of them, in order.
    """

    def __init__(self, found: Sequence[BundlePlace]) -> None:
        self.places = found
        self._ends = array("Q", accumulate(place.tokens for place in found))

    @property
    def tokens(self) -> int:
        """The number of tokens of the split."""
        return self._ends[-1] if self._ends else 0

    def bundle_of(self, token: int) -> int:
        """Returns the number of the bundle that has a token."""
        return bisect_right(self._ends, token)

    def between(self, first: int, last: int) -> Iterator[tuple[BundlePlace, tuple[int, int]]]:
        """Yields each place that has tokens from number `first` up to `last`, with the range of these tokens in the
        bundle's."""
        number = self.bundle_of(first)
        while first < last:
            place, end = self.places[number], self._ends[number]
            offset = place.dropped + place.tokens - end  # from a number in the split to one in the bundle
            stop = min(last, end)
            if stop > first:
                yield place, (first + offset, stop + offset)
            first, number = stop, number + 1

    def to_bytes(self) -> bytes:
        """Returns the index as a file's content."""
        return json.dumps(self.places).encode()


@lru_cache(maxsize=3)
def load_index(area: Area, name: str) -> Index:
    """Reads an index that was kept in the area. A process reads it once."""
    return Index([BundlePlace(*place) for place in json.loads(area.kept(name))])
