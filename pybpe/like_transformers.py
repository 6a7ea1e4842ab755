"""A fast tokenizer of transformers that encodes and decodes with pybpe, for programs written for transformers.

transformers is optional (pip install 'pybpe[hf]'): this module can be imported without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from ._lazy import Array, cached_property, numpy
from .arguments import instance
from .errors import ArgumentError, FormatError, MissingExtraError, UnsupportedError, warn
from .formats import pretrained, tokenizer_json
from .formats.vocab_merges import to_bytes
from .model import refuse_dropout
from .tokenizer import Tokenizer, of_model

_ENCODING = ["normalizer", "pre_tokenizer", "post_processor"]  # the parts of a tokenizers.Tokenizer that affect ids
_DECODING = ["decoder"]


def _of_transformers(name: str) -> Any:
    """Returns a class of transformers. Without transformers, no tokenizer is ever made."""
    try:
        import transformers
    except ImportError:
        return object
    return getattr(transformers, name)


_BatchEncoding = _of_transformers("BatchEncoding")


class _Made(NamedTuple):
    """A Tokenizer, and its sources."""

    backend: Any  # the tokenizers.Tokenizer
    states: list[list[Any]]  # the results of `_state` for its parts
    tokenizer: Tokenizer | None  # None if pybpe cannot do the same
    around: tuple[list[int], list[int]]  # the ids that the template puts before and after a text
    # its method. None also if the backend has no decoder, or one that changes a special token, because it takes "Ġ" and
    # its like for bytes.
    decode: Callable[..., str] | None

    def encode(
        self, texts: Sequence[bytes], add_special_tokens: bool, most: int | None, cuts_left: bool, arrays: bool
    ) -> list[Any] | None:
        """Returns the texts' ids with the template's ids: `most` of them, from one end of the text. They are
        lists, or arrays. None if there is no room for a text, or no tokenizer."""
        if self.tokenizer is None:
            return None
        rows: list[Any]
        if arrays:
            ids, row_offsets = self.tokenizer.encode_batch_to_numpy(texts)
            rows = [ids[start:end] for start, end in pairwise(row_offsets.tolist())]
        else:
            rows = self.tokenizer.encode_batch(texts)
        before, after = self.around if add_special_tokens else ([], [])
        if most is not None:
            most -= len(before) + len(after)
            if most < 1:
                return None
            rows = [row[-most:] if cuts_left else row[:most] for row in rows]
        if not before and not after:
            return rows
        if arrays:
            ends = [numpy.array(ids, numpy.int64) for ids in (before, after)]
            return [numpy.concatenate([ends[0], row, ends[1]]) for row in rows]
        return [[*before, *row, *after] for row in rows]


class _Kept:
    """The Tokenizer that was made last. A copy or a pickle keeps none: `datasets` finds its results by a hash of the
    pickle, which calls must not change."""

    def __init__(self) -> None:
        self.made: _Made | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _Kept, ()

    def of(self, backend: Any, parts: list[str]) -> _Made:
        """Returns an object that encodes or decodes as the backend does now, because programs replace its parts."""
        made = self.made
        if made is None or made.backend is not backend or _state(backend, parts) not in made.states:
            made = self.made = _make(backend)
        return made


def _make(backend: Any) -> _Made:
    states = [_state(backend, _ENCODING), _state(backend, _DECODING)]
    try:
        model = tokenizer_json.loads(backend.to_str(), "this tokenizer", of_transformers=True)
        refuse_dropout(model, "encoding needs a seed")
    except (FormatError, UnsupportedError) as error:
        warn(f"transformers encodes and decodes, at its own speed, because of {error}")
        return _Made(backend, states, None, ([], []), None)
    ids = [-1] if model.template is None else model.template.apply(model.specials, [-1])
    around = ids[: ids.index(-1)], ids[ids.index(-1) + 1 :]
    tokenizer = of_model(model)
    decodes = backend.decoder is not None and all(map(_is_left, model.specials))
    return _Made(backend, states, tokenizer, around, tokenizer.decode if decodes else None)


def _state(backend: Any, parts: list[str]) -> list[Any]:
    found = [getattr(backend, part) for part in parts]
    states = [part if part is None else part.__getstate__() for part in found]
    return [parts, backend.get_vocab_size(), getattr(backend.model, "dropout", None), *states]


def _is_left(special: str) -> bool:
    try:
        return to_bytes(special) == special.encode()
    except KeyError:
        return True


def _utf8_texts(text: Any) -> list[bytes]:
    """Returns one text or several as UTF-8, or none if they are something else."""
    texts = [text] if isinstance(text, str) else text
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        return []
    try:
        return [str.encode(text) for text in texts]
    except UnicodeEncodeError:  # lone surrogates
        return []


def _listed(ids: Any) -> Any:
    return ids.tolist() if hasattr(ids, "tolist") else ids


def _is_set(value: Any) -> bool:
    return value is not None and not (isinstance(value, int) and value == 0)


def _padded(rows: list[list[int]], width: int, pad: int, on_left: bool) -> tuple[list[list[int]], list[list[int]]]:
    """Returns rows of ids filled up to a width, and rows that have 1 for an id and 0 for padding."""
    fill, mask = [width - len(row) for row in rows], [[1] * len(row) for row in rows]
    if on_left:
        return [[pad] * n + row for n, row in zip(fill, rows)], [[0] * n + row for n, row in zip(fill, mask)]
    return [row + [pad] * n for n, row in zip(fill, rows)], [row + [0] * n for n, row in zip(fill, mask)]


def _padded_arrays(rows: list[Array], width: int, pad: int, on_left: bool) -> tuple[Array, Array]:
    """Like `_padded`, as int64. No row may be longer than the width."""
    lengths = numpy.fromiter(map(len, rows), numpy.int64)[:, None]
    column = numpy.arange(width)
    mask = column >= width - lengths if on_left else column < lengths
    ids = numpy.full(mask.shape, pad, numpy.int64)
    ids[mask] = numpy.concatenate(rows)
    return ids, mask.astype(numpy.int64)


class _Encodings(Sequence[Any]):
    """The tokenizers.Encoding of every text of a call, which transformers computes when one is needed."""

    def __init__(self, count: int, compute: Callable[[], Any]) -> None:
        self._count, self._compute = count, compute

    @cached_property
    def _computed(self) -> list[Any]:
        return list(self._compute().encodings)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        return self._computed[item]

    def __reduce__(self) -> tuple[object, ...]:
        return list, (self._computed,)


class PreTrainedTokenizerFast(_of_transformers("PreTrainedTokenizerFast")):  # type: ignore[misc]
    """A transformers.PreTrainedTokenizerFast with the same methods, results and errors, at pybpe's speed.

    Make one with `from_pybpe(tokenizer)` or `from_pretrained(folder)`. pybpe encodes a text or a list of texts, with
    padding and truncation, and decodes lists of ids. All else is transformers' own code: pairs, words, overflowing
    tokens, offsets, and what a BatchEncoding finds when it is asked, such as `word_ids`. You may change the tokenizer
    with its methods, or set the normalizer, pre_tokenizer, post_processor and decoder of its `backend_tokenizer`, and
    the dropout of its model, but do not change that model otherwise, nor call `backend_tokenizer.add_special_tokens`.

    If the tokenizer has, or gets, a part that pybpe does not support, or a dropout, the next call warns, and
    transformers does all the work.
    """

    # There is no __init__: transformers would then not read tokenizer.json as a whole.
    def __new__(cls, *args: Any, **kwargs: Any) -> PreTrainedTokenizerFast:
        if _BatchEncoding is object:
            raise MissingExtraError("transformers is not installed: pip install 'pybpe[hf]'")
        made: PreTrainedTokenizerFast = super().__new__(cls)
        made._kept = _Kept()
        return made

    @classmethod
    def from_pybpe(cls, tokenizer: Tokenizer, **kwargs: Any) -> PreTrainedTokenizerFast:
        """Returns a tokenizer with the ids, the special tokens and the chat template of a `Tokenizer`.

        Args:
            kwargs: as for transformers, such as pad_token="<pad>" or model_max_length=1024.

        Raises:
            UnsupportedError: as in `Tokenizer.to_hf`.
            MissingExtraError: transformers is not installed.
        """
        instance("tokenizer", tokenizer, Tokenizer, "a Tokenizer")
        model = tokenizer.model
        config = pretrained.described(replace(model, config=pretrained.without_class(model.config)), {})[1]
        return cls(**{"tokenizer_object": tokenizer.to_hf(), **config, **kwargs})

    def _add_tokens(self, *args: Any, **kwargs: Any) -> Any:
        self._kept.made = None  # an ordinary token may become special, which no state shows
        return super()._add_tokens(*args, **kwargs)

    def __call__(self, text: Any = None, *args: Any, **kwargs: Any) -> Any:
        data = None if args else self._data(text, **kwargs)
        if data is None:
            return super().__call__(text, *args, **kwargs)
        call, settings, made = super().__call__, self._settings(kwargs), self._kept.made
        texts = text if isinstance(text, str) else list(text)

        def again() -> Any:
            if self._settings(kwargs) != settings or self._kept.of(self._tokenizer, _ENCODING) is not made:
                raise ArgumentError("the tokenizer has changed since it encoded these texts: encode them again")
            return call(texts, **kwargs)

        encodings = _Encodings(1 if isinstance(text, str) else len(texts), again)
        return _BatchEncoding(data, encodings, kwargs.get("return_tensors"), n_sequences=1)

    def _settings(self, kwargs: Mapping[str, Any]) -> tuple[object, ...]:
        pad = self.pad_token_id if kwargs.get("padding") else None
        return self.padding_side, self.truncation_side, self.model_max_length, pad

    def encode(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        data = None
        if not args and isinstance(text, str):
            data = self._data(text, **{**kwargs, "return_attention_mask": False})
        if data is None:
            return super().encode(text, *args, **kwargs)
        tensors = kwargs.get("return_tensors")
        return data["input_ids"] if tensors is None else _BatchEncoding(data, None, tensors)["input_ids"]

    def _data(
        self,
        text: Any,
        *,
        add_special_tokens: bool = True,
        padding: Any = False,
        truncation: Any = None,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_attention_mask: bool | None = None,
        verbose: bool = True,
        **others: Any,
    ) -> dict[str, Any] | None:
        """Returns the content of the BatchEncoding of a call: lists, or arrays if tensors are wanted. None if
        transformers must compute it."""
        texts, names = _utf8_texts(text), self.model_input_names
        if not texts or self.split_special_tokens or "token_type_ids" in names or any(map(_is_set, others.values())):
            return None
        if padding is not False or _is_set(truncation) or max_length is not None:
            padding, truncation, max_length, _ = self._get_padding_truncation_strategies(
                padding, truncation, max_length, pad_to_multiple_of, verbose
            )
        side = padding_side or self.padding_side
        wrong = not isinstance(add_special_tokens, bool) or (pad_to_multiple_of or 0) < 0
        if wrong or truncation == "only_second" or side not in ("left", "right"):
            return None
        cuts = _is_set(truncation) and truncation != "do_not_truncate"
        made = self._kept.of(self._tokenizer, _ENCODING)
        most, cuts_left = max_length if cuts else None, self.truncation_side == "left"
        rows = made.encode(texts, add_special_tokens, most, cuts_left, return_tensors is not None)
        if rows is None:
            return None
        pads, on_left = padding not in (False, "do_not_pad"), side == "left"
        width = (max_length or 0) if padding == "max_length" else max(map(len, rows))
        width += -width % (pad_to_multiple_of or 1)
        sizes = [max(len(row), width) if pads else len(row) for row in rows]
        if return_tensors is not None and len(set(sizes)) > 1:
            return None
        for size in sizes:
            if size > self.model_max_length:
                self._eventual_warn_about_too_long_sequence(range(size), max_length, verbose)
        found: Any
        if return_tensors is not None:
            found = _padded_arrays(rows, sizes[0], self.pad_token_id if pads else 0, on_left)
        elif pads:
            found = _padded(rows, width, self.pad_token_id, on_left)
        else:
            found = rows, [[1] * size for size in sizes]
        data = dict(zip(("input_ids", "attention_mask"), found))
        if not ("attention_mask" in names if return_attention_mask is None else return_attention_mask):
            del data["attention_mask"]
        if return_tensors is None and isinstance(text, str):
            return {name: value[0] for name, value in data.items()}
        return data

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any) -> Any:
        texts = self._texts([token_ids], skip_special_tokens, **kwargs)
        return super().decode(token_ids, skip_special_tokens, **kwargs) if texts is None else texts[0]

    def batch_decode(self, sequences: Any, skip_special_tokens: bool = False, *args: Any, **kwargs: Any) -> Any:
        texts = None if args else self._texts(sequences, skip_special_tokens, **kwargs)
        return super().batch_decode(sequences, skip_special_tokens, *args, **kwargs) if texts is None else texts

    def _texts(
        self,
        rows: Any,
        skip_special_tokens: bool,
        *,
        clean_up_tokenization_spaces: bool | None = None,
        spaces_between_special_tokens: Any = None,  # which transformers ignores
        **others: Any,
    ) -> list[str] | None:
        """Returns the texts of rows of ids, or None if transformers must decode them."""
        cleans = clean_up_tokenization_spaces
        if others or (self.clean_up_tokenization_spaces if cleans is None else cleans):
            return None
        decode, rows = self._kept.of(self._tokenizer, _DECODING).decode, _listed(rows)
        if decode is None or not isinstance(rows, (list, tuple)) or not rows:  # versions differ for no rows
            return None
        lists = [_listed(row) for row in rows]
        try:
            if all(isinstance(row, (list, tuple)) for row in lists):
                return [decode(row, skip_special_tokens=skip_special_tokens) for row in lists]
        except ArgumentError:
            pass
        return None
