"""Parameter values as JSON: what JSON cannot express is an object with its type and a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from nilometer.errors import InputError

_MICROSECOND: Final = timedelta(microseconds=1)


def value_to_json(value: object) -> Any:
    """The JSON form of a value.

    >>> value_to_json(3), value_to_json(Decimal("1.50"))
    (3, {'type': 'DECIMAL', 'value': '1.50'})
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "DOUBLE", "value": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for name, (kind, write, _) in _TYPES.items():
        if type(value) is kind or (name == "TIMESTAMP" and isinstance(value, datetime)):
            return {"type": name, "value": write(value)}
    raise InputError(
        "a parameter cannot be of this type",
        detail=f"got {type(value).__name__}",
        hint="give None, bool, int, float, Decimal, str, bytes, date, datetime or timedelta",
    )


def value_from_json(content: object) -> object:
    """The value that JSON represents; an InputError if it is none.

    >>> value_from_json({"type": "INTERVAL", "value": "1500000"})
    datetime.timedelta(seconds=1, microseconds=500000)
    """
    if not isinstance(content, Mapping):
        if content is None or isinstance(content, bool | int | float | str):
            return content
        raise InputError("a parameter is not a value", detail=f"got {type(content).__name__}")
    name, text = content.get("type"), content.get("value")
    if set(content) != {"type", "value"} or name not in _TYPES or not isinstance(text, str):
        raise InputError(
            "a parameter is not a value",
            hint=f'write {{"type": …, "value": "…"}}, the type one of {", ".join(_TYPES)}',
        )
    try:
        return _TYPES[str(name)][2](text)
    except (ValueError, InvalidOperation, OverflowError):
        raise InputError(f"a parameter is not a valid {name}", detail=f"got {text!r:.60}") from None


_TYPES: Final[dict[str, tuple[type, Callable[[Any], str], Callable[[str], object]]]] = {
    "DOUBLE": (float, repr, float),
    "DECIMAL": (Decimal, str, Decimal),
    "BINARY": (bytes, bytes.hex, bytes.fromhex),
    "DATE": (date, date.isoformat, date.fromisoformat),
    "TIMESTAMP": (datetime, lambda one: one.isoformat(), datetime.fromisoformat),
    "INTERVAL": (
        timedelta,
        lambda one: str(one // _MICROSECOND),
        lambda text: timedelta(microseconds=int(text)),
    ),
}
