"""Which names a query can use, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import (
    AmbiguousNameError,
    Place,
    PredicateError,
    SqlTypeError,
    UnknownNameError,
)
from nilometer.kernels.expression_types import field_place
from nilometer.model.names import nearest
from nilometer.sql.catalog import Relation
from nilometer.sql.plan import RESULT_TIME
from nilometer.sql.scalars import ColumnRef, ResolvedColumn, column, place_of


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


AnyNamed = TypeVar("AnyNamed", bound=Named)


@dataclass(frozen=True)
class Unit:
    """What stands in FROM under one name: a stream, a table or a subquery."""

    name: str
    columns: Mapping[str, exp.Expr]
    """What each of its columns is, in terms of the columns of streams."""
    times: tuple[ColumnRef, ...]
    """The times of its streams; its own time is the largest of them."""
    relations: Mapping[str, Relation]
    """The relation of each of its streams and tables, by their names in the plan."""


@dataclass(frozen=True)
class Scope:
    """The units of a query."""

    sql: str
    units: tuple[Unit, ...]
    shared: Mapping[str, str] = field(default_factory=dict)
    """Columns named in USING: whose they are when no stream is named."""
    is_outermost: bool = True

    def unit(self, name: exp.Identifier) -> Unit:
        """The unit of a name."""
        found = find(name, self.units)
        if found is not None:
            return found
        raise UnknownNameError(
            f"there is no stream {name.name} in this query",
            place=place_of(name, self.sql),
            detail=f"FROM names {', '.join(unit.name for unit in self.units)}",
            hint=nearest(name.name, [unit.name for unit in self.units]),
        )

    def resolve(self, tree: exp.Expr, names: Sequence[exp.Identifier]) -> exp.Expr:
        """What a name such as ts, A.ts or A.position.x means."""
        place = place_of(tree, self.sql)
        unit = find(names[0], self.units)
        if unit is not None and len(names) > 1:
            return self._column(unit, names[1:], place)
        owners = [unit for unit in self.units if find_name(names[0], unit.columns)]
        owners = [u for u in owners if u.name == self.shared.get(names[0].name.lower())] or owners
        if len(owners) == 1:
            return self._column(owners[0], names, place)
        if owners:
            raise AmbiguousNameError(
                f"column {names[0].name} is ambiguous",
                place=place,
                detail=f"{', '.join(unit.name for unit in owners)} have one each",
                hint=f"write {owners[0].name}.{names[0].name}",
            )
        if names[0].name.lower() == RESULT_TIME.column and len(names) == 1:
            return self.time_of(self.units, place)
        raise self._unknown(names, place)

    def time_of(self, units: Iterable[Unit], place: Place) -> exp.Expr:
        """The time of combined rows: the largest."""
        times = [time for unit in units for time in unit.times]
        if not times:
            raise UnknownNameError("static tables have no _time", place=place)
        if len(times) == 1:
            return column(times[0])
        if self.is_outermost:
            return column(RESULT_TIME)
        return exp.Greatest(this=column(times[0]), expressions=[column(t) for t in times[1:]])

    def star(self, units: Sequence[Unit]) -> list[tuple[str, exp.Expr]]:
        """Names and meanings of all columns of some units."""
        return [(name, tree.copy()) for unit in units for name, tree in unit.columns.items()]

    def _column(self, unit: Unit, names: Sequence[exp.Identifier], place: Place) -> exp.Expr:
        name = find_name(names[0], unit.columns)
        if name is None and names[0].name.lower() == RESULT_TIME.column and len(names) == 1:
            return Scope(self.sql, (unit,), is_outermost=False).time_of([unit], place)
        if name is None:
            raise UnknownNameError(
                f"{unit.name} has no column {names[0].name}",
                place=place,
                detail=f"it has {', '.join(unit.columns)}",
                hint=nearest(names[0].name, unit.columns),
            )
        tree = unit.columns[name].copy()
        if isinstance(tree, ResolvedColumn) and isinstance(tree.ref, ColumnRef):
            _require_usable(unit.relations[tree.ref.stream], tree.ref, place)
        if len(names) == 1:
            return tree
        return self._field(unit, tree, [part.name for part in names[1:]], place)

    def _field(self, unit: Unit, tree: exp.Expr, fields: list[str], place: Place) -> exp.Expr:
        if not isinstance(tree, ResolvedColumn) or not isinstance(tree.ref, ColumnRef):
            return exp.Dot.build([exp.Paren(this=tree), *map(exp.to_identifier, fields)])
        ref = tree.ref
        self._check_fields(unit.relations[ref.stream], ref, fields, place)
        return column(ColumnRef(ref.stream, ref.column, (*ref.fields, *fields)))

    def _check_fields(
        self, relation: Relation, ref: ColumnRef, fields: list[str], place: Place
    ) -> None:
        kind = _type(relation, ref)
        try:
            for name in (*ref.fields, *fields):
                if kind is None or pat.is_map(kind):
                    raise PredicateError(f"there is no field {name}", hint="write m['key']")
                kind = kind.field(field_place(kind, name)).type
        except PredicateError as error:
            raise UnknownNameError(
                f"{error.message} in {ref}", place=place, detail=error.detail, hint=error.hint
            ) from None

    def _unknown(self, names: Sequence[exp.Identifier], place: Place) -> UnknownNameError:
        known = [name for unit in self.units for name in unit.columns]
        streams = [unit.name for unit in self.units]
        text = ".".join(name.name for name in names)
        if len(names) > 1:
            hint = nearest(names[0].name, streams) or nearest(names[0].name, known)
        else:
            hint = nearest(names[0].name, known) or nearest(names[0].name, streams)
        return UnknownNameError(
            f"there is no column {text}",
            place=place,
            detail=f"the streams are {', '.join(streams)}",
            hint=hint,
        )


def find(name: exp.Identifier, known: Sequence[AnyNamed]) -> AnyNamed | None:
    """The thing of that name; a name that is not quoted may be in any case."""
    found = find_name(name, [one.name for one in known])
    return None if found is None else next(one for one in known if one.name == found)


def find_name(name: exp.Identifier, known: Iterable[str]) -> str | None:
    """The known spelling of a name."""
    names = list(known)
    if name.name in names:
        return name.name
    if name.quoted:
        return None
    return next((one for one in names if one.lower() == name.name.lower()), None)


def _type(relation: Relation, ref: ColumnRef) -> pa.DataType | None:
    if ref.column not in relation.columns:
        return pa.timestamp("us", tz="UTC")
    return relation.types[relation.columns.index(ref.column)]


def _require_usable(relation: Relation, ref: ColumnRef, place: Place) -> None:
    """Refuse columns whose values cannot be brought to the join."""
    if _type(relation, ref) is None:
        raise SqlTypeError(
            f"column {ref} cannot be used",
            place=place,
            detail="Spark has no Arrow form of its type",
            hint="cast it before the stream is created",
        )
