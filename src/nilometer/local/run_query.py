"""A plan in this process: the same stage that Spark hosts, expressions evaluated here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import SqlError
from nilometer.kernels.arrays import as_type
from nilometer.kernels.evaluate import evaluate
from nilometer.local.run_stage import LocalStage
from nilometer.model.expressions import Argument, Case, Constant, Expression
from nilometer.model.time import EARLIEST
from nilometer.sql.carried_columns import guards_of, leaves_as
from nilometer.sql.compile_scalar import NotInSubsetError, Subset
from nilometer.sql.physical import build_stage
from nilometer.sql.plan import RESULT_TIME, Carried, JoinPlan, Source
from nilometer.sql.scalars import ColumnRef, Ref, Scalar, tree_of
from nilometer.sql.types import TIMESTAMP, Types


class LocalQuery:
    """A query that is fed by hand; rows are given by the names of streams in the catalog."""

    def __init__(self, plan: JoinPlan, held: Mapping[str, pa.RecordBatch] | None = None) -> None:
        """Start a query; `held` are static tables, and streams that have ended."""
        _require_subset(plan)
        self.plan = plan
        self._inputs = [_SourceReader(plan, source) for source in plan.sources]
        self._results = _ResultReader(plan)
        self.stage = LocalStage(build_stage(plan))
        for number, source in enumerate(plan.sources):
            rows = (held or {}).get(source.relation.name)
            if rows is not None:
                carried, selected = self._inputs[number].read(rows, None)
                self.stage.hold(number, carried, selected)

    def feed(self, rows: Mapping[str, pa.RecordBatch], now: int | None = None) -> pa.Table:
        """The results of a micro-batch that came at the time `now`."""
        carried, selected = self._read(rows, now)
        return self._results.read(self.stage.feed(carried, now, selected))

    def run_all(self, rows: Mapping[str, pa.RecordBatch]) -> pa.Table:
        """The results of all rows there are."""
        carried, selected = self._read(rows, None)
        return self._results.read(self.stage.run_all(carried, selected))

    def restart(self) -> None:
        """Go on from a snapshot, as after a crash."""
        self.stage = self.stage.resume(self.stage.snapshot())

    def _read(
        self, rows: Mapping[str, pa.RecordBatch], now: int | None
    ) -> tuple[list[pa.RecordBatch | None], list[pa.Array | None]]:
        carried: list[pa.RecordBatch | None] = []
        selected: list[pa.Array | None] = []
        for reader, source in zip(self._inputs, self.plan.sources, strict=True):
            given = rows.get(source.relation.name)
            one, chosen = (None, None) if given is None else reader.read(given, now)
            carried.append(one)
            selected.append(chosen)
        return carried, selected


class _SourceReader:
    """Makes of a source's rows the columns that travel, and says which rows are selected."""

    def __init__(self, plan: JoinPlan, source: Source) -> None:
        self._source = source
        self._subset = Subset(plan.sql, self._argument, plan.catalog.functions)
        self._selection = [self._subset.compile(condition.tree) for condition in source.below]
        self._columns = [(self._compile(one), one.kind) for one in source.carried]

    def read(self, rows: pa.RecordBatch, now: int | None) -> tuple[pa.RecordBatch, pa.Array | None]:
        given = [*rows.columns, self._clock(len(rows), now)]
        columns = [
            as_type(evaluate(expression, given, len(rows)), kind)
            for expression, kind in self._columns
        ]
        carried = pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
        selected = None
        for test in self._selection:
            passed = evaluate(test, given, len(rows)).cast(pa.bool_()).fill_null(False)
            selected = passed if selected is None else pc.and_(selected, passed)
        return carried, selected

    def _compile(self, one: Carried) -> Expression:
        """A column that travels; what is not selected need not be computable."""
        value = self._subset.compile(tree_of(one.ref))
        for guard in reversed(guards_of(self._source, one)):
            value = Case(((self._subset.compile(guard.tree), value),), Constant(None))
        return value

    def _argument(self, ref: Ref) -> Argument:
        """A column of the relation; the time of arrival stands behind all of them."""
        assert isinstance(ref, ColumnRef)
        columns = self._source.relation.columns
        if ref.column not in columns:
            return Argument(len(columns))
        return Argument(columns.index(ref.column), ref.fields)

    def _clock(self, size: int, now: int | None) -> pa.Array:
        instant = EARLIEST if self._source.is_table else now
        if instant is None:
            return pa.nulls(size, TIMESTAMP)
        return pa.array(np.full(size, instant), pa.int64()).cast(TIMESTAMP)


class _ResultReader:
    """Makes the select list of what leaves the join."""

    def __init__(self, plan: JoinPlan) -> None:
        self._plan = plan
        self._types = Types(plan.catalog, plan.sources)
        subset = Subset(plan.sql, self._argument, plan.catalog.functions)
        self._items = [subset.compile(item.value.tree) for item in plan.items]

    def read(self, results: Sequence[pa.RecordBatch]) -> pa.Table:
        batches = [self._select(batch) for batch in results]
        kinds = [self._kind(item.value) for item in self._plan.items]
        names = [item.name for item in self._plan.items]
        columns = [
            pa.chunked_array([as_type(batch[i], kind) for batch in batches], kind)
            for i, kind in enumerate(kinds)
        ]
        return pa.Table.from_arrays(columns, names)

    def _select(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = [batch.column(0).cast(TIMESTAMP), *batch.columns[1:]]
        return [evaluate(item, columns, len(batch)) for item in self._items]

    def _kind(self, value: Scalar) -> pa.DataType:
        kind = self._types.of(value)
        assert kind is not None
        return kind

    def _argument(self, ref: Ref) -> Argument:
        if ref == RESULT_TIME:
            return Argument(0)
        chosen = leaves_as(ref, self._plan, self._types)
        return Argument(1 + [one.ref for one in self._plan.output].index(chosen))


def _require_subset(plan: JoinPlan) -> None:
    """Refuse what only Spark can evaluate."""
    try:
        for source in plan.sources:
            _SourceReader(plan, source)
        _ResultReader(plan)
        if plan.after:
            raise NotInSubsetError("this condition is not available", place=plan.after[0].place)
    except NotInSubsetError as error:
        raise SqlError(
            f"{error.message.removesuffix(' here')} without Spark", place=error.place
        ) from None
