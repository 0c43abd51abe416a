"""Text, such as a cell of CSV or a level of a topic, as a value of a column's type."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

from nilometer.errors import InputError
from nilometer.kernels.read_times import form_of
from nilometer.model.time_forms import TimeForm, WrittenTimes
from nilometer.sensors.stream_type import BadReadingError

Cell: TypeAlias = Callable[[str], Any]
_UNKNOWN: Final = pa.field("", pa.string())
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}


def cell_reader(column: pa.Field) -> Cell:
    """A function that parses text; what cannot be parsed stays text, to be refused with a reason.

    >>> number = cell_reader(pa.field("n", pa.int32()))
    >>> number("21"), number("x"), number("")
    (21, 'x', None)
    """
    if types.is_string(column.type) or types.is_large_string(column.type):
        return str
    convert = _converter(column.type, form_of(column))

    def read(text: str) -> Any:
        text = text.strip()
        if not text:
            return None
        try:
            return convert(text)
        except (ValueError, KeyError, InvalidOperation):
            return text

    return read


def _converter(kind: pa.DataType, form: TimeForm | None) -> Cell:
    if types.is_integer(kind):
        return int
    if types.is_floating(kind):
        return float
    if types.is_boolean(kind):
        return lambda text: _TRUTHS[text.lower()]
    if types.is_decimal(kind):
        return Decimal
    if types.is_timestamp(kind):
        return str if isinstance(form, WrittenTimes) else partial(read_instant, form=form)
    return str


def read_instant(text: str, form: TimeForm | None = None) -> int | float | str:
    """A number since 1970, or text to be parsed as ISO 8601.

    If no form is declared, 20260131 is a date, too.

    >>> read_instant("1393263000.5"), read_instant("2026-01-31"), read_instant("20260131")
    (1393263000.5, '2026-01-31', '20260131')
    """
    if form is None and text.isdecimal() and len(text) == len("20260131"):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def match_header(header: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The names in a header line; those of columns as declared, matched in any case.

    >>> match_header([" TS", "a.b"], ["ts", "v"])
    ['ts', 'a.b']
    """
    declared = {name.lower(): name for name in columns}
    names = [name.strip().removeprefix("\ufeff").strip() for name in header]
    exact = set(names).intersection(columns)
    matched = []
    for name in names:
        known = declared.get(name.lower(), name)
        matched.append(known if known == name or known not in exact else name)
    twice = next((name for name in matched if name in columns and matched.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns of the header are named {twice}",
            detail=f"the header is {', '.join(header)}",
            hint="rename one of them in the file",
        )
    if not set(matched).intersection(columns):
        raise InputError(
            "the header names none of the declared columns",
            detail=f"the header is {', '.join(header)}; "
            f"the declared columns are {', '.join(columns)}",
            hint="if the file has no header, write header = 'no'; see also the option separator",
        )
    return matched


class CsvLines:
    """Lines of CSV as readings: in the order of the columns, or of a header line."""

    def __init__(self, columns: pa.Schema, separator: str = ",") -> None:
        self._columns = columns
        self._separator = separator
        self._names: Sequence[str] = columns.names
        self._cells: list[Cell] = [cell_reader(one) for one in columns]

    def header(self, line: str) -> None:
        """From now on, cells have the order of this line; names of no column are ignored."""
        self._names = match_header(self._split(line), self._columns.names)
        by_name = {one.name: one for one in self._columns}
        self._cells = [cell_reader(by_name.get(name, _UNKNOWN)) for name in self._names]

    def read(self, line: str) -> dict[str, Any]:
        """The reading of a line."""
        cells = self._split(line)
        if len(cells) != len(self._names):
            raise BadReadingError(
                f"a line of {len(cells)} cells where {len(self._names)} were expected", line[:4096]
            )
        return {
            name: read(cell)
            for name, read, cell in zip(self._names, self._cells, cells, strict=True)
        }

    def _split(self, line: str) -> list[str]:
        if '"' not in line:
            return line.split(self._separator)
        try:
            return next(csv.reader([line], delimiter=self._separator, strict=True))
        except (csv.Error, StopIteration) as error:
            raise BadReadingError(f"malformed CSV: {error}", line[:4096]) from error
