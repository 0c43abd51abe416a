"""window(ts, '1 minute'), TUMBLE(ts, …) and their kind in GROUP BY."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import DurationError, SqlError
from nilometer.model.time import parse_duration
from nilometer.model.time_windows import (
    MOST_OVERLAPS,
    RESOLUTION,
    HoppingWindows,
    SessionWindows,
    TimeWindows,
)
from nilometer.sql.parse.places import place_of, text_of

WINDOW_FUNCTIONS: Final = {
    "WINDOW": (1, 3),
    "SESSION_WINDOW": (1, 1),
    "TUMBLE": (1, 1),
    "HOP": (2, 2),
    "SESSION": (1, 1),
}
"""Functions in GROUP BY, and how many lengths they take."""
_EXAMPLES: Final = {
    "WINDOW": "window(ts, '1 minute') or window(ts, '10 minutes', '1 minute')",
    "SESSION_WINDOW": "session_window(ts, '5 minutes')",
    "TUMBLE": "TUMBLE(ts, INTERVAL '1' MINUTE)",
    "HOP": "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTES)",
    "SESSION": "SESSION(ts, INTERVAL '5' MINUTES)",
}


def read_window_call(call: exp.Anonymous, sql: str) -> tuple[exp.Expr, TimeWindows]:
    """The time and the windows of window(ts, '1 minute') and the like."""
    name, (time, *rest) = call.name.upper(), call.expressions or [exp.Null()]
    minimum, maximum = WINDOW_FUNCTIONS[name]
    if not minimum <= len(rest) <= maximum:
        raise SqlError(
            f"{call.name} takes a time and {'a length' if maximum == 1 else 'lengths'}",
            place=place_of(call, sql),
            hint=f"write {_EXAMPLES[name]}",
        )
    lengths = [_length(one, call, sql) for one in rest]
    if name in ("SESSION_WINDOW", "SESSION"):
        return time, SessionWindows(lengths[0])
    slide, size, offset = lengths[-1], lengths[0], 0
    if name == "HOP":
        slide, size = lengths
    elif len(lengths) > 1:
        slide, offset = lengths[1], sum(lengths[2:])
    if size // slide >= MOST_OVERLAPS:
        raise SqlError(
            f"a row may belong to at most {MOST_OVERLAPS:,} windows",
            place=place_of(call, sql),
            hint="use a longer hop",
        )
    return time, HoppingWindows(size, slide, offset % slide)


def _length(tree: exp.Expr, call: exp.Anonymous, sql: str) -> int:
    is_text = isinstance(tree, exp.Literal) and tree.is_string
    text = str(tree.this) if is_text else text_of(tree, sql)
    if isinstance(tree, exp.Interval) and tree.this is not None:
        text = f"{tree.this.name} {tree.unit.name if tree.unit is not None else ''}"
    try:
        length = parse_duration(text)
    except DurationError as error:
        raise SqlError(
            error.message,
            place=place_of(tree if not is_text else call, sql),
            detail=error.detail,
            hint=f"write {_EXAMPLES[call.name.upper()]}",
        ) from None
    if length % RESOLUTION or length <= 0:
        raise SqlError(
            "the length of a window must be a whole number of milliseconds, at least 1",
            place=place_of(call, sql),
        )
    return length
