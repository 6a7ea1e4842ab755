"""Modules that load at their first use: the modules of a package, so that a program that encodes never loads the
trainer, and some of the standard library and others that take milliseconds, which most programs do not need. Also
attributes that are computed at their first use, and the errors for attributes that are not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

_MOST_IMPORTS = 10_000  # one after the other, that a fork waits for
_bootstrap: Any = import_module("importlib._bootstrap")

if TYPE_CHECKING:
    import ctypes as ctypes
    import hashlib as hashlib
    import pickle as pickle
    import shutil as shutil
    import tarfile as tarfile
    import tempfile as tempfile
    from concurrent import futures as futures
    from functools import cached_property as cached_property

    import numpy as numpy
    import regex as regex

    Array = numpy.ndarray[Any, Any]
else:

    class _Module:
        def __init__(self, name: str) -> None:
            self._module_name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self._module_name), name)
            setattr(self, name, value)  # which is found without __getattr__ from now on
            return value

    class cached_property:  # noqa: N801  named after the one of functools
        """Does the same as functools.cached_property, without a lock. That one has a lock for all objects before Python
        3.12, so a child that is forked while another thread computes a value would wait for it forever. Two threads may
        both compute a value. They get the same object."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function, self._name, self.__doc__ = function, function.__name__, function.__doc__

        def __get__(self, instance: Any, owner: type) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self._name, self._function(instance))

    hashlib, pickle, regex = _Module("hashlib"), _Module("pickle"), _Module("regex")
    ctypes, shutil, tarfile, tempfile = _Module("ctypes"), _Module("shutil"), _Module("tarfile"), _Module("tempfile")
    futures, numpy = _Module("concurrent.futures"), _Module("numpy")
    Array = Any


def _end_imports() -> None:
    """Waits until other threads have no import in progress. In a child that is forked during one, nothing would end it,
    and the child would wait forever when it imports the same module."""
    for _ in range(_MOST_IMPORTS):
        locks = {name: lock for name, ref in list(_bootstrap._module_locks.items()) if (lock := ref()) is not None}
        if all(lock.owner in (None, get_ident()) for lock in locks.values()):
            return
        for name in locks:
            _bootstrap._lock_unlock_module(name)  # returns at once if waiting would be a deadlock


if hasattr(os, "register_at_fork") and hasattr(_bootstrap, "_module_locks"):
    os.register_at_fork(before=_end_imports)


def lazy(
    package: str, names: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package: `names` maps modules to the names in them that are the
    package's too, separated by spaces. `modules` are public themselves."""
    homes = {name: module for module, some in names.items() for name in some.split()}

    def get(name: str) -> Any:
        if name in homes:
            found = getattr(import_module(f"{package}.{homes[name]}"), name)
            setattr(sys.modules[package], name, found)  # so the next use does not come here
            return found
        if name in modules or name in names:
            return import_module(f"{package}.{name}")
        raise unknown_attribute(f"module {package!r}", name)

    return get, lambda: sorted([*homes, *modules])


# ----------------------------------------------------------------------------------------------------
# Names of other libraries for things that pybpe also has. Errors mention our names. The others are not aliases.


_Class = TypeVar("_Class", bound=type)
_OURS = {  # our name -> the names in tiktoken, tokenizers, transformers, nanochat, minbpe and SentencePiece
    "Tokenizer.from_file(path), which takes a folder too, or pybpe.get_encoding(name) for OpenAI's encodings": "load"
    " load_tokenizer from_file from_str from_buffer from_pretrained from_directory from_files AutoTokenizer",
    "pybpe.train(inputs, vocab_size=N, special_tokens=[...]), which makes a new Tokenizer": "train train_from_files"
    " train_from_iterator train_tokenizer BpeTrainer ByteLevelBPETokenizer BasicTokenizer RegexTokenizer",
    "pybpe.train(iter(texts), vocab_size=N, like=tok)": "train_new_from_iterator",
    "Tokenizer(vocab, merges, special_tokens), or get_encoding(name)": "Encoding BPE BPETokenizer",
    "get_encoding(name): cl100k_base for GPT-4, o200k_base for GPT-4o": "encoding_for_model encoding_name_for_model"
    " get_encoding list_encoding_names",
    "token_to_id(token)": "encode_single_token convert_tokens_to_ids encode_special piece_to_id get_bos_token_id",
    "id_to_token(i)": "convert_ids_to_tokens id_to_piece",
    "decode_single_token_bytes(i)": "token_bytes decode_tokens_bytes",
    "byte_lengths()": "get_token_bytes",
    "model.vocab": "vocab token_byte_values",
    "vocab_size": "n_vocab get_vocab_size get_piece_size max_token_value",
    "eot_token": "eos_token_id eos_id bos_id",
    "special_tokens": "special_tokens_set all_special_tokens get_special_tokens is_special_token",
    "encode(text), a method of a Tokenizer": "encode tokenize encode_plus encode_as_ids encode_as_pieces",
    "encode_batch(texts)": "batch_encode_plus encode_ordinary_batch",
    "decode(ids), a method of a Tokenizer": "decode decode_ids convert_tokens_to_string",
    "decode_batch(batch)": "batch_decode decode_bytes_batch",
    "save(path, format)": "export save_bin save_files",
    "replace(template=..., chat_template=..., dropout=...)": "post_processor with_template with_dropout",
    "save_pretrained(folder), for transformers, which has it": "apply_chat_template",
    "extend(special_tokens), which makes a new Tokenizer": "add_tokens add_special_tokens register_special_tokens",
    "model, the tokenizer as plain data, which has it": "normalizer dtype template chat_template dropout",
    "prune(vocab_size=n)": "with_vocab_size",
    "errors, as in pybpe.errors.ArgumentError": "ArgumentError FileError FormatError LimitError UnsupportedError",
}


def unknown_attribute(owner: str, name: str) -> AttributeError:
    """Returns the error to raise if `owner`, the package or a Tokenizer, does not have an attribute."""
    here = next((f": in pybpe it is {ours}" for ours, theirs in _OURS.items() if name in theirs.split()), "")
    return AttributeError(f"{owner} has no attribute {name!r}{here}")


class TheirName:
    """An attribute that is not there. It raises the error that tells its name here. (A method `__getattr__`
    would do that too, but with it every access to an attribute takes longer, in CPython 3.10 by 0.1 microseconds.)"""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> None:
        name = repr(owner.__name__)
        raise unknown_attribute(f"type object {name}" if instance is None else f"{name} object", self._name)


def answer_their_names(owner: _Class) -> _Class:
    """Gives a class a TheirName for every name that it lacks."""
    for name in " ".join(_OURS.values()).split():
        if not hasattr(owner, name):
            setattr(owner, name, TheirName(name))
    return owner
