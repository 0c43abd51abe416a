"""stumpy, whose functions are compiled once per machine and not once per process."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

_COMPILED: Final = ("core", "stump")
"""The modules of stumpy that are used, and whose functions are worth keeping."""


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


def _keep_compiled(function: object) -> None:
    try:
        function.enable_caching()  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        return  # numba is told not to compile, or may not write anywhere: then without
