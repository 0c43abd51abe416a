"""A Database, the facade of the whole package.

This file is longer than others: it has nearly every method that users call, with its manual, and
nothing but calls of what does the work. Half of its lines are signatures and docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nilometer.alerts.kept import Notification
from nilometer.alerts.status import AlertStatus
from nilometer.database.alter_query import LimitChange
from nilometer.database.compiler import Compiler
from nilometer.database.dashboards import Dashboards
from nilometer.database.home import Home
from nilometer.database.known import Reading
from nilometer.database.limits import filled, owner_of
from nilometer.database.measures import Measures, measure
from nilometer.database.new_queries import NewQuery
from nilometer.database.past import Past
from nilometer.database.past_engine import IN_PROCESS_BYTES
from nilometer.database.query_run import QueryHandle
from nilometer.database.query_status import HealthSample, QueryLimits, QueryStatus
from nilometer.database.run_settings import RunSettings
from nilometer.database.run_statements import Statements
from nilometer.database.running import RunningQueries
from nilometer.database.select_sensors import select_sensors
from nilometer.database.statements import drop_query
from nilometer.database.stored_parts import Losing, OpenParts, StoragePlace, StoredParts
from nilometer.database.try_sensor import (
    TrialResult,
    choose_sensor,
    declared_aside,
    read_aside,
    required_trial,
)
from nilometer.database.units import Units
from nilometer.deliveries.status import DeliveryStatus
from nilometer.errors import (
    InputError,
    NilometerError,
    UnknownNameError,
)
from nilometer.kernels.python_aggregate import PythonAggregate
from nilometer.log.reader import LogReader
from nilometer.log.registrations import forget_readers
from nilometer.model.time import Duration
from nilometer.model.time_forms import EpochTimes, read_unit
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sensors.catalog.stored_names import NamedEntry
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.log_options import StreamDefaults
from nilometer.sensors.manager.status import SensorStatus, StreamStatus
from nilometer.spark.complete_frame import answer_question
from nilometer.spark.describe import given_frame
from nilometer.spark.functions import make_function
from nilometer.spark.heartbeat import beats_per_second
from nilometer.spark.log_rows import read_log, register_log_sources
from nilometer.spark.read_times import with_instants
from nilometer.spark.session import use_here
from nilometer.sql.catalog import Relation
from nilometer.sql.ddl.nodes import (
    DatabaseStatement,
    ObjectKind,
)
from nilometer.sql.declare import check_function, describe_stream, describe_table, end_column
from nilometer.sql.explain.picture import QueryPicture
from nilometer.sql.parse.parameters import merged
from nilometer.sql.physical.execution import choose_execution
from nilometer.sql.statements import (
    ExplainFormat,
    Statement,
    read_query,
    read_statements,
)
from nilometer.upkeep.backup import BackupMade

OUTCOME: Final = "outcome"
"""The only column returned by a statement that has no rows to show."""


class Database:
    """Named streams, tables and functions, and statements over them.

    With a path, everything is stored there: the catalog, the logs of sensors' readings, and the
    results of queries. Without one, the first statement that stores anything creates a temporary
    folder, which is deleted when the process ends.
    """

    def __init__(
        self,
        spark: SparkSession,
        execution: str,
        heartbeat: Duration,
        limits: QueryLimits | None = None,
        max_queries: int | None = None,
        delivery_folders: Sequence[str | Path] = (),
        stream_defaults: StreamDefaults | None = None,
        in_process_bytes: int = IN_PROCESS_BYTES,
        buckets: int | None = None,
    ) -> None:
        self.spark = spark
        self._units = Units()
        self._delivery_folders = [Path(one) for one in delivery_folders]
        self._run_settings = RunSettings(spark, limits or QueryLimits(), max_queries)
        self._beats = beats_per_second(heartbeat)
        self._in_process_bytes = in_process_bytes
        self._buckets = buckets
        self._stored = StoredParts(self._open)
        self._compiler = Compiler(spark, choose_execution(execution), self._home_if_open, buckets)
        defaults = stream_defaults or StreamDefaults()
        self._statements = Statements(self._compiler, self._stored, defaults)

    @property
    def lost(self) -> NilometerError | None:
        """Why the database closed itself, if it did."""
        return self._stored.lost

    def create_stream(
        self,
        name: str,
        frame: DataFrame,
        *,
        time: str | tuple[str, str] | None = None,
        epoch: str | None = None,
        lateness: Duration | None = None,
        idle: Duration | None = None,
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
    ) -> None:
        """Register a DataFrame under a name; statements read it as a stream.

        frame     streaming, or static: a stream that has ended.
        time      its TIMESTAMP column; by default a streaming one gets the arrival time. Or two,
                  ("start", "end"): a row is valid from the first until the second.
        epoch     the unit since 1970 if the time is a number: "s", "ms", "us" or "ns".
        lateness  how far out of order rows may arrive; later rows are dropped and counted.
        idle      how long it may be silent before the other streams stop waiting for it.
        rate      how many rows arrive per second, and
        distinct  how many distinct values columns have ({"k": 1000}): for the join order.

        >>> db.create_stream("Orders", df, time="ts", rate=1000)
        """
        self._require_new(name, frame)
        form = None if epoch is None else EpochTimes(read_unit(epoch))
        start, end = time if isinstance(time, tuple) else (time, None)
        frame = with_instants(name, with_instants(name, frame, start, form), end, form)
        given = given_frame(frame)
        relation = describe_stream(name, given, start, lateness, idle, rate, distinct)
        if end is not None:
            relation = replace(relation, end=(end_column(name, given, relation.time, end),))
        self._compiler.named.add(relation, frame)

    def create_table(self, name: str, frame: DataFrame) -> None:
        """Register a static DataFrame under a name; its rows are valid forever.

        >>> db.create_table("Shops", df)
        """
        self._require_new(name, frame)
        self._compiler.named.add(describe_table(name, given_frame(frame)), frame)

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
        self._compiler.add_function(make_function(name, function, returns, by_row, cost))

    def create_aggregate(
        self, name: str, aggregate: Callable[..., Any], returns: str = "double"
    ) -> None:
        """Register a Python aggregate that statements can call, like SUM: exact at every instant.

        A function gets, for each argument, a pandas Series of all values of a group in time order,
        without the rows in which one is NULL, and returns one value. A class has `update(value)`,
        `finish()` and, if it can retract values, `retract(value)`. Without values it is NULL.

        >>> db.create_aggregate("spread", lambda v: v.max() - v.min())
        """
        check_function(name, aggregate)
        self.create_function(name, PythonAggregate(name, aggregate), returns, by_row=True)

    def register_unit(self, name: str, function: Callable[..., Any]) -> None:
        """Register a Python function under a name for streams and deliveries.

        For a stream (`unit = 'name'`) it gets every reading before it is stored, and returns what
        is stored instead: a reading, a list of readings, or None; a class is instantiated once
        for each sensor. For a delivery (`TO python WITH (function = 'name')`) it gets results.

        >>> db.register_unit("celsius", lambda one: {"v": (one["f"] - 32) / 1.8})
        """
        self._units.register(name, function)

    def deliveries(self) -> list[DeliveryStatus]:
        """The status of every delivery of query results, ordered by name."""
        return self._stored.parts.home.deliveries.statuses()

    def alerts(self) -> list[AlertStatus]:
        """The status of every alert on streams and queries, ordered by name."""
        return self._stored.parts.home.alerts.statuses()

    def alert_history(self, name: str, *, limit: int = 100) -> list[Notification]:
        """The most recent notifications of an alert, newest first."""
        return self._stored.parts.home.alerts.history(name, limit)

    def drop(self, name: str) -> None:
        """Unregister a DataFrame; running queries keep running."""
        stored = self._find_stored(name)
        if stored is not None and name not in self._compiler.named:
            hint = f'db.sql("DROP {stored.kind} {stored.name}")'
            raise InputError(
                f"{stored.name} is stored in the database and is not a DataFrame", hint=hint
            )
        self._compiler.named.drop(name)

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The streams and tables that statements can read, by name."""
        return self._compiler.everything(Reading()).relations

    def sql(
        self,
        statement: str,
        *,
        at: str | datetime | None = None,
        buckets: int | None = None,
        reader: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> DataFrame:
        """Run a statement and return its answer: a DataFrame, streaming if one of its inputs is.

        Several statements, separated by `;`, are run in order up to the first that fails, and the
        answer is that of the last. Only the last can be a query.

        at        over static DataFrames: a changing answer as it is at this instant (UTC unless
                  it has a zone), or at the "end", in the order given by ORDER BY.
        buckets   how many parts the work is split into; by default those of the database, or else
                  Spark's shuffle partitions. It is kept in the state: a query must be restarted
                  with the same number.
        reader    a name under which logs know the query: they keep what it has not read until
                  `forget_reader`. Without a name, they keep it for a day after its last read.
        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.sql("SELECT k FROM A WHERE k > :least", least=3).columns
        ['k', '_time']
        """
        given = merged(parameters, values)
        read = self._statements.run_before_last(read_statements(statement, given))
        if not isinstance(read, Statement):
            outcome = self._statements.run(read)
            rows = outcome.rows
            return self.spark.createDataFrame(
                pa.table({OUTCOME: [outcome.message]}) if rows is None else rows
            )
        asked = f"{statement}{given.values or ''}"
        name = reader or f"query {sha256(asked.encode()).hexdigest()[:12]}"
        reading = Reading(name, reader is not None, read.from_start)
        if read.explain is not None:
            form = read.explain
            plan = self._statements.explain(statement, read, reading, buckets, form, given.values)
            return self.spark.createDataFrame([(plan,)], "plan STRING")
        question, known = self._compiler.question(
            read, reading, buckets, "at" if at is not None else None
        )
        return answer_question(question, known.inputs, self._beats, at)

    def execute(
        self,
        statement: str | DatabaseStatement,
        *,
        owner: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Outcome:
        """Run a statement that is not a query; uses Spark only if it must.

        Of several statements, the outcome of the last is returned, as in `sql`.

        statement  its text, or a statement that was read already.
        owner  the owner of a query that the statement creates, for `queries_of`.
        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.execute("CREATE TABLE Stores (id INT)").message
        'created table Stores'
        """
        if isinstance(statement, DatabaseStatement):
            return self._statements.run(statement, owner)
        statements = read_statements(statement, merged(parameters, values))
        if statements and isinstance(statements[-1], Statement):
            raise InputError("this is a query", hint="db.sql answers it; CREATE QUERY keeps it")
        read = self._statements.run_before_last(statements, owner)
        assert not isinstance(read, Statement)
        return self._statements.run(read, owner)

    def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        buckets: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> str:
        """Explain what a statement will do, as text or ("dot") as Graphviz text.

        >>> "2 streams" in db.explain("SELECT A.k FROM A, B WINDOW = 10 SECONDS")
        True
        """
        if form.upper() not in list(ExplainFormat):
            raise InputError(f"unknown format {form}", hint="choose one of text, dot")
        given = merged(parameters, values)
        read = read_query(statement, given)
        chosen = read.explain if read.explain is not None else ExplainFormat(form.upper())
        return self._statements.explain(statement, read, Reading(), buckets, chosen, given.values)

    def picture(self, statement: str) -> QueryPicture:
        """What a statement will do, as data that can be drawn.

        >>> len(db.picture("SELECT A.k FROM A, B WINDOW = 10 SECONDS").graphs)
        1
        """
        return self._statements.picture(statement)

    @property
    def past(self) -> Past:
        """Answers one-off queries over stored rows."""
        return self._stored.parts.past

    @property
    def dashboards(self) -> Dashboards:
        """The dashboards of the console."""
        return Dashboards(self._stored.parts.home.catalog)

    def asks_past(self, statement: str, parameters: Mapping[str, Any] | None = None) -> bool:
        """Whether a query reads stored rows once instead of running on: `select` answers it."""
        if self._stored.parts_left is None:
            return False
        read = read_query(statement, merged(parameters, {}))
        return read.explain is None and self.past.is_asked(read)

    def select(
        self, statement: str, *, parameters: Mapping[str, Any] | None = None, **values: Any
    ) -> pa.Table:
        """The answer to a query over what is stored now: streams and results of queries are
        tables of their rows, so no window is needed. It is computed in this process or, if it
        reads a lot, by Spark.

        `FROM q FOR SYSTEM_TIME AS OF '…'` is the answer of a query as of an instant.

        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.select("SELECT COUNT(*) AS n FROM Readings WHERE v > :v", v=20).to_pylist()
        [{'n': 0}]
        """
        return self.past.select(statement, merged(parameters, values).values)

    def history(
        self, name: str, *, start: str | datetime | None = None, end: str | datetime | None = None
    ) -> DataFrame:
        """The log of a stream, a sensor table or a query's results, as a static DataFrame.

        start, end  only rows with times in this closed range, in UTC unless they name a zone:
                    rows outside are not even read.

        >>> db.history("Readings", start="2026-01-31 12:00:00").count()
        0
        """
        location = self.log_of(name)
        LogReader.open(location)  # or the error in our own words, not Spark's
        use_here(self.spark)
        return read_log(self.spark, location, times=(start, end))

    def sensors(self, name: str | None = None) -> list[SensorStatus]:
        """The status of the sensors that queries currently need, of one stream or of all."""
        home = self._stored.parts.home
        if name is not None:
            return home.manager.status(home.catalog.require_declaration(name).name)
        declared = home.catalog.declarations()
        return [status for one in declared for status in home.manager.status(one.name)]

    def streams(self) -> list[StreamStatus]:
        """The status of every stream and sensor table."""
        return self._stored.parts.home.manager.streams()

    def declarations(self) -> list[tuple[Declaration, list[Sensor]]]:
        """All streams and sensor tables, each with all its sensors, currently needed or not."""
        home = self._stored.parts.home
        declared = []
        for one in home.catalog.declarations():
            with suppress(UnknownNameError):  # dropped meanwhile
                declared.append((one, home.sensors(one.name)))
        return declared

    def try_statements(
        self, statements: str, *, seconds: float = 5.0, rows: int = 5
    ) -> TrialResult:
        """What the first sensor declared by statements sends; nothing is stored.

        They are CREATE STREAM, CREATE SENSOR TABLE with INSERT, or INSERT.

        >>> db.try_statements("CREATE STREAM S (v DOUBLE) FROM synthetic", rows=1).came
        1
        """
        home = self._stored.parts.home
        trial = required_trial(read_statements(statements))
        find = home.units.find
        with declared_aside(trial, home.catalog.declaration, find) as (declared, sensor):
            return read_aside(declared, sensor, find, seconds=seconds, max_rows=rows, enough=rows)

    def try_sensor(
        self, name: str, sensor: str | None = None, *, seconds: float = 5.0, rows: int = 5
    ) -> TrialResult:
        """What a sensor of a stream or sensor table currently sends; nothing is stored.

        >>> db.try_sensor("Farm", "barn", rows=1).came
        1
        """
        home = self._stored.parts.home
        declared = home.catalog.require_declaration(name)
        chosen = choose_sensor(declared, home.sensors(declared.name), sensor)
        find = home.units.find
        return read_aside(declared, chosen, find, seconds=seconds, max_rows=rows, enough=rows)

    def is_declared(self, name: str) -> bool:
        """Whether a stream or sensor table has this name, in any case, read by a query or not."""
        home = self._stored.parts.home
        return name.lower() in {one.name.lower() for one in home.catalog.declarations()}

    @property
    def limits(self) -> QueryLimits:
        """The limits of queries that set none of their own."""
        return self._run_settings.limits

    @property
    def clock_ahead(self) -> int:
        """How far the system clock has jumped ahead or (negative) back, in microseconds."""
        return self._stored.parts.home.manager.clock_ahead

    def queries_of(self, owner: str) -> int:
        """How many named queries an owner has."""
        home = self._stored.parts.home
        return sum(owner_of(one) == owner for one in home.catalog.queries())

    def log_of(self, name: str) -> str:
        """The location of the log of a stream, a sensor table or a query's results."""
        home = self._stored.parts.home
        entry = home.catalog.require(
            name, ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.QUERY
        )
        return home.log_of(entry.name)

    @property
    def queries(self) -> Mapping[str, QueryHandle]:
        """The named queries that were started here; each reports on itself as Spark does."""
        parts = self._stored.parts_left
        return {} if parts is None else parts.queries.handles

    def create_query(
        self,
        name: str | None,
        text: str | Statement,
        *,
        limits: QueryLimits | None = None,
        fill_limits: bool = False,
        temporary: bool = False,
        owner: str | None = None,
    ) -> QueryStatus:
        """Store a SELECT under a name and start it, as CREATE QUERY does.

        text       its text, or a query that was read already.
        limits     what it may use; None: the limits given to `connect`.
        fill_limits  take limits that are not set from those given to `connect`.
        temporary  it is dropped when the database is next opened, and needs no name.
        owner      its owner, for `queries_of`.

        >>> db.create_query("warm", "SELECT v FROM Readings WHERE v > 20").name
        'warm'
        """
        if name is None:
            if not temporary:
                raise InputError("a stored query needs a name")
            name = f"run_{token_hex(4)}"
        self._compiler.named.refuse(name)
        queries = self._stored.parts.queries
        statement = text if isinstance(text, Statement) else read_query(text)
        if statement.explain is not None:
            raise InputError(
                "only a query can be stored, not its EXPLAIN", hint="leave out EXPLAIN"
            )
        change = None if limits is None else _change_to(limits, fill=fill_limits)
        queries.create(NewQuery(name, statement, limits=change, temporary=temporary, owner=owner))
        return queries.status(name)

    def start_query(self, name: str) -> bool:
        """Start a query that is stopped or has failed; False if it is already running."""
        return self._stored.parts.queries.start(name)

    def stop_query(self, name: str) -> bool:
        """Stop a query; False if it was not running."""
        return self._stored.parts.queries.stop(name)

    def drop_query(self, name: str) -> None:
        """Stop a query, and delete its results and its state."""
        home, queries, _ = self._stored.parts
        drop_query(name, home, queries)

    def query_statuses(self) -> list[QueryStatus]:
        """The status of every named query; fast, as Spark is not asked."""
        return self._stored.parts.queries.statuses()

    def query_status(self, name: str) -> QueryStatus:
        """The status of one named query."""
        return self._stored.parts.queries.status(name)

    def find_query_status(self, name: str) -> QueryStatus | None:
        """The status of one named query, or None if it does not exist."""
        return self._stored.parts.queries.find_status(name)

    def last_samples(self) -> dict[str, HealthSample]:
        """The newest sample of each query that has any, by name."""
        return self._stored.parts.queries.last_samples()

    def measures(self) -> Measures:
        """Metrics of the database as a whole."""
        home, queries, _ = self._stored.parts
        return measure(home, self.spark, queries.engine_status, queries.failures)

    def query_health(self, name: str) -> list[HealthSample]:
        """Samples of a query after each micro-batch of the last ten minutes, oldest first."""
        return self._stored.parts.queries.health(name)

    def health_of(self, names: Iterable[str]) -> dict[str, list[HealthSample]]:
        """The same for several queries, by name; those that have not run here are left out."""
        return self._stored.parts.queries.health_of(names)

    def resume(self) -> list[str]:
        """Restart the named queries that were running when the database was closed; their names.

        Those that could not be started are retried if that may help; the error names them.
        Deliveries and alerts resume, too.
        """
        home, queries, _ = self._stored.parts
        home.deliveries.resume()
        home.alerts.resume()
        return queries.resume()

    def warm_up(self) -> None:
        """Start the engine of named queries before the first query needs it."""
        self._stored.parts.queries.warm_up()

    def back_up(self, destination: str) -> BackupMade:
        """Add a backup of the database to a folder or URI; queries keep running meanwhile.

        >>> db.back_up("backups").manifest.name
        '...Z'
        """
        return self._stored.parts.home.back_up(destination)

    def forget_reader(self, reader: str) -> None:
        """Stop keeping rows in logs for a reader (`sql(…, reader=…)`) that has stopped."""
        home = self._stored.parts.home
        for named in home.catalog.names():
            forget_readers(home.log_of(named.name), reader)

    def close(self) -> None:
        """Stop named queries, store what sensors have sent, and disconnect them."""
        self._stored.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, place: StoragePlace, lose: Losing) -> OpenParts:
        register_log_sources(self.spark)
        home = Home(
            *place,
            partial(select_sensors, self.spark),
            self._units,
            self._delivery_folders,
            lose,
            self._buckets,
        )
        queries = RunningQueries(home, self._compiler.plan, self._beats, self._run_settings)
        return OpenParts(home, queries, Past(home, self.spark, self._in_process_bytes))

    def _home_if_open(self) -> Home | None:
        parts = self._stored.parts_if_open
        return None if parts is None else parts.home

    def _find_stored(self, name: str) -> NamedEntry | None:
        parts = self._stored.parts_left
        return None if parts is None else parts.home.catalog.find(name)

    def _require_new(self, name: object, frame: object) -> None:
        self._compiler.named.require_new(name, frame)
        stored = self._find_stored(str(name))
        if stored is not None:
            kind = stored.kind.lower()
            raise InputError(f"{kind} {name} already exists", hint="choose another name")


def _change_to(limits: QueryLimits, *, fill: bool) -> LimitChange:
    """These limits instead of the default ones or, with `fill`, completed by the default ones."""
    return partial(filled, limits) if fill else lambda _: limits
