"""Classifies and answers statements that arrive through PostgreSQL's protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import sqlglot
from sqlglot import exp

from nilometer.errors import InputError, SqlError, SqlSyntaxError
from nilometer.past.sandbox import Cancelling
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.server.pg.catalog import PgCatalog, is_for_catalog
from nilometer.server.pg.catalog_tables import SERVER_VERSION
from nilometer.server.scopes import Asker
from nilometer.sql.parse.parameters import constant_of
from nilometer.sql.parse.query_text import split_at_semicolons, tokenize

if TYPE_CHECKING:
    from nilometer.server.service import Service

DIALECT: Final = "postgres"
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
_COPY: Final = re.compile(r"COPY\s*\((?P<query>.*)\)\s*TO\s+STDOUT\b(?P<options>.*)", re.I | re.S)
_COPY_TABLE: Final = re.compile(
    r"COPY\s+(?P<table>\"[^\"]+\"|[\w.]+)\s+TO\s+STDOUT\b(?P<options>.*)", re.I | re.S
)
_SUBSCRIBE: Final = re.compile(r"SUBSCRIBE\s+(?:TO\s+)?(?P<name>\"[^\"]+\"|\S+)", re.I)
"""Patterns for texts without surrounding spaces: none of them backtracks much."""
_SHOWN: Final = {
    "server_version": SERVER_VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "timezone": "UTC",
    "time zone": "UTC",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "transaction isolation level": "read committed",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "search_path": "public",
    "max_identifier_length": "63",
    "is_superuser": "off",
    "integer_datetimes": "on",
}
_TAGS: Final = {
    "BEGIN": "BEGIN",
    "START TRANSACTION": "START TRANSACTION",
    "COMMIT": "COMMIT",
    "END": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "ABORT": "ROLLBACK",
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
    "SET": "SET",
    "RESET": "RESET",
    "DISCARD": "DISCARD ALL",
    "DEALLOCATE": "DEALLOCATE",
    "LISTEN": "LISTEN",
    "UNLISTEN": "UNLISTEN",
}
"""Statements that do nothing here, each with the tag that is sent."""


@dataclass(frozen=True)
class StatementAnswer:
    """The result of a statement."""

    tag: str
    rows: pa.Table | None = None
    notice: str | None = None


@dataclass(frozen=True)
class CopyOut:
    """COPY … TO STDOUT: rows as lines."""

    query: str
    is_csv: bool = False
    has_header: bool = False
    delimiter: str = "\t"
    follows: str | None = None
    """The query whose results are sent as they arrive, until the client ends it."""


@dataclass(frozen=True)
class Command:
    """One statement of a text."""

    text: str
    tag: str | None = None
    """The tag of a statement that does nothing."""
    copy: CopyOut | None = None
    parameters: int = 0
    """The number of its `$n`."""
    tree: exp.Query | None = field(default=None, compare=False)


Values: TypeAlias = Sequence[object]


def split_commands(text: str) -> list[str]:
    """The statements of a text."""
    commands = []
    for part in split_at_semicolons(tokenize(text)):
        commands.append(text[part[0].start : part[-1].end + 1])
    return commands


def read_commands(text: str) -> list[Command]:
    """The statements of a text, classified."""
    return [read_command(one) for one in split_commands(text)]


def read_command(text: str) -> Command:
    """Classify one statement."""
    if (copy := _read_copy(text)) is not None:
        return Command(text, copy=copy)
    words = text.lstrip(" \t\r\n(").upper().split(None, 2)
    first = words[0].rstrip(";(") if words else ""
    if tag := _TAGS.get(" ".join(words[:2])) or _TAGS.get(first):
        return Command(text, tag=tag)
    if first not in _QUERIES:
        return Command(text)
    try:
        with sqlglot_errors("cannot read the query", SqlSyntaxError):
            tree = sqlglot.parse_one(text, read=DIALECT)
    except SqlSyntaxError as error:
        try:  # it may be one of our queries, with windows
            with sqlglot_errors("cannot read the query"):
                sqlglot.parse_one(text, read="spark")
        except SqlError:
            raise error from None
        return Command(text)
    if not isinstance(tree, exp.Query):
        return Command(text)
    numbers = [_number(one) for one in tree.find_all(exp.Parameter)]
    return Command(text, parameters=max(numbers, default=0), tree=tree)


def _number(parameter: exp.Parameter) -> int:
    shown = parameter.name
    if not shown.isdigit() or not 1 <= int(shown) <= 1000:
        raise SqlSyntaxError(f"there is no parameter ${shown}", hint="write $1, $2, …")
    return int(shown)


def _read_copy(text: str) -> CopyOut | None:
    text = text.strip().removesuffix(";").rstrip()
    match = _COPY.fullmatch(text)
    query = None if match is None else match["query"]
    if match is None:
        match = _COPY_TABLE.fullmatch(text)
        query = None if match is None else f"SELECT * FROM {match['table']}"
    if match is None or query is None:
        return None
    options = match["options"].upper()
    is_csv = "CSV" in options
    chosen = re.search(r"DELIMITER\s*'(.)'", match["options"], re.I)
    delimiter = chosen[1] if chosen else "," if is_csv else "\t"
    header = bool(re.search(r"HEADER(?!\s+(FALSE|OFF|0))", options))
    follows = _SUBSCRIBE.fullmatch(query.strip())
    name = None if follows is None else follows["name"].strip('"')
    return CopyOut(query, is_csv, header, delimiter, name)


class Statements:
    """Answers statements for one client."""

    def __init__(self, service: Service, catalog: PgCatalog, asker: Asker) -> None:
        self._service = service
        self._catalog = catalog
        self._asker = asker

    async def answer(
        self, command: Command, values: Values, cancelling: Cancelling | None = None
    ) -> StatementAnswer:
        """Execute a statement."""
        if command.tag is not None:
            return StatementAnswer(command.tag)
        if command.tree is not None:
            rows = await self._query(_bound(command.tree, values), cancelling)
            return StatementAnswer(f"SELECT {len(rows)}", rows)
        if (shown := _show(command.text)) is not None:
            return StatementAnswer("SHOW", shown)
        done = await self._service.execute(command.text, self._asker)
        if done.rows is not None:
            return StatementAnswer(f"SELECT {len(done.rows)}", done.rows)
        return StatementAnswer(_tag_of(command.text), notice=done.message)

    async def describe(self, command: Command) -> pa.Schema | None:
        """The columns of an answer, before the statement is executed."""
        if command.tree is None:
            shown = _show(command.text)
            return None if shown is None else shown.schema
        tree = _bound(command.tree, [None] * command.parameters)
        none = (
            exp.select("*")
            .from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("_q"))))
            .limit(0)
        )
        return (await self._query(none, None)).schema

    async def _query(self, tree: exp.Query, cancelling: Cancelling | None) -> pa.Table:
        if is_for_catalog(tree):
            max_bytes = self._service.settings.max_answer_bytes
            return await self._service.ask_catalog(
                lambda known: self._catalog.answer(tree, known, max_bytes, cancelling),
                self._asker,
                with_columns=tree.find(exp.Table) is not None,
            )
        return await self._service.ask_past(tree, self._asker, cancelling)


def _bound(tree: exp.Query, values: Values) -> exp.Query:
    """The query with its parameters replaced by their values, as constants of the tree."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.Parameter)):
        number = _number(node)
        if number > len(values):
            raise InputError(f"there is no value for ${number}")
        node.replace(constant_of(values[number - 1]))
    return tree


def _show(text: str) -> pa.Table | None:
    """SHOW of a setting; None: it is another statement."""
    first, *rest = text.lower().rstrip("; \t\r\n").split() or [""]
    name = " ".join(rest)
    if first != "show" or name not in _SHOWN:
        return None
    return pa.table({name.replace(" ", "_"): [_SHOWN[name]]})


def _tag_of(text: str) -> str:
    """The command tag that PostgreSQL would send."""
    words = re.findall(r"[A-Za-z_]+", text.upper())[:2]
    if words[:1] == ["INSERT"]:
        return "INSERT 0 0"
    return " ".join(words) or "OK"
