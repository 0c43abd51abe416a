"""The database's own statements, distinguished by their first words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot.tokenizer_core import Token

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.ddl.nodes import DatabaseStatement
from nilometer.sql.ddl.read_alter import read_alter
from nilometer.sql.ddl.read_create import read_create
from nilometer.sql.ddl.read_rows import read_delete, read_insert, read_update
from nilometer.sql.ddl.read_short import (
    read_describe,
    read_drop,
    read_explain,
    read_show,
    read_start,
    read_stop,
)
from nilometer.sql.ddl.statement_reader import StatementReader
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import is_explained_query, parser_errors

_READERS: Final[Mapping[str, Callable[[StatementReader], DatabaseStatement]]] = {
    "CREATE": read_create,
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "DROP": read_drop,
    "SHOW": read_show,
    "DESCRIBE": read_describe,
    "DESC": read_describe,
    "START": read_start,
    "STOP": read_stop,
    "ALTER": read_alter,
}


def read_database_statement(
    sql: str, tokens: list[Token], parameters: Parameters
) -> DatabaseStatement:
    """Parse one statement from its tokens; it begins with a word known here."""
    first = tokens[0]
    if is_explained_query(tokens):
        with parser_errors(sql, tokens):
            return read_explain(StatementReader.over(sql, tokens, parameters))
    if first.text.upper() == "EXPLAIN":
        raise SqlSyntaxError(
            "only queries can be explained",
            place=Place(sql, first.start, tokens[1].end + 1),
            detail=f"got {tokens[1].text.upper()}",
            hint="write EXPLAIN SELECT …, or EXPLAIN QUERY q for one that is kept",
        )
    with parser_errors(sql, tokens):
        return _READERS[first.text.upper()](StatementReader.over(sql, tokens, parameters))
