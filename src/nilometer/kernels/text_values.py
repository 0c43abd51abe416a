"""Values as text: the one way in which tables, CSV and JSON lines show them, whoever computed them.

Numbers look as in Spark, with the fewest digits that identify a number (1.0E7, 0.1);
times are in UTC; binary is base64; structs, lists and maps are JSON.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.json_values import is_binary, is_list, is_text

_NULL: Final = "null"
_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7
"""Numbers between these are written without an exponent."""
_PARTS: Final = '["\\\\\x00-\x1f]'


def has_text(kind: pa.DataType) -> bool:
    """Whether values of a type can be written here."""
    if pat.is_nested(kind):
        return all(has_text(kind.field(i).type) for i in range(kind.num_fields))
    known = pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_floating(kind)
    known = known or pat.is_decimal(kind) or pat.is_date(kind) or pat.is_timestamp(kind)
    known = known or pat.is_duration(kind)
    return bool(known or is_text(kind) or is_binary(kind) or pat.is_null(kind))


def text_values(column: pa.Array, *, zoned: bool = False) -> pa.Array:
    """A column of text, NULL where there is no value; `zoned`: times as 2026-01-31T12:00:00Z.

    >>> text_values(pa.array([1.0, 1e7, 0.1, None])).to_pylist()
    ['1.0', '1.0E7', '0.1', None]
    """
    kind = column.type
    if pat.is_dictionary(kind):
        return text_values(column.dictionary_decode(), zoned=zoned)
    if pat.is_timestamp(kind):
        return _times(column, zoned=zoned)
    if pat.is_duration(kind):
        return _mapped(column.cast(pa.duration("us")).cast(pa.int64()), _interval)
    if pat.is_floating(kind):
        return _floats(column)
    if pat.is_decimal(kind):
        return _decimals(column)
    if is_binary(kind):
        return _mapped(column, lambda value: b64encode(value).decode())
    if pat.is_nested(kind):
        return pc.if_else(column.is_valid(), json_texts(column), pa.scalar(None, pa.string()))
    return column.cast(pa.string())


def json_texts(column: pa.Array) -> pa.Array:
    """Every value as JSON, none of them NULL.

    >>> json_texts(pa.array([[1.5, None], None])).to_pylist()
    ['[1.5,null]', 'null']
    """
    kind = column.type
    if pat.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        texts = json_objects(names, column.flatten(), len(column))
    elif is_list(kind) or pat.is_map(kind):
        texts = _lists(column)
    elif pat.is_timestamp(kind):
        texts = _quoted(_full_times(column))
    elif pat.is_floating(kind):
        odd = pc.invert(pc.is_finite(column))
        plain = text_values(column)
        texts = pc.if_else(odd, _quoted(plain), plain) if pc.any(odd).as_py() else plain
    elif pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_decimal(kind):
        texts = text_values(column)
    else:
        texts = _quoted(_escaped(text_values(column)))
    return pc.fill_null(texts, _NULL)


def json_objects(
    names: list[str],
    columns: list[pa.Array],
    size: int,
    written: frozenset[int] = frozenset(),
) -> pa.Array:
    """An object for every row, its fields in this order; `written`: which columns are JSON."""
    if not names:
        return pa.array(["{}"] * size, pa.string())
    parts: list[object] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        key = json.dumps(name, ensure_ascii=False)
        texts = pc.fill_null(column, _NULL) if number in written else json_texts(column)
        parts += [f"{',' if number else '{'}{key}:", texts]
    return pc.binary_join_element_wise(*parts, "}", "")


def _lists(column: pa.Array) -> pa.Array:
    if pat.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    offsets = np.asarray(column.offsets).astype(np.int64)
    first = int(offsets[0])
    values = column.values.slice(first, int(offsets[-1]) - first)
    is_map = pat.is_map(column.type)
    if is_map:
        keys, items = values.flatten()
        names = _quoted(_escaped(pc.fill_null(text_values(keys), _NULL)))
        texts = pc.binary_join_element_wise(names, json_texts(items), ":")
    else:
        texts = json_texts(values)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets - first), texts)
    joined = pc.binary_join(lists, ",").cast(pa.string())
    begin, end = "{}" if is_map else "[]"
    framed = pc.binary_join_element_wise(begin, joined, end, "")
    valid = column.is_valid()
    return pc.if_else(valid, framed, pa.scalar(None, pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _escaped(texts: pa.Array) -> pa.Array:
    """Texts escaped for use between JSON quotes."""
    if not pc.any(pc.match_substring_regex(texts, _PARTS)).as_py():
        return texts
    return _mapped(texts, lambda value: json.dumps(value, ensure_ascii=False)[1:-1])


def _mapped(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    values = column.to_pylist()
    return pa.array([None if one is None else write(one) for one in values], pa.string())


def _interval(micros: int) -> str:
    """A length of time as Spark spells it.

    >>> _interval(-90_000_000_001)
    "INTERVAL '-1 01:00:00.000001' DAY TO SECOND"
    """
    seconds, rest = divmod(abs(micros), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"INTERVAL '{'-' if micros < 0 else ''}{days} {clock}{fraction}' DAY TO SECOND"


def _floats(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    size = pc.abs(column)
    plain = pc.and_(pc.greater_equal(size, _PLAIN_FROM), pc.less(size, _PLAIN_TO))
    plain = pc.fill_null(pc.or_(plain, pc.equal(size, 0)), True)
    pointed = pc.match_substring(texts, ".")
    if not pc.all(pointed).as_py():
        texts = pc.if_else(pointed, texts, pc.binary_join_element_wise(texts, ".0", ""))
    if pc.all(plain).as_py():
        return texts
    values = np.asarray(column.filter(pc.invert(plain)))
    return pc.replace_with_mask(texts, pc.invert(plain), pa.array(map(_far, values), pa.string()))


def _far(value: np.floating[Any]) -> str:
    """A number that is very large, very small, or NaN."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    digits, _, exponent = np.format_float_scientific(value, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"


def _decimals(column: pa.Array) -> pa.Array:
    """Without an exponent."""
    texts = column.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return _mapped(column, lambda value: format(value, "f"))


def _full_times(column: pa.Array) -> pa.Array:
    """Times with all six digits of a second: 2026-01-31T12:00:00.000000Z."""
    texts = pc.replace_substring(_digits(column), " ", "T")
    return texts if column.type.tz is None else pc.binary_join_element_wise(texts, "Z", "")


def _times(column: pa.Array, *, zoned: bool) -> pa.Array:
    """Times with as many digits of a second as they need."""
    texts = pc.utf8_rtrim(pc.utf8_rtrim(_digits(column), "0"), ".")
    if not zoned or column.type.tz is None:
        return texts
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")


def _digits(column: pa.Array) -> pa.Array:
    """Times in UTC with all six digits of a second: 2026-01-31 12:00:00.000000."""
    zone = column.type.tz
    plain = column.cast(pa.timestamp("us", tz=zone), safe=False)
    if zone is not None:
        plain = plain.cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us"))
    return plain.cast(pa.string())
