"""Aggregates composed of others: bool_and is MIN, corr is composed of variances.

The result uses only functions that operators support. Those that need an order, and those that
return all values, get them as structs of the sort key (o) and the value (v).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.operators.change_specs import SortKey
from nilometer.sql.expressions.regressions import REGRESSIONS, Pairs
from nilometer.sql.expressions.scalars import RESULT_TIME, column, rebuild
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of, put_at

ORDER, VALUE = "o", "v"
_ALL: Final = ("bool_and", "every")
_SOME: Final = ("bool_or", "some", "any")
TRUTHS: Final = (*_ALL, *_SOME)
_FIRSTS: Final = (exp.First, exp.FirstValue, exp.AnyValue)
_LASTS: Final = (exp.Last, exp.LastValue)
_OF_TWO: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.ArgMax, exp.ArgMin, exp.Corr, exp.CovarPop, exp.CovarSamp),
    *REGRESSIONS,
)
COMPOUND: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.LogicalAnd, exp.LogicalOr, exp.CountIf, exp.ApproxDistinct, exp.Count, exp.Corr),
    *(exp.WithinGroup, exp.ApproxQuantile),
    *REGRESSIONS,
)
"""Aggregates that may be composed of others, apart from values in an order."""


def simplify_aggregate(tree: exp.Expr, sql: str) -> exp.Expr:
    """The same in terms of simpler aggregates; the tree itself if it is simple already."""
    if isinstance(tree, exp.Filter):
        simpler = simplify_aggregate(tree.this, sql)
        return tree if simpler is tree.this else _filtered(simpler, tree.expression)
    require_arguments(tree, sql)
    simplified = _simplify(tree, place_of(tree, sql))
    return tree if simplified is None else simplified


def require_arguments(tree: exp.Expr, sql: str) -> None:
    """Refuse max_by(x) and corr(): the parser accepts missing arguments."""
    needed = ("this", "expression") if isinstance(tree, _OF_TWO) else ("this",)
    if isinstance(tree, exp.ApproxQuantile):
        needed = ("this", "quantile")
    inner = tree.this if isinstance(tree, exp.WithinGroup | exp.IgnoreNulls) else tree
    if isinstance(inner, exp.Anonymous | exp.Count) or not isinstance(inner, exp.AggFunc):
        return
    too_many = isinstance(inner, exp.ArgMax | exp.ArgMin) and inner.args.get("count")
    if too_many or any(inner.args.get(name) is None for name in needed):
        takes = "two arguments" if len(needed) == 2 else "an argument"
        raise SqlError(f"{written(inner)} takes {takes}", place=place_of(tree, sql))
    accuracy = inner.args.get("accuracy")
    if isinstance(inner, exp.ApproxQuantile) and accuracy is not None and not accuracy.is_int:
        raise SqlError("its accuracy must be a whole number", place=place_of(tree, sql))


def _filtered(tree: exp.Expr, where: exp.Expr) -> exp.Expr:
    """Every aggregate of an expression over the rows that pass a test."""
    if isinstance(tree, exp.AggFunc):
        return exp.Filter(this=tree, expression=where.copy())
    return rebuild(tree, lambda child: _filtered(child, where))


def _simplify(tree: exp.Expr, place: Place) -> exp.Expr | None:
    name = tree.name.lower() if isinstance(tree, exp.Anonymous) else ""
    match tree:
        case exp.LogicalAnd():
            return exp.Min(this=_truth(tree.this, place))
        case exp.LogicalOr():
            return exp.Max(this=_truth(tree.this, place))
        case exp.Anonymous() if name in TRUTHS and len(tree.expressions) == 1:
            make = exp.Min if name in _ALL else exp.Max
            return make(this=_truth(tree.expressions[0], place))
        case exp.CountIf() if not isinstance(tree.this, exp.Distinct):
            return exp.Count(this=_where(tree.this, exp.Literal.number(1), place))
        case exp.ApproxDistinct():
            return exp.Count(this=exp.Distinct(expressions=[tree.this.copy()]))
        case exp.Count() if isinstance(tree.this, exp.Distinct) and tree.this.expressions[1:]:
            return exp.Count(this=_distinct_rows(tree.this, place))
        case exp.WithinGroup() if isinstance(tree.this, exp.PercentileCont | exp.PercentileDisc):
            return _percentile(tree, place)
        case exp.Corr():
            return _correlation(tree, place)
        case exp.Expr() if (regression := REGRESSIONS.get(type(tree))) is not None:
            y, x = tree.this, tree.expression
            known_y = where_known(x, _double(y, place), place)
            known_x = where_known(y, _double(x, place), place)
            return put_at(regression(Pairs(known_y, known_x)), place)
        case exp.ApproxQuantile() if isinstance(tree.args["quantile"], exp.Array):
            return _approximations(tree, place)
        case exp.IgnoreNulls() if isinstance(tree.this, (*_FIRSTS, *_LASTS)):
            return _by_order(tree.this, place, nulls=False)
        case exp.First() | exp.FirstValue() | exp.AnyValue() | exp.Last() | exp.LastValue():
            return _by_order(tree, place, nulls=True)
    return None


def pair(order: list[exp.Expr], value: exp.Expr, place: Place) -> exp.Expr:
    """A struct of the sort key and the value."""
    names = [f"{ORDER}{number}" for number in range(len(order))]
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=one.copy())
        for name, one in zip((*names, VALUE), (*order, value), strict=True)
    ]
    return put_at(exp.Struct(expressions=fields), place)


def where_known(test: exp.Expr, value: exp.Expr, place: Place) -> exp.Expr:
    """A value where another is not NULL."""
    known = exp.Not(this=exp.Is(this=test.copy(), expression=exp.Null()))
    return _where(put_at(known, place), value, place)


def _where(test: exp.Expr, value: exp.Expr, place: Place) -> exp.Expr:
    branch = put_at(exp.If(this=test.copy(), true=value.copy()), place)
    return put_at(exp.Case(ifs=[branch]), place)


def _truth(tree: exp.Expr, place: Place) -> exp.Expr:
    """The same, which must be boolean."""
    return put_at(exp.And(this=tree.copy(), expression=exp.true()), place)


def _distinct_rows(distinct: exp.Distinct, place: Place) -> exp.Expr:
    """Several values as one struct, which is NULL if one of them is."""
    *others, last = distinct.expressions
    value = pair(others, last, place)
    for one in distinct.expressions:
        value = where_known(one, value, place)
    return exp.Distinct(expressions=[value])


def _percentile(tree: exp.WithinGroup, place: Place) -> exp.Expr:
    ordered, *others = tree.expression.expressions
    if others:
        raise SqlError("a percentile must be ordered by one column", place=place)
    fraction, reverse = tree.this.this.copy(), bool(ordered.args.get("desc"))
    if isinstance(tree.this, exp.PercentileDisc):
        value = ordered.this.copy()
        return put_at(exp.PercentileDisc(this=value, quantile=fraction, reverse=reverse), place)
    if reverse and isinstance(fraction, exp.Literal) and not fraction.is_string:
        fraction = exp.Literal.number(1 - float(fraction.name))
    return put_at(exp.Quantile(this=ordered.this.copy(), quantile=fraction), place)


def _approximations(tree: exp.ApproxQuantile, place: Place) -> exp.Expr:
    """approx_percentile(x, array(…)): one for each fraction."""
    listed = tree.args["quantile"].expressions
    percentiles = [
        put_at(exp.ApproxQuantile(this=tree.this.copy(), quantile=one.copy()), place)
        for one in listed
    ]
    return put_at(exp.Array(expressions=percentiles), place)


def _double(tree: exp.Expr, place: Place) -> exp.Expr:
    return put_at(exp.cast(tree.copy(), exp.DType.DOUBLE), place)


def pair_of_numbers(tree: exp.Expr, place: Place) -> exp.Expr:
    """The two arguments of a covariance as one, NULL where either is."""
    x, y = tree.this, tree.expression
    both = pair([_double(x, place)], _double(y, place), place)
    return where_known(x, where_known(y, both, place), place)


def _correlation(tree: exp.Expr, place: Place) -> exp.Expr:
    x, y = tree.this, tree.expression
    own = exp.StddevPop(this=where_known(y, _double(x, place), place))
    other = exp.StddevPop(this=where_known(x, _double(y, place), place))
    product = exp.Nullif(this=exp.Mul(this=own, expression=other), expression=_number(0))
    covariance = put_at(exp.CovarPop(this=x.copy(), expression=y.copy()), place)
    ratio = exp.Paren(this=exp.Div(this=covariance, expression=product))
    above = exp.If(this=exp.GT(this=ratio, expression=_number(1)), true=_number(1))
    below = exp.If(
        this=exp.LT(this=ratio.copy(), expression=exp.Neg(this=_number(1))),
        true=exp.Neg(this=_number(1)),
    )
    return put_at(exp.Case(ifs=[above, below], default=ratio.copy()), place)


def _number(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(value), exp.DType.DOUBLE)


def _by_order(tree: exp.Expr, place: Place, *, nulls: bool) -> exp.Expr:
    """The value of the first or the last row, in time order or as specified."""
    order = tree.this
    if not isinstance(order, exp.Order):
        by_time = exp.Ordered(this=column(RESULT_TIME), nulls_first=True)
        order = exp.Order(this=order.copy(), expressions=[by_time])
    chosen = order if nulls else where_known(order.this, order, place)
    make = exp.ArgMin if isinstance(tree, _FIRSTS) else exp.ArgMax
    return put_at(make(this=order.this.copy(), expression=chosen.copy()), place)


def order_in(chosen: exp.Expr) -> exp.Order | None:
    """The sort key with its value, optionally only where the value is not NULL."""
    if isinstance(chosen, exp.Case):
        chosen = chosen.args["ifs"][0].args["true"]
    return chosen if isinstance(chosen, exp.Order) else None


def with_order(chosen: exp.Expr, ordered: exp.Expr) -> exp.Expr:
    """The same with this order instead."""
    if isinstance(chosen, exp.Order):
        return ordered
    changed = chosen.copy()
    changed.args["ifs"][0].set("true", ordered)
    return changed


@dataclass(frozen=True)
class ReadOrder:
    """A value of an aggregate, and its order."""

    value: exp.Expr
    terms: list[exp.Expr]
    reverse: bool = False
    """Whether the largest come first."""
    keys: tuple[SortKey, ...] = ()
    """The direction of each term, where terms differ or NULLs do not go with the smallest."""

    @property
    def is_descending(self) -> bool:
        """Whether the first term puts the largest first; NULLs left out."""
        return self.keys[0].descending if self.keys else self.reverse


def read_order(tree: exp.Expr) -> ReadOrder:
    """The value and order of an ordered aggregate; by default the order of time."""
    if not isinstance(tree, exp.Order):
        return ReadOrder(tree, [column(RESULT_TIME)])
    return ReadOrder(
        tree.this, [one.this for one in tree.expressions], *read_directions(tree.expressions)
    )


def read_directions(terms: Sequence[exp.Ordered]) -> tuple[bool, tuple[SortKey, ...]]:
    """Whether all terms put the largest first, and NULLs last; or each direction, if they
    differ. Neither: they put NULLs and the smallest first."""
    directions = [(bool(one.args.get("desc")), bool(one.args.get("nulls_first"))) for one in terms]
    if set(directions) in ({(True, False)}, {(False, True)}):
        return directions[0][0], ()
    return False, tuple(SortKey(number, *one) for number, one in enumerate(directions))
