"""Finds the documents in token files. Their lengths go into a file without a name, since there may be more than fit in
memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from ..._numpy import Array, numpy
from ...errors import FormatError, file_errors
from ..token_files import TokenStream

_BLOCK = 1 << 22  # tokens or lengths processed at once


class Documents:
    """The documents of one split of a source, numbered from 0.

    Args:
        stream: the tokens.
        lengths: the tokens of each document, its mark included: uint64.
        eot: where the mark is: "prepend" or "append".
    """

    def __init__(self, stream: TokenStream, lengths: Array, eot: str) -> None:
        self.stream, self.lengths = stream, lengths
        self._shift = 1 if eot == "append" else 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """The number of tokens, marks included."""
        return len(self.stream)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yields the number of a document, and the lengths of it and of those that follow."""
        for at in range(0, len(self.lengths), _BLOCK):
            yield at, self.lengths[at : at + _BLOCK]

    def tokens_of(self, start: int, stop: int, mark: int) -> Array:
        """Returns the tokens from `start`, where a document begins, to `stop`, as a view of the file if possible, but
        with the mark of each document before it: if files have it after documents, the mark of the document before."""
        if start or not self._shift:
            return self.stream.slice(start - self._shift, stop - self._shift)
        return numpy.append(numpy.array([mark], dtype=self.stream.dtype), self.stream.slice(0, stop - 1))


def find_documents(stream: TokenStream, mark: int, eot: str, n_vocab: int, folder: str) -> Documents:
    """Finds the documents of a stream.

    Args:
        stream: the tokens.
        mark: the id of the mark.
        eot: where it is: "prepend" or "append".
        n_vocab: the number of tokens of the vocabulary.
        folder: where the file of their lengths is.

    Raises:
        FormatError: the stream does not begin or end with a mark, as it must; two marks follow each other; or an id is
            not in the vocabulary.
    """
    with file_errors(folder, "cannot be written"), tempfile.TemporaryFile(dir=folder) as file:
        for lengths in _lengths(stream, mark, eot == "append", n_vocab):
            file.write(lengths.astype("u8").tobytes())
        file.flush()
        # An empty file cannot be mapped.
        found = numpy.memmap(file, dtype="u8", mode="r").view(numpy.ndarray) if file.tell() else numpy.empty(0, "u8")
    return Documents(stream, found, eot)


def _lengths(stream: TokenStream, mark: int, is_append: bool, n_vocab: int) -> Iterator[Array]:
    """Yields the lengths of documents, marks included, in blocks."""
    begin = 0  # where the last document began that has not been yielded
    for at in range(0, len(stream), _BLOCK):
        ids = stream.slice(at, min(at + _BLOCK, len(stream)))
        if int(ids.max()) >= n_vocab:
            fault = f"the id {int(ids.max())} is not in the vocabulary, which ends at {n_vocab - 1}"
            raise _fault(stream, at + int(ids.argmax()), fault)
        if at == 0 and not is_append and ids[0] != mark:
            raise _fault(stream, 0, "the first token is not the end of text that must begin each document")
        edges = numpy.flatnonzero(ids == mark) + at + is_append  # where documents begin or have ended
        borders = numpy.append(begin, edges[edges > begin])
        begin = int(borders[-1])
        yield _checked(stream, borders)
    if begin < len(stream):
        if is_append:
            raise _fault(stream, len(stream), "the last token is not the end of text that must end each document")
        yield _checked(stream, numpy.array([begin, len(stream)]))


def _checked(stream: TokenStream, borders: Array) -> Array:
    lengths = numpy.diff(borders)
    if len(lengths) and int(lengths.min()) < 2:
        raise _fault(stream, int(borders[int(lengths.argmin())]), "a document has no tokens except its end of text")
    return lengths


def _fault(stream: TokenStream, token: int, fault: str) -> FormatError:
    return FormatError(f"{os.path.dirname(stream.paths[0])}: token {token}: {fault}: write the data again")
