"""The source of a panel's rows, as a part of the panel's queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
import sqlglot
from sqlglot import exp

from nilometer.database.past import parse_past
from nilometer.errors import InputError, NilometerError, UnknownNameError
from nilometer.log.layout import DIFF, TIME
from nilometer.model.dashboard import Source, SourceKind
from nilometer.model.names import nearest
from nilometer.model.time import EARLIEST, LATEST
from nilometer.past.question import goes_on
from nilometer.server.dashboards.time_range import Interval
from nilometer.server.scopes import Asker
from nilometer.server.service import Service
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.statements import read_query

_ROWS: Final = "_source"
"""The placeholder for a SELECT in the text of a query, before the SELECT replaces it."""
RANGE: Final = ("start", "end")
"""The parameters of a SELECT that represent the range of the page."""
_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Column:
    """A column, or a field of one."""

    name: str
    sql: str
    type: pa.DataType

    @property
    def is_time(self) -> bool:
        return bool(pat.is_timestamp(self.type) or pat.is_date(self.type))

    @property
    def is_number(self) -> bool:
        kind = self.type
        is_numeric = pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
        return bool(is_numeric or pat.is_boolean(kind))


@dataclass(frozen=True)
class PanelSource:
    """A table to query: its columns, its time column, and how to query it."""

    name: str
    """The name of a stream or query; empty: it is a SELECT."""
    schema: pa.Schema
    time: str | None
    select: exp.Query | None = None
    has_changes: bool = False
    """Whether it is a query whose answer changes."""
    reads_changes: bool = False
    """Whether to read all changes instead of the answer."""

    def with_changes(self) -> PanelSource:
        """A copy that reads its changes, if it has any."""
        return replace(self, reads_changes=self.has_changes)

    @property
    def is_answer(self) -> bool:
        """Whether rows have no time because they are the answer at one instant."""
        return self.has_changes and not self.reads_changes

    def column(self, name: str) -> Column:
        """A column by its name in any case, or a field of one: `reading.temperature`."""
        fields = self._fields()
        for one in fields:
            if one.name.lower() == name.lower():
                return one
        names = [one.name for one in fields]
        raise UnknownNameError(
            f"there is no column {name}",
            hint=nearest(name, names) or f"there are {', '.join(names[:20])}",
        )

    def time_column(self, name: str | None = None) -> Column | None:
        """The column that orders rows; None: there is none."""
        if name is not None:
            return self.column(name)
        return None if self.time is None or self.is_answer else self.column(self.time)

    @property
    def columns(self) -> list[Column]:
        """All columns, and fields of columns."""
        return self._fields()

    def _fields(self) -> list[Column]:
        hidden = (TIME, DIFF) if self.is_answer else ()
        columns: list[Column] = []
        for one in self.schema:
            if one.name not in hidden:
                columns.append(Column(one.name, quoted(one.name), one.type))
                if pat.is_struct(one.type):
                    columns += [
                        Column(
                            f"{one.name}.{part.name}",
                            f"struct_extract({quoted(one.name)}, {text(part.name)})",
                            part.type,
                        )
                        for part in (one.type.field(i) for i in range(one.type.num_fields))
                    ]
        return columns

    def rows(self, at: Interval | None = None) -> str:
        """The FROM item; an answer is that of the end of a past range."""
        if self.select is not None:
            return _ROWS
        if self.is_answer and at is not None and at.is_past:
            return f"{quoted(self.name)} FOR SYSTEM_TIME AS OF {instant(at.end)}"
        return quoted(self.name)

    def within(self, at: Interval, time: Column | None) -> str:
        """The condition that rows are in a range, by this column or by their own time."""
        column = time if time is not None and time.is_time else self.time_column()
        if column is None:
            return "TRUE"
        conditions = [] if at.end >= LATEST else [f"{column.sql} <= {instant(at.end)}"]
        if at.start is not None:
            conditions.append(f"{column.sql} >= {instant(at.start)}")
        elif self.reads_changes:  # rows that have always held have no instant to be drawn at
            conditions.append(f"{column.sql} > {instant(0)}")
        return " AND ".join(conditions) or "TRUE"

    async def ask(self, service: Service, sql: str, asker: Asker) -> pa.Table:
        """The answer to a query whose FROM is `rows`, within the asker's limits."""
        tree = sqlglot.parse_one(sql, read="duckdb")
        assert isinstance(tree, exp.Query)
        if self.select is not None:
            for entry in list(tree.find_all(exp.Table)):
                if entry.name == _ROWS:
                    alias = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True))
                    entry.replace(exp.Subquery(this=self.select.copy(), alias=alias))
        changes = (self.name,) if self.reads_changes else ()
        return await service.ask_past(tree, asker, changes=changes)


async def open_source(service: Service, source: Source, at: Interval, asker: Asker) -> PanelSource:
    """The source of a panel; a SELECT is run for no rows, to find its columns."""
    if source.kind is not SourceKind.SELECT:
        stored = await service.stored_source(source.text)
        return PanelSource(stored.name, stored.schema, stored.time, has_changes=stored.changes)
    select = _select(source.text, at)
    opened = PanelSource("", pa.schema([]), None, select)
    schema = (await opened.ask(service, f"SELECT * FROM {_ROWS} LIMIT 0", asker)).schema
    times = [one.name for one in schema if Column(one.name, "", one.type).is_time]
    time = TIME if TIME in times else next(iter(times), None)
    return replace(opened, schema=schema, time=time)


def _select(sql: str, at: Interval) -> exp.Query:
    """A user's SELECT, with the range of the page for `:start` and `:end`."""
    start = EARLIEST if at.start is None else at.start
    instants = dict(zip(RANGE, (_moment(start), _moment(at.end)), strict=True))
    values = {name: one for name, one in instants.items() if f":{name}" in sql}
    try:
        continues = goes_on(read_query(sql, Parameters(values)).tree)
    except NilometerError:
        continues = False  # any error is reported below
    if continues:
        raise InputError(
            "a panel shows what is stored, and this query does not end",
            hint="keep it with CREATE QUERY, and show the query's results",
        )
    return parse_past(sql.strip().rstrip(";"), values)


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return str(exp.to_identifier(name, quoted=True).sql(dialect="duckdb"))


def text(value: str) -> str:
    """A text as an SQL literal."""
    return exp.Literal.string(value).sql(dialect="duckdb")


def instant(micros: int) -> str:
    """An instant as an SQL literal."""
    return f"CAST('{_moment(micros):%Y-%m-%d %H:%M:%S.%f}+00' AS TIMESTAMPTZ)"


def _moment(micros: int) -> datetime:
    return _BEGIN + timedelta(microseconds=micros)
