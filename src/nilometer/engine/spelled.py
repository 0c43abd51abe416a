"""Spells out plans, so that those that do the same are known by being spelled the same.

What cannot be spelled out completely, such as a function in Python, is like nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from nilometer.operators.window_join import WindowJoinSpec

_ONLY_SPEED: Final = {(WindowJoinSpec, "loads")}
"""What decides how long something takes, and never what it gives."""


class NotSpelledError(Exception):
    """Something cannot be spelled out."""


def spelled(value: object) -> str:
    """A text that values share only if they are the same, short as it is.

    Raises NotSpelledError if this cannot be guaranteed for a part of a value.

    >>> spelled((1, "a")) == spelled((1, "a")), spelled(1) == spelled(True)
    (True, False)
    """
    return hashlib.sha256(repr(_spell(value)).encode("utf-8", "surrogatepass")).hexdigest()


def _spell(value: Any) -> object:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    match value:
        case Enum():
            return name, value.name
        case pa.DataType():
            return name, pa.schema([("", value)]).serialize().to_pybytes()
        case pa.Schema():
            return name, value.serialize().to_pybytes()
        case pa.RecordBatch():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, value.schema) as writer:
                writer.write_batch(value)
            return name, hashlib.sha256(sink.getvalue()).hexdigest()
        case pa.Array():
            return name, _spell(pa.RecordBatch.from_arrays([value], [""]))
        case Mapping():
            return name, [(_spell(key), _spell(one)) for key, one in value.items()]
        case tuple() | list():
            return name, [_spell(one) for one in value]
        case frozenset():
            return name, sorted(repr(_spell(one)) for one in value)
        case None | bool() | int() | float() | str() | bytes():
            return name, repr(value)
        case date() | datetime() | timedelta() | Decimal():
            return name, repr(value)
    if not is_dataclass(value) or isinstance(value, type):
        raise NotSpelledError(name)
    parts = [one.name for one in fields(value) if (kind, one.name) not in _ONLY_SPEED]
    return name, [(one, _spell(getattr(value, one))) for one in parts]
