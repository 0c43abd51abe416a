"""Runs a query over stored data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import SqlError, UnknownNameError
from nilometer.model.names import nearest
from nilometer.past.guarded import AnySandbox
from nilometer.past.question import PastQuestion, StoredColumns, read_question
from nilometer.past.sandbox import AnswerLimits, Cancelling
from nilometer.past.stored import StoredTable

_NO_COLUMN: Final = re.compile(r'column "?([^"\s]+)"? (?:was )?not found', re.I)


class _Known(Mapping[str, StoredColumns]):
    """The columns of tables, each opened only when it is asked for."""

    def __init__(self, tables: Mapping[str, StoredTable]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> StoredColumns:
        return self._tables[name].columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def prepare_question(
    sandbox: AnySandbox, tree: exp.Query, sql: str, tables: Mapping[str, StoredTable]
) -> PastQuestion:
    """How a query is run over these tables; one that is not allowed is refused here."""
    question = read_question(tree, sql, _Known(tables), sandbox.value)
    sandbox.require_safe(question.sql, question.tables)
    empty = {name: tables[use.table].schema.empty_table() for name, use in question.tables.items()}
    try:
        sandbox.bind(question.sql, empty)
    except SqlError as error:
        raise _kinder(error, question, empty) from None
    return question


def _kinder(error: SqlError, question: PastQuestion, tables: Mapping[str, pa.Table]) -> SqlError:
    """The same error, with a position and a hint if a column is not known."""
    match = _NO_COLUMN.search(error.message)
    if match is None:
        return error
    name = match[1]
    known = sorted({column for one in tables.values() for column in one.column_names})
    return UnknownNameError(
        f"there is no column {name}",
        place=question.places.get(name.lower()),
        hint=nearest(name, known),
    )


def ask(
    sandbox: AnySandbox,
    question: PastQuestion,
    tables: Mapping[str, StoredTable],
    limits: AnswerLimits | None = None,
    cancelling: Cancelling | None = None,
) -> pa.Table:
    """The answer, or its first rows."""
    rows = {name: tables[use.table].read(use) for name, use in question.tables.items()}
    return sandbox.run(question.sql, rows, limits, cancelling)
