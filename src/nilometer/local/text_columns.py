"""Text columns, such as those of CSV, with the types that Spark infers for them.

Spark looks at every value of a column, in file order, and tries a dozen parsers. This handles only
columns whose outcome is certain: values written in the usual way. Everything else is left to Spark
itself.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import OnlySparkError
from nilometer.sql.plan.types import TIMESTAMP

_DATE: Final = r"(?:1[6-9]|[2-9][0-9])[0-9]{2}-[0-9]{2}-[0-9]{2}"
_IS_DATE: Final = f"^{_DATE}$"
_IS_TIME: Final = (
    rf"^{_DATE}(?:[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,9}})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])?)?$"
)
_MICROSECONDS: Final = len("2026-01-31 12:00:00.000000")
_FIRST: Final = 64
"""This many values are looked at before all of them are."""
_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
_IS_TRUTH: Final = r"^(?i:true|false)$"
_NO_NUMBER: Final = r"[^0-9eE+.\-]"
_IS_DOUBLE: Final = r"^[+-]?[0-9]*\.[0-9]+$"
"""A value that is no whole number, whatever other values the column has."""
_WORD_STARTS: Final = r"^\s*[\p{L}_#/'(\[{<>@&*!?$%=~|;]"
_NUMBERED_WORD: Final = r"^[0-9]+[0-9.]* *[abcghijkmnoqrsuvwyABCGHIJKMNOQRSUVWY]"
_DOTTED: Final = r"^[0-9]+\.[0-9]+\.[0-9]"
_MAY_BE_VALUE: Final = (
    r"^\s*(?i:nan|inf|infinity|true|false|epoch|now|today|tomorrow|yesterday)|^\s*[tT][0-9]"
)


def type_of_texts(name: str, column: pa.ChunkedArray) -> pa.DataType:
    """The type that Spark infers for a text column; an error if that is not certain."""
    if column.null_count == len(column):
        return pa.string()
    if (longs := _as_longs(column)) is not None:
        size = pc.min_max(longs)
        fits = size["min"].as_py() >= -(2**31) and size["max"].as_py() < 2**31
        return pa.int32() if fits else pa.int64()
    if _is_floating(column):
        return pa.float64()
    if _every(column, _IS_TRUTH):
        return pa.bool_()
    if _every(column, _IS_DATE):
        return pa.date32()
    if _every(column, _IS_TIME):
        return TIMESTAMP
    if _has_word(column):
        return pa.string()
    raise OnlySparkError(f"column {name} holds values that only Spark can interpret")


def read_texts(
    name: str, column: pa.ChunkedArray, kind: pa.DataType, *, is_known: bool = False
) -> pa.ChunkedArray:
    """A text column cast to a type; an error reports a value that is not of the type.

    `is_known`: the type is what `type_of_texts` says of this column.
    """
    if pat.is_string(kind) or column.null_count == len(column):
        return column.cast(kind)
    checked = _unchecked if is_known else _checked
    try:
        if pat.is_boolean(kind):
            return pc.equal(pc.utf8_lower(checked(column, _IS_TRUTH)), "true")
        if pat.is_timestamp(kind):
            return read_times(checked(column, _IS_TIME))
        if pat.is_date(kind):
            return checked(column, _IS_DATE).cast(kind)
        if pat.is_integer(kind):
            return checked(column, r"^-?[0-9]+$").cast(kind)
        return checked(column, r"^[0-9eE+.\-]+$").cast(kind)
    except pa.ArrowInvalid as error:
        raise OnlySparkError(
            f"column {name} holds values that cannot be read", detail=str(error)
        ) from None


def read_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that are all times; those without a zone are in UTC."""
    cut = column
    if (pc.max(pc.binary_length(column)).as_py() or 0) > _MICROSECONDS:  # a zone, or more digits
        cut = pc.replace_substring_regex(column, r"(\.[0-9]{6})[0-9]+", r"\1")
    zoned = pc.match_substring_regex(cut, _ZONE)
    if not pc.any(zoned).as_py():
        return cut.cast(pa.timestamp("us")).cast(TIMESTAMP)
    plain = pc.if_else(zoned, cut, pc.binary_join_element_wise(_with_clock(cut), "Z", ""))
    return plain.cast(TIMESTAMP)


def hold_times(column: pa.ChunkedArray) -> bool:
    """Whether all texts are times in ISO 8601 format."""
    return _every(column, _IS_TIME)


def _with_clock(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates with a time of day: a zone requires one."""
    dates = pc.match_substring_regex(column, _IS_DATE)
    return pc.if_else(dates, pc.binary_join_element_wise(column, "T00:00:00", ""), column)


def _as_longs(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        longs = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return longs if _every(column, r"^-?[0-9]{1,18}$") else None


def _is_floating(column: pa.ChunkedArray) -> bool:
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return not _any(column, _NO_NUMBER) and _any(column, _IS_DOUBLE)


def _has_word(column: pa.ChunkedArray) -> bool:
    """Whether a value is certainly a word: then the column is text, whatever else it holds."""
    starts = pc.match_substring_regex(column, _WORD_STARTS)
    words = pc.and_not(starts, pc.match_substring_regex(column, _MAY_BE_VALUE))
    return bool(pc.any(words).as_py()) or _any(column, f"{_NUMBERED_WORD}|{_DOTTED}")


def _unchecked(column: pa.ChunkedArray, _: str) -> pa.ChunkedArray:
    return column


def _checked(column: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    matches = pc.match_substring_regex(column, pattern)
    if not pc.all(matches).as_py():
        bad = column.filter(pc.invert(pc.fill_null(matches, True)))[0].as_py()
        raise pa.ArrowInvalid(f"got {bad!r}")
    return column


def _any(column: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, pattern)).as_py())


def _every(column: pa.ChunkedArray, pattern: str) -> bool:
    first = column.slice(0, _FIRST)
    if len(column) > _FIRST and not pc.all(pc.match_substring_regex(first, pattern)).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())
