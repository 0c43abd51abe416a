"""SQL text to statements: queries and other commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from nilometer.errors import NilometerError, Place, SqlSyntaxError
from nilometer.sql.parse.misplaced_hints import refuse_misplaced_hints
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.query_text import (
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
    "ReadStatement",
    "Statement",
    "read_each",
    "read_expression",
    "read_one",
    "read_query",
    "read_statements",
]

AnyStatement: TypeAlias = "Statement | DatabaseStatement"

MOST_TOKENS: Final = 10_000


@dataclass(frozen=True)
class ReadStatement:
    """One statement of a text, and the values of the parameters that it uses."""

    statement: AnyStatement
    values: Mapping[str, object]
    whole: str
    """The text of all statements."""
    start: int
    end: int

    @cached_property
    def text(self) -> str:
        """Its own text; it keeps its position, with blanks for what precedes it."""
        return re.sub(r"[^\n]", " ", self.whole[: self.start]) + self.whole[self.start : self.end]


def read_statements(sql: str, parameters: Parameters | None = None) -> list[AnyStatement]:
    """The statements of a text; every parameter has a value, and every value is used.

    >>> read = read_statements("SELECT a FROM A; EXPLAIN SELECT a FROM A; DROP STREAM A")
    >>> [type(one).__name__ for one in read]
    ['Statement', 'Statement', 'Drop']
    """
    return [one.statement for one in read_each(sql, parameters)]


def read_each(sql: str, parameters: Parameters | None = None) -> list[ReadStatement]:
    """The same, each with its own text and values.

    >>> [one.text for one in read_each("SELECT 1; EXPLAIN SELECT 2;")]
    ['SELECT 1', '          EXPLAIN SELECT 2']
    """
    values = parameters or Parameters()
    statements = [_read_part(sql, part, values) for part in split_at_semicolons(_tokens(sql))]
    values.require_used()
    return statements


def require_last_query(statements: Sequence[AnyStatement]) -> None:
    """Refuse several statements if any but the last is a query."""
    for number, one in enumerate(statements[:-1], 1):
        if isinstance(one, Statement):
            raise SqlSyntaxError(
                "only the last statement can be a query",
                place=place_of(one.tree, one.sql),
                detail=f"statement {number} of {len(statements)} is one",
                hint="run it by itself",
            )


@contextmanager
def numbered_errors(number: int, count: int) -> Iterator[None]:
    """Add its number to the error about one of several statements."""
    try:
        yield
    except NilometerError as error:
        if count > 1:
            where = f"statement {number} of {count}; those before it were run"
            error.detail = where if error.detail is None else f"{error.detail}; {where}"
        raise


def _tokens(sql: str) -> list[Token]:
    """The tokens of a text that is not too long."""
    if not isinstance(sql, str):
        raise SqlSyntaxError("a statement must be text", detail=f"got {type(sql).__name__}")
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
    return tokens


def _read_part(sql: str, tokens: list[Token], shared: Parameters) -> ReadStatement:
    own = Parameters(shared.values)
    read = _read_database_statement if is_database_statement(tokens) else read_query_tokens
    statement = read(sql, tokens, own)
    shared.used |= own.used
    values = {name: value for name, value in shared.values.items() if name in own.used}
    return ReadStatement(statement, values, sql, tokens[0].start, tokens[-1].end + 1)


def read_one(sql: str, parameters: Parameters | None = None) -> AnyStatement:
    """The only statement of a text."""
    statements = read_statements(sql, parameters)
    if len(statements) != 1:
        raise SqlSyntaxError(
            f"expected one statement, got {len(statements) or 'none'}",
            hint="write SELECT … FROM …" if not statements else "run them one after the other",
        )
    return statements[0]


def read_query(sql: str, parameters: Parameters | None = None) -> Statement:
    """The only statement of a text, which is a query."""
    statement = read_one(sql, parameters)
    if isinstance(statement, Statement):
        return statement
    first = next(split_at_semicolons(tokenize(sql)))[0]
    raise SqlSyntaxError(
        f"this statement is not supported here: {first.text.upper()}",
        place=Place(sql, first.start, first.end + 1),
        detail="expected a query",
        hint="a query starts with SELECT or WITH, optionally after EXPLAIN",
    )


def _read_database_statement(
    sql: str, tokens: list[Token], parameters: Parameters
) -> DatabaseStatement:
    from nilometer.sql.ddl.read import read_database_statement  # noqa: PLC0415  queries need none

    return read_database_statement(sql, tokens, parameters)
