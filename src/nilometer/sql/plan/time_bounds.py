"""Conditions that only compare the times of streams, as bounds.

``B.ts BETWEEN A.ts AND A.ts + INTERVAL '5' SECOND`` says what ``DWINDOW(A, B) = 5 SECONDS``
says; as a bound it also determines which rows may be dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from nilometer.model.expressions import Argument, Constant, Interval
from nilometer.model.windows import Bound, DerivedWindow
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.scalars import Ref, ResolvedColumn, Scalar
from nilometer.sql.plan.join_plan import Source


@dataclass(frozen=True)
class _Sum:
    """A sum of stream times, added or subtracted, and microseconds."""

    times: Mapping[str, int]
    microseconds: int

    def plus(self, other: _Sum, sign: int = 1) -> _Sum:
        names = {*self.times, *other.times}
        times = {n: self.times.get(n, 0) + sign * other.times.get(n, 0) for n in names}
        rest = self.microseconds + sign * other.microseconds
        return _Sum({n: count for n, count in times.items() if count}, rest)


def time_window(condition: Scalar, sources: Sequence[Source]) -> DerivedWindow | None:
    """The window that a condition expresses, if any."""
    times: dict[Ref, str] = {s.time: s.name for s in sources if not s.is_table}
    limits = _limits(condition.tree, times)
    return None if limits is None else DerivedWindow(limits, str(condition))


def _limits(tree: exp.Expr, times: Mapping[Ref, str]) -> tuple[Bound, ...] | None:
    """The bounds that a condition is equivalent to; None if it is not just bounds."""
    if tree.args.get("negate"):
        return None
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low = _at_most(tree.args["low"], tree.this, times, 0)
        high = _at_most(tree.this, tree.args["high"], times, 0)
        return None if low is None or high is None else (*low, *high)
    match tree:
        case exp.LTE() | exp.LT():
            return _at_most(tree.left, tree.right, times, int(isinstance(tree, exp.LT)))
        case exp.GTE() | exp.GT():
            return _at_most(tree.right, tree.left, times, int(isinstance(tree, exp.GT)))
        case exp.EQ():
            up = _at_most(tree.left, tree.right, times, 0)
            down = _at_most(tree.right, tree.left, times, 0)
            return None if up is None or down is None else (*up, *down)
    return None


def _at_most(
    left: exp.Expr, right: exp.Expr, times: Mapping[Ref, str], strictly: int
) -> tuple[Bound, ...] | None:
    """left <= right, or left < right, as bounds."""
    left, right = left.unnest(), right.unnest()
    if isinstance(left, exp.Abs):
        limit, inside = _sum(right, times), _sum(left.this, times)
        if limit is None or inside is None or limit.times:
            return None
        negative = _Sum({}, 0).plus(inside, -1)
        both = [_bound(one.plus(limit, -1), strictly) for one in (inside, negative)]
        return None if None in both else tuple(b for b in both if b is not None)
    first, second = _sum(left, times), _sum(right, times)
    if first is None or second is None:
        return None
    bound = _bound(first.plus(second, -1), strictly)
    return None if bound is None else (bound,)


def _bound(difference: _Sum, strictly: int) -> Bound | None:
    """difference <= 0 as a bound, if it is the difference of two times and a constant."""
    signs = {sign: name for name, sign in difference.times.items()}
    if len(difference.times) != 2 or set(signs) != {1, -1}:
        return None
    return Bound(signs[-1], signs[1], -difference.microseconds - strictly)


def _sum(tree: exp.Expr, times: Mapping[Ref, str]) -> _Sum | None:
    tree = tree.unnest()
    match tree:
        case ResolvedColumn() if tree.ref in times:
            return _Sum({times[tree.ref]: 1}, 0)
        case exp.Add() | exp.Sub():
            left, right = _sum(tree.left, times), _sum(tree.right, times)
            sign = 1 if isinstance(tree, exp.Add) else -1
            return None if left is None or right is None else left.plus(right, sign)
        case exp.Interval():
            return _constant(tree)
    return None


def _constant(tree: exp.Expr) -> _Sum | None:
    try:
        value = SubsetCompiler("", lambda _: Argument(0), {}).compile(tree)
    except NotInSubsetError:
        return None
    if isinstance(value, Constant) and isinstance(value.value, Interval):
        return _Sum({}, value.value.microseconds)
    return None
