"""MATCH_RECOGNIZE, bound: its pattern as a program, conditions and measures over slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import (
    AmbiguousNameError,
    Place,
    PredicateError,
    SqlError,
    SqlTypeError,
    UnknownNameError,
)
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.model.expressions import Expression
from nilometer.model.names import nearest
from nilometer.model.row_patterns import (
    MOST_VARIABLES,
    Absent,
    build_program,
    count_steps,
    max_rows,
    names_in,
    show_pattern,
)
from nilometer.model.row_patterns import (
    Sequence as Parts,
)
from nilometer.operators.match_rows import MatchSpec
from nilometer.operators.match_spec import (
    Aggregated,
    Condition,
    Matching,
    Navigation,
    Numbered,
    SkipTo,
    Slot,
)
from nilometer.sql.bind.windowed.read_slots import MATCH, Arguments, SlotReader, require_variable
from nilometer.sql.bind.windowed.refusals import require_comparable
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.expressions.growth import grow
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.over_calls import refuse_window
from nilometer.sql.parse.places import conjuncts, place_of, text_of
from nilometer.sql.plan.changes_plan import (
    RESULT_TIME_NAME,
    Column,
    Match,
    Node,
    names_of,
    types_of,
)
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.row_expressions import RowExpressions
from nilometer.sql.plan.types import TIMESTAMP

Ordered: TypeAlias = Callable[[exp.Expr], None]
"""Refuses any expression other than the time of the rows."""
_SKIPS = {"PAST": SkipTo.PAST, "NEXT": SkipTo.NEXT, "FIRST": SkipTo.FIRST, "LAST": SkipTo.LAST}


@dataclass(frozen=True)
class _Definition:
    """A parsed condition: parts that see rows alone, and parts that see the match so far."""

    plain: list[exp.Expr]
    near: SlotReader
    rest: list[exp.Expr]
    seen: SlotReader
    text: str


@dataclass(frozen=True)
class MatchBinder:
    """Binds one MATCH_RECOGNIZE."""

    sql: str
    catalog: Catalog
    call: MatchCall

    def bind(self, below: Callable[[exp.Select], tuple[Node, Ordered]]) -> Match:
        """The node; `below` returns the rows of a query with their time."""
        self._check_pattern()
        arguments = Arguments()
        defined = [self._define(name, arguments) for name in self.variables]
        reader = SlotReader(
            self.sql,
            self.catalog,
            self._names,
            self._all,
            arguments,
            final=not self.call.args["all_rows"],
        )
        measures = [(one, reader.read(one.this)) for one in self._measures]
        node, require_time = below(self._query(arguments))
        self._require_order(require_time)
        passed = len(node.columns) - len(arguments.trees) - 1
        return self._node(node, passed, defined, reader, measures)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names_in(self.call.pattern)))

    @cached_property
    def _all(self) -> frozenset[int]:
        return frozenset(range(len(self.variables)))

    @cached_property
    def _names(self) -> dict[str, frozenset[int]]:
        """The variables, and the subsets of them."""
        names = {name: frozenset([n]) for n, name in enumerate(self.variables)}
        for one in self.call.args.get("subsets") or ():
            if one.this.name in names:
                raise AmbiguousNameError(
                    f"{one.this.name} is used for two things in this pattern",
                    place=place_of(one.this, self.sql),
                )
            for member in one.expressions:
                require_variable(member.name, member, self.variables, self.sql)
            names[one.this.name] = frozenset(
                self.variables.index(member.name) for member in one.expressions
            )
        return names

    @property
    def _measures(self) -> list[exp.Alias]:
        return self.call.args.get("measures") or []

    @property
    def _place(self) -> Place:
        return place_of(self.call, self.sql)

    def _check_pattern(self) -> None:
        pattern, within = self.call.pattern, self.call.args.get("within")
        grow(count_steps(pattern), self._place)
        if len(self.variables) > MOST_VARIABLES:
            raise SqlError(
                f"a pattern may have at most {MOST_VARIABLES} variables, got {len(self.variables)}",
                place=self._place,
            )
        if within is not None and within < 0:
            raise SqlError(
                "the duration of a match cannot be negative",
                place=self._place,
                hint="write WITHIN INTERVAL '5' SECONDS",
            )
        ends_absent = isinstance(pattern, Parts) and isinstance(pattern.parts[-1], Absent)
        if within is None and ends_absent:
            raise SqlError(
                "a pattern that ends with NOT needs WITHIN: how long the row must be absent",
                place=self._place,
                hint="write PATTERN (… NOT C) WITHIN INTERVAL '5' SECONDS",
            )
        if within is None and max_rows(pattern) is None:
            raise SqlError(
                "a match of this pattern may never end: its rows would be kept forever",
                place=self._place,
                detail=f"{show_pattern(pattern)} has an unbounded quantifier",
                hint="add WITHIN INTERVAL '1' HOUR after the pattern, or bound all quantifiers: "
                "A{1,100}",
            )
        if not self._measures and not self.call.args["all_rows"]:
            raise SqlError(
                "the query outputs nothing of the matches",
                place=self._place,
                hint="add MEASURES LAST(A.v) AS v, or ALL ROWS PER MATCH",
            )

    def _define(self, name: str, arguments: Arguments) -> _Definition:
        """The DEFINE of a variable; empty if there is none."""
        defined = self._definitions.get(name)
        number = self.variables.index(name)

        def reader() -> SlotReader:
            return SlotReader(
                self.sql, self.catalog, self._names, self._all, arguments, defines=number
            )

        near, seen = reader(), reader()
        definition = _Definition(
            [], near, [], seen, "" if defined is None else text_of(defined, self.sql)
        )
        own = [] if defined is None else list(conjuncts(defined))
        first = [near.read_row(one) for one in own]
        count = next((n for n, one in enumerate(first) if one is None), len(first))
        if (
            defined is not None and count
        ):  # computed below, one condition only where those before it hold
            whole = exp.and_(*(one for one in first[:count] if one is not None), copy=False)
            slot = Navigation(arguments.number(whole), self._all)
            definition.plain.append(near.slot(slot, defined))
        for condition, alone in zip(own[count:], first[count:], strict=True):
            if alone is not None and not near.is_available(alone):
                slot = Navigation(arguments.number(alone), self._all)
                definition.plain.append(near.slot(slot, condition))
                continue
            trial = reader()
            trial.read(condition)
            if all(isinstance(s, Navigation) and s.is_near(number) for s in trial.slots):
                definition.plain.append(near.read(condition))
            else:
                definition.rest.append(seen.read(condition))
        return definition

    @cached_property
    def _definitions(self) -> dict[str, exp.Expr]:
        definitions: dict[str, exp.Expr] = {}
        for one in self.call.args.get("define") or ():
            require_variable(one.this.name, one.this, self.variables, self.sql)
            if one.this.name in definitions:
                raise AmbiguousNameError(
                    f"{one.this.name} is defined twice", place=place_of(one.this, self.sql)
                )
            definitions[one.this.name] = one.expression
        return definitions

    def _query(self, arguments: Arguments) -> exp.Select:
        source = self.call.args["input"].copy()
        refuse_window(source, "MATCH_RECOGNIZE", self.sql)
        if isinstance(source, exp.Subquery) and not source.alias:
            source.set("alias", exp.TableAlias(this=exp.to_identifier("input")))
        items = [exp.Star(), *(one.copy() for one in arguments.trees)]
        return exp.Select(expressions=items, from_=exp.From(this=source))

    def _require_order(self, require_time: Ordered) -> None:
        order = self.call.args.get("order")
        keys = [] if order is None else order.expressions
        if len(keys) != 1 or keys[0].args.get("desc"):
            raise SqlError(
                "MATCH_RECOGNIZE must be ordered by time",
                place=self._place if order is None else place_of(order, self.sql),
                hint="write MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts …)",
            )
        require_time(keys[0].this)

    def _node(
        self,
        below: Node,
        passed: int,
        defined: list[_Definition],
        reader: SlotReader,
        measures: list[tuple[exp.Alias, exp.Expr]],
    ) -> Match:
        names = [one.name for one in below.columns[:passed]]
        keys = tuple(self._column(one, names) for one in self.call.args.get("partition") or ())
        for place, one in zip(keys, self.call.args.get("partition") or (), strict=True):
            require_comparable(below.columns[place].kind, place_of(one, self.sql), "PARTITION BY")
        before, behind = self._shown(keys, names)
        kinds = [one.kind for one in below.columns]
        slots = self._placed(reader.slots, passed)
        rows = self._expressions(slots, reader, kinds)
        values = [rows.value(Scalar(tree, place_of(one.this, self.sql))) for one, tree in measures]
        skip = self.call.args["skip"]
        if skip.this is not None:
            require_variable(skip.this.name, skip.this, list(self._names), self.sql)
        matching = Matching(
            build_program(self.call.pattern, self.variables),
            self.variables,
            tuple(self._condition(one, passed, kinds) for one in defined),
            self.call.args.get("within"),
            _SKIPS[skip.args["kind"]],
            self._names[skip.this.name] if skip.this is not None else frozenset(),
            self.call.args["all_rows"],
            tuple(slots),
            tuple(value for value, _ in values),
            before,
            behind,
        )
        columns = (
            *(below.columns[place] for place in before),
            *(Column(m.alias, kind) for (m, _), (_, kind) in zip(measures, values, strict=True)),
            *(below.columns[place] for place in behind),
            Column(RESULT_TIME_NAME, TIMESTAMP),
        )
        self._require_names(columns[:-1])
        to = "" if skip.this is None else skip.this.name
        arguments = tuple(reader.names)
        spec = MatchSpec(matching, keys, passed, tuple(kinds), types_of(columns), arguments)
        return Match(spec, (below,), names_of(columns), self._texts(), to)

    def _column(self, tree: exp.Expr, names: Sequence[str]) -> int:
        """The position of a column that PARTITION BY names."""
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
            raise SqlError(
                "PARTITION BY must name columns",
                place=place_of(tree, self.sql),
                hint="compute it in a subquery: (SELECT *, … AS p FROM S) AS s MATCH_RECOGNIZE (…)",
            )
        column_name = find_name(tree.this, names)
        if column_name is None:
            raise UnknownNameError(
                f"there is no column {tree.name}",
                place=place_of(tree, self.sql),
                detail=f"there are {', '.join(names)}",
                hint=nearest(tree.name, list(names)),
            )
        return list(names).index(column_name)

    def _shown(
        self, keys: tuple[int, ...], names: Sequence[str]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Which columns of the input are shown before the measures, and which after them."""
        if not self.call.args["all_rows"]:
            return keys, ()
        order = self.call.args["order"].expressions[0].this
        time = find_name(order.this, names) if isinstance(order, exp.Column) else None
        before = tuple(dict.fromkeys((*keys, *([] if time is None else [names.index(time)]))))
        return before, tuple(n for n in range(len(names)) if n not in before)

    def _require_names(self, columns: Sequence[Column]) -> None:
        seen: set[str] = set()
        for one in columns:
            if one.name.lower() in seen:
                raise AmbiguousNameError(
                    f"the matches have two columns named {one.name}",
                    place=self._place,
                    hint="give the measure another name",
                )
            seen.add(one.name.lower())

    def _condition(self, one: _Definition, passed: int, kinds: list[pa.DataType]) -> Condition:
        near, seen = self._placed(one.near.slots, passed), self._placed(one.seen.slots, passed)
        return Condition(
            self._test(one.plain, near, one.near, kinds),
            tuple(slot for slot in near if isinstance(slot, Navigation)),
            self._test(one.rest, seen, one.seen, kinds),
            tuple(seen),
            one.text,
        )

    def _test(
        self,
        conditions: list[exp.Expr],
        slots: list[Slot],
        reader: SlotReader,
        kinds: list[pa.DataType],
    ) -> Expression | None:
        rows = self._expressions(slots, reader, kinds)
        return rows.test([Scalar(one, place_of(one, self.sql)) for one in conditions])

    def _expressions(
        self, slots: list[Slot], reader: SlotReader, kinds: list[pa.DataType]
    ) -> RowExpressions:
        """The compiler of expressions over slots."""
        types = tuple(self._type(slot, kinds) for slot in slots)
        relation = Relation(MATCH, tuple(reader.names), types, is_table=True)
        return RowExpressions(
            self.sql, self.catalog, Source(MATCH, relation, self._place, is_held=True)
        )

    def _type(self, slot: Slot, kinds: list[pa.DataType]) -> pa.DataType:
        match slot:
            case Navigation(column):
                return kinds[column]
            case Aggregated(call):
                try:
                    return aggregate_type(call, kinds)
                except PredicateError as error:
                    raise SqlTypeError.at(self._place, error) from None
            case Numbered():
                return pa.int64()
        return pa.string()

    def _placed(self, slots: Sequence[Slot], passed: int) -> list[Slot]:
        """Slots whose arguments are shifted by this many columns."""
        shifted: list[Slot] = []
        for one in slots:
            if isinstance(one, Navigation):
                shifted.append(replace(one, column=passed + one.column))
            elif isinstance(one, Aggregated) and one.call.column is not None:
                call = replace(one.call, column=passed + one.call.column)
                shifted.append(replace(one, call=call))
            else:
                shifted.append(one)
        return shifted

    def _texts(self) -> tuple[str, ...]:
        defined = (f"{name}: {text_of(tree, self.sql)}" for name, tree in self._definitions.items())
        return (show_pattern(self.call.pattern), *defined)
