"""Keeps pandas out of a command that is to answer at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Refuse:
    """Says of pandas that it is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let nobody import pandas meanwhile, unless that has happened.

    Arrow does so when it first sees a value of Python's, in order to know those of pandas: that
    takes longer than most questions, and there are none here.
    """
    if "pandas" in sys.modules:
        yield
        return
    refuse = _Refuse()
    sys.meta_path.insert(0, refuse)
    try:
        yield
    finally:
        sys.meta_path.remove(refuse)
