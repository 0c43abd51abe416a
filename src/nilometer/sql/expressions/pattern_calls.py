"""A bound on the time for which Spark looks for a pattern in one text.

Java does not end a match before it is over. A pattern that could take years is refused; one whose
time grows with a power of the length is looked for in texts that are short enough, and a longer one
cannot be computed. Patterns of the data are judged by Spark itself, before they are used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlglot
from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.sql.expressions.call_parts import arguments_of, kind_of, text_of
from nilometer.sql.expressions.explosive_functions import repetitions
from nilometer.sql.expressions.growth import copy_of, grow
from nilometer.sql.expressions.patterns import (
    LONGEST,
    MOST_STEPS,
    SHORTEST,
    longest_like,
    longest_text,
    slow_part,
    without_start,
)
from nilometer.sql.expressions.scalars import GUARD

_PARTS: Final = 200
"""What a call counts for that may take seconds: so a statement has at most a hundred of them."""
_NO_BOUND: Final = "[)][*+{]|[(][?](<[=!]|[a-zA-Z-]*x)|[\\\\][1-9kQ]"
"""What a pattern of the data may not have: then each of *, + and { is one more power."""
_TOLD: Final = (
    "a pattern from the data that repeats a group, looks behind, or has \\1, \\Q or (?x) "
    "could take years to match"
)
_REPEATS: Final = (
    "LENGTH(p) - LENGTH(TRANSLATE(p, '*+{', '')) + IF(p RLIKE '^[\\\\^][^*+?{|][^|]*$', 0, 1)"
)
_WILDCARDS: Final = "LENGTH(p) - LENGTH(TRANSLATE(TRIM(TRAILING '%' FROM p), '%', ''))"
_WAYS: Final = "POWER(LENGTH(t), {0}) / FACTORIAL(LEAST({0}, 20))"
_CHOICES: Final = "POWER(2, LENGTH(p) - LENGTH(TRANSLATE(p, '?|', '')))"
_LONG_REGEX: Final = f"{_WAYS.format(_REPEATS)} * {_CHOICES}"
_LONG_LIKE: Final = _WAYS.format(_WILDCARDS)
"""The most steps that a pattern of the data takes."""
_TOLD_LENGTH: Final = "a text is too long for a pattern from the data"

_TESTS: Final = (exp.RegexpLike, exp.RegexpILike, "regexp", "rlike", "regexp_like")
"""Functions that tell whether a pattern is found, but not where."""
_PATTERNS: Final[dict[type[exp.Expr] | str, tuple[str, tuple[int, ...]]]] = {
    exp.RegexpLike: ("rlike", (1,)),
    exp.RegexpILike: ("rlike", (1,)),
    exp.RegexpExtract: ("regexp_extract", (1,)),
    exp.RegexpExtractAll: ("regexp_extract_all", (1,)),
    exp.RegexpReplace: ("regexp_replace", (1,)),
    exp.RegexpSubstr: ("regexp_substr", (1,)),
    exp.RegexpCount: ("regexp_count", (1,)),
    exp.RegexpInstr: ("regexp_instr", (1,)),
    exp.RegexpSplit: ("split", (1,)),
    exp.Split: ("split", (1,)),
    exp.StrToMap: ("str_to_map", (1, 2)),
    exp.ParseUrl: ("parse_url", (2,)),
    **{
        name: (name, (1,))
        for name in (
            *("regexp", "rlike", "split", "regexp_like", "regexp_extract", "regexp_extract_all"),
            *("regexp_replace", "regexp_substr", "regexp_count", "regexp_instr"),
        )
    },
    "str_to_map": ("str_to_map", (1, 2)),
    "parse_url": ("parse_url", (2,)),
    "try_parse_url": ("try_parse_url", (2,)),
}
_LIKES: Final = (exp.Like, exp.ILike, "like", "ilike")
_PAIRS: Final = (
    *(exp.Levenshtein, exp.JarowinklerSimilarity),
    *("levenshtein", "jaro_winkler_similarity"),
)
"""Functions that compare every two characters of two texts."""


def require_quick_patterns(tree: exp.Expr, place: Place, functions: Collection[str] = ()) -> None:
    """Refuse patterns in the statement that could take years; `functions` are the users'."""
    for node in tree.walk():
        kind = kind_of(node)
        if kind in functions:
            continue
        for text in _patterns_of(node):
            pattern = text_of(text)
            if pattern is None:
                continue
            if kind in _LIKES:
                if longest_like(pattern) < SHORTEST:
                    raise SqlError(
                        "a pattern of LIKE with so many % could take years to match",
                        place=place,
                        detail=f"got {pattern[:60]!r}",
                        hint="join fewer parts: s LIKE '%a%' AND s LIKE '%b%'",
                    )
                continue
            slow = slow_part(_as_used(pattern, kind))
            if slow is not None:
                name, _ = _PATTERNS[kind]
                raise SqlError(
                    f"a pattern of {name} with {slow[:60]} could take years to match",
                    place=place,
                    detail="nested repetitions are tried in every combination, and each that "
                    "follows another one with all of its ways",
                    hint="use possessive or atomic parts: (a++)+, (?>a|b)+, a*+b, and begin "
                    "the pattern with ^ if you can",
                )


def guard_patterns(tree: exp.Expr, place: Place, functions: Collection[str] = ()) -> exp.Expr:
    """The same expression, in which Spark looks for slow patterns in short texts only."""
    root = exp.Paren(this=tree)  # so that the tree itself can be replaced
    _guard(root, MOST_STEPS, place, functions)
    grow(_PARTS * sum(GUARD in one.meta for one in root.walk()), place)
    guarded: exp.Expr = root.this
    guarded.pop()
    return guarded


def _guard(node: exp.Expr, steps: int, place: Place, functions: Collection[str]) -> None:
    inside = max(1, steps // repetitions(node))
    for one in list(arguments_of(node)):
        _guard(one, inside if isinstance(one, exp.Lambda) else steps, place, functions)
    kind = kind_of(node)
    if kind in functions:
        return
    if kind in _PAIRS:
        _guard_pair(node, steps, place)
        return
    longest = LONGEST
    given = next(arguments_of(node), node)
    for pattern in _patterns_of(node):
        text = text_of(pattern)
        if text is None:
            _guard_of_data(pattern, given, kind, steps, place)
        elif kind in _LIKES:
            longest = min(longest, longest_like(text, steps))
        elif (limit := longest_text(_as_used(text, kind), steps)) < LONGEST:
            longest = min(longest, limit)
            pattern.replace(exp.Literal.string(_as_used(text, kind)))
    if longest < LONGEST:
        told = (
            f"a text has more than {longest} characters, for which its pattern could take minutes"
        )
        condition = _condition(f"LENGTH(t) > {longest}", place, t=given)
        given.replace(_checked(given, condition, told))


def _guard_pair(node: exp.Expr, steps: int, place: Place) -> None:
    first, second, *_ = [*arguments_of(node), node]
    told = "two texts are too long to compare each character with each"
    condition = f"CAST(LENGTH(t) AS BIGINT) * LENGTH(p) > {steps}"
    first.replace(_checked(first, _condition(condition, place, t=first, p=second), told))


def _patterns_of(node: exp.Expr) -> list[exp.Expr]:
    """The patterns of a call, by which its first argument is read."""
    kind = kind_of(node)
    given = list(arguments_of(node))
    if kind in _LIKES and len(given) > 1:
        several = given[1]
        if isinstance(several, exp.Any | exp.All):
            inner = several.this
            return inner.expressions if isinstance(inner, exp.Tuple | exp.Array) else [inner]
        return [several]
    places = _PATTERNS[kind][1] if kind in _PATTERNS else ()
    return [given[at] for at in places if at < len(given)]


def _as_used(pattern: str, kind: type[exp.Expr] | str) -> str:
    return without_start(pattern) if kind in _TESTS else pattern


def _guard_of_data(
    pattern: exp.Expr, text: exp.Expr, kind: type[exp.Expr] | str, steps: int, place: Place
) -> None:
    """Make a pattern one that cannot be computed if it might take too long for this text."""
    condition = _LONG_LIKE if kind in _LIKES else _LONG_REGEX
    too_long = _condition(f"{condition} > {steps}", place, t=text, p=pattern)
    checked = _checked(pattern, too_long, _TOLD_LENGTH)
    if kind not in _LIKES:
        no_bound = exp.Literal.string(_NO_BOUND)
        has_no_bound = exp.RegexpLike(this=copy_of(pattern, place), expression=no_bound)
        checked = _checked(checked, has_no_bound, _TOLD)
    pattern.replace(checked)


def _condition(text: str, place: Place, **parts: exp.Expr) -> exp.Expr:
    """A condition in which names stand for parts of the statement."""

    def put(node: exp.Expr) -> exp.Expr:
        return copy_of(parts[node.name], place) if isinstance(node, exp.Column) else node

    return sqlglot.parse_one(text, dialect="spark").transform(put)


def _checked(value: exp.Expr, fails: exp.Expr, told: str) -> exp.Expr:
    """A text that cannot be computed where a condition holds."""
    error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(told)])
    checked = exp.If(
        this=fails,
        true=exp.Cast(this=error, to=exp.DataType.build("string")),
        false=value.copy(),
    )
    checked.meta[GUARD] = True
    return checked
