"""String functions. Characters are code points, positions are counted from 1."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.function_types import is_text
from nilometer.kernels.functions.function import (
    MOST,
    Applied,
    Function,
    bytes_of,
    each,
    int32,
    int64,
    over,
    plain_text,
    text,
    text_or_bytes,
    too_large,
)

_STRING: Final = pa.string()
_INT: Final = pa.int32()
_BOOLEAN: Final = pa.bool_()
_LAST: Final = 2**31 - 1


def concat_texts(applied: Applied) -> pa.Array:
    texts = pc.binary_join_element_wise(*applied.columns, "", null_handling="emit_null")
    return _bounded(texts, "concat")


def _bounded(texts: pa.Array, name: str) -> pa.Array:
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > 4 * MOST:
        raise too_large(name)
    return texts


def _text_or_texts(kind: pa.DataType) -> pa.DataType | None:
    """A string, a value that is converted to one, or an array of strings."""
    return kind if pat.is_list(kind) and is_text(kind.value_type) else text(kind)


def _concat_ws(applied: Applied) -> pa.Array:
    """Strings, and those in arrays, joined by a separator; NULLs are skipped, but for that."""
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    texts = [
        None
        if first is None
        else first.join(
            one
            for part in rest
            for one in (part if isinstance(part, list) else [part])
            if one is not None
        )
        for first, *rest in rows
    ]
    return _bounded(pa.array(texts, _STRING), "concat_ws")


def substring(value: str | bytes, start: int, length: int = _LAST) -> str | bytes:
    """A number of characters from a position; negative positions count from the end."""
    first = start - 1 if start > 0 else (len(value) + start if start < 0 else 0)
    last = first + length
    return value[max(first, 0) : last] if last > max(first, 0) else value[:0]


def _initcap(value: str) -> str:
    """Each word, as spaces part them, with a capital."""
    return " ".join(
        word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in value.split(" ")
    )


def _left(value: str, length: int) -> str:
    return value[:length] if length > 0 else ""


def _right(value: str, length: int) -> str:
    return value[-length:] if length > 0 else ""


def _pad(name: str, is_left: bool, value: str, length: int, pad: str) -> str:
    if length > MOST:
        raise too_large(name)
    missing = length - len(value)
    if missing <= 0 or not pad:
        return value[: max(length, 0)]
    more = (pad * (missing // len(pad) + 1))[:missing]
    return more + value if is_left else value + more


def _lpad(value: str, length: int, pad: str = " ") -> str:
    return _pad("lpad", True, value, length, pad)


def _rpad(value: str, length: int, pad: str = " ") -> str:
    return _pad("rpad", False, value, length, pad)


def _repeat(value: str, times: int) -> str:
    if len(value) * times > MOST:
        raise too_large("repeat")
    return value * times


def _space(length: int) -> str:
    if length > MOST:
        raise too_large("space")
    return " " * length


def _replace(value: str, search: str, by: str = "") -> str:
    if not search:
        return value
    if len(value) + value.count(search) * max(len(by) - len(search), 0) > 4 * MOST:
        raise too_large("replace")
    return value.replace(search, by)


def _translate(value: str, these: str, those: str) -> str:
    """Replace each of these characters by that at the same position in the others, or remove it."""
    table: dict[int, str | None] = {}
    for place, one in enumerate(these):
        table.setdefault(ord(one), those[place] if place < len(those) else None)
    return value.translate(table)


def _instr(value: str, part: str) -> int:
    return value.find(part) + 1


def _locate(part: str, value: str, start: int = 1) -> int:
    if start < 1 or not part:
        return int(start >= 1)
    return value.find(part, start - 1) + 1


def _locate_all(applied: Applied) -> pa.Array:
    """As `_locate`; 0 where the start position is NULL."""
    if len(applied.columns) == 2:
        return each(_locate)(applied)
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    positions = [
        0
        if start is None
        else None
        if part is None or value is None
        else _locate(part, value, start)
        for part, value, start in rows
    ]
    return pa.array(positions, _INT)


def _btrim(value: str, letters: str = " ") -> str:
    return value.strip(letters) if letters else value


def _trim(*arguments: str) -> str:
    """Strip characters from both ends; if given, they are the first argument."""
    *letters, value = arguments
    return _btrim(value, *letters)


def _trim_left(*arguments: str) -> str:
    *letters, value = arguments
    return value if letters == [""] else value.lstrip(letters[0] if letters else " ")


def _trim_right(*arguments: str) -> str:
    *letters, value = arguments
    return value if letters == [""] else value.rstrip(letters[0] if letters else " ")


def _substring_index(value: str, delimiter: str, places: int) -> str:
    """The string before the n-th delimiter, or after the n-th from the end."""
    if not delimiter or not places:
        return ""
    place = -1
    if places > 0:
        for _ in range(places):
            place = value.find(delimiter, place + 1)
            if place < 0:
                return value
        return value[:place]
    place = len(value)
    end = len(value) - len(delimiter) + 1
    for _ in range(-places):
        place = value.rfind(delimiter, 0, end + len(delimiter) - 1)
        if place < 0:
            return value
        end = place
    return value[place + len(delimiter) :]


def _split_part(value: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise PredicateError("split_part counts from 1, or from -1 at the end", detail="got 0")
    parts = value.split(delimiter) if delimiter else [value]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _find_in_set(value: str, listed: str) -> int:
    if "," in value:
        return 0
    names = listed.split(",")
    return names.index(value) + 1 if value in names else 0


def _ascii(value: str) -> int:
    return ord(value[0]) if value else 0


def _chr(number: int) -> str:
    return "" if number < 0 else chr(number & 255)


def _length(applied: Applied) -> pa.Array:
    [column] = applied.columns
    if pat.is_null(column.type):
        return pa.nulls(applied.size, _INT)
    if pat.is_binary(column.type):
        return pc.binary_length(column)
    return pc.utf8_length(column)


def _overlay(value: str, by: str, start: int, length: int = -1) -> str:
    """The string with characters from a position on replaced."""
    gone = length if length >= 0 else len(by)
    before = substring(value, 1, start - 1) if start != 0 else ""
    behind = substring(value, start + gone, _LAST)
    return f"{before}{by}{behind}"  # type: ignore[str-bytes-safe]


def _levenshtein(first: str, second: str) -> int:
    if len(first) * len(second) > MOST:
        raise too_large("levenshtein")
    before = list(range(len(second) + 1))
    for i, one in enumerate(first, start=1):
        now = [i]
        for j, other in enumerate(second, start=1):
            now.append(min(before[j] + 1, now[-1] + 1, before[j - 1] + (one != other)))
        before = now
    return before[-1]


def _elt(applied: Applied) -> pa.Array:
    """The n-th of some strings."""
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    chosen = []
    for number, *values in rows:
        if number is not None and not 1 <= number <= len(values):
            raise PredicateError(
                f"elt has {len(values)} values", detail=f"number {number} was requested"
            )
        chosen.append(None if number is None else values[number - 1])
    return pa.array(chosen, _STRING)


def _luhn_check(value: str) -> bool:
    if not value or not value.isascii() or not value.isdigit():
        return False
    digits = [int(one) for one in reversed(value)]
    doubled = (sum(divmod(2 * one, 10)) for one in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


_LENGTH: Final = Function((text_or_bytes,), _INT, _length)
_UPPER: Final = Function((text,), _STRING, each(str.upper))
_LOWER: Final = Function((text,), _STRING, each(str.lower))
_SUBSTRING: Final = Function(
    (text_or_bytes, int32, int32),
    lambda operands: _same(operands[0].kind),
    each(substring),
    optional=1,
)
_LOCATE: Final = Function((text, text, int32), _INT, _locate_all, optional=1)


def _same(kind: pa.DataType) -> pa.DataType:
    return _STRING if pat.is_null(kind) else kind


FUNCTIONS: Final = {
    "concat_ws": Function(
        (plain_text, _text_or_texts), _STRING, _concat_ws, optional=1, several=True
    ),
    "length": _LENGTH,
    "len": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "octet_length": Function((bytes_of,), _INT, over(pc.binary_length)),
    "bit_length": Function((bytes_of,), _INT, each(lambda value: 8 * len(value))),
    "upper": _UPPER,
    "ucase": _UPPER,
    "lower": _LOWER,
    "lcase": _LOWER,
    "initcap": Function((text,), _STRING, each(_initcap)),
    "substring": _SUBSTRING,
    "substr": _SUBSTRING,
    "left": Function((text, int32), _STRING, each(_left)),
    "right": Function((text, int32), _STRING, each(_right)),
    "lpad": Function((text, int32, text), _STRING, each(_lpad), optional=1),
    "rpad": Function((text, int32, text), _STRING, each(_rpad), optional=1),
    "repeat": Function((text, int32), _STRING, each(_repeat)),
    "space": Function((int32,), _STRING, each(_space)),
    "replace": Function((text, text, text), _STRING, each(_replace), optional=1),
    "translate": Function((text, text, text), _STRING, each(_translate)),
    "instr": Function((text, text), _INT, each(_instr)),
    "locate": _LOCATE,
    "position": _LOCATE,
    "trim": Function((text, text), _STRING, each(_trim), optional=1),
    "btrim": Function((text, text), _STRING, each(_btrim), optional=1),
    "ltrim": Function((text, text), _STRING, each(_trim_left), optional=1),
    "rtrim": Function((text, text), _STRING, each(_trim_right), optional=1),
    "substring_index": Function((text, text, int32), _STRING, each(_substring_index)),
    "split_part": Function((text, text, int32), _STRING, each(_split_part)),
    "find_in_set": Function((text, text), _INT, each(_find_in_set)),
    "ascii": Function((text,), _INT, each(_ascii)),
    "chr": Function((int64,), _STRING, each(_chr)),
    "char": Function((int64,), _STRING, each(_chr)),
    "overlay": Function((text, text, int32, int32), _STRING, each(_overlay), optional=1),
    "levenshtein": Function((text, text), _INT, each(_levenshtein)),
    "elt": Function((int32, text), _STRING, _elt, several=True),
    "luhn_check": Function((text,), _BOOLEAN, each(_luhn_check)),
    "startswith": Function((text, text), _BOOLEAN, each(str.startswith)),
    "endswith": Function((text, text), _BOOLEAN, each(str.endswith)),
    "contains": Function((text, text), _BOOLEAN, each(str.__contains__)),
}
