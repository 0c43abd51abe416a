"""Converts a message's payload to the value of a reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from nilometer.sensors.stream_type import BadReadingError
from nilometer.sensors.types.json_fields import FieldPaths, field_reader, parse_json
from nilometer.sensors.types.text_cells import CsvLines, cell_reader

FORMATS: Final = ("json", "csv", "text")


def payload_reader(
    form: str, fields: FieldPaths | None, columns: pa.Schema
) -> Callable[[bytes], Any]:
    """A function that converts a payload to the values of these columns.

    >>> payload_reader("csv", None, pa.schema([("a", pa.int32()), ("b", pa.string())]))(b"1,x")
    {'a': 1, 'b': 'x'}
    """
    if form == "json":
        read_fields = field_reader(fields)
        return lambda payload: read_fields(parse_json(payload))
    if form == "csv":
        lines = CsvLines(columns)
        return lambda payload: lines.read(payload.decode(errors="replace").strip("\r\n"))
    cell = cell_reader(columns.field(0))
    return lambda payload: cell(payload.decode(errors="replace"))


def by_column(value: Any, columns: pa.Schema, payload: bytes) -> dict[str, Any]:
    """A value by column name; a value without names belongs to the only column."""
    if isinstance(value, dict):
        return value
    if len(columns) != 1:
        raise BadReadingError("not a JSON object", payload[:4096])
    return {columns.names[0]: value}
