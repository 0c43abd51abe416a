"""A database without Spark: named Arrow tables, and statements over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import InputError, OnlySparkError, SqlError
from nilometer.kernels.admit import count_without_time
from nilometer.kernels.expression_types import type_name
from nilometer.local.complete_rows import finish_rows, plain_rows, rows_at
from nilometer.local.run_query import LocalQuery, LocalUnion
from nilometer.operators.stage import concat
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.catalog import Catalog, NoEngineError, Relation, Statistics, UserFunction
from nilometer.sql.compile import compile_statement
from nilometer.sql.expressions.compile_scalar import ELSEWHERE_HINT
from nilometer.sql.physical.execution import choose_execution
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.questions import Question, compile_question
from nilometer.sql.statements import Statement, read_query

if TYPE_CHECKING:
    from nilometer.local.run_changes import LocalChanges


class NoEngine:
    """No engine to ask: expressions beyond the subset are refused."""

    time_zone = "UTC"

    def __init__(self) -> None:
        self.asked: list[str] = []
        """The expressions whose types only Spark could have determined."""

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        self.asked += expressions
        raise NoEngineError("this is not available without Spark")


@dataclass(frozen=True)
class Instant:
    """The time at which an answer is taken, in microseconds; None: after the last change."""

    micros: int | None


@dataclass(frozen=True)
class Prepared:
    """A query that this process can answer."""

    question: Question
    query: LocalQuery | LocalUnion | LocalChanges

    @property
    def schema(self) -> pa.Schema:
        """The columns of its answer, including those that are not shown."""
        return self.query.schema

    def run_all(self, rows: Mapping[str, pa.RecordBatch], at: Instant | None = None) -> pa.Table:
        """The answer over all rows: results, or changes; `at`: the answer at an instant."""
        answer = self.query.run_all(rows)
        if self.question.is_plain:
            answer = plain_rows(answer)
        elif at is not None:
            answer = rows_at(answer, at.micros)
        return finish_rows(answer, self.question.finish)


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
        self._functions: dict[str, UserFunction] = {}

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
                hint="read_times of nilometer.kernels.read_times converts numbers to instants",
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

    def rows_without_time(self, tree: exp.Expr) -> dict[str, int]:
        """How many rows have no time, of each stream that a query reads."""
        names = {one.name.lower() for one in tree.find_all(exp.Table)}
        counts = {}
        for name, relation in self._relations.items():
            if relation.time is None or name.lower() not in names:
                continue
            columns = (relation.time, *(relation.end or ()))
            counts[name] = count_without_time(*(self.tables[name].column(one) for one in columns))
        return counts

    def add(self, relation: Relation, rows: pa.Table) -> None:
        """Add a stream or a table that is already described."""
        self.tables[relation.name] = concat(rows.combine_chunks().to_batches(), rows.schema)
        self._relations[relation.name] = relation

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The streams and tables, by name."""
        return self._relations

    def drop(self, name: str) -> None:
        """Drop a stream or a table."""
        del self._relations[name], self.tables[name]

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        returns: pa.DataType,
        by_row: bool = False,
        cost: float | None = None,
    ) -> None:
        """A Python function that statements may call."""
        self._functions[name.lower()] = UserFunction(name, function, returns, by_row, cost)

    def prepare(
        self, statement: Statement, *, at_instant: str | None = None, goes_on: bool = False
    ) -> Prepared:
        """A question, if this process answers it as Spark does; else OnlySparkError says why not.

        Where nobody had to be asked for a type, what is wrong with a statement is wrong anywhere.
        One that goes on is fed with the rows of streams; it has those of tables.
        """
        engine = NoEngine()
        catalog = Catalog(self._relations, self._functions, engine)
        try:
            question = compile_question(statement, catalog, self._buckets, at_instant=at_instant)
        except SqlError as error:
            if not engine.asked:
                raise
            raise _only_spark(engine.asked[0], error) from error
        if engine.asked:
            raise _only_spark(engine.asked[0])
        try:
            return Prepared(question, self._run(question.plan, self._static() if goes_on else None))
        except SqlError as error:
            raise OnlySparkError(error.message, detail=error.detail) from None

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
            from nilometer.sql.explain.explain_plan import explain_plan  # noqa: PLC0415  rarely needed

            return pa.table({"plan": [explain_plan(self.plan(statement), explain)]})
        return self._start(statement, None).run_all(self.tables)

    def query(self, statement: str) -> LocalQuery | LocalUnion | LocalChanges:
        """A running query, to be fed with micro-batches; static tables are there."""
        return self._start(statement, self._static())

    def _start(
        self, statement: str, held: Mapping[str, pa.RecordBatch] | None
    ) -> LocalQuery | LocalUnion | LocalChanges:
        return self._run(self.plan(statement), held)

    def _run(
        self, plan: Plan, held: Mapping[str, pa.RecordBatch] | None
    ) -> LocalQuery | LocalUnion | LocalChanges:
        match plan:
            case ChangesPlan():
                from nilometer.local.run_changes import LocalChanges  # noqa: PLC0415  joins do without

                return LocalChanges(plan, self._execution, held)
            case UnionPlan():
                return LocalUnion(plan, held)
            case JoinPlan():
                return LocalQuery(plan, held)

    def _static(self) -> Mapping[str, pa.RecordBatch]:
        return {name: self.tables[name] for name, r in self._relations.items() if r.is_table}


def _only_spark(expression: str, refused: SqlError | None = None) -> OnlySparkError:
    """The error for an expression; its detail says why it was refused."""
    detail = None
    if refused is not None and not isinstance(refused, NoEngineError):
        advice = refused.hint if refused.hint and ELSEWHERE_HINT not in refused.hint else ""
        detail = "; ".join(part for part in (refused.message, refused.detail, advice) if part)
    return OnlySparkError(f"only Spark can evaluate this: {expression[:200]}", detail=detail)
