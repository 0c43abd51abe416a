"""LIKE and regular expressions, by Arrow's RE2, whose time is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.functions.function import (
    MOST,
    Applied,
    Function,
    int32,
    plain_text,
    text,
    too_large,
)
from nilometer.kernels.functions.regex import Regex, read_regex, read_replacement

_STRING: Final = pa.string()
_ANY: Final = frozenset("%_")


def _like_regex(pattern: str, escape: str = "\\") -> str:
    """A pattern with % and _ as a regular expression for the whole string."""
    if len(escape) != 1:
        raise PredicateError("ESCAPE takes one character", detail=f"got {escape!r}")
    parts, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None or following not in (*_ANY, escape):
                raise PredicateError(
                    f"in the pattern {pattern!r}, {escape} may only precede %, _ or itself",
                    hint=f"write {escape}{escape} for the character itself",
                )
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return f"(?s)\\A(?:{''.join(parts)})\\z"


def _like(fold: bool) -> Callable[[Applied], pa.Array]:
    def run(applied: Applied) -> pa.Array:
        pattern, *rest = applied.constants[1:]
        escape = rest[0] if rest else "\\"
        if pattern is None or escape is None:
            return pa.nulls(applied.size, pa.bool_())
        column = applied.columns[0]
        if fold:
            pattern = pattern.lower()
            lowered = [None if v is None else v.lower() for v in column.to_pylist()]
            column = pa.array(lowered, _STRING)
        return pc.match_substring_regex(column, _like_regex(pattern, escape))

    return run


def _check_like(pattern: Any) -> None:
    if not isinstance(pattern, str):
        raise PredicateError("LIKE needs a text as its pattern", detail=f"got {pattern}")


def _regex(applied: Applied, place: int = 1) -> Regex | None:
    pattern = applied.constants[place]
    return None if pattern is None else read_regex(pattern)


def _rlike(applied: Applied) -> pa.Array:
    regex = _regex(applied)
    if regex is None:
        return pa.nulls(applied.size, pa.bool_())
    return pc.match_substring_regex(applied.columns[0], regex.for_search)


def _check_regex(pattern: Any) -> None:
    read_regex(pattern)


def _check_solid(pattern: Any) -> None:
    """Refuse patterns that can match an empty string, and those with $."""
    regex = read_regex(pattern)
    if regex.may_be_empty or regex.has_end:
        raise UnavailableError(
            f"the pattern {pattern!r} is not available here: it may match an empty text, or has $",
            hint="write it so that it always matches a character",
        )


def _extract(applied: Applied) -> pa.Array:
    """The first match of a group; an empty string if nothing matches."""
    regex = _regex(applied)
    group = applied.constants[2] if len(applied.columns) > 2 else 1
    if regex is None or group is None:
        return pa.nulls(applied.size, _STRING)
    return _first(applied.columns[0], regex, group)


def _first(column: pa.Array, regex: Regex, group: int) -> pa.Array:
    if not 0 <= group <= regex.groups:
        raise PredicateError(
            f"there is no group {group} in the pattern", detail=f"it has {regex.groups}"
        )
    groups = pc.extract_regex(column, regex.named)
    part = pc.struct_field(groups, [group])
    return pc.if_else(column.is_valid(), part.fill_null(""), None)


def _regexp_substr(applied: Applied) -> pa.Array:
    """The first match of the pattern; NULL if nothing matches."""
    regex = _regex(applied)
    if regex is None:
        return pa.nulls(applied.size, _STRING)
    matches = _first(applied.columns[0], regex, 0)
    return pc.if_else(pc.equal(matches, ""), None, matches)


def _check_group(value: Any) -> None:
    if not isinstance(value, int):
        raise UnavailableError("the number of a group must be written as a number")


def _regexp_replace(applied: Applied) -> pa.Array:
    regex, by = _regex(applied), applied.constants[2]
    if regex is None or by is None:
        return pa.nulls(applied.size, _STRING)
    column = applied.columns[0]
    counts = pc.count_substring_regex(column, regex.text)
    longest = pc.max(pc.multiply(counts, len(by))).as_py() or 0
    if longest > 4 * MOST:
        raise too_large("regexp_replace")
    return pc.replace_substring_regex(column, regex.text, read_replacement(by, regex))


def _check_replacement(value: Any) -> None:
    read_replacement(value, None)


def _regexp_count(applied: Applied) -> pa.Array:
    regex = _regex(applied)
    if regex is None:
        return pa.nulls(applied.size, pa.int32())
    return pc.count_substring_regex(applied.columns[0], regex.text).cast(pa.int32())


def _regexp_instr(applied: Applied) -> pa.Array:
    regex = _regex(applied)
    if regex is None:
        return pa.nulls(applied.size, pa.int32())
    column = applied.columns[0]
    places = pc.find_substring_regex(column, regex.for_search).to_pylist()
    texts = column.to_pylist()
    positions = [
        None if one is None else 0 if place < 0 else len(one.encode()[:place].decode()) + 1
        for place, one in zip(places, texts, strict=True)
    ]
    return pa.array(positions, pa.int32())


def _split(applied: Applied) -> pa.Array:
    regex = _regex(applied)
    limit = applied.constants[2] if len(applied.columns) > 2 else -1
    if regex is None or limit is None:
        return pa.nulls(applied.size, applied.kind)
    max_splits = None if limit <= 0 else limit - 1
    column = applied.columns[0]
    if max_splits == 0:
        values = [None if v is None else [v] for v in column.to_pylist()]
        return pa.array(values, applied.kind)
    return pc.split_pattern_regex(column, regex.text, max_splits=max_splits).cast(applied.kind)


_RLIKE: Final = Function((text, plain_text), pa.bool_(), _rlike, literals={1: _check_regex})
_LITERALS: Final = {1: _check_like, 2: _check_like}

FUNCTIONS: Final = {
    "like": Function(
        (text, plain_text, plain_text), pa.bool_(), _like(fold=False), 1, literals=_LITERALS
    ),
    "ilike": Function(
        (text, plain_text, plain_text), pa.bool_(), _like(fold=True), 1, literals=_LITERALS
    ),
    "rlike": _RLIKE,
    "regexp": _RLIKE,
    "regexp_like": _RLIKE,
    "regexp_extract": Function(
        (text, plain_text, int32), _STRING, _extract, 1, literals={1: _check_regex, 2: _check_group}
    ),
    "regexp_substr": Function(
        (text, plain_text), _STRING, _regexp_substr, literals={1: _check_solid}
    ),
    "regexp_replace": Function(
        (text, plain_text, plain_text),
        _STRING,
        _regexp_replace,
        literals={1: _check_solid, 2: _check_replacement},
    ),
    "regexp_count": Function(
        (text, plain_text), pa.int32(), _regexp_count, literals={1: _check_solid}
    ),
    "regexp_instr": Function(
        (text, plain_text), pa.int32(), _regexp_instr, literals={1: _check_regex}
    ),
    "split": Function(
        (text, plain_text, int32),
        pa.list_(_STRING),
        _split,
        1,
        literals={1: _check_solid, 2: _check_group},
    ),
}
