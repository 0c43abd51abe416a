"""stumpy, whose functions are compiled once per machine and not once per process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

_COMPILED: Final = ("core", "stump")
"""The modules of stumpy that are used, and whose functions are worth keeping."""
_ALONE: Final = threading.Lock()
"""Not every way in which numba runs threads can be entered twice at a time."""


@cache
def load_stumpy() -> ModuleType:
    """The package. It takes two seconds to import, and what is compiled is kept on disk by numba.

    The matrix profile takes over twenty seconds to compile, and Spark has many short-lived
    processes. numba keeps its files beside stumpy's own, or in NUMBA_CACHE_DIR.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stumpy = import_module("stumpy")
        for module, function in stumpy.cache.get_njit_funcs():
            if module in _COMPILED:
                _keep_compiled(getattr(import_module(f"stumpy.{module}"), function))
    return stumpy


@contextmanager
def one_thread() -> Iterator[ModuleType]:
    """The package, to be used by one thread: the cores are shared by all keys and queries.

    Threads that wait for each other on busy cores cost more than the work that they share.
    """
    stumpy, numba = load_stumpy(), import_module("numba")
    with _ALONE:
        threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            yield stumpy
        finally:
            numba.set_num_threads(threads)


def _keep_compiled(function: object) -> None:
    try:
        function.enable_caching()  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        return  # numba is told not to compile, or may not write anywhere: then without
