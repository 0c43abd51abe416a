"""Which names a query can use, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

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
from nilometer.sql.expressions.growth import copy_of
from nilometer.sql.expressions.scalars import RESULT_TIME, ColumnRef, ResolvedColumn, column
from nilometer.sql.parse.find_names import find, find_name
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.put_rows import NO_FROM

_SHORT: Final = 2
"""Names this short resemble too many others."""


@dataclass(frozen=True)
class FromUnit:
    """An entry of FROM under one name: a stream, a table or a subquery."""

    name: str
    columns: Mapping[str, exp.Expr]
    """What each of its columns is, in terms of the columns of streams."""
    times: tuple[ColumnRef, ...]
    """The times of its streams; its own time is the latest of them."""
    relations: Mapping[str, Relation]
    """The relation of each of its streams and tables, by their names in the plan."""
    origin: str | None = None
    """The stream, table or named query that it is; None for a subquery in brackets."""
    is_derived: bool = False
    """Whether it is a query whose answer changes."""
    hidden: frozenset[str] = frozenset()
    """Columns that no star includes, because no user wrote them."""

    @property
    def nameable(self) -> list[str]:
        """Its columns, and those it would have if the query used readings."""
        rows = [one for one in self.relations.values() if one.rows_of == self.origin]
        return [*self.columns, *(name for one in rows for name in one.readings)]

    def unusable(self, tree: exp.Expr) -> ColumnRef | None:
        """The column that a tree stands for, if its values cannot travel to the join."""
        if not isinstance(tree, ResolvedColumn) or not isinstance(tree.ref, ColumnRef):
            return None
        return tree.ref if _type(self.relations[tree.ref.stream], tree.ref) is None else None


@dataclass(frozen=True)
class StarColumn:
    """A column that a star includes."""

    unit: str
    name: str
    meaning: exp.Expr


@dataclass(frozen=True)
class Scope:
    """The units of a query."""

    sql: str
    units: tuple[FromUnit, ...]
    shared: Mapping[str, str] = field(default_factory=dict)
    """Columns named in USING, with the unit meant when no stream is named."""
    using: tuple[tuple[exp.Identifier, ...], ...] = ()
    """The columns that USING names, for each unit but the first."""
    is_outermost: bool = True
    later: tuple[FromUnit, ...] = ()
    """Units of the query that are not yet visible to an ON."""
    outer: Scope | None = None
    """The scope of the outer query, if this one may use its names."""
    merged: Mapping[str, exp.Expr] = field(default_factory=dict)
    """What columns of USING mean, in lower case, unless they are the first unit's."""

    def unit(self, name: exp.Identifier) -> FromUnit:
        """The unit with a name."""
        own = find(name, self.units)
        if own is not None:
            return own
        if self.outer is not None and find(name, self.outer.units) is not None:
            raise UnknownNameError(
                f"{name.name} belongs to the enclosing query",
                place=place_of(name, self.sql),
                detail=f"FROM names {', '.join(unit.name for unit in self.units)}",
                hint="windows and stars may only use streams of the same FROM; compare times of "
                "other streams in WHERE",
            )
        raise self._no_stream(name)

    def _no_stream(self, name: exp.Identifier) -> UnknownNameError:
        """The error about X.k where FROM has no X."""
        if find(name, self.later) is not None:
            return UnknownNameError(
                f"{name.name} is joined after this ON",
                place=place_of(name, self.sql),
                hint=f"move the condition to WHERE, or to JOIN … {name.name} ON",
            )
        alias = next((u for u in self.units if (u.origin or "").lower() == name.name.lower()), None)
        hint = nearest(name.name, [unit.name for unit in self.units])
        begin = f"{name.name.lower()}."
        dotted = next((one for one in self._known if one.lower().startswith(begin)), None)
        if dotted is not None:
            hint = f"put a name with a dot in backquotes: `{dotted}`"
        elif hint is None and len(name.name) > _SHORT:
            hint = nearest(name.name, self._known)
        return UnknownNameError(
            f"there is no stream {name.name} in this query",
            place=place_of(name, self.sql),
            detail=f"FROM names {', '.join(unit.name for unit in self.units)}",
            hint=hint if alias is None else f"{alias.origin} is named {alias.name} here",
        )

    @property
    def _known(self) -> list[str]:
        return [name for unit in self.units for name in unit.nameable]

    def resolve(self, tree: exp.Expr, names: Sequence[exp.Identifier]) -> exp.Expr:
        """What a name such as ts, A.ts or A.position.x means."""
        place = place_of(tree, self.sql)
        unit = find(names[0], self.units)
        if unit is not None and len(names) > 1:
            return self._column(unit, names[1:], place)
        if names[0].name.lower() in self.merged and len(names) == 1:
            return copy_of(self.merged[names[0].name.lower()], place)
        owners = [unit for unit in self.units if find_name(names[0], unit.columns)]
        owners = [u for u in owners if u.name == self.shared.get(names[0].name.lower())] or owners
        if len(names) > 1 and self.outer is not None and find(names[0], self.outer.units):
            owners = [unit for unit in owners if _may_have_fields(unit, names[0])]
        if len(owners) == 1:
            return self._column(owners[0], names, place)
        if owners:
            raise AmbiguousNameError(
                f"column {names[0].name} is ambiguous",
                place=place,
                detail=f"{', '.join(unit.name for unit in owners)} each have one",
                hint=f"write {owners[0].name}.{names[0].name}",
            )
        if names[0].name.lower() == RESULT_TIME.column and len(names) == 1:
            return self.time_of(self.units, place)
        if self.outer is not None:
            return self.outer.resolve(tree, names)
        if len(names) > 1:
            raise self._no_stream(names[0])
        raise self._no_column(names[0], place)

    def time_of(self, units: Iterable[FromUnit], place: Place) -> exp.Expr:
        """The time of combined rows: the largest."""
        units = list(units)
        times = [time for unit in units for time in unit.times]
        derived = next((unit for unit in units if unit.is_derived and not unit.times), None)
        if derived is not None:
            raise UnknownNameError(
                f"the rows of {derived.name} have no _time: they are added and retracted",
                place=place,
                hint="select a time in the subquery: MAX(ts) AS latest",
            )
        if not times:
            raise UnknownNameError("static tables have no _time", place=place)
        if len(times) == 1:
            return column(times[0])
        if self.is_outermost:
            return column(RESULT_TIME)
        return exp.Greatest(this=column(times[0]), expressions=[column(t) for t in times[1:]])

    def star(self, unit: FromUnit) -> list[StarColumn]:
        """Names and meanings of all columns of a unit."""
        place = Place(self.sql, 0, 1)
        return [
            StarColumn(unit.name, name, copy_of(tree, place))
            for name, tree in unit.columns.items()
            if name not in unit.hidden
        ]

    def star_of_all(self) -> list[StarColumn]:
        """Names and meanings of all columns; those of USING appear once, and first."""
        columns = self.star(self.units[0])
        for number, unit in enumerate(self.units[1:]):
            names = self.using[number] if number < len(self.using) else ()
            columns = _joined(columns, self.star(unit), names)
        return [self._merged(one) for one in columns]

    def _merged(self, one: StarColumn) -> StarColumn:
        """A column that USING names, with its meaning for both sides."""
        meaning = self.merged.get(one.name.lower())
        is_shared = self.shared.get(one.name.lower()) == one.unit
        return one if meaning is None or not is_shared else replace(one, meaning=meaning.copy())

    def _column(self, unit: FromUnit, names: Sequence[exp.Identifier], place: Place) -> exp.Expr:
        name = find_name(names[0], unit.columns)
        if name is None and names[0].name.lower() == RESULT_TIME.column and len(names) == 1:
            return Scope(self.sql, (unit,), is_outermost=False).time_of([unit], place)
        if name is None:
            raise UnknownNameError(
                f"{unit.name} has no column {names[0].name}",
                place=place,
                detail=f"it has {', '.join(unit.nameable)}",
                hint=_nearest(names[0].name, unit.nameable),
            )
        tree = copy_of(unit.columns[name], place)
        require_usable(unit, tree, place)
        if len(names) == 1:
            return tree if isinstance(tree, ResolvedColumn) else exp.Paren(this=tree)
        return self._field(unit, tree, [part.name for part in names[1:]], place)

    def _field(self, unit: FromUnit, tree: exp.Expr, fields: list[str], place: Place) -> exp.Expr:
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
                    raise PredicateError(f"there is no field {name}", hint=f"write {ref}['{name}']")
                kind = kind.field(field_place(kind, name)).type
        except PredicateError as error:
            raise UnknownNameError(
                f"{error.message} in {ref}", place=place, detail=error.detail, hint=error.hint
            ) from None

    def _column_of(self, name: exp.Identifier) -> str | None:
        """What to write for a column, where the name is an entry of FROM."""
        unit = find(name, self.units)
        return f"write {unit.name}.{next(iter(unit.columns), 'x')}" if unit is not None else None

    def _no_column(self, name: exp.Identifier, place: Place) -> UnknownNameError:
        streams = [unit.name for unit in self.units]
        if streams == [NO_FROM]:
            return UnknownNameError(
                f"there is no column {name.name}",
                place=place,
                detail="no stream precedes it that could have this column",
                hint="name the streams that it reads; enclose text in quotes",
            )
        if len(streams) == 1:
            detail = f"{streams[0]} has {', '.join(self._known)}"
        else:
            detail = f"the streams are {', '.join(streams)}"
        return UnknownNameError(
            f"there is no column {name.name}",
            place=place,
            detail=detail,
            hint=self._column_of(name)
            or _nearest(name.name, self._known)
            or nearest(name.name, streams),
        )


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """The closest known name, including a field whose struct was left out."""
    inner = next((one for one in known if one.lower().endswith(f".{name.lower()}")), None)
    return nearest(name, known) if inner is None else f"did you mean {inner}?"


