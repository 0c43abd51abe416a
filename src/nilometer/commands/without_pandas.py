"""Keeps pandas out of a command that must answer quickly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Refuse:
    """Makes pandas appear not to be installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Prevent the import of pandas meanwhile, unless it is already imported.

    Arrow imports it at the first Python value, in order to recognize pandas values: that takes
    longer than most queries, and there are none here.
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
