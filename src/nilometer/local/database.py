"""A database without Spark: Arrow tables under names, and statements over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import InputError, SqlError
from nilometer.kernels.expression_types import type_name
from nilometer.local.pipeline import Pipeline
from nilometer.local.pipeline_clock import Clock, Costs
from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_query import LocalQuery, LocalUnion
from nilometer.local.schedulers import Scheduler
from nilometer.operators.stage import concat
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.catalog import Catalog, Function, Relation, Statistics
from nilometer.sql.changes_plan import ChangesPlan, UnionPlan
from nilometer.sql.compile import compile_statement
from nilometer.sql.execution import choose_execution
from nilometer.sql.explain import explain_plan
from nilometer.sql.plan import JoinPlan
from nilometer.sql.stages import BEST
from nilometer.sql.statements import read_query


class NoEngine:
    """There is nobody to ask: expressions beyond the subset are refused."""

    time_zone = "UTC"

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        raise SqlError("this is not available without Spark")


class LocalDatabase:
    """Statements over Arrow tables, in this process: for tests, notebooks and experiments.

    >>> import pyarrow as pa
    >>> rows = pa.table({"ts": pa.array([0, 5], pa.timestamp("us", "UTC")), "k": [1, 2]})
    >>> db = LocalDatabase()
    >>> db.create_stream("A", rows, time="ts")
    >>> db.sql("SELECT X.k FROM A X, A Y WINDOW = 1 SECOND WHERE X.k < Y.k")["k"].to_pylist()
    [1]
    """

    def __init__(self, buckets: int = 1, execution: str = "auto") -> None:
        """A database whose queries run in so many buckets; see `choose_execution`."""
        self._buckets = buckets
        self._execution = choose_execution(execution)
        self.tables: dict[str, pa.RecordBatch] = {}
        self._relations: dict[str, Relation] = {}
        self._functions: dict[str, Function] = {}

    def create_stream(
        self,
        name: str,
        rows: pa.Table,
        time: str | tuple[str, str] | None = None,
        lateness: int = 0,
        statistics: Statistics | None = None,
        idle: int | None = None,
    ) -> None:
        """A stream; `sql` reads the rows as all there are, `query` only takes their schema."""
        types = tuple(rows.schema.types)
        end = None
        if isinstance(time, tuple):
            time, end = time
        if time is not None and not pat.is_timestamp(rows.schema.field(time).type):
            kind = rows.schema.field(time).type
            raise InputError(
                f"the time column {time} of stream {name} must be a TIMESTAMP",
                detail=f"it is {type_name(kind)}",
                hint="read_times of nilometer.kernels.read_times makes instants of numbers",
            )
        self.tables[name] = concat(rows.to_batches(), rows.schema)
        clock = StreamClock(lateness, idle, by_arrival=time is None)
        self._relations[name] = Relation(
            name,
            tuple(rows.column_names),
            types,
            time,
            clock,
            statistics=statistics or Statistics(),
            end=None if end is None else (end,),
        )

    def create_table(self, name: str, rows: pa.Table) -> None:
        """A static table."""
        types = tuple(rows.schema.types)
        self.tables[name] = concat(rows.to_batches(), rows.schema)
        clock = StreamClock(ended=True)
        self._relations[name] = Relation(
            name, tuple(rows.column_names), types, clock=clock, is_table=True
        )

    def create_function(
        self, name: str, function: Callable[..., Any], returns: pa.DataType, by_row: bool = False
    ) -> None:
        """A Python function that statements may call."""
        self._functions[name.lower()] = Function(name, function, returns, by_row)

    def plan(self, statement: str) -> JoinPlan | UnionPlan | ChangesPlan:
        """The plan of a statement."""
        catalog = Catalog(self._relations, self._functions, NoEngine())
        return compile_statement(read_query(statement), catalog, self._buckets)

    def sql(self, statement: str) -> pa.Table:
        """The answer over all rows: results, or the changelog of an answer that changes.

        That of EXPLAIN is its text, in one row.
        """
        explain = read_query(statement).explain
        if explain is not None:
            return pa.table({"plan": [explain_plan(self.plan(statement), explain)]})
        return self._start(statement, {}).run_all(self.tables)

    def query(self, statement: str) -> LocalQuery | LocalUnion | LocalChanges:
        """A running query, to be fed with micro-batches; static tables are there."""
        return self._start(statement, self._static())

    def pipeline(
        self,
        statement: str,
        execution: str = "auto",
        scheduler: Scheduler | None = None,
        clock: Clock | None = None,
        costs: Costs | None = None,
        distinct_times: bool = False,
    ) -> Pipeline:
        """A running query, every operator by itself, to be fed tuple by tuple.

        The clock tells when answers come out: one that the user moves unless another is given;
        work takes time on it as `costs` say. `distinct_times` promises that no stream brings two
        tuples of one instant: then nobody waits for a second one.
        """
        plan = self.plan(statement)
        if not isinstance(plan, ChangesPlan):
            raise InputError(
                "a pipeline is for queries whose answers change", hint="write EMIT CHANGES"
            )
        chosen = plan.execution or choose_execution(execution) or BEST
        return Pipeline(plan, chosen, self._static(), scheduler, clock, costs, distinct_times)

    def _start(
        self, statement: str, held: Mapping[str, pa.RecordBatch]
    ) -> LocalQuery | LocalUnion | LocalChanges:
        plan = self.plan(statement)
        match plan:
            case ChangesPlan():
                return LocalChanges(plan, self._execution, held)
            case UnionPlan():
                return LocalUnion(plan, held)
            case JoinPlan():
                return LocalQuery(plan, held)

    def _static(self) -> Mapping[str, pa.RecordBatch]:
        return {name: self.tables[name] for name, r in self._relations.items() if r.is_table}