def _may_have_fields(unit: FromUnit, name: exp.Identifier) -> bool:
    """Whether x.y may be a field of a unit's column x, and not a column of a stream x."""
    column_name = find_name(name, unit.columns)
    tree = unit.columns[column_name] if column_name is not None else None
    if not isinstance(tree, ResolvedColumn) or not isinstance(tree.ref, ColumnRef):
        return True
    kind = _type(unit.relations[tree.ref.stream], tree.ref)
    return kind is None or bool(pat.is_nested(kind))


def _joined(
    left: list[StarColumn], right: list[StarColumn], using: Iterable[exp.Identifier]
) -> list[StarColumn]:
    """The columns of a join: first those of USING, then the rest of both sides."""
    first = []
    for name in using:
        place = _place_of_column(name, left)
        first.append(left[place])
        left = left[:place] + left[place + 1 :]
        place = _place_of_column(name, right)
        right = right[:place] + right[place + 1 :]
    return [*first, *left, *right]


def _place_of_column(name: exp.Identifier, columns: list[StarColumn]) -> int:
    names = [one.name for one in columns]
    column_name = find_name(name, names)
    assert column_name is not None, "the condition of USING has been bound"
    return names.index(column_name)


def _type(relation: Relation, ref: ColumnRef) -> pa.DataType | None:
    if ref.column not in relation.columns:
        return pa.timestamp("us", tz="UTC")
    return relation.types[relation.columns.index(ref.column)]


def require_usable(unit: FromUnit, tree: exp.Expr, place: Place) -> None:
    """Refuse columns whose values cannot travel to the join."""
    ref = unit.unusable(tree)
    if ref is not None:
        raise SqlTypeError(
            f"column {ref} cannot be used",
            place=place,
            detail="Spark has no Arrow form of its type",
            hint="cast it before the stream is created",
        )
