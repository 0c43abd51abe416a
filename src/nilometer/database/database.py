"""`nm.connect`: a Database, the facade of everything."""

from __future__ import annotations

import logging
import threading
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

from nilometer.alerts.kept import Told
from nilometer.alerts.status import AlertStatus
from nilometer.database.at_exit import close_at_exit
from nilometer.database.compiler import Compiler
from nilometer.database.dashboards import Dashboards
from nilometer.database.home import Home
from nilometer.database.known import Reading
from nilometer.database.lifecycle import RunSettings
from nilometer.database.limits import filled, owner_of
from nilometer.database.measures import Measures, measure
from nilometer.database.past import Past
from nilometer.database.past_engine import IN_PROCESS_BYTES
from nilometer.database.query_run import QueryHandle
from nilometer.database.query_status import HealthSample, QueryLimits, QueryStatus
from nilometer.database.run_table import closed
from nilometer.database.running import LimitChange, RunningQueries
from nilometer.database.select_sensors import select_sensors
from nilometer.database.statements import drop_query, run_statement
from nilometer.database.try_sensor import (
    Tried,
    choose_sensor,
    declared_aside,
    read_aside,
    required_trial,
)
from nilometer.database.units import Units
from nilometer.deliveries.status import DeliveryStatus
from nilometer.errors import (
    AmbiguousNameError,
    ContradictionError,
    InputError,
    NilometerError,
    SqlError,
    SqlSyntaxError,
    SqlWindowError,
    UnknownNameError,
    in_one_line,
)
from nilometer.kernels.python_aggregate import PythonAggregate
from nilometer.log.reader import LogReader
from nilometer.log.registrations import forget_readers
from nilometer.model.time import Duration
from nilometer.model.time_forms import EpochTimes, read_unit
from nilometer.sensors.catalog.outcome import Outcome, placed
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.log_options import StreamDefaults
from nilometer.sensors.manager.status import SensorStatus, StreamStatus
from nilometer.spark.complete_frame import answer_question
from nilometer.spark.describe import given_frame
from nilometer.spark.functions import make_function
from nilometer.spark.heartbeat import beats_per_second
from nilometer.spark.log_rows import register_log_sources
from nilometer.spark.log_stream import read_log
from nilometer.spark.read_times import with_instants
from nilometer.spark.session import use_here
from nilometer.spark.supported import require_supported
from nilometer.sql.catalog import Relation
from nilometer.sql.ddl.nodes import (
    CreateAlert,
    CreateDelivery,
    CreateQuery,
    CreateSensorTable,
    CreateStream,
    CreateTable,
    CreateView,
    DatabaseStatement,
    Kind,
    Rename,
)
from nilometer.sql.declare import check_function, describe_stream, describe_table, end_column
from nilometer.sql.explain.picture import QueryPicture, picture_contradiction, picture_plan
from nilometer.sql.parse.parameters import merged
from nilometer.sql.physical.execution import choose_execution
from nilometer.sql.statements import (
    AnyStatement,
    ExplainFormat,
    Statement,
    read_one,
    read_query,
    read_statements,
    require_last_query,
    told_number,
)
from nilometer.upkeep.backup import BackupMade

_LOG: Final = logging.getLogger("nilometer.database")
_CREATES: Final = (
    *(CreateStream, CreateSensorTable, CreateTable, CreateQuery, CreateView, CreateDelivery),
    CreateAlert,
)

OUTCOME: Final = "outcome"
"""The only column of what a statement answers that has no rows to show."""


