"""Compiles statements over a database's DataFrames, functions and stored objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from nilometer.database.home import Home
from nilometer.database.known import Known, Reading, columns_known, everything_known
from nilometer.database.named_frames import NamedFrames
from nilometer.errors import InputError
from nilometer.operators.stage import Execution
from nilometer.spark.default_buckets import default_buckets
from nilometer.spark.functions import register_function, require_new_name
from nilometer.spark.host_query import where_it_runs
from nilometer.spark.relations import SparkEngine
from nilometer.spark.session import use_here
from nilometer.sql.catalog import Catalog, UserFunction
from nilometer.sql.compile import compile_statement
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan
from nilometer.sql.questions import Question, compile_question
from nilometer.sql.statements import ExplainFormat, Statement


class Compiler:
    """Compiles statements into plans, and finds the DataFrames that they read."""

    def __init__(
        self,
        spark: SparkSession,
        execution: Execution | None,
        home: Callable[[], Home | None],
        buckets: int | None = None,
    ) -> None:
        """A compiler that also resolves names that are stored in a database, once there are any."""
        self.named = NamedFrames()
        self._spark = spark
        self._execution = execution
        self._home = home
        self._buckets = buckets
        self._functions: dict[str, UserFunction] = {}
        self._changing = threading.Lock()

    def add_function(self, function: UserFunction) -> None:
        """Let statements call a function."""
        name = function.name.lower()
        if name not in self._functions:
            require_new_name(self._spark, function.name)
        register_function(self._spark, function)
        with self._changing:
            self._functions = {**self._functions, name: function}

    def everything(self, reading: Reading) -> Known:
        """Everything that a statement can name."""
        return everything_known(*self.named.all, self._home(), self._spark, reading)

    def plan(
        self, statement: Statement, reading: Reading, buckets: int | None = None
    ) -> tuple[Plan, Known]:
        """The plan of a continuous query, whatever it reads."""
        known, catalog, number = self._to_compile(statement, reading, buckets)
        plan = self._executed(compile_statement(statement, catalog, number))
        return plan, known.with_inline_rows(plan)

    def question(
        self,
        statement: Statement,
        reading: Reading,
        buckets: int | None = None,
        at_instant: str | None = None,
    ) -> tuple[Question, Known]:
        """How a statement is answered here and now."""
        known, catalog, number = self._to_compile(statement, reading, buckets)
        question = compile_question(statement, catalog, number, at_instant=at_instant)
        question = replace(question, plan=self._executed(question.plan))
        return question, known.with_inline_rows(question.plan)

    def explain(
        self, statement: Statement, reading: Reading, buckets: int | None, form: ExplainFormat
    ) -> str:
        """Explain a statement; as text, also where it would run as a named query."""
        question, known = self.question(statement, reading, buckets)
        text = explain_plan(question.plan, form)
        where = where_it_runs(question.plan, known.inputs)
        return text if form is not ExplainFormat.TEXT or where is None else f"{text}\n{where}"

    def _to_compile(
        self, statement: Statement, reading: Reading, buckets: int | None
    ) -> tuple[Known, Catalog, int]:
        if buckets is not None and buckets < 1:
            raise InputError(f"there must be at least one bucket, got {buckets}")
        use_here(self._spark)
        home = self._home()
        columns = columns_known(statement, home, reading.columns)
        known = self.everything(replace(reading, columns=columns))
        engine = SparkEngine(known.inputs)
        catalog = Catalog(known.relations, self._functions, engine, known.queries)
        usual = self._buckets if home is None else home.buckets
        return known, catalog, buckets or usual or default_buckets(self._spark)

    def _executed(self, plan: Plan) -> Plan:
        """The plan with this database's execution mode, unless it sets its own."""
        if isinstance(plan, ChangesPlan) and plan.execution is None:
            return replace(plan, execution=self._execution)
        return plan
