"""What the HTTP API and the console ask of the database; they know nothing else of it.

Every method may be called from the event loop: what takes time runs in threads, and what only
looks has threads of its own, so that it never waits for statements.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa

from nilometer.database import Database
from nilometer.database.limits import beyond, filled, read_limits, shown_limits
from nilometer.database.query_status import HealthSample, QueryLimits, QueryStatus
from nilometer.deliveries.status import DeliveryStatus
from nilometer.errors import (
    InputError,
    LimitError,
    NilometerError,
    NotFoundError,
    SqlError,
    SqlSyntaxError,
    TooLargeError,
)
from nilometer.kernels.expression_types import type_name
from nilometer.model.names import nearest
from nilometer.sensors.manager.status import SensorStatus, StreamStatus
from nilometer.server.declared import Declared, without_secrets
from nilometer.server.limits import Followers, Shares
from nilometer.server.results.query_results import QueryResults
from nilometer.server.results.stored_results import StoredResults
from nilometer.server.scopes import SERVER, Asker, Scope, require_scope, scope_needed
from nilometer.server.settings import ServerSettings
from nilometer.server.threads import Threads
from nilometer.spark.failures import too_large_answer
from nilometer.spark.time_limit import time_limited
from nilometer.sql.ddl.nodes import AlterQuery, CreateQuery, Delete, Insert, Update
from nilometer.sql.parameters import Parameters
from nilometer.sql.picture import QueryPicture
from nilometer.sql.scalars import quote_name
from nilometer.sql.statements import (
    AnyStatement,
    Statement,
    parameters_of,
    read_one,
    read_statements,
    require_last_query,
    statement_texts,
    told_number,
)

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Executed:
    """What a statement did: a sentence, and rows where it asks for some."""

    message: str | None
    rows: pa.Table | None
    is_cut: bool = False
    """Whether there were more rows."""


Values: TypeAlias = Mapping[str, object]
"""What the parameters of a statement stand for, by their names."""


class Service:
    """A database that is served."""

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self._database = database
        self.settings = settings
        self.followers = Followers(settings.most_followers, settings.most_followers_each)
        self.is_ready = False
        """Whether the queries that ran before have been started again."""
        self.is_closing = False
        """Whether the server is stopping: followers end, and come back to the next one."""
        self._results = StoredResults(database.log_of)
        self._shares = Shares(settings.most_statements_each, "statements of one token run or wait")
        self._makers: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._threads = Threads(settings.most_statements, settings.statement_seconds)

    # Statements

    async def read(self, text: str, values: Values | None = None) -> AnyStatement:
        """A statement, without looking at what it names."""
        return await self._threads.plan(lambda: self._read(text, values))

    async def execute(self, text: str, asker: Asker, values: Values | None = None) -> Executed:
        """Run statements, if whoever asks may run all of them; the last one's answer.

        The values are those of parameters. Of several statements, the first that fails ends it.
        """
        with self._shares.one(asker.name):
            found = await self._threads.plan(lambda: self._read_all(text, values or {}))
            for _, statement, _ in found:
                require_scope(asker.scopes, scope_needed(statement))
            for number, (part, statement, given) in enumerate(found, 1):
                with told_number(number, len(found)):
                    done = await self._do(part, statement, asker, given)
            return done

    async def _do(
        self, text: str, statement: AnyStatement, asker: Asker, values: Values
    ) -> Executed:
        if isinstance(statement, Statement):
            return await self._threads.select(lambda: self._select(text, values))
        return await self._threads.change(lambda: self._execute(text, statement, asker, values))

    async def check(
        self, text: str, asker: Asker, values: Values | None = None
    ) -> NilometerError | None:
        """What is wrong with a statement, without running it."""
        try:
            with self._shares.one(asker.name):
                found = await self._threads.plan(lambda: self._read_all(text, values or {}))
                if len(found) == 1 and isinstance(found[0][1], Statement):
                    await self._threads.plan(
                        lambda: self._database.explain(text, parameters=values)
                    )
        except NilometerError as error:
            return error
        return None

    async def is_continuous(self, text: str, asker: Asker) -> bool:
        """Whether a query goes on for as long as its streams do."""
        with self._shares.one(asker.name):
            await self.read(text)
            return await self._threads.plan(lambda: self._database.sql(text).isStreaming)

    async def explain(
        self, text: str, asker: Asker, form: str = "text", values: Values | None = None
    ) -> str:
        """What a query would do."""
        with self._shares.one(asker.name):
            await self.read(text, values)
            return await self._threads.plan(
                lambda: self._database.explain(text, form=form, parameters=values)
            )

    async def picture(self, text: str, asker: Asker) -> QueryPicture:
        """What a query would do, as data that can be drawn."""
        with self._shares.one(asker.name):
            await self.read(text)
            return await self._threads.plan(lambda: self._database.picture(text))

    # Queries

    async def queries(self) -> list[QueryStatus]:
        """How all named queries are doing."""
        return await self.look(self._database.query_statuses)

    async def query(self, name: str) -> QueryStatus:
        """How one named query is doing."""
        known = {one.name.lower(): one for one in await self.queries()}
        found = known.get(name.lower())
        if found is None:
            names = [one.name for one in known.values()]
            raise NotFoundError(f"there is no query {name}", hint=nearest(name, names))
        return found

    async def create_query(
        self,
        text: str,
        asker: Asker,
        *,
        name: str | None = None,
        temporary: bool = False,
        limits: QueryLimits | None = None,
    ) -> QueryStatus:
        """Start a query and keep it; one without a name gets one, and is temporary."""
        require_scope(asker.scopes, Scope.WRITE)
        await self.read(text)
        if name is not None and "/" in name:
            raise InputError(
                "the name of a query cannot have a slash here",
                detail=f"got {name!r}",
                hint="it stands in addresses: /queries/name",
            )
        is_bound = limits is not None and not asker.may(Scope.ADMIN)
        if limits is not None and is_bound:
            self._require_within(filled(limits, self._database.limits), asker)

        def create() -> QueryStatus:
            with self._room_for(asker):
                return self._database.create_query(
                    name,
                    text,
                    limits=limits,
                    fill_limits=is_bound,
                    temporary=temporary or name is None,
                    owner=asker.name,
                )

        with self._shares.one(asker.name):
            made = await self._threads.change(create)
        self.followers.seen(made.name)
        return made

    async def start_query(self, name: str, asker: Asker) -> bool:
        """Let a query go on; False if it runs already."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known_query(name) as known:
            with self._shares.one(asker.name):
                return await self._threads.change(lambda: self._database.start_query(known))

    async def stop_query(self, name: str, asker: Asker) -> bool:
        """Stop a query until it is started again; False if it did not run."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known_query(name) as known:
            with self._shares.one(asker.name):
                return await self._threads.change(lambda: self._database.stop_query(known))

    async def drop_query(self, name: str, asker: Asker) -> None:
        """Forget a query and its results."""
        require_scope(asker.scopes, Scope.WRITE)
        async with self.known_query(name) as known:
            with self._shares.one(asker.name):
                await self._threads.change(lambda: self._database.drop_query(known))

    async def health(self, name: str) -> list[HealthSample]:
        """How a query has been doing for the last minutes, oldest first."""
        async with self.known_query(name) as known:
            return await self.look(lambda: self._database.query_health(known))

    @asynccontextmanager
    async def known_query(self, name: str) -> AsyncIterator[str]:
        """A query's name as it is spelt, to do something with it.

        NotFoundError if there is none, also if it is dropped meanwhile: whatever fails then.
        """
        known = (await self.query(name)).name
        try:
            yield known
        except NilometerError:
            await self.query(known)
            raise

    def results(self, name: str) -> QueryResults:
        """The results of a query; reads a small file, so best called by `look`."""
        return self._results.of(name)

    # Streams and sensors

    async def relations(self) -> dict[str, list[tuple[str, str]]]:
        """Everything that statements can read: columns with their SQL types, by name."""

        def read() -> dict[str, list[tuple[str, str]]]:
            found = self._database.relations
            return {
                name: [
                    (column, type_name(kind))
                    for column, kind in zip(one.columns, one.types, strict=True)
                ]
                for name, one in found.items()
            }

        return await self.look(read)

    async def streams(self) -> list[StreamStatus]:
        """How all streams and sensor tables are doing."""
        return await self.look(self._database.streams)

    async def sensors(self, stream: str | None = None) -> list[SensorStatus]:
        """The sensors that some query needs at present; of one stream, or of all."""
        if stream is None:
            return await self.look(self._database.sensors)
        async with self._declared(stream) as known:
            return await self.look(lambda: self._database.sensors(known))

    async def describe_stream(self, name: str) -> Executed:
        """The columns of a stream or sensor table, and how it was declared."""
        async with self._declared(name) as known:
            return await self.look(lambda: self._run(f"DESCRIBE {quote_name(known)}"))

    async def dead_letters(self, name: str) -> Executed:
        """What the sensors of a stream sent that could not be stored, and why.

        Of a query: the rows of which it could not compute something.
        """
        queries = {one.name.lower() for one in await self.queries()}
        known = self.known_query(name) if name.lower() in queries else self._declared(name)
        async with known as found:
            text = f"SHOW DEAD LETTERS FROM {quote_name(found)}"
            return await self.look(lambda: self._run(text))

    async def declarations(self) -> list[Declared]:
        """All streams and sensor tables with all their sensors."""

        def read() -> list[Declared]:
            found = self._database.declarations()
            return [without_secrets(one, sensors) for one, sensors in found]

        return await self.look(read)

    # The server itself

    async def missing(self) -> list[str]:
        """What the server waits for before it can do its work."""
        found = [] if await self.has_spark() else ["spark"]
        return found if self.is_ready else [*found, "queries"]

    @property
    def lost(self) -> NilometerError | None:
        """Why the database was closed though nobody asked for that, if it was."""
        return self._database.lost

    async def has_spark(self) -> bool:
        """Whether Spark lives."""
        return await self.look(self._has_spark)

    def _has_spark(self) -> bool:
        try:
            return not self._database.spark.sparkContext._jsc.sc().isStopped()
        except Exception:  # whatever it is: there is no Spark that could be asked
            return False

    @property
    def clock_ahead(self) -> int:
        """By how much the system's clock has jumped ahead, or (negative) back, microseconds."""
        return self._database.clock_ahead

    @property
    def statements_taken(self) -> int:
        """How many statements run or wait."""
        return self._threads.statements_taken

    async def deliveries(self) -> list[DeliveryStatus]:
        """How all deliveries are doing."""
        return await self.look(self._database.deliveries)

    async def resume(self) -> None:
        """Start the queries and deliveries again that ran before; then the server is ready."""
        try:
            await self._threads.change(self._database.resume)
        finally:
            self.is_ready = True
        await self._threads.change(self._database.warm_up)

    async def look(self, work: Callable[[], _Result]) -> _Result:
        """Do what only looks at the catalog, at logs or at what is in memory, without Spark."""
        return await self._threads.look(work)

    def close(self) -> None:
        """Do no more; what runs is not waited for."""
        self._results.close()
        self._threads.close()

    @asynccontextmanager
    async def _declared(self, name: str) -> AsyncIterator[str]:
        """As `known_query`, of a stream or sensor table."""
        known = await self._known_stream(name)
        try:
            yield known
        except NilometerError:
            await self._known_stream(known)
            raise

    async def _known_stream(self, name: str) -> str:
        names = [one.name for one in await self.streams()]
        found = next((one for one in names if one.lower() == name.lower()), None)
        if found is None:
            raise NotFoundError(f"there is no stream {name}", hint=nearest(name, names))
        return found

    def _read_all(self, text: str, values: Values) -> list[tuple[str, AnyStatement, Values]]:
        """The statements of a text, each with its own text and values."""
        self._require_short(text)
        found = read_statements(text, Parameters(values))
        if not found:
            raise SqlSyntaxError("expected a statement, got none", hint="write SELECT … FROM …")
        require_last_query(found)
        texts = statement_texts(text)
        return [
            (one, statement, parameters_of(one, values))
            for one, statement in zip(texts, found, strict=True)
        ]

    def _read(self, text: str, values: Values | None = None) -> AnyStatement:
        self._require_short(text)
        return read_one(text, Parameters(values or {}))

    def _require_short(self, text: str) -> None:
        most = self.settings.most_statement_characters
        if len(text) > most:
            raise TooLargeError(
                "the statement is too long",
                detail=f"it has {len(text)} characters, at most {most} are read",
            )

    def _execute(
        self, text: str, statement: AnyStatement, asker: Asker, values: Values | None = None
    ) -> Executed:
        match statement:
            case Insert() | Update() | Delete():
                self._require_for_rows(statement.table, asker)
            case CreateQuery():
                self._require_within(read_limits(statement.options, self._database.limits), asker)
                with self._room_for(asker):
                    return self._run(text, asker)
            case AlterQuery():
                self._require_within(read_limits(statement.options, self._database.limits), asker)
        return self._run(text, asker, values)

    def _require_within(self, limits: QueryLimits, asker: Asker) -> None:
        """What the configuration allows a query is the most that all but admin may give it."""
        most = self._database.limits
        if asker.may(Scope.ADMIN) or (found := beyond(limits, most)) is None:
            return
        require_scope(
            asker.scopes,
            Scope.ADMIN,
            detail=f"the most that a query may have is {shown_limits(most)}; "
            f"its {found} would be more",
        )

    @contextmanager
    def _room_for(self, asker: Asker) -> Iterator[None]:
        """Make one more query within this; refused to whoever has as many as one may have."""
        if asker.may(Scope.ADMIN):
            yield
            return
        most = self.settings.most_queries_each
        with self._makers[asker.name]:  # or several at once would each find room for one
            if self._database.queries_of(asker.name) >= most:
                raise LimitError(
                    f"{asker.name} has {most} queries already",
                    hint="drop one of them, or ask an administrator to make this one",
                )
            yield

    def _require_for_rows(self, table: str, asker: Asker) -> None:
        """Rows of sensor tables say whom the server contacts: that is more than writing."""
        if self._database.is_declared(table):
            require_scope(asker.scopes, Scope.ADMIN, detail=f"{table} has sensors")

    def _select(self, text: str, values: Values | None = None) -> Executed:
        most = self.settings.most_rows
        with time_limited(self._database.spark.sparkContext, self.settings.statement_seconds):
            answer = self._database.sql(text, parameters=values)
            if answer.isStreaming:
                raise SqlError(
                    "this query goes on for as long as its streams do",
                    hint="keep it and follow its results: POST /queries, or CREATE QUERY name AS …",
                )
            rows = answer.limit(most + 1).toArrow()
        if rows.nbytes > self.settings.most_answer_bytes:
            raise too_large_answer()
        return Executed(None, rows.slice(0, most), rows.num_rows > most)

    def _run(self, text: str, asker: Asker = SERVER, values: Values | None = None) -> Executed:
        outcome = self._database.execute(text, owner=asker.name, parameters=values)
        rows, most = outcome.rows, self.settings.most_rows
        if rows is None or rows.num_rows <= most:
            return Executed(outcome.message, rows)
        return Executed(outcome.message, rows.slice(0, most), is_cut=True)
