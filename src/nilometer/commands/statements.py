"""A text split into statements so that every error still reports the right line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nilometer.errors import InputError
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import has_last_clauses
from nilometer.sql.statements import (
    Statement,
    parameters_of,
    read_statements,
    statement_texts,
)


@dataclass(frozen=True, slots=True)
class OneStatement:
    """The text and kind of one statement."""

    sql: str
    is_explain: bool
    is_query: bool = True
    parameters: Mapping[str, object] = field(default_factory=dict)
    """The values of its parameters."""
    has_order: bool = False
    """Whether it ends with ORDER BY, LIMIT or OFFSET."""


def split_statements(
    text: str, parameters: Mapping[str, object] | None = None
) -> list[OneStatement]:
    """The statements of a text; each keeps its position, with blanks for what precedes it.

    >>> [one.sql for one in split_statements("SELECT 1; EXPLAIN SELECT 2;")]
    ['SELECT 1', '          EXPLAIN SELECT 2']
    """
    values = parameters or {}
    read = read_statements(text, Parameters(values))
    if not read:
        raise InputError("there is no statement", hint="write SELECT … FROM …")
    parts = statement_texts(text)
    return [
        OneStatement(
            sql,
            is_explain=isinstance(one, Statement) and one.explain is not None,
            is_query=isinstance(one, Statement),
            parameters=parameters_of(sql, values) if values else {},
            has_order=isinstance(one, Statement) and has_last_clauses(one),
        )
        for sql, one in zip(parts, read, strict=True)
    ]
