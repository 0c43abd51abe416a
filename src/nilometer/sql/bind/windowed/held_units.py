"""The units of a FROM once a node holds their rows: same names, with the node's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.bind.scope import FromUnit
from nilometer.sql.expressions.scalars import ColumnRef, Scalar, column
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.derived import derived_source
from nilometer.sql.plan.join_plan import Item

HELD = ""
"""The name of the source that stands for units which are held together."""


@dataclass(frozen=True)
class HeldUnits:
    """The rows of some units, and the meaning of the units' names in them."""

    rows: BoundQuery
    units: tuple[FromUnit, ...]


@dataclass(frozen=True)
class NeededColumns:
    """Which columns the rest of a query may name: all of them, or those with these names."""

    names: frozenset[tuple[str, str]]
    """Names in lower case, each with that of its unit, or empty if not qualified."""
    has_star: bool
    with_times: bool
    """Whether windows between streams need their times."""

    def and_also(self, other: NeededColumns) -> NeededColumns:
        """The columns that either of two queries may name."""
        return NeededColumns(
            self.names | other.names,
            self.has_star or other.has_star,
            self.with_times or other.with_times,
        )

    def items(self, units: Sequence[FromUnit]) -> list[Item]:
        """These columns of some units, as columns of one node."""
        return [Item(name, Scalar(tree, _ANYWHERE)) for name, tree in self._columns(units)]

    def _columns(self, units: Sequence[FromUnit]) -> Iterator[tuple[str, exp.Expr]]:
        for unit in units:
            for name, tree in unit.columns.items():
                is_wanted = self.has_star or self._is_named(unit.name.lower(), name.lower())
                if is_wanted and unit.unusable(tree) is None:
                    yield f"{unit.name}.{name}", tree
            if self._needs_time(unit):
                yield _time_of(unit), unit_time(unit)

    def _is_named(self, unit: str, name: str) -> bool:
        return (unit, name) in self.names or ("", name) in self.names

    def _needs_time(self, unit: FromUnit) -> bool:
        return bool(unit.times) and self.with_times

    def derive(
        self, units: Sequence[FromUnit], node: Node, place: Place, name: str = HELD
    ) -> HeldUnits:
        """The units over the columns of a node that has these items."""
        source = derived_source(name, node, place)
        known = {one.name for one in node.columns}
        derived = [
            replace(
                unit,
                columns={
                    own: column(ColumnRef(name, f"{unit.name}.{own}"))
                    if f"{unit.name}.{own}" in known
                    else tree
                    for own, tree in unit.columns.items()
                    if f"{unit.name}.{own}" in known or unit.unusable(tree) is not None
                },
                times=(ColumnRef(name, _time_of(unit)),) if _time_of(unit) in known else (),
                relations={**unit.relations, name: source.relation},
            )
            for unit in units
        ]
        return HeldUnits(BoundQuery((source,), (), (), (), None), tuple(derived))


def wanted_by(tree: exp.Expr, with_times: bool) -> NeededColumns:
    """The columns that a query may need of its units: all that it names."""
    names: set[tuple[str, str]] = set()
    for node in tree.find_all(exp.Identifier):
        of = node.parent
        unit = of.args.get("table") if isinstance(of, exp.Column) and of.this is node else None
        names.add((unit.name.lower() if unit is not None else "", node.name.lower()))
    has_star = any(
        node.find_ancestor(exp.Select) is tree and not isinstance(node.parent, exp.Count)
        for node in tree.find_all(exp.Star)
    )
    has_time = any(name == "_time" for _, name in names)
    return NeededColumns(frozenset(names), has_star, with_times or has_time)


def unit_time(unit: FromUnit) -> exp.Expr:
    """The time of a unit's rows: the latest of its streams'."""
    first, *others = [column(time) for time in unit.times]
    return exp.Greatest(this=first, expressions=list(others)) if others else first


def merge(left: BoundQuery, right: BoundQuery, conditions: Sequence[Scalar]) -> BoundQuery:
    """Rows of both, with conditions between them."""
    return BoundQuery(
        (*left.sources, *right.sources),
        (*left.windows, *right.windows),
        (*left.conditions, *right.conditions, *conditions),
        (),
        left.windows_place or right.windows_place,
        (*left.lifetimes, *right.lifetimes),
    )


def _time_of(unit: FromUnit) -> str:
    return f"{unit.name}._time"


_ANYWHERE = Place("", 0, 0)
