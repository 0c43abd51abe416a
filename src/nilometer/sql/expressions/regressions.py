"""The aggregates of a straight line through pairs of values: regr_slope(y, x) and its kin.

Pairs of which one value is NULL do not count. They are made of counts, means and variances, which
follow rows that come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

Part = Callable[[exp.Expr, exp.Expr], exp.Expr]
"""An expression of aggregates of y and x, in which each is NULL where the other one is."""


def _count(y: exp.Expr, x: exp.Expr) -> exp.Expr:  # noqa: ARG001  x is NULL where y is
    return exp.Count(this=y.copy())


def _mean_y(y: exp.Expr, x: exp.Expr) -> exp.Expr:  # noqa: ARG001
    return exp.Avg(this=y.copy())


def _mean_x(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    return _mean_y(x, y)


def _variance_y(y: exp.Expr, x: exp.Expr) -> exp.Expr:  # noqa: ARG001
    return exp.VariancePop(this=y.copy())


def _variance_x(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    return _variance_y(x, y)


def _covariance(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    return exp.CovarPop(this=y.copy(), expression=x.copy())


def _times_count(part: Part) -> Part:
    return lambda y, x: exp.Mul(this=part(y, x), expression=_count(y, x))


def _slope(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    """NULL if all x are equal."""
    spread = exp.Nullif(this=_variance_x(y, x), expression=_zero())
    return exp.Paren(this=exp.Div(this=_covariance(y, x), expression=spread))


def _intercept(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    rise = exp.Mul(this=_slope(y, x), expression=_mean_x(y, x))
    return exp.Sub(this=_mean_y(y, x), expression=rise)


def _r2(y: exp.Expr, x: exp.Expr) -> exp.Expr:
    """NULL if all x are equal; 1 if all y are, as the line then goes through every point."""
    flat = exp.And(
        this=exp.GT(this=_variance_x(y, x), expression=_zero()),
        expression=exp.EQ(this=_variance_y(y, x), expression=_zero()),
    )
    correlation = exp.Corr(this=y.copy(), expression=x.copy())
    squared = exp.Mul(this=correlation, expression=correlation.copy())
    one = exp.cast(exp.Literal.number(1), exp.DType.DOUBLE)
    return exp.Case(ifs=[exp.If(this=flat, true=one)], default=squared)


def _zero() -> exp.Expr:
    return exp.cast(exp.Literal.number(0), exp.DType.DOUBLE)


REGRESSIONS: Final[Mapping[type[exp.Expr], Part]] = {
    exp.RegrCount: _count,
    exp.RegrAvgx: _mean_x,
    exp.RegrAvgy: _mean_y,
    exp.RegrSxx: _times_count(_variance_x),
    exp.RegrSyy: _times_count(_variance_y),
    exp.RegrSxy: _times_count(_covariance),
    exp.RegrSlope: _slope,
    exp.RegrIntercept: _intercept,
    exp.RegrR2: _r2,
}
