"""Modules that load at their first use: the modules of a package, so that a program that encodes never loads the
trainer, and some of the standard library and others that take milliseconds, which most programs do not need. Also
attributes that are computed at their first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .other_libraries import unknown_attribute

_MOST_IMPORTS = 10_000  # one after the other, that a fork waits for
_bootstrap: Any = import_module("importlib._bootstrap")

if TYPE_CHECKING:
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
    shutil, tarfile, tempfile = _Module("shutil"), _Module("tarfile"), _Module("tempfile")
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
