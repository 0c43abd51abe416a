"""SQL text to statements: queries, and what else the database is told to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.misplaced_hints import refuse_misplaced_hints
from nilometer.sql.query_text import (
    MOST_CHARACTERS,
    ExplainFormat,
    Statement,
    is_database_statement,
    read_expression,
    read_query_tokens,
    split_at_semicolons,
    tokenize,
)

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from nilometer.sql.ddl.nodes import DatabaseStatement

__all__ = [
    "AnyStatement",
    "ExplainFormat",
    "Statement",
    "read_expression",
    "read_one",
    "read_query",
    "read_statements",
]

AnyStatement: TypeAlias = "Statement | DatabaseStatement"

MOST_TOKENS: Final = 10_000


def read_statements(sql: str) -> list[AnyStatement]:
    """The statements of a text.

    >>> read = read_statements("SELECT a FROM A; EXPLAIN SELECT a FROM A; DROP STREAM A")
    >>> [type(one).__name__ for one in read]
    ['Statement', 'Statement', 'Drop']
    """
    if not isinstance(sql, str):
        raise SqlSyntaxError("a statement is text", detail=f"got {type(sql).__name__}")
    if len(sql) > MOST_CHARACTERS:
        raise SqlSyntaxError(
            "the text is too long",
            detail=f"it has {len(sql)} characters, at most {MOST_CHARACTERS} are read",
        )
    tokens = tokenize(sql)
    if len(tokens) > MOST_TOKENS:
        raise SqlSyntaxError(
            "the text is too long",
            detail=f"it has {len(tokens)} words, at most {MOST_TOKENS} are read",
        )
    refuse_misplaced_hints(sql, tokens)
    return [
        _read_database_statement(sql, part)
        if is_database_statement(part)
        else read_query_tokens(sql, part)
        for part in split_at_semicolons(tokens)
    ]


def read_one(sql: str) -> AnyStatement:
    """The only statement of a text."""
    statements = read_statements(sql)
    if len(statements) != 1:
        raise SqlSyntaxError(
            f"expected one statement, got {len(statements) or 'none'}",
            hint="write SELECT … FROM …" if not statements else "run them one after the other",
        )
    return statements[0]


def read_query(sql: str) -> Statement:
    """The only statement of a text, which is a query."""
    statement = read_one(sql)
    if isinstance(statement, Statement):
        return statement
    first = next(split_at_semicolons(tokenize(sql)))[0]
    raise SqlSyntaxError(
        f"this statement cannot be run here: {first.text.upper()}",
        place=Place(sql, first.start, first.end + 1),
        detail="a query was expected",
        hint="queries begin with SELECT or WITH, or with EXPLAIN before them",
    )


def _read_database_statement(sql: str, tokens: list[Token]) -> DatabaseStatement:
    from nilometer.sql.ddl.read import read_database_statement  # noqa: PLC0415  queries need none

    return read_database_statement(sql, tokens)
