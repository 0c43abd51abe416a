"""A text split into statements so that every error still reports the right line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nilometer.errors import InputError
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import has_last_clauses
from nilometer.sql.statements import Statement, read_each


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
    text: str,
    parameters: Mapping[str, object] | None = None,
    *,
    may_be_unused: bool = False,
) -> list[OneStatement]:
    """The statements of a text; each keeps its position, with blanks for what precedes it.

    may_be_unused  whether there may be values that no statement uses.

    >>> [one.sql for one in split_statements("SELECT 1; EXPLAIN SELECT 2;")]
    ['SELECT 1', '          EXPLAIN SELECT 2']
    """
    read = read_each(text, Parameters(parameters or {}, may_be_unused=may_be_unused))
    if not read:
        raise InputError("there is no statement", hint="write SELECT … FROM …")
    return [
        OneStatement(
            part.text,
            is_explain=isinstance(one, Statement) and one.explain is not None,
            is_query=isinstance(one, Statement),
            parameters=part.values,
            has_order=isinstance(one, Statement) and has_last_clauses(one),
        )
        for part, one in ((part, part.statement) for part in read)
    ]
