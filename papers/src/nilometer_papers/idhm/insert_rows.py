"""Rows of an Arrow table as INSERT statements of the length that a server accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

_MOST_WORDS: Final = 9_000
_MOST_CHARACTERS: Final = 60_000


def insert_statements(table: str, rows: pa.Table) -> Iterator[str]:
    """Statements that store all rows in a table whose columns have the same order.

    >>> rows = pa.table({"name": ["it's"], "counts": [[1.0, -0.5]]})
    >>> next(insert_statements("Lines", rows))
    "INSERT INTO Lines VALUES ('it''s', ARRAY(1e+00, -5e-01))"
    """
    part: list[str] = []
    words = characters = 0
    for row in rows.to_pylist():
        text = "(" + ", ".join(map(_constant, row.values())) + ")"
        length = 2 * text.count(",") + 2 * text.count("(") + text.count("-") + 4
        if part and (words + length > _MOST_WORDS or characters + len(text) > _MOST_CHARACTERS):
            yield _statement(table, part)
            part, words, characters = [], 0, 0
        part.append(text)
        words += length
        characters += len(text) + 2
    if part:
        yield _statement(table, part)


def _statement(table: str, rows: list[str]) -> str:
    return f"INSERT INTO {table} VALUES {', '.join(rows)}"


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).upper()
        case float():
            return _number(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case list():
            return "ARRAY(" + ", ".join(map(_constant, value)) + ")"
    raise TypeError(f"no constant for {value!r}")


def _number(value: float) -> str:
    """A text that SQL parses as exactly the same DOUBLE."""
    digits, _, exponent = f"{value:e}".partition("e")
    if float(f"{digits}e{exponent}") != value:
        digits, _, exponent = f"{value:.16e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{exponent}"
