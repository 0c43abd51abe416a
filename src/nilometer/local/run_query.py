"""A plan in this process: the same stage that Spark hosts, with expressions evaluated here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from nilometer.errors import SqlError
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.row_errors import Rows, compute
from nilometer.local.complete_rows import whole
from nilometer.local.read_source import read_source, require_types
from nilometer.local.run_stage import LocalStage
from nilometer.model.expressions import Argument
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.scalars import RESULT_TIME, Ref, Scalar
from nilometer.sql.physical.join_places import build_stage
from nilometer.sql.plan.carried_columns import leaves_as, only_stream, output_names
from nilometer.sql.plan.changes_plan import UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.types import TIMESTAMP, Types


class LocalQuery:
    """A query that is fed by hand; rows are given by the names of streams in the catalog."""

    def __init__(self, plan: JoinPlan, held: Mapping[str, pa.RecordBatch] | None = None) -> None:
        """Start a query that continues; `held` are static tables, and streams that have ended.

        None: all rows come at once, including those of static tables.
        """
        _require_subset(plan)
        self.plan = plan
        self._inputs = [read_source(plan, source) for source in plan.sources]
        self._results = ResultReader(plan)
        self.stage = LocalStage(build_stage(plan))
        for number, source in enumerate(plan.sources if held is not None else ()):
            rows = source.relation.rows or (held or {}).get(source.relation.name)
            if rows is not None:
                carried, selected = self._inputs[number].read(rows, None)
                self.stage.hold(number, carried, selected)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._results.schema

    @property
    def stages(self) -> list[LocalStage]:
        return [self.stage]

    def feed(self, rows: Mapping[str, pa.RecordBatch], now: int | None = None) -> pa.Table:
        """The results of a micro-batch that came at the time `now`."""
        carried, selected = self._read(rows, now)
        return self._results.read(self.stage.feed(carried, now, selected))

    def run_all(self, rows: Mapping[str, pa.RecordBatch]) -> pa.Table:
        """The results of rows that are complete."""
        own = {one.relation.name: one.relation.rows for one in self.plan.sources}
        brought = {name: batch for name, batch in own.items() if batch is not None}
        carried, selected = self._read({**rows, **brought}, None)
        return self._results.read(self.stage.run_all(carried, selected))

    def restart(self) -> None:
        """Continue from a snapshot, as after a crash."""
        self.stage = self.stage.resume(self.stage.snapshot())

    def _read(
        self, rows: Mapping[str, pa.RecordBatch], now: int | None
    ) -> tuple[list[pa.RecordBatch | None], list[pa.Array | None]]:
        carried: list[pa.RecordBatch | None] = []
        selected: list[pa.Array | None] = []
        for reader, source in zip(self._inputs, self.plan.sources, strict=True):
            new_rows = rows.get(source.relation.name)
            one, chosen = (None, None) if new_rows is None else reader.read(new_rows, now)
            carried.append(one)
            selected.append(chosen)
        return carried, selected


class LocalUnion:
    """Queries in append mode whose results are combined."""

    def __init__(self, plan: UnionPlan, held: Mapping[str, pa.RecordBatch] | None) -> None:
        self.queries = tuple(LocalQuery(one, held) for one in plan.plans)
        self._kinds = plan.kinds

    def feed(self, rows: Mapping[str, pa.RecordBatch], now: int | None = None) -> pa.Table:
        """The results of a micro-batch that came at the time `now`."""
        return self._together([query.feed(rows, now) for query in self.queries])

    def run_all(self, rows: Mapping[str, pa.RecordBatch]) -> pa.Table:
        """The results of rows that are complete."""
        return self._together([query.run_all(rows) for query in self.queries])

    def restart(self) -> None:
        """Continue from a snapshot, as after a crash."""
        for query in self.queries:
            query.restart()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        first = self.queries[0].schema
        kinds = [kind or field.type for kind, field in zip(self._kinds, first, strict=True)]
        return pa.schema(list(zip(first.names, kinds, strict=True)))

    @property
    def stages(self) -> list[LocalStage]:
        return [query.stage for query in self.queries]

    def _together(self, tables: Sequence[pa.Table]) -> pa.Table:
        schema = self.schema
        parts = [pa.Table.from_arrays(_cast(one, schema), schema=schema) for one in tables]
        return pa.concat_tables(parts)


def _cast(rows: pa.Table, schema: pa.Schema) -> list[pa.Array]:
    """The columns cast to the types of a union, as Spark casts them."""
    return [
        cast_values(whole(column), kind)
        for column, kind in zip(rows.columns, schema.types, strict=True)
    ]


class ResultReader:
    """Computes the select list from the rows of the join."""

    def __init__(self, plan: JoinPlan) -> None:
        types = Types(plan.catalog, plan.sources)
        output = [one.ref for one in plan.output]

        def argument(ref: Ref) -> Argument:
            if ref == RESULT_TIME:
                return Argument(0)
            return Argument(1 + output.index(leaves_as(ref, plan, types)))

        subset = SubsetCompiler(plan.sql, argument, plan.catalog.functions, plan.catalog.zone)
        self._items = [subset.compile(item.value.tree) for item in plan.items]
        for item in self._items:
            require_types(item, [TIMESTAMP, *(one.kind for one in plan.output)])
        self._names = [str(RESULT_TIME), *output_names(plan)]
        self._stream = only_stream(plan)
        self.schema = pa.schema([(item.name, _kind(item.value, types)) for item in plan.items])
        """The columns of the select list."""

    def read(self, results: Sequence[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(map(self.select, results), self.schema)

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The select list of results."""
        columns = [batch.column(0).cast(TIMESTAMP), *batch.columns[1:]]
        wanted = list(zip(self._items, self.schema.types, strict=True))
        items, _ = compute(wanted, Rows(columns, len(batch), self._names, self._stream))
        return pa.RecordBatch.from_arrays(items, schema=self.schema)


def _kind(value: Scalar, types: Types) -> pa.DataType:
    kind = types.of(value)
    assert kind is not None
    return kind


def _require_subset(plan: JoinPlan) -> None:
    """Refuse what only Spark can evaluate."""
    try:
        for source in plan.sources:
            read_source(plan, source)
        ResultReader(plan)
        if plan.after:
            raise NotInSubsetError("this condition is not available", place=plan.after[0].place)
    except NotInSubsetError as error:
        raise SqlError(
            f"{error.message.removesuffix(' here')} without Spark", place=error.place
        ) from None
