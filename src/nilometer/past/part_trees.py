"""Building blocks of the queries over one part, and over all of them together."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

PARTS: Final = "parts of the answer"
PART_COLUMN: Final = "c"
"""Columns of PARTS are c0, c1, …"""
MERGED: Final = "merged parts"
"""The aggregates of parts after merging: keys g0, g1, … and values a0, a1, …"""


def same_values(unit: exp.Expr, kind: type[exp.AggFunc]) -> exp.Expr:
    """Another aggregate over the same values."""
    if isinstance(unit, exp.Filter):
        copied = unit.copy()
        copied.set("this", kind(this=unit.this.this.copy()))
        return copied
    return kind(this=unit.this.copy())


def mean(at: int) -> exp.Expr:
    """The mean of values, from sums and, in the next column, counts."""
    total = exp.cast(exp.Sum(this=part_column(at)), "DOUBLE")
    count = exp.cast(exp.Sum(this=part_column(at + 1)), "DOUBLE")
    return exp.Div(this=total, expression=exp.Nullif(this=count, expression=exp.Literal.number(0)))


def number_sum(at: int) -> exp.Expr:
    """The total of a column of counts."""
    return exp.Coalesce(this=exp.Sum(this=part_column(at)), expressions=[exp.Literal.number(0)])


def cast_large(tree: exp.Expr, kind: str) -> exp.Expr:
    """Cast a HUGEINT back, which came as a decimal number; all else stays as it is."""
    return cast_to(tree, kind) if kind == "HUGEINT" else tree


def cast_to(tree: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(kind, dialect="duckdb"))


def by_first(count: int) -> exp.Group:
    """GROUP BY the first columns."""
    return exp.Group(expressions=[exp.Literal.number(n + 1) for n in range(count)])


def table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def part_column(number: int) -> exp.Column:
    return exp.column(f"{PART_COLUMN}{number}", table=exp.to_identifier(PARTS, quoted=True))


def merged_column(name: str) -> exp.Column:
    return exp.column(name, table=exp.to_identifier(MERGED, quoted=True))


def key_name(number: int) -> str:
    return f"g{number}"


def unit_name(number: int) -> str:
    return f"a{number}"
