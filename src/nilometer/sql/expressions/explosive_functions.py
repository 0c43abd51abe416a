"""A bound on the size of what is computed from one row, and on the time it takes.

A single call can make gigabytes out of a row, or run for years, and Spark does not stop it:
it checks for cancellation only between rows. So how often something is repeated, how long a
text becomes and what a pattern looks for must be visible in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.sql.expressions.call_parts import arguments_of, kind_of, text_of
from nilometer.sql.expressions.scalars import ComputedRef, ResolvedColumn

MOST: Final = 1_000_000
"""The maximum number of values, or characters, that a statement may make out of one."""
_DATA: Final = 100
"""The assumed number of elements of an array in the data."""
_LENGTH: Final = 1_000
"""The assumed size of a length in the data."""
_SHORT: Final = 10
"""So many characters of a text in the statement count as one."""
_TOO_MANY: Final = 10**15
_MOST_COMPARED: Final = 30_000
_MOST_DECIMALS: Final = 400
_MOST_WIDTH: Final = 1_000
_COUNTS: Final = {
    exp.Repeat: ("repeat", 1),
    exp.Pad: ("lpad", 1),
    exp.Space: ("space", 0),
    exp.Randstr: ("randstr", 0),
    exp.ArrayInsert: ("array_insert", 1),
    "array_repeat": ("array_repeat", 1),
    "repeat": ("repeat", 1),
    "lpad": ("lpad", 1),
    "rpad": ("rpad", 1),
    "space": ("space", 0),
    "randstr": ("randstr", 0),
    "array_insert": ("array_insert", 1),
}
"""Functions, by class or by name, with the argument that sets how often or how long."""
_MULTIPLIES: Final[dict[type[exp.Expr] | str, int]] = {
    exp.Replace: 2,
    exp.RegexpReplace: 2,
    exp.ArrayToString: 1,
    exp.ConcatWs: 0,
    "replace": 2,
    "regexp_replace": 2,
    "array_join": 1,
    "concat_ws": 0,
}
"""Functions, with the argument that their result may have for every part of the others."""
_COMPARES_ALL: Final[dict[type[exp.Expr] | str, str]] = {
    exp.ArrayDistinct: "array_distinct",
    exp.ArrayExcept: "array_except",
    exp.ArrayIntersect: "array_intersect",
    exp.ArrayOverlaps: "arrays_overlap",
    **{
        name: name
        for name in (
            *("array_distinct", "array_except", "array_intersect", "array_union"),
            "arrays_overlap",
        )
    },
}
"""Functions that compare every two elements of arrays, if these have parts."""
_DECIMALS: Final = (
    *(exp.Round, exp.Ceil, exp.Floor),
    *("round", "ceil", "ceiling", "floor", "bround", "format_number"),
)
_FORMATS: Final = {
    exp.Format: "format_string",
    "format_string": "format_string",
    "printf": "printf",
}
_LENGTHS: Final = ("length", "len", "char_length", "character_length", "size", "cardinality")
_WIDTHS: Final = re.compile(r"%[^a-zA-Z%]*?(\d{1,20})")
_PRECISIONS: Final = re.compile(r"%[^a-zA-Z%]*?\.(\d{1,20})")
_CHOOSING: Final = (
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Paren, exp.Cast),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Not, exp.And, exp.Or),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ, exp.Length),
)
"""Functions whose result of two values is no larger than one of them."""


def require_bounded(tree: exp.Expr, place: Place, functions: Collection[str] = ()) -> None:
    """Refuse an expression that makes too much of one row, or might take too long for it.

    All its names are expanded; `functions` are the users', in lower case.
    """
    for node in tree.walk():
        refusal = None if kind_of(node) in functions else _refusal(node, kind_of(node))
        if refusal is not None:
            message, detail, hint = refusal
            raise SqlError(message, place=place, detail=detail, hint=hint)
    size = _size(tree)
    if size > MOST:
        shown = f"{size:,}" if size < _TOO_MANY else "countless"
        raise SqlError(
            f"this could produce {shown} values from one row",
            place=place,
            detail=f"the maximum is {MOST:,}; nested repetitions multiply, and an array from the "
            "data counts as a hundred elements",
            hint="repeat less, or nest fewer repetitions",
        )


_Refusal = tuple[str, str | None, str]


def _refusal(node: exp.Expr, kind: type[exp.Expr] | str) -> _Refusal | None:
    arguments = list(arguments_of(node))
    if kind in _COUNTS:
        return _refuse_count(*_COUNTS[kind], arguments)
    if _is_series(node) and _length(node) is None:
        return (
            "the length of this sequence cannot be determined from the statement",
            None,
            "write numbers for both ends, or sequence(1, least(n, 1000)), sequence(n, n + 10)",
        )
    if kind in _DECIMALS and len(arguments) > 1:
        return _refuse_decimals(arguments[1])
    if kind in _COMPARES_ALL and max(map(_size, arguments), default=1) > _MOST_COMPARED:
        return (
            f"{_COMPARES_ALL[kind]} would compare every pair of many elements",
            f"the maximum is {_MOST_COMPARED:,} elements",
            "make fewer elements, or compare them in a join",
        )
    if kind in _FORMATS and arguments:
        return _refuse_format(_FORMATS[kind], arguments[0])
    if isinstance(node, exp.Reduce):
        return _refuse_merge(node)
    return None


def _refuse_count(name: str, place: int, arguments: list[exp.Expr]) -> _Refusal | None:
    if place >= len(arguments) or _most(arguments[place]) is not None:
        return None
    return (
        f"how often {name} repeats cannot be determined from the statement",
        None,
        "write a constant, or bound the number: least(n, 1000)",
    )


def _refuse_decimals(decimals: exp.Expr) -> _Refusal | None:
    maximum = _most(decimals)
    if text_of(decimals) is not None or (maximum is not None and maximum <= _MOST_DECIMALS):
        return None
    return (
        f"numbers can be rounded to at most {_MOST_DECIMALS} places",
        None,
        "write the number of places as a literal",
    )


def _refuse_format(name: str, template: exp.Expr) -> _Refusal | None:
    text = text_of(template)
    hint = f"write {name}('%5.2f', v), with widths of at most {_MOST_WIDTH}"
    if text is None:
        return f"the format of {name} must be a text in the statement", None, hint
    widths = [int(one) for one in _WIDTHS.findall(text)]
    widths += [int(one) for one in _PRECISIONS.findall(text)]
    if any(one > _MOST_WIDTH for one in widths):
        return f"{name} writes at most {_MOST_WIDTH} characters for a value", None, hint
    return None


def _refuse_merge(node: exp.Reduce) -> _Refusal | None:
    """Refuse an accumulator that appears twice in its update, or it doubles every time."""
    merge = node.args.get("merge")
    if not isinstance(merge, exp.Lambda) or not merge.expressions:
        return None
    gathered = merge.expressions[0].name.lower()
    uses = [one for one in merge.this.find_all(exp.Identifier) if one.name.lower() == gathered]
    for place, one in enumerate(uses):
        for other in uses[place + 1 :]:
            if not isinstance(_around_both(one, other, merge), _CHOOSING):
                return (
                    f"the accumulator, {gathered}, is used twice in its new value",
                    "it would double with every element",
                    "use it once: (a, x) -> concat(a, x)",
                )
    return None


def _around_both(one: exp.Expr, other: exp.Expr, root: exp.Lambda) -> exp.Expr:
    """The smallest part of a lambda that contains both."""
    above = set()
    node: exp.Expr | None = one
    while node is not None and node is not root:
        above.add(id(node))
        node = node.parent
    node = other
    while node is not None and node is not root:
        if id(node) in above:
            return node
        node = node.parent
    return root


# The size of results


def _size(tree: exp.Expr) -> int:
    """Roughly how many values, or characters, are made out of one that is read."""
    if isinstance(tree, ResolvedColumn):
        return _size(tree.ref.tree) if isinstance(tree.ref, ComputedRef) else 1
    if (text := text_of(tree)) is not None:
        return max(1, len(text) // _SHORT)
    arguments = list(arguments_of(tree))
    kind = kind_of(tree)
    inside = [_size(one) for one in arguments]
    if kind in _MULTIPLIES:
        place = _MULTIPLIES[kind]
        often = max((one for at, one in enumerate(inside) if at != place), default=1)
        is_data = tree.find(ResolvedColumn, exp.Column, exp.Identifier) is not None
        by = inside[place] if place < len(inside) else 1
        return max(often, _LENGTH if is_data and by > 1 else 1) * by
    if kind in _COUNTS:
        place = _COUNTS[kind][1]
        times = (_most(arguments[place]) or 1) if place < len(arguments) else 1
        return max(1, times) * max(1, *(one for at, one in enumerate(inside) if at != place), 1)
    if _is_series(tree):
        return max(1, _length(tree) or 1)
    lambdas = [at for at, one in enumerate(arguments) if isinstance(one, exp.Lambda)]
    if lambdas:
        return _elements(arguments, inside, lambdas) * max(inside[at] for at in lambdas)
    return sum(one for one in inside if one > 1) or 1  # how many parts there are is bounded


def max_items(array: exp.Expr) -> int:
    """Roughly how many items an array has; one from the data is assumed to have a hundred."""
    texts = [len(one.name) if one.is_string else 1 for one in array.find_all(exp.Literal)]
    of_data = _DATA if array.find(ResolvedColumn) is not None else 1
    return max(_size(array), sum(texts), of_data)


def repetitions(call: exp.Expr) -> int:
    """Roughly how often a call evaluates its lambdas; 1: it has none."""
    arguments = list(arguments_of(call))
    lambdas = [at for at, one in enumerate(arguments) if isinstance(one, exp.Lambda)]
    return _elements(arguments, [_size(one) for one in arguments], lambdas) if lambdas else 1


def _elements(arguments: list[exp.Expr], inside: list[int], lambdas: list[int]) -> int:
    """The number of elements that a function with lambdas processes."""
    arrays = [at for at in range(len(arguments)) if at not in lambdas]
    of_data = any(
        arguments[at].find(exp.Column, exp.Identifier, ResolvedColumn) is not None for at in arrays
    )
    return max(_DATA if of_data else 1, sum(inside[at] for at in arrays))


def _is_series(node: exp.Expr) -> bool:
    return kind_of(node) in (exp.GenerateSeries, "sequence")


def _length(series: exp.Expr) -> int | None:
    """The maximum number of values in a sequence; None: unknown."""
    operands: list[exp.Expr | None] = [*arguments_of(series), None, None, None]
    start, end, step = operands[:3]
    if start is None or end is None:
        return None
    if isinstance(end, exp.Add | exp.Sub) and end.this == start:
        return _steps(_most(end.expression), step)
    low, high = _number(start), _number(end)
    if low is not None and high is not None:
        return _steps(abs(high - low), step)
    if (days := _days(start, end)) is not None:
        return None if isinstance(step, exp.Interval) and _is_short(step) else days + 1
    least, most = _most(start), _most(end)
    return None if least is None or most is None else _steps(least + most, step)


def _steps(distance: int | None, step: exp.Expr | None) -> int | None:
    if distance is None:
        return None
    size = 1 if step is None else _number(step)
    return None if not size else distance // abs(size) + 1


def _days(start: exp.Expr, end: exp.Expr) -> int | None:
    """The days between two date literals."""
    dates = []
    for one in (start, end):
        text = text_of(one.this) if isinstance(one, exp.Cast) and one.is_type("date") else None
        try:
            dates.append(date.fromisoformat(text or ""))
        except ValueError:
            return None
    return abs((dates[1] - dates[0]).days)


def _is_short(step: exp.Interval) -> bool:
    unit = step.args.get("unit")
    return unit is None or unit.name.lower().rstrip("s") not in ("day", "week", "month", "year")


def _most(tree: exp.Expr) -> int | None:
    """The largest magnitude of an integer; None: unknown."""
    number = _number(tree)
    if number is not None:
        return abs(number)
    match tree:
        case exp.Paren() | exp.Cast() | exp.Neg() | exp.Abs():
            return _most(tree.this)
        case exp.Least():
            known = [_number(one) for one in arguments_of(tree)]
            return min((abs(one) for one in known if one is not None), default=None)
        case exp.Length() | exp.ArraySize():
            return max(_LENGTH, _size(tree.this))
        case exp.Anonymous() if tree.name.lower() in _LENGTHS and tree.expressions:
            return max(_LENGTH, _size(tree.expressions[0]))
        case exp.Add() | exp.Sub():
            return _sum(_most(tree.this), _most(tree.expression))
        case exp.Mod():
            return _most(tree.expression)
        case exp.IntDiv():
            return _most(tree.this)
        case exp.Greatest() | exp.Coalesce():
            parts = [_most(one) for one in arguments_of(tree)]
            known_parts = [one for one in parts if one is not None]
            return max(known_parts) if parts and len(known_parts) == len(parts) else None
    return None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _number(tree: exp.Expr) -> int | None:
    """The value of an integer literal."""
    if isinstance(tree, exp.Paren):
        return _number(tree.this)
    if isinstance(tree, exp.Neg):
        value = _number(tree.this)
        return None if value is None else -value
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.this.isdecimal():
        return int(tree.this)
    return None
