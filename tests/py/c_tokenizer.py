"""A tokenizer.json in the C library alone, as a program without Python uses it."""

from pybpe._binding import Vocab
from pybpe._binding.core import call, ffi, lib, make_handle


class CTokenizer:
    """Loads and encodes with C. Raises FormatError for a file that C does not read."""

    def __init__(self, file: bytes) -> None:
        load, free = lib.pybpe_vocab_load_mem, lib.pybpe_vocab_free
        self.vocab = Vocab(make_handle("pybpe_vocab", load, free, file, len(file), ffi.NULL))
        new, free = lib.pybpe_encoder_new, lib.pybpe_encoder_free
        self._encoder = make_handle("pybpe_encoder", new, free, self.vocab.c, ffi.NULL, 0, ffi.NULL)
        self._cache = make_handle("pybpe_cache", lib.pybpe_cache_new, lib.pybpe_cache_free, self._encoder, ffi.NULL)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text with all special tokens."""
        data = text.encode()
        room = 12 * len(data) + 1
        ids, count = ffi.new("uint32_t[]", room), ffi.new("size_t *")
        specials = lib.pybpe_encoder_specials(self._encoder)
        call(lib.pybpe_encode, self._encoder, self._cache, specials, data, len(data), ids, 4, room, count)
        return ffi.unpack(ids, count[0]) if count[0] else []

    def word_ends(self, data: bytes) -> list[int]:
        """Returns the ends of the words of a text as byte offsets."""
        pretok, room, found = lib.pybpe_encoder_pretok(self._encoder), len(data) + 64, [0]
        while found[-1] < len(data):
            ends = ffi.new("size_t[]", room)
            found += ffi.unpack(ends, lib.pybpe_pretok_split(pretok, data, len(data), found[-1], ends, room))
        return found[1:]
