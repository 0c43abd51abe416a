"""`nm.connect()`: a database in this process, over tables, data frames and files, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nilometer.errors import InputError, OnlySparkError
from nilometer.kernels.python_aggregate import PythonAggregate
from nilometer.local.arrow_rows import rows_of
from nilometer.local.complete_rows import in_order_of_time
from nilometer.local.database import Instant, LocalDatabase, Prepared
from nilometer.model.names import nearest
from nilometer.model.time import read_instant
from nilometer.sql.catalog import Relation
from nilometer.sql.declare import (
    InputColumns,
    check_function,
    describe_stream,
    describe_table,
    no_such_return,
)
from nilometer.sql.expressions.spark_text import safe_functions
from nilometer.sql.parse.cast_types import read_type
from nilometer.sql.parse.dialect import NilometerParser
from nilometer.sql.parse.parameters import merged
from nilometer.sql.parse.query_text import ExplainFormat, Statement, has_last_clauses
from nilometer.sql.plan.types import TIMESTAMP
from nilometer.sql.questions import END
from nilometer.sql.statements import read_query

if TYPE_CHECKING:
    import pandas

    Rows: TypeAlias = pa.Table | pa.RecordBatch | pandas.DataFrame | str | Path

_ON_SPARK: Final = "nm.connect(nm.local_spark()) answers it"


class EmbeddedDatabase:
    """Named streams that have ended, tables and functions, and statements over them.

    >>> db = EmbeddedDatabase()
    >>> times = pa.array([0, 5_000_000], pa.timestamp("us", "UTC"))
    >>> db.create_stream("A", pa.table({"k": [1, 1], "ts": times}), time="ts")
    >>> db.sql("SELECT COUNT(*) AS n FROM A [RANGE 10 SECONDS]", at="1970-01-01 00:00:07")
    pyarrow.Table
    n: int64
    ----
    n: [[2]]
    """

    def __init__(self, execution: str = "auto") -> None:
        """An empty database; `execution` is as for `nm.connect(spark)`."""
        self._db = LocalDatabase(execution=execution)

    def create_stream(
        self,
        name: str,
        rows: Rows,
        *,
        time: str,
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
    ) -> None:
        """Register rows under a name; statements read them as a stream that has ended.

        rows      a pyarrow Table, a pandas DataFrame, or the path of a file or folder of files:
                  CSV, JSON lines or Parquet.
        time      the column of its times; those without a zone are in UTC.
        rate      how many rows arrive per second, and
        distinct  how many distinct values columns have ({"k": 1000}): for the join order.

        >>> db.create_stream("Sales", "sales.csv", time="ts")
        """
        self._require_new(name)
        table = rows_of(name, rows, time)
        relation = describe_stream(name, _given(table), time, rate=rate, distinct=distinct)
        self._db.add(relation, table)

    def create_table(self, name: str, rows: Rows) -> None:
        """Register rows under a name; statements read them as a static table.

        >>> db.create_table("Stores", "stores.parquet")
        """
        self._require_new(name)
        table = rows_of(name, rows)
        self._db.add(describe_table(name, _given(table)), table)

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        returns: str = "boolean",
        *,
        by_row: bool = False,
        cost: float | None = None,
    ) -> None:
        """Register a Python function that statements can call.

        It gets a pandas Series per argument and returns as many values of the type `returns`;
        with by_row it gets plain values and returns one value. Joins ask conditions that cost
        much of few rows: `cost` is that of one row, in comparisons (by default 1, by_row 10).

        >>> db.create_function("similar", lambda a, b: (a - b).abs() < 3)
        """
        check_function(name, function)
        if name.upper() in NilometerParser.FUNCTIONS or name.lower() in safe_functions():
            raise InputError(f"function {name} already exists", hint="choose another name")
        self._db.create_function(name, function, _type_of(name, returns), by_row, cost)

    def create_aggregate(
        self, name: str, aggregate: Callable[..., Any], returns: str = "double"
    ) -> None:
        """Register a Python aggregate, like SUM: see `Database.create_aggregate`.

        >>> db.create_aggregate("spread", lambda v: v.max() - v.min())
        """
        check_function(name, aggregate)
        self.create_function(name, PythonAggregate(name, aggregate), returns, by_row=True)

    def drop(self, name: str) -> None:
        """Drop a stream or a table."""
        known = self._spelled(name)
        if known is None:
            raise InputError(
                f"there is no stream or table {name}", hint=nearest(name, self.relations)
            )
        self._db.drop(known)

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The streams and tables that statements can read, by name."""
        return self._db.relations

    def sql(
        self,
        statement: str,
        *,
        at: str | datetime | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> pa.Table:
        """The answer to a statement, as a pyarrow Table: `.to_pandas()` converts it to a DataFrame.

        Rows are in the order of ORDER BY, otherwise in time order.

        at      for a changing answer: the answer at this instant (UTC unless it has a zone), or at
                the "end", instead of its changes.
        values  the values of the statement's parameters, by name.

        >>> db.sql("SELECT A.k FROM A, B WINDOW = 10 SECONDS WHERE A.k = B.k").num_rows
        1
        """
        read = read_query(statement, merged(parameters, values))
        if read.explain is not None:
            return pa.table({"plan": [self._explained(read, read.explain)]})
        instant = None
        if at is not None:
            instant = Instant(None if at == END else read_instant(at))
        answer = self._prepare(read, at).run_all(self._db.tables, instant)
        has_order = has_last_clauses(read) and answer.column_names[-1:] != ["_diff"]
        return answer if has_order else in_order_of_time(answer)

    def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> str:
        """Explain what a statement will do, as text or ("dot") as Graphviz text.

        >>> "2 streams" in db.explain("SELECT A.k FROM A, B WINDOW = 10 SECONDS")
        True
        """
        if form.upper() not in list(ExplainFormat):
            raise InputError(f"unknown format {form}", hint="choose one of text, dot")
        read = read_query(statement, merged(parameters, values))
        return self._explained(read, read.explain or ExplainFormat(form.upper()))

    def close(self) -> None:
        """Drop everything."""
        for name in list(self.relations):
            self._db.drop(name)

    def __enter__(self) -> EmbeddedDatabase:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _explained(self, read: Statement, form: ExplainFormat) -> str:
        from nilometer.sql.explain.explain_plan import explain_plan  # noqa: PLC0415  rarely needed

        return explain_plan(self._prepare(read, None).question.plan, form)

    def _prepare(self, read: Statement, at: str | datetime | None) -> Prepared:
        try:
            option = None if at is None else "at"
            return self._db.prepare(read, at_instant=option)
        except OnlySparkError as error:
            error.hint = error.hint or _ON_SPARK
            raise

    def _require_new(self, name: object) -> None:
        if not isinstance(name, str) or not name:
            raise InputError("a stream or table needs a name", detail=f"got {name!r}")
        if self._spelled(name) is not None:
            raise InputError(
                f"stream or table {name} already exists", hint=f'first db.drop("{name}")'
            )

    def _spelled(self, name: str) -> str | None:
        return next((known for known in self.relations if known.lower() == name.lower()), None)


def _given(rows: pa.Table) -> InputColumns:
    return InputColumns(tuple(rows.column_names), tuple(rows.schema.types))


def _type_of(name: str, returns: str) -> pa.DataType:
    """The type that a name of Spark's stands for."""
    try:
        tree = exp.DataType.build(returns, dialect="spark")
    except SqlglotError:
        raise no_such_return(name, returns) from None
    kind = TIMESTAMP if tree.is_type("timestamp", "timestamptz") else read_type(tree)
    if kind is None:
        raise no_such_return(name, returns)
    return kind
