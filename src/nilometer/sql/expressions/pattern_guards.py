"""Conditions beside patterns, for Spark: Java does not end a match before it is over.

Spark looks for a pattern in texts that are short enough for it, and a longer one cannot be
computed. Patterns of the data are judged by Spark itself, before they are used.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp

from nilometer.sql.expressions.call_parts import arguments_of, kind_of, text_of
from nilometer.sql.expressions.patterns import (
    LONGEST,
    MOST_STEPS,
    longest_like,
    longest_text,
    without_start,
)

STEPS: Final = "steps"
"""The metadata key of the most steps that one evaluation of a call may take; 0: it has no pattern.
MOST_STEPS where there is none."""
_NO_BOUND: Final = "[)][*+{]|[(][?](<[=!]|[a-zA-Z-]*x)|[\\\\][1-9kQ]"
"""What a pattern of the data may not have: then each of *, + and { is one more power."""
_UNBOUNDED_PATTERN: Final = (
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
_FEW_TIMES: Final = 100
_STEPS_PER_CHARACTER: Final = 10
_MOST_COPIES: Final = 10
_TOO_LONG_TEXT: Final = "a text is too long for a pattern from the data"

_TESTS: Final = (exp.RegexpLike, exp.RegexpILike, "regexp", "rlike", "regexp_like")
"""Functions that tell whether a pattern is found, but not where."""
PATTERNS: Final[dict[type[exp.Expr] | str, tuple[str, tuple[int, ...]]]] = {
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
LIKES: Final = (exp.Like, exp.ILike, "like", "ilike")
_PAIRS: Final = (
    *(exp.Levenshtein, exp.JarowinklerSimilarity),
    *("levenshtein", "jaro_winkler_similarity"),
)
"""Functions that compare every two characters of two texts."""


def _repeats(node: exp.Expr) -> bool:
    """Whether a call repeats a text so often that it is asked how long the text is."""
    if kind_of(node) not in (exp.Repeat, "repeat"):
        return False
    text, times, *_ = [*arguments_of(node), node, node]
    few = isinstance(times, exp.Literal) and times.is_int and int(times.this) <= _FEW_TIMES
    return text_of(text) is None and not few


def copies(node: exp.Expr) -> int:
    """How often what a call reads is evaluated, with the conditions beside it; 0: it has none."""
    steps = node.meta.get(STEPS, MOST_STEPS)
    kind = kind_of(node)
    if not steps:
        return 0
    if kind in _PAIRS or _repeats(node):
        return 2
    texts = [text_of(one) for one in patterns_of(node)]
    if None in texts:
        return _MOST_COPIES
    known = [one for one in texts if one is not None]
    return 2 * (min((_limit(one, kind, steps) for one in known), default=LONGEST) < LONGEST)


def limit_note(*trees: exp.Expr) -> str:
    """What to add to the text of expressions that cannot be computed, if texts may be too long."""
    limits = [
        _limit(text, kind_of(node), steps)
        for tree in trees
        for node in tree.walk()
        if (steps := node.meta.get(STEPS, MOST_STEPS))
        for text in map(text_of, patterns_of(node))
        if text is not None
    ]
    longest = min(limits, default=LONGEST)
    if longest == LONGEST:
        return ""
    return f" (texts of more than {longest} characters are not searched by such a pattern)"


def guarded(tree: exp.Expr) -> exp.Expr:
    """The same expression for Spark, which does not look for slow patterns in long texts."""
    root = exp.Paren(this=tree.copy())  # so that the tree itself can be replaced
    for node in reversed(list(root.walk(bfs=False))):  # what is inside first: it is copied
        steps = node.meta.get(STEPS, MOST_STEPS)
        if steps:
            _guard(node, steps)
    result: exp.Expr = root.this
    result.pop()
    return result


def _guard(node: exp.Expr, steps: int) -> None:
    kind = kind_of(node)
    if _repeats(node):
        _guard_repeat(node, steps)
        return
    if kind in _PAIRS:
        _guard_pair(node, steps)
        return
    longest = LONGEST
    subject = next(arguments_of(node), node)
    for pattern in patterns_of(node):
        text = text_of(pattern)
        if text is None:
            _guard_of_data(pattern, subject, kind, steps)
        elif (limit := _limit(text, kind, steps)) < LONGEST:
            longest = min(longest, limit)
            pattern.replace(exp.Literal.string(as_used(text, kind)))
    if longest < LONGEST:
        message = (
            f"a text has more than {longest} characters, for which its pattern could take minutes"
        )
        subject.replace(_checked(subject, _condition(f"LENGTH(t) > {longest}", t=subject), message))


def _limit(pattern: str, kind: type[exp.Expr] | str, steps: int) -> int:
    """In how long a text a call may look for a pattern."""
    if kind in LIKES:
        return longest_like(pattern, steps)
    return longest_text(as_used(pattern, kind), steps)


def _guard_repeat(node: exp.Expr, steps: int) -> None:
    text, times, *_ = [*arguments_of(node), node]
    message = "a text is too long to be repeated so often"
    condition = f"CAST(LENGTH(t) AS BIGINT) * p > {steps // _STEPS_PER_CHARACTER}"
    text.replace(_checked(text, _condition(condition, t=text, p=times), message))


def _guard_pair(node: exp.Expr, steps: int) -> None:
    first, second, *_ = [*arguments_of(node), node]
    message = "two texts are too long to compare each character with each"
    condition = f"CAST(LENGTH(t) AS BIGINT) * LENGTH(p) > {steps}"
    first.replace(_checked(first, _condition(condition, t=first, p=second), message))


def patterns_of(node: exp.Expr) -> list[exp.Expr]:
    """The patterns of a call, by which its first argument is read."""
    kind = kind_of(node)
    operands = list(arguments_of(node))
    if kind in LIKES and len(operands) > 1:
        several = operands[1]
        if isinstance(several, exp.Any | exp.All):
            inner = several.this
            return inner.expressions if isinstance(inner, exp.Tuple | exp.Array) else [inner]
        return [several]
    places = PATTERNS[kind][1] if kind in PATTERNS else ()
    return [operands[at] for at in places if at < len(operands)]


def as_used(pattern: str, kind: type[exp.Expr] | str) -> str:
    return without_start(pattern) if kind in _TESTS else pattern


def _guard_of_data(
    pattern: exp.Expr, text: exp.Expr, kind: type[exp.Expr] | str, steps: int
) -> None:
    """Make a pattern one that cannot be computed if it might take too long for this text."""
    condition = _LONG_LIKE if kind in LIKES else _LONG_REGEX
    too_long = _condition(f"{condition} > {steps}", t=text, p=pattern)
    checked = _checked(pattern, too_long, _TOO_LONG_TEXT)
    if kind not in LIKES:
        no_bound = exp.Literal.string(_NO_BOUND)
        has_no_bound = exp.RegexpLike(this=pattern.copy(), expression=no_bound)
        checked = _checked(checked, has_no_bound, _UNBOUNDED_PATTERN)
    pattern.replace(checked)


def _condition(text: str, **parts: exp.Expr) -> exp.Expr:
    """A condition in which names stand for parts of the statement."""

    def put(node: exp.Expr) -> exp.Expr:
        return parts[node.name].copy() if isinstance(node, exp.Column) else node

    return sqlglot.parse_one(text, dialect="spark").transform(put)


def _checked(value: exp.Expr, fails: exp.Expr, message: str) -> exp.Expr:
    """A text that cannot be computed where a condition holds."""
    error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(message)])
    return exp.If(
        this=fails,
        true=exp.Cast(this=error, to=exp.DataType.build("string")),
        false=value.copy(),
    )