class Database:
    """Streams, tables and functions under names, and statements over them.

    With a path it is kept there: catalog, logs of sensors' readings, results of queries. Without,
    the first statement that needs a place makes a temporary folder, which goes with the process.
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
    ) -> None:
        self.spark = spark
        self.lost: NilometerError | None = None
        """Why it was closed though nobody asked for that, if it was."""
        self._units = Units()
        self._delivery_folders = [Path(one) for one in delivery_folders]
        self._run_settings = RunSettings(spark, limits or QueryLimits(), max_queries)
        self._stream_defaults = stream_defaults or StreamDefaults()
        self._beats = beats_per_second(heartbeat)
        self._compiler = Compiler(spark, choose_execution(execution), self._opened)
        self._home: Home | None = None
        self._queries: RunningQueries | None = None
        self._past: Past | None = None
        self._in_process_bytes = in_process_bytes
        self._is_closed = False
        self._changing = threading.RLock()

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
        """Give a DataFrame a name under which statements read it as a stream.

        frame     streaming, or static: a stream that has ended.
        time      its TIMESTAMP column; a streaming one without gets the time of arrival. Or two,
                  ("start", "end"): a row counts from one until the other.
        epoch     what it counts since 1970 if it is a number: "s", "ms", "us" or "ns".
        lateness  how far it may be out of order; later rows are dropped and counted.
        idle      after how long a silence it no longer holds up the others.
        rate      how many rows come per second, and
        distinct  how many different values columns have ({"k": 1000}): for the join order.

        >>> db.create_stream("A", df, time="ts", lateness="2s")  # doctest: +SKIP
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
        """Give a static DataFrame a name; its rows hold for ever.

        >>> db.create_table("Stores", df)  # doctest: +SKIP
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
    ) -> None:
        """Let statements call a Python function.

        It gets a pandas Series per argument and returns as many values of the type `returns`;
        with by_row it gets plain values and returns one.

        >>> db.create_function("similar", lambda a, b: (a - b).abs() < 3)  # doctest: +SKIP
        """
        self._compiler.add_function(make_function(name, function, returns, by_row))

    def create_aggregate(
        self, name: str, aggregate: Callable[..., Any], returns: str = "double"
    ) -> None:
        """Let statements call a Python aggregate, like SUM: it is exact at every instant.

        A function gets a pandas Series of all values of a group for each argument, without rows in
        which one is NULL, in the order of time, and returns one value. A class has `update(value)`,
        `finish()` and, if it can take values back, `retract(value)`. Without values it is NULL.

        >>> db.create_aggregate("spread", lambda v: v.max() - v.min())  # doctest: +SKIP
        """
        check_function(name, aggregate)
        self.create_function(name, PythonAggregate(name, aggregate), returns, by_row=True)

    def register_unit(self, name: str, function: Callable[..., Any]) -> None:
        """Let streams and deliveries use a Python function under a name.

        For a stream (`unit = 'name'`) it gets every reading before it is stored, and returns what
        is stored instead: a reading, a list of readings, or None; a class has an object for every
        sensor. For a delivery (`TO python WITH (function = 'name')`) it gets results.

        >>> db.register_unit("celsius", lambda one: {"v": (one["f"] - 32) / 1.8})  # doctest: +SKIP
        """
        self._units.register(name, function)

    def deliveries(self) -> list[DeliveryStatus]:
        """How the deliveries of queries' results are doing, by name."""
        return self._stored()[0].deliveries.statuses()

    def alerts(self) -> list[AlertStatus]:
        """How the alerts on streams and queries are doing, by name."""
        return self._stored()[0].alerts.statuses()

    def alert_history(self, name: str, *, most: int = 100) -> list[Told]:
        """What an alert told last, the newest first."""
        return self._stored()[0].alerts.history(name, most)

    def drop(self, name: str) -> None:
        """Forget the name of a DataFrame; queries that run keep running."""
        stored = None if self._home is None else self._home.catalog.find(name)
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
        """The answer to a statement: a DataFrame, streaming if one of its inputs is.

        Of several statements, separated by `;`, it is that of the last; the others are run before
        it, in order, up to the first that fails. Only the last can be a query.

        at        over static DataFrames, of an answer that changes: what it is at this instant
                  (UTC unless it has a zone), or "end", in the order that ORDER BY says.
        buckets   how many parts the work has; by default Spark's shuffle partitions. It is
                  kept in the state: a query is restarted with the number it was started with.
        reader    a name under which logs know the query: they keep what it has not read until
                  `forget_reader`. Without one, for a day after it was last seen.
        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.sql("SELECT k FROM A WHERE k > :least", least=3)  # doctest: +SKIP
        """
        given = merged(parameters, values)
        read = self._run_before_last(read_statements(statement, given))
        if not isinstance(read, Statement):
            outcome = self._run(read)
            rows = outcome.rows
            return self.spark.createDataFrame(
                pa.table({OUTCOME: [outcome.message]}) if rows is None else rows
            )
        asked = f"{statement}{given.values or ''}"
        name = reader or f"query {sha256(asked.encode()).hexdigest()[:12]}"
        reading = Reading(name, reader is not None, read.from_start)
        if read.explain is not None:
            text = self._explain(statement, read, reading, buckets, read.explain, given.values)
            return self.spark.createDataFrame([(text,)], "plan STRING")
        question, known = self._compiler.question(
            read, reading, buckets, "at" if at is not None else None
        )
        return answer_question(question, known.frames, self._beats, at)

    def execute(
        self,
        statement: str,
        *,
        owner: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Outcome:
        """Do what a statement says that is not a query; without Spark unless it needs it.

        Of several statements it is the last that is told of, as in `sql`.

        owner  whose query it is that the statement makes, for `queries_of`.
        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.execute("CREATE TABLE Stores (id INT)").message  # doctest: +SKIP
        'table Stores created'
        """
        found = read_statements(statement, merged(parameters, values))
        if found and isinstance(found[-1], Statement):
            raise InputError("this is a query", hint="db.sql answers it; CREATE QUERY keeps it")
        read = self._run_before_last(found, owner)
        assert not isinstance(read, Statement)
        return self._run(read, owner)

    def explain(
        self,
        statement: str,
        *,
        form: str = "text",
        buckets: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> str:
        """What a statement will do, as text or ("dot") as Graphviz text.

        >>> print(db.explain("SELECT A.k FROM A, B WINDOW = 10 SECONDS"))  # doctest: +SKIP
        """
        if form.upper() not in list(ExplainFormat):
            raise InputError(f"there is no form {form}", hint="choose one of text, dot")
        given = merged(parameters, values)
        read = read_query(statement, given)
        chosen = read.explain if read.explain is not None else ExplainFormat(form.upper())
        return self._explain(statement, read, Reading(), buckets, chosen, given.values)

    def picture(self, statement: str) -> QueryPicture:
        """What a statement will do, as data that can be drawn.

        >>> db.picture("SELECT A.k FROM A, B WINDOW = 10 SECONDS").graphs  # doctest: +SKIP
        """
        read = read_one(statement)
        query = read.query if isinstance(read, CreateQuery) else read_query(statement)
        try:
            return picture_plan(self._compiler.question(query, Reading())[0].plan)
        except SqlWindowError as error:
            if isinstance(error.__cause__, ContradictionError):
                return picture_contradiction(error.__cause__)
            raise

    @property
    def past(self) -> Past:
        """What is stored, to be asked once."""
        self._stored()
        assert self._past is not None
        return self._past

    @property
    def dashboards(self) -> Dashboards:
        """What the console shows."""
        return Dashboards(self._stored()[0].catalog)

    def asks_past(self, statement: str, parameters: Mapping[str, Any] | None = None) -> bool:
        """Whether a query asks for what is stored, and does not go on: `select` answers it."""
        if self._home is None:
            return False
        read = read_query(statement, merged(parameters, {}))
        return read.explain is None and self.past.is_asked(read)

    def select(
        self, statement: str, *, parameters: Mapping[str, Any] | None = None, **values: Any
    ) -> pa.Table:
        """The answer to a query over what is stored now: streams and results of queries are
        tables of their rows, so no window is needed. It is answered in this process, or, where
        much is read, by Spark.

        `FROM q FOR SYSTEM_TIME AS OF '…'` is the answer of a query as it was at an instant.

        parameters, values  what `:name` stands for in the statement, by its name.

        >>> db.select("SELECT COUNT(*) AS n FROM Readings WHERE v > :v", v=20)  # doctest: +SKIP
        """
        return self.past.select(statement, merged(parameters, values).values)

    def history(
        self, name: str, *, start: str | datetime | None = None, end: str | datetime | None = None
    ) -> DataFrame:
        """What the log of a stream, a sensor table or a query's results keeps: a static DataFrame.

        start, end  only rows with times in this closed range, in UTC unless they name a zone:
                    what lies outside is not even read.

        >>> db.history("Sensors", start="2026-01-31 12:00:00")  # doctest: +SKIP
        """
        location = self.log_of(name)
        LogReader.open(location)  # or its own words, not Spark's
        use_here(self.spark)
        return read_log(self.spark, location, times=(start, end))

    def sensors(self, name: str | None = None) -> list[SensorStatus]:
        """How the sensors are doing that some query needs at present; of one stream, or of all."""
        home, _ = self._stored()
        if name is not None:
            return home.manager.status(home.catalog.require_declaration(name).name)
        declared = home.catalog.declarations()
        return [status for one in declared for status in home.manager.status(one.name)]

    def streams(self) -> list[StreamStatus]:
        """How all streams and sensor tables are doing."""
        return self._stored()[0].manager.streams()

    def declarations(self) -> list[tuple[Declaration, list[Sensor]]]:
        """All streams and sensor tables, each with all its sensors, needed now or not."""
        home, _ = self._stored()
        found = []
        for one in home.catalog.declarations():
            with suppress(UnknownNameError):  # dropped meanwhile
                found.append((one, home.sensors(one.name)))
        return found

    def try_statements(self, statements: str, *, seconds: float = 5.0, most: int = 5) -> Tried:
        """What the first sensor sends that statements would declare; nothing of it is kept.

        They are CREATE STREAM, CREATE SENSOR TABLE with INSERT, or INSERT.

        >>> db.try_statements("CREATE STREAM S (…) FROM http WITH (…)")  # doctest: +SKIP
        """
        home, _ = self._stored()
        trial = required_trial(read_statements(statements))
        find = home.units.find
        with declared_aside(trial, home.catalog.declaration, find) as (declared, sensor):
            return read_aside(declared, sensor, find, seconds=seconds, most=most, enough=most)

    def try_sensor(
        self, name: str, sensor: str | None = None, *, seconds: float = 5.0, most: int = 5
    ) -> Tried:
        """What a sensor of a stream or sensor table sends at present; nothing of it is kept.

        >>> db.try_sensor("Farm", "barn").readings  # doctest: +SKIP
        """
        home, _ = self._stored()
        declared = home.catalog.require_declaration(name)
        chosen = choose_sensor(declared, home.sensors(declared.name), sensor)
        find = home.units.find
        return read_aside(declared, chosen, find, seconds=seconds, most=most, enough=most)

    def is_declared(self, name: str) -> bool:
        """Whether a stream or sensor table has this name, in any case, read by a query or not."""
        home, _ = self._stored()
        return name.lower() in {one.name.lower() for one in home.catalog.declarations()}

    @property
    def limits(self) -> QueryLimits:
        """Those of queries that say nothing else."""
        return self._run_settings.limits

    @property
    def clock_ahead(self) -> int:
        """By how much the system's clock has jumped ahead, or (negative) back, microseconds."""
        return self._stored()[0].manager.clock_ahead

    def queries_of(self, owner: str) -> int:
        """How many named queries somebody has made."""
        home, _ = self._stored()
        return sum(owner_of(one) == owner for one in home.catalog.queries())

    def log_of(self, name: str) -> str:
        """Where the log of a stream, a sensor table or a query's results lies."""
        home, _ = self._stored()
        found = home.catalog.require(name, Kind.STREAM, Kind.SENSOR_TABLE, Kind.QUERY)
        return home.log_of(found.name)

    @property
    def queries(self) -> Mapping[str, QueryHandle]:
        """The named queries that were started here; each tells of itself as Spark does."""
        return {} if self._queries is None else self._queries.handles

    def create_query(
        self,
        name: str | None,
        text: str,
        *,
        limits: QueryLimits | None = None,
        fill_limits: bool = False,
        temporary: bool = False,
        owner: str | None = None,
    ) -> QueryStatus:
        """Keep a SELECT under a name and start it, as CREATE QUERY does.

        limits     what it may take; None: what was said to `connect`.
        fill_limits  where these limits say nothing, those of `connect` hold.
        temporary  it is gone when the database is opened again, and may do without a name.
        owner      whose it is, for `queries_of`.

        >>> db.create_query("warm", "SELECT …")  # doctest: +SKIP
        """
        if name is None:
            if not temporary:
                raise InputError("a query that is kept needs a name")
            name = f"run_{token_hex(4)}"
        self._compiler.named.refuse(name)
        queries = self._stored()[1]
        statement = read_query(text)
        if statement.explain is not None:
            raise InputError("a query is kept, not its explanation", hint="leave out EXPLAIN")
        change = None if limits is None else _change_to(limits, fill=fill_limits)
        queries.create(name, text, statement, limits=change, temporary=temporary, owner=owner)
        return queries.status(name)

    def start_query(self, name: str) -> bool:
        """Start a query that is stopped or has failed; False if it runs already."""
        return self._stored()[1].start(name)

    def stop_query(self, name: str) -> bool:
        """Stop a query; False if it did not run."""
        return self._stored()[1].stop(name)

    def drop_query(self, name: str) -> None:
        """Stop a query, and delete its results and all that it has kept."""
        drop_query(name, *self._stored())

    def query_statuses(self) -> list[QueryStatus]:
        """How all named queries are doing; quick, as Spark is not asked."""
        return self._stored()[1].statuses()

    def query_status(self, name: str) -> QueryStatus:
        """How one named query is doing."""
        return self._stored()[1].status(name)

    def find_query_status(self, name: str) -> QueryStatus | None:
        """The same; None: there is no such query."""
        return self._stored()[1].find_status(name)

    def last_samples(self) -> dict[str, HealthSample]:
        """The newest sample of each query that has some, by name."""
        return self._stored()[1].last_samples()

    def measures(self) -> Measures:
        """How the database is doing as a whole."""
        home, queries = self._stored()
        return measure(home, self.spark, queries.engine_status, queries.failures)

    def query_health(self, name: str) -> list[HealthSample]:
        """A query after each micro-batch of the last ten minutes, oldest first."""
        return self._stored()[1].health(name)

    def health_of(self, names: Iterable[str]) -> dict[str, list[HealthSample]]:
        """The same of several queries, by name; of one that has not run here, nothing."""
        return self._stored()[1].health_of(names)

    def resume(self) -> list[str]:
        """Start the named queries again that ran when the database was closed; their names.

        Those that could not be started are tried again if that may help; the error names them.
        Deliveries and alerts go on, too.
        """
        home, queries = self._stored()
        home.deliveries.resume()
        home.alerts.resume()
        return queries.resume()

    def warm_up(self) -> None:
        """Have the engine of named queries ready before the first of them comes."""
        self._stored()[1].warm_up()

    def back_up(self, destination: str) -> BackupMade:
        """Add a backup of all that is kept to a folder, or a URI; queries run on meanwhile.

        >>> db.back_up("/mnt/backups").manifest.name  # doctest: +SKIP
        '20260131T120000Z'
        """
        home, _ = self._stored()
        return home.back_up(destination)

    def forget_reader(self, reader: str) -> None:
        """Let logs no longer keep rows for a reader (`sql(…, reader=…)`) that has stopped."""
        home, _ = self._stored()
        for named in home.catalog.names():
            forget_readers(home.log_of(named.name), reader)

    def close(self) -> None:
        """Stop named queries, store what sensors have sent, and let them go."""
        with self._changing:
            home, queries, past = self._home, self._queries, self._past
            self._is_closed = self._is_closed or home is not None
            self._home, self._queries, self._past = None, None, None
        if past is not None:
            past.close()
        if queries is not None:
            queries.close()
        if home is not None:
            home.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, path: Path | None, catalog: str | None = None, logs: str | None = None) -> None:
        """Be kept in a folder from now on."""
        register_log_sources(self.spark)
        self._home = Home(
            path, catalog, logs, self._select, self._units, self._delivery_folders, self._lose
        )
        self._queries = RunningQueries(
            self._home, self._compiler.plan, self._beats, self._run_settings
        )
        self._past = Past(self._home, self.spark, self._in_process_bytes)
        close_at_exit(self)
        if self.lost is not None:  # already, while it was being opened
            raise self.lost
        self._queries.drop_temporary()

    def _lose(self, why: NilometerError) -> None:
        """Its catalog is another's, or out of reach: do no more here."""
        _LOG.error("%s", in_one_line(why))
        self.lost = why
        threading.Thread(target=self.close, name="close").start()

    def _stored(self) -> tuple[Home, RunningQueries]:
        with self._changing:
            self._require_open()
            if self._home is None or self._queries is None:
                self._open(None)
            assert self._home is not None
            assert self._queries is not None
            return self._home, self._queries

    def _opened(self) -> Home | None:
        """What is stored, if anything is; an error if the database is closed."""
        self._require_open()
        return self._home

    def _require_open(self) -> None:
        """What was kept in a folder must not go on in another one, which nobody asked for."""
        if self.lost is not None:
            raise self.lost
        if self._is_closed:
            raise closed()

    def _run_before_last(
        self, found: Sequence[AnyStatement], owner: str | None = None
    ) -> AnyStatement:
        """Run all statements but the last, which is returned; none if one of them is a query."""
        if not found:
            raise SqlSyntaxError("expected a statement, got none", hint="write SELECT … FROM …")
        require_last_query(found)
        for number, one in enumerate(found[:-1], 1):
            assert not isinstance(one, Statement)
            with told_number(number, len(found)):
                self._run(one, owner)
        return found[-1]

    def _run(self, statement: DatabaseStatement, owner: str | None = None) -> Outcome:
        self._refuse_taken(statement)
        if isinstance(statement, CreateStream | CreateSensorTable):
            statement = replace(statement, stream=self._stream_defaults.fill(statement.stream))
        return run_statement(statement, *self._stored(), owner)

    def _select(self, rows: pa.Table, where: str) -> set[int]:
        return select_sensors(self.spark, rows, where)

    def _explain(
        self,
        text: str,
        read: Statement,
        reading: Reading,
        buckets: int | None,
        form: ExplainFormat,
        values: Mapping[str, Any] | None,
    ) -> str:
        """What a statement will do if it goes on, and if it is asked once."""
        is_past = self._home is not None and form is ExplainFormat.TEXT and self.past.is_asked(read)
        if not is_past:
            return self._compiler.explain(read, reading, buckets, form)
        try:
            going_on = self._compiler.explain(read, reading, buckets, form)
        except (UnknownNameError, AmbiguousNameError):
            raise
        except SqlError:  # it cannot go on
            return self.past.explain(text, values)
        try:
            once = self.past.explain(text, values)
        except SqlError as error:
            once = f"asked once, it cannot be answered: {error.message}"
        return f"{going_on}\n{once}"

    def _refuse_taken(self, statement: DatabaseStatement) -> None:
        """A name is that of a DataFrame or of something in the catalog, never of both."""
        if isinstance(statement, _CREATES):
            with placed(statement.place):
                self._compiler.named.refuse(statement.name)
        elif isinstance(statement, Rename):
            with placed(statement.to_place):
                self._compiler.named.refuse(statement.to)

    def _require_new(self, name: object, frame: object) -> None:
        self._compiler.named.require_new(name, frame)
        stored = None if self._home is None else self._home.catalog.find(str(name))
        if stored is not None:
            kind = stored.kind.lower()
            raise InputError(f"there is already a {kind} {name}", hint="choose another name")


def _change_to(limits: QueryLimits, *, fill: bool) -> LimitChange:
    """These limits, whatever the usual ones are; or, where they say nothing, the usual ones."""
    return partial(filled, limits) if fill else lambda _: limits


def connect(  # noqa: PLR0913  one argument for each option
    spark: SparkSession,
    *,
    path: str | Path | None = None,
    catalog: str | None = None,
    logs: str | None = None,
    execution: str = "auto",
    heartbeat: Duration = "1s",
    limits: QueryLimits | None = None,
    max_queries: int | None = None,
    delivery_folders: Sequence[str | Path] = (),
    stream_defaults: StreamDefaults | None = None,
    in_process_bytes: int = IN_PROCESS_BYTES,
) -> Database:
    """A Database on a Spark session, classic or Spark Connect.

    path       a folder that keeps the catalog, logs and checkpoints; one process has it at a
               time. Without one the database goes with the process.
    catalog    the URL of a PostgreSQL database for the catalog, instead of a file in the folder.
    logs       where logs lie instead of the folder: another one, or a URI such as s3://bucket/x.
    execution  how windowed plans learn that time has passed: "ita" when a row reaches an
               operator, "tpa" by its inputs' clocks, "nta" by negative rows; "auto" chooses.
    heartbeat  how often answers over arrival times (or with idle streams) are brought up to
               date though nothing arrives: at most a second.
    limits     what named queries may take that say nothing else; by default all they want.
    max_queries  how many named queries may run at one time; None: any number.
    delivery_folders  below which deliveries may write files, instead of `deliveries` in the folder.
    stream_defaults  how long, and how much, streams keep that say nothing of it.
    in_process_bytes  how much a question about the past may read to be answered in this process;
               what reads more is answered by Spark, where it can.

    >>> db = connect(spark, path="plant")  # doctest: +SKIP
    """
    require_supported(spark.version)
    database = Database(
        spark,
        execution,
        heartbeat,
        limits,
        max_queries,
        delivery_folders,
        stream_defaults,
        in_process_bytes,
    )
    if path is not None or catalog is not None or logs is not None:
        database._open(None if path is None else Path(path), catalog, logs)
    return database
