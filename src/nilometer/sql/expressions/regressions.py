"""The aggregates of a straight line through pairs of values: regr_slope(y, x) and its kin.

Pairs with a NULL do not count. They are composed of counts, means and variances, which
follow added and retracted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp


@dataclass(frozen=True)
class Pairs:
    """Expressions of aggregates of y and x, each of which is NULL where the other one is."""

    y: exp.Expr
    x: exp.Expr

    @property
    def count(self) -> exp.Expr:
        return exp.Count(this=self.y.copy())

    @property
    def mean_y(self) -> exp.Expr:
        return exp.Avg(this=self.y.copy())

    @property
    def mean_x(self) -> exp.Expr:
        return exp.Avg(this=self.x.copy())

    @property
    def variance_y(self) -> exp.Expr:
        return exp.VariancePop(this=self.y.copy())

    @property
    def variance_x(self) -> exp.Expr:
        return exp.VariancePop(this=self.x.copy())

    @property
    def covariance(self) -> exp.Expr:
        return exp.CovarPop(this=self.y.copy(), expression=self.x.copy())

    @property
    def slope(self) -> exp.Expr:
        """The slope; NULL if all x are equal."""
        spread = exp.Nullif(this=self.variance_x, expression=_double(0))
        return exp.Paren(this=exp.Div(this=self.covariance, expression=spread))

    @property
    def intercept(self) -> exp.Expr:
        rise = exp.Mul(this=self.slope, expression=self.mean_x)
        return exp.Sub(this=self.mean_y, expression=rise)

    @property
    def r2(self) -> exp.Expr:
        """NULL if all x are equal; 1 if all y are, as the line then goes through every point."""
        flat = exp.And(
            this=exp.GT(this=self.variance_x, expression=_double(0)),
            expression=exp.EQ(this=self.variance_y, expression=_double(0)),
        )
        correlation = exp.Corr(this=self.y.copy(), expression=self.x.copy())
        squared = exp.Mul(this=correlation, expression=correlation.copy())
        return exp.Case(ifs=[exp.If(this=flat, true=_double(1))], default=squared)

    def summed(self, mean: exp.Expr) -> exp.Expr:
        """The sum of which this is the mean."""
        return exp.Mul(this=mean, expression=self.count)


def _double(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(value), exp.DType.DOUBLE)


REGRESSIONS: Final[Mapping[type[exp.Expr], Callable[[Pairs], exp.Expr]]] = {
    exp.RegrCount: lambda pairs: pairs.count,
    exp.RegrAvgx: lambda pairs: pairs.mean_x,
    exp.RegrAvgy: lambda pairs: pairs.mean_y,
    exp.RegrSxx: lambda pairs: pairs.summed(pairs.variance_x),
    exp.RegrSyy: lambda pairs: pairs.summed(pairs.variance_y),
    exp.RegrSxy: lambda pairs: pairs.summed(pairs.covariance),
    exp.RegrSlope: lambda pairs: pairs.slope,
    exp.RegrIntercept: lambda pairs: pairs.intercept,
    exp.RegrR2: lambda pairs: pairs.r2,
}
