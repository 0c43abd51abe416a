"""`nm.connect`: a Database, the facade that Python, the command line and the server share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer.model.time import Duration
from nilometer.spark.describe import describe_stream, describe_table
from nilometer.spark.functions import make_function, register_function, require_new_name
from nilometer.spark.heartbeat import beats_per_second
from nilometer.spark.relations import SparkEngine
from nilometer.spark.run_query import run_query
from nilometer.spark.session import shuffle_partitions
from nilometer.sql.catalog import Catalog, Function, Relation
from nilometer.sql.changes_plan import ChangesPlan, UnionPlan
from nilometer.sql.compile import compile_statement
from nilometer.sql.execution import choose_execution
from nilometer.sql.explain import explain_plan
from nilometer.sql.plan import JoinPlan
from nilometer.sql.statements import ExplainFormat, Statement, read_query


class Database:
    """Streams, tables and functions under names, and statements over them."""

    def __init__(self, spark: SparkSession, execution: str, heartbeat: Duration) -> None:
        self.spark = spark
        self._execution = choose_execution(execution)
        self._beats = beats_per_second(heartbeat)
        self._frames: dict[str, DataFrame] = {}
        self._relations: dict[str, Relation] = {}
        self._functions: dict[str, Function] = {}

    def create_stream(
        self,
        name: str,
        frame: DataFrame,
        *,
        time: str | None = None,
        lateness: Duration | None = None,
        idle: Duration | None = None,
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
    ) -> None:
        """Give a DataFrame a name under which statements read it as a stream.

        frame     streaming, or static: a stream that has ended.
        time      its TIMESTAMP column; a streaming one without gets the time of arrival.
        lateness  how far it may be out of order; later rows are dropped and counted.
        idle      after how long a silence it no longer holds up the others.
        rate      how many rows come per second, and
        distinct  how many different values columns have ({"k": 1000}): for the join order.

        >>> db.create_stream("A", df, time="ts", lateness="2s")  # doctest: +SKIP
        """
        self._require_new(name, frame)
        relation = describe_stream(name, frame, time, lateness, idle, rate, distinct)
        self._add(relation, frame)

    def create_table(self, name: str, frame: DataFrame) -> None:
        """Give a static DataFrame a name; its rows hold for ever.

        >>> db.create_table("Stores", df)  # doctest: +SKIP
        """
        self._require_new(name, frame)
        self._add(describe_table(name, frame), frame)

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        returns: str = "boolean",
        *,
        by_row: bool = False,
    ) -> None:
        """Let statements call a Python function.

        It gets a pandas Series per argument and returns as many values of the type `returns`;
        with by_row it gets plain values and returns one.

        >>> db.create_function("similar", lambda a, b: (a - b).abs() < 3)  # doctest: +SKIP
        """
        made = make_function(name, function, returns, by_row)
        if name.lower() not in self._functions:
            require_new_name(self.spark, name)
        register_function(self.spark, made)
        self._functions[name.lower()] = made

    def drop(self, name: str) -> None:
        """Forget a stream or a table; queries that run keep running."""
        known = self._known(name)
        if known is None:
            raise InputError(
                f"there is no stream or table {name}", hint=nearest(name, self._relations)
            )
        del self._relations[known], self._frames[known]

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The streams and tables, by name."""
        return dict(self._relations)

    def sql(self, statement: str, *, buckets: int | None = None) -> DataFrame:
        """The answer to a statement: a DataFrame, streaming if one of its inputs is.

        buckets   how many parts the work has; by default Spark's shuffle partitions. It is
                  kept in the state: a query is restarted with the number it was started with.

        >>> db.sql("SELECT A.k FROM A, B WINDOW = 10 SECONDS WHERE A.k = B.k")  # doctest: +SKIP
        """
        read = read_query(statement)
        plan = self._plan(read, buckets)
        if read.explain is not None:
            text = explain_plan(plan, read.explain)
            return self.spark.createDataFrame([(text,)], "plan STRING")
        return run_query(plan, self._frames, self._beats)

    def explain(self, statement: str, *, form: str = "text", buckets: int | None = None) -> str:
        """What a statement will do, as text or ("dot") as Graphviz text.

        >>> print(db.explain("SELECT A.k FROM A, B WINDOW = 10 SECONDS"))  # doctest: +SKIP
        """
        if form.upper() not in list(ExplainFormat):
            raise InputError(f"there is no form {form}", hint="choose one of text, dot")
        read = read_query(statement)
        chosen = read.explain if read.explain is not None else ExplainFormat(form.upper())
        return explain_plan(self._plan(read, buckets), chosen)

    def _plan(
        self, statement: Statement, buckets: int | None
    ) -> JoinPlan | UnionPlan | ChangesPlan:
        if buckets is not None and buckets < 1:
            raise InputError(f"there must be at least one bucket, got {buckets}")
        catalog = Catalog(self._relations, self._functions, SparkEngine(self._frames))
        plan = compile_statement(statement, catalog, buckets or shuffle_partitions(self.spark))
        if isinstance(plan, ChangesPlan) and plan.execution is None:
            return replace(plan, execution=self._execution)
        return plan

    def _require_new(self, name: object, frame: object) -> None:
        if not isinstance(name, str) or not name:
            raise InputError("a stream or table needs a name", detail=f"got {name!r}")
        if not hasattr(frame, "isStreaming"):
            raise InputError(f"{name} is not a DataFrame", detail=f"got {type(frame).__name__}")
        if self._known(name) is not None:
            raise InputError(
                f"there is already a stream or table {name}", hint=f'first db.drop("{name}")'
            )

    def _known(self, name: str) -> str | None:
        return next((known for known in self._relations if known.lower() == name.lower()), None)

    def _add(self, relation: Relation, frame: DataFrame) -> None:
        self._relations[relation.name] = relation
        self._frames[relation.name] = frame


def connect(
    spark: SparkSession, *, execution: str = "auto", heartbeat: Duration = "1s"
) -> Database:
    """A Database on a Spark session, classic or Spark Connect.

    execution  how windowed plans learn that time has passed: "ita" when a row reaches an
               operator, "tpa" by its inputs' clocks, "nta" by negative rows; "auto" chooses.
    heartbeat  how often answers over arrival times (or with idle streams) are brought up to
               date though nothing arrives: at most a second.

    >>> db = connect(spark)  # doctest: +SKIP
    """
    return Database(spark, execution, heartbeat)
