"""What the HTTP API and the console use of the database; they access nothing else of it.

Every method may be called from the event loop: slow work runs in threads, and work that only reads
has threads of its own, so that it never waits for statements.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterator,
)
from contextlib import ExitStack
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from nilometer.alerts.kept import Notification
from nilometer.alerts.status import AlertStatus
from nilometer.database import Database
from nilometer.database.measures import Measures
from nilometer.database.past import StoredRelations, StoredSource
from nilometer.deliveries.status import DeliveryStatus
from nilometer.errors import (
    NilometerError,
    NotFoundError,
    SqlError,
)
from nilometer.kernels.expression_types import type_name
from nilometer.past.downsample import Thinning, thinned
from nilometer.past.question import Bounds
from nilometer.past.sandbox import Cancelling
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.server.backups import Backups
from nilometer.server.limits import Followers, Shares
from nilometer.server.results.download_formats import FileFormat, file_pieces
from nilometer.server.scopes import Asker, Scope, require_scope, scope_needed
from nilometer.server.served_dashboards import ServedDashboards
from nilometer.server.served_queries import ServedQueries
from nilometer.server.served_streams import ServedStreams
from nilometer.server.settings import ServerSettings
from nilometer.server.statement_log import StatementLog
from nilometer.server.statement_runner import Executed, StatementRunner, Values
from nilometer.server.threads import Threads
from nilometer.sql.explain.picture import QueryPicture
from nilometer.sql.expressions.scalars import quote_name
from nilometer.sql.statements import (
    AnyStatement,
    ReadStatement,
    Statement,
    numbered_errors,
    read_each,
)
from nilometer.upkeep.backup import BackupMade
from nilometer.upkeep.manifest import Manifest
from nilometer.upkeep.remove import Removed

_Result = TypeVar("_Result")


class Service:
    """A database that is being served."""

    def __init__(
        self, database: Database, settings: ServerSettings, log: StatementLog | None = None
    ) -> None:
        self._database = database
        self._log = log or StatementLog(settings.statement_seconds)
        self.settings = settings
        self.followers = Followers(settings.max_followers, settings.max_followers_each)
        self.is_ready = False
        """Whether the queries that ran before have been restarted."""
        self.is_closing = False
        """Whether the server is stopping: followers end, and reconnect to the next one."""
        self._shares = Shares(settings.max_statements_each, "statements of one token run or wait")
        self._backups = Backups(database, settings)
        self._runner = StatementRunner(database, settings)
        self._threads = Threads(
            settings.max_statements, settings.statement_seconds, settings.max_requests_each
        )
        common = (self._threads, self._shares, self._runner)
        self.queries = ServedQueries(database, *common, self._log, self.followers)
        self.streams = ServedStreams(database, *common)
        self.dashboards = ServedDashboards(database, *common, settings.max_dashboards)

    # Statements

    async def read(self, text: str, values: Values | None = None) -> AnyStatement:
        """Parse a statement, without checking what it names."""
        return await self._threads.plan(lambda: self._runner.read(text, values))

    async def read_as(self, text: str, asker: Asker, read: Callable[[str], _Result]) -> _Result:
        """Parse a text by other rules than ours, within the same time limit."""

        def read_short() -> _Result:
            self._runner.require_short(text)
            return read(text)

        with self._shares.one(asker.name):
            return await self._threads.plan(read_short)

    async def split(self, text: str) -> list[str]:
        """The statements of a text, each at its position, once all of them can be parsed."""

        def read() -> list[str]:
            self._runner.require_short(text)
            return [one.text for one in read_each(text)]

        return await self._threads.plan(read)

    async def execute(self, text: str, asker: Asker, values: Values | None = None) -> Executed:
        """Run statements, if the caller may run all of them; return the answer of the last.

        The values are those of parameters. Of several statements, the first that fails ends the
        run.
        """
        with self._log.watch(text, asker), self._shares.one(asker.name):
            statements = await self._read_all(text, values)
            for one in statements:
                require_scope(asker.scopes, scope_needed(one.statement))
            for number, one in enumerate(statements, 1):
                with numbered_errors(number, len(statements)):
                    done = await self._do(one, asker)
            return done

    async def _read_all(self, text: str, values: Values | None) -> list[ReadStatement]:
        return await self._threads.plan(lambda: self._runner.read_all(text, values or {}))

    async def _do(self, read: ReadStatement, asker: Asker) -> Executed:
        statement = read.statement
        if isinstance(statement, Statement):
            return await self._threads.select(
                lambda: self._runner.select(read.text, statement, read.values)
            )
        done = await self._threads.change(lambda: self._runner.execute(statement, asker))
        self._log.ran(statement, asker, done.message)
        return done

    async def check(
        self, text: str, asker: Asker, values: Values | None = None
    ) -> NilometerError | None:
        """What is wrong with a statement, without running it."""
        try:
            with self._shares.one(asker.name):
                statements = await self._read_all(text, values)
                if len(statements) == 1 and isinstance(statements[0].statement, Statement):
                    await self._threads.plan(
                        lambda: self._database.explain(text, parameters=values)
                    )
        except NilometerError as error:
            return error
        return None

    async def is_continuous(self, text: str, asker: Asker) -> bool:
        """Whether a query runs for as long as its streams do."""

        def look(statement: AnyStatement) -> bool:
            try:
                return self._database.sql(text).isStreaming
            except SqlError:
                if isinstance(statement, Statement) and self._database.past.is_asked(statement):
                    return False  # it cannot run continuously, but can be answered once
                raise

        with self._shares.one(asker.name):
            statement = await self.read(text)
            return await self._threads.plan(lambda: look(statement))

    async def explain(
        self, text: str, asker: Asker, form: str = "text", values: Values | None = None
    ) -> str:
        """The plan of a query."""
        with self._shares.one(asker.name):
            await self.read(text, values)
            return await self._threads.plan(
                lambda: self._database.explain(text, form=form, parameters=values)
            )

    async def picture(self, text: str, asker: Asker) -> QueryPicture:
        """The plan of a query, as data that can be drawn."""
        with self._shares.one(asker.name):
            await self.read(text)
            return await self._threads.plan(lambda: self._database.picture(text))

    async def ask_past(
        self,
        tree: exp.Query,
        asker: Asker,
        cancelling: Cancelling | None = None,
        *,
        changes: Collection[str] = (),
    ) -> pa.Table:
        """The answer to a query about stored rows; for those in `changes`, about changes."""
        require_scope(asker.scopes, Scope.READ)
        settings = self.settings

        def select() -> pa.Table:
            with sqlglot_errors("this is not supported in a query over stored data"):
                text = tree.sql()
            return self._database.past.select_tree(
                tree,
                text,
                max_bytes=settings.max_answer_bytes,
                seconds=settings.statement_seconds,
                cancelling=cancelling,
                changes=changes,
            )

        with self._shares.one(asker.name):
            return await self._threads.select(select)

    async def download(
        self,
        name: str,
        asker: Asker,
        form: FileFormat,
        bounds: Bounds,
        wanted: Thinning,
        *,
        ending: Callable[[], NilometerError | None],
        answer: bool = False,
    ) -> tuple[AsyncGenerator[bytes, None], Callable[[], None]]:
        """Rows of a stream or query as pieces of a file, and a function to call at the end.

        It counts as a statement of the caller, and each piece must be produced within its time
        limit. Refusals are raised here, before the first piece is sent. `ending` says between two
        pieces why the rest will not be sent.
        """
        require_scope(asker.scopes, Scope.READ)

        def begin() -> tuple[Iterator[bytes], bytes]:
            source = self._database.past.rows(name, bounds, answer=answer)
            pieces = file_pieces(form, *thinned(source, bounds, wanted))
            return pieces, next(pieces, b"")

        with ExitStack() as taken:
            taken.enter_context(self._shares.one(asker.name))
            pieces, first = await self._threads.select(begin)
            return self._file_pieces(pieces, first, ending), taken.pop_all().close

    async def _file_pieces(
        self, pieces: Iterator[bytes], first: bytes, ending: Callable[[], NilometerError | None]
    ) -> AsyncGenerator[bytes, None]:
        piece: bytes | None = first
        while piece is not None:
            if piece:
                yield piece
            if (refusal := ending()) is not None:
                raise refusal  # break the connection: half a file must not look complete
            piece = await self._threads.select(lambda: next(pieces, None))

    async def stored_source(self, name: str) -> StoredSource:
        """The stored rows of a stream, table or query, as a source for queries."""
        return await self.look(lambda: self._database.past.source(name))

    async def ask_catalog(
        self, answer: Callable[[StoredRelations], pa.Table], asker: Asker, *, with_columns: bool
    ) -> pa.Table:
        """An answer about the columns of all that is stored, as a statement of the caller."""
        require_scope(asker.scopes, Scope.READ)
        columns = self._database.past.columns
        with self._shares.one(asker.name):
            return await self._threads.select(lambda: answer(columns() if with_columns else {}))

    # The database as a whole

    async def measures(self) -> Measures:
        """Measures of the whole database."""
        return await self.look(self._database.measures)

    async def relations(self) -> dict[str, list[tuple[str, str]]]:
        """Everything that statements can read: columns with their SQL types, by name."""

        def read() -> dict[str, list[tuple[str, str]]]:
            return {
                name: [
                    (column, type_name(kind))
                    for column, kind in zip(one.columns, one.types, strict=True)
                ]
                for name, one in self._database.relations.items()
            }

        return await self.look(read)

    async def storage(self) -> Executed:
        """The size and growth of every log; the last row is the disk."""
        return await self.look(lambda: self._runner.run("SHOW STORAGE"))

    async def dead_letters(self, name: str) -> Executed:
        """The readings of a stream that could not be stored, and why.

        For a query: the rows for which it could not compute something.
        """
        queries = {one.name.lower() for one in await self.queries.all()}
        owners = self.queries if name.lower() in queries else self.streams
        async with owners.known(name) as known:
            text = f"SHOW DEAD LETTERS FROM {quote_name(known)}"
            return await self.look(lambda: self._runner.run(text))

    # The server itself

    async def missing(self) -> list[str]:
        """What the server is waiting for before it is ready."""
        missing = [] if await self.has_spark() else ["spark"]
        return missing if self.is_ready else [*missing, "queries"]

    @property
    def lost(self) -> NilometerError | None:
        """Why the database was closed unexpectedly, if it was."""
        return self._database.lost

    async def has_spark(self) -> bool:
        """Whether Spark is alive."""
        return await self.look(self._has_spark)

    def _has_spark(self) -> bool:
        try:
            return not self._database.spark.sparkContext._jsc.sc().isStopped()
        except Exception:  # whatever the error: Spark cannot be reached
            return False

    @property
    def clock_ahead(self) -> int:
        """By how much the system's clock has jumped ahead, or (negative) back, microseconds."""
        return self._database.clock_ahead

    @property
    def statements_taken(self) -> int:
        """How many statements are running or waiting."""
        return self._threads.statements_taken

    async def deliveries(self) -> list[DeliveryStatus]:
        """The state of all deliveries."""
        return await self.look(self._database.deliveries)

    async def alerts(self) -> list[AlertStatus]:
        """The state of all alerts."""
        return await self.look(self._database.alerts)

    async def alert(self, name: str) -> AlertStatus:
        """The state of one alert."""
        for one in await self.alerts():
            if one.name.lower() == name.lower():
                return one
        raise NotFoundError(f"there is no alert {name}", hint="GET /alerts lists them")

    async def alert_history(self, name: str, max_lines: int) -> list[Notification]:
        """The last lines of an alert's history, newest first."""
        known = (await self.alert(name)).name
        return await self.look(lambda: self._database.alert_history(known, limit=max_lines))

    async def back_up(
        self, destination: str | None, asker: Asker
    ) -> tuple[BackupMade, Removed | None]:
        """Back up the database to one of the configured destinations.

        Afterwards surplus backups are deleted.
        """
        require_scope(asker.scopes, Scope.ADMIN)
        place = self._backups.place(destination)
        return await self._threads.change(lambda: self._backups.make(place))

    async def backups(self, destination: str | None, asker: Asker) -> list[Manifest]:
        """The backups in such a destination."""
        require_scope(asker.scopes, Scope.ADMIN)
        place = self._backups.place(destination)
        return await self.look(lambda: self._backups.all_in(place))

    async def resume(self) -> list[str]:
        """Restart the queries and deliveries that ran before; then the server is ready."""
        try:
            resumed = await self._threads.change(self._database.resume)
        finally:
            self.is_ready = True
        await self._threads.change(self._database.warm_up)
        return resumed

    async def look(self, work: Callable[[], _Result]) -> _Result:
        """Run work that only reads the catalog, logs or memory, without Spark."""
        return await self._threads.look(work)

    def close(self) -> None:
        """Accept no more work, without waiting for what is running."""
        self.queries.close()
        self._threads.close()
