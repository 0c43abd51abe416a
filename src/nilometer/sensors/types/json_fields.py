"""Which parts of a JSON document are readings, and which fields belong to which column."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer.sensors.stream_type import BadReadingError

Path: TypeAlias = tuple[str | int, ...]
FieldPaths: TypeAlias = Mapping[str, Path]


def read_path(text: str) -> Path:
    """A path into a JSON document: names, and indexes of arrays, separated by dots.

    >>> read_path("data.items.0.t")
    ('data', 'items', 0, 't')
    """
    steps = [step.strip() for step in text.split(".")]
    if not all(steps):
        raise ValueError("write names between dots, such as data.items")
    return tuple(int(step) if step.isdecimal() else step for step in steps)


def read_fields(text: str) -> FieldPaths:
    """Paths by column.

    >>> read_fields("temperature=t, humidity=data.h")
    {'temperature': ('t',), 'humidity': ('data', 'h')}
    """
    paths: dict[str, Path] = {}
    for part in text.split(","):
        column, sign, path = part.partition("=")
        if not sign or not column.strip():
            raise ValueError("write column=path, such as 'temperature=t, humidity=data.h'")
        paths[column.strip()] = read_path(path)
    return paths


def read_names(text: str) -> tuple[str, ...]:
    """Names separated by commas.

    >>> read_names("site, room")
    ('site', 'room')
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("write names between commas, such as 'site, room'")
    return names


def check_columns(option: str, named: Sequence[str], columns: pa.Schema) -> None:
    """Refuse an option that names a column that readings do not have."""
    for name in named:
        if name not in columns.names:
            raise InputError(
                f"option {option} names a column {name!r} that a reading does not have",
                detail=f"a reading has {', '.join(columns.names)}",
                hint=nearest(name, columns.names),
            )


def follow(document: Any, path: Path) -> Any:
    """The value at a path of a document; None if there is none."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(str(step))
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


def field_reader(fields: FieldPaths | None) -> Callable[[Any], Any]:
    """A function that converts a JSON value to the value of a reading."""
    if not fields:
        return lambda document: document
    paths = tuple(fields.items())
    return lambda document: {column: follow(document, path) for column, path in paths}


def parse_json(text: bytes | str) -> Any:
    """A JSON document; if it is not one, raises with a reason and the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadReadingError(f"malformed JSON: {error}", text[:4096]) from error
