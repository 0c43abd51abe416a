"""The values of any column as strings: what functions over symbols compare and report."""

from __future__ import annotations

import json

import pyarrow as pa

from nilometer.kernels.canonical import canonical
from nilometer.kernels.json_values import values_of


def symbol_texts(column: pa.Array) -> list[str | None]:
    """A string for each value, the same for equal values; None for NULL.

    >>> symbol_texts(pa.array([True, None])), symbol_texts(pa.array([-0.0, 2.5]))
    (['true', None], ['0.0', '2.5'])
    """
    return [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values_of(canonical(column))
    ]
