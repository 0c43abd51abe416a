"""SQL text to queries: split into tokens and parsed, every error with its position."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.parse.dialect import FromStart, Nilometer, NilometerParser
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.placed_parser import token_place
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.put_distinct_on import put_distinct_on
from nilometer.sql.parse.put_names import put_names
from nilometer.sql.parse.put_plain_forms import put_plain_forms
from nilometer.sql.parse.put_rows import put_rows

DATABASE_WORDS: Final = frozenset(
    [
        "CREATE",
        "INSERT",
        "UPDATE",
        "DELETE",
        "DROP",
        "SHOW",
        "DESCRIBE",
        "DESC",
        "START",
        "STOP",
        "ALTER",
    ]
)
"""The first words of the database's own statements, see `sql.ddl.read`."""
MOST_CHARACTERS: Final = 65_536
_LENGTH_TOKENS: Final = (
    *(TokenType.STRING, TokenType.INTERVAL, TokenType.NUMBER),
    TokenType.COLON,  # of a parameter
)
_OF_PARTS: Final = (exp.Binary, exp.Unary, exp.If, exp.Case, exp.Between, exp.In, exp.Paren)


class ExplainFormat(StrEnum):
    """The formats of EXPLAIN."""

    TEXT = "TEXT"
    DOT = "DOT"


@dataclass(frozen=True)
class Statement:
    """A query to run or explain."""

    sql: str
    """The whole text it was parsed from: positions refer to it."""
    tree: exp.Query
    explain: ExplainFormat | None = None
    from_start: bool = False
    """FROM START: it begins at the oldest stored rows of its sources, not at the newest."""


LAST_CLAUSES: Final = ("order", "limit", "offset")
"""Clauses at the end of a query that apply to its answer as a whole."""


def has_last_clauses(statement: Statement) -> bool:
    """Whether a query ends with ORDER BY, LIMIT or OFFSET."""
    tree: exp.Expr = statement.tree
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this
    return any(tree.args.get(clause) for clause in LAST_CLAUSES)


def names_read(statement: Statement) -> set[str]:
    """The names a query reads, in lower case, without those defined by its own WITH."""
    mine = {one.alias.lower() for one in statement.tree.find_all(exp.CTE)}
    read = {one.name.lower() for one in statement.tree.find_all(exp.Table)}
    return read - mine - {""}  # a table function has no name


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text."""
    tokenizer = Nilometer().tokenizer()
    try:
        tokens = tokenizer.tokenize(sql)
    except TokenError:
        start = tokenizer._core._start
        if sql[start : start + 2].upper() == "X'":
            place = Place(sql, start, len(sql))
            raise SqlSyntaxError(
                "cannot read the bytes", place=place, hint="write X'0AFF'"
            ) from None
        what, end = ("comment", "*/") if sql[start : start + 2] == "/*" else ("quote", sql[start])
        raise SqlSyntaxError(
            f"a {what} is not closed",
            place=Place(sql, start, len(sql)),
            hint=f"close it with {end}",
        ) from None
    except Exception as error:  # sqlglot on bytes that are not SQL
        raise SqlSyntaxError("cannot read the text", detail=type(error).__name__) from None
    for number, token in enumerate(tokens):
        if token.token_type == TokenType.WINDOW and _is_function(tokens, number):
            token.token_type = TokenType.VAR
    return tokens


def _is_function(tokens: list[Token], first: int) -> bool:
    """Whether WINDOW is the function window(ts, '1 minute'), not a window between two streams."""
    depth = 0
    for number in range(first + 1, len(tokens) - 1):
        kind = tokens[number].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return False
        if depth == 1 and kind == TokenType.COMMA:
            after = tokens[number + 1].token_type
            return after in _LENGTH_TOKENS
    return False


def is_explained_query(tokens: Sequence[Token]) -> bool:
    """Whether tokens begin EXPLAIN QUERY."""
    return [token.text.upper() for token in tokens[:2]] == ["EXPLAIN", "QUERY"]


def is_database_statement(tokens: Sequence[Token]) -> bool:
    """Whether tokens begin one of the database's own statements, also after EXPLAIN."""
    if is_explained_query(tokens):
        return True
    explained = len(tokens) > 1 and tokens[0].text.upper() == "EXPLAIN"
    return tokens[1 if explained else 0].text.upper() in DATABASE_WORDS


def split_at_semicolons(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement in turn."""
    part: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if part:
                yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def read_query_tokens(
    sql: str, tokens: list[Token], parameters: Parameters | None = None
) -> Statement:
    """Parse a query from its tokens."""
    explain = None
    if tokens[0].text.upper() == "EXPLAIN":
        explain, tokens = _explain(sql, tokens)
    if tokens[0].token_type == TokenType.VAR:
        raise no_query(sql, tokens[0])
    values = parameters or Parameters()
    with parser_errors(sql, tokens):
        tree = _parse(sql, tokens, values)
        require_whole(tree, sql)
    if not isinstance(tree, exp.Query | exp.Values):
        raise no_query(sql, tokens[0])
    values.bind(tree, sql)
    put_names(tree)
    tree = put_rows(put_distinct_on(put_plain_forms(tree, sql), sql), sql)
    assert isinstance(tree, exp.Query)
    from_start = _take_from_start(tree, sql)
    return Statement(sql, tree, explain, from_start)


def _take_from_start(tree: exp.Expr, sql: str) -> bool:
    """Whether FROM START follows the outermost query; it is removed from the tree."""
    outermost, from_start = tree, tree.args.get("from_start")
    while from_start is None and isinstance(outermost, exp.Subquery):
        outermost = outermost.this
        from_start = outermost.args.get("from_start")
    outermost.set("from_start", None)
    for other in tree.find_all(FromStart):
        raise SqlSyntaxError(
            "FROM START is only allowed in the outermost query",
            place=place_of(other, sql),
            hint="put it at the end of the statement",
        )
    return from_start is not None


def require_whole(tree: exp.Expr | None, sql: str) -> None:
    """Refuse expressions of which the parser lost a part: CASE WHEN a > -1.b THEN …"""
    for node in tree.walk() if tree is not None else ():
        if isinstance(node, _OF_PARTS) and any(
            needed and node.args.get(name) is None for name, needed in node.arg_types.items()
        ):
            raise SqlSyntaxError(
                "cannot read the statement",
                place=place_of(node, sql),
                detail="something is missing",
            )


def no_query(sql: str, first: Token) -> SqlSyntaxError:
    """The error for an unknown statement."""
    return SqlSyntaxError(
        f"unknown statement: {first.text.upper()[:40]}",
        place=token_place(sql, first),
        hint="a query starts with SELECT or WITH, optionally after EXPLAIN",
    )


def _parse(sql: str, tokens: list[Token], parameters: Parameters) -> exp.Expr | None:
    parser = NilometerParser(error_level=ErrorLevel.IMMEDIATE, dialect=Nilometer)
    parser.parameters = parameters
    return parser.parse(tokens, sql)[0]


def _explain(sql: str, tokens: list[Token]) -> tuple[ExplainFormat, list[Token]]:
    """EXPLAIN [(FORMAT TEXT | DOT)] and the tokens of the query."""
    words = [token.text.upper() for token in tokens[1:5]]
    if words[:1] != ["("] or words[1:2] != ["FORMAT"]:
        rest, chosen = tokens[1:], ExplainFormat.TEXT
    elif len(words) == 4 and words[3] == ")" and words[2] in list(ExplainFormat):
        rest, chosen = tokens[5:], ExplainFormat(words[2])
    else:
        raise SqlSyntaxError(
            "unknown EXPLAIN format",
            place=token_place(sql, tokens[min(3, len(tokens) - 1)]),
            hint="write EXPLAIN SELECT … or EXPLAIN (FORMAT DOT) SELECT …",
        )
    if not rest:
        raise SqlSyntaxError(
            "EXPLAIN needs a query",
            place=token_place(sql, tokens[0]),
            hint="write EXPLAIN SELECT …",
        )
    return chosen, rest


@contextmanager
def parser_errors(sql: str, tokens: list[Token]) -> Iterator[None]:
    """Turn the parser's failures into our errors, and keep it from logging."""
    log = logging.getLogger("sqlglot")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except SqlSyntaxError:
        raise
    except ParseError as error:
        raise _syntax_error(sql, error) from None
    except RecursionError:
        raise SqlSyntaxError(
            "the statement is nested too deeply",
            place=token_place(sql, tokens[0]),
            hint="move parts of it into subqueries or separate columns",
        ) from None
    except (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise SqlSyntaxError(  # the parser gave up on text that is not SQL at all
            "cannot read the statement",
            place=token_place(sql, tokens[0]),
            detail=type(error).__name__,
        ) from None
    finally:
        log.setLevel(level)


def _syntax_error(sql: str, error: ParseError) -> SqlSyntaxError:
    first_error = error.errors[0] if error.errors else {}
    text = str(first_error.get("description") or "it is not SQL").rstrip(".")
    is_name = text[:2].isupper()
    message, detail = "cannot read the statement", text if is_name else text[:1].lower() + text[1:]
    if "Required keyword" in text:
        detail = "something is missing"
    elif text.startswith("Invalid expression"):
        detail = "this was not expected here"
    elif " but got <Token" in text:
        detail = detail.split(" but got <Token")[0]
    place = _highlighted(sql, first_error)
    return SqlSyntaxError(message, place=place, detail=detail, hint=_other_dialect(sql, place))


_OPERATORS: Final = {
    "**": "write power(x, 2)",
    "//": "write x DIV 2 for whole numbers",
    "~": "write s RLIKE 'a.*'",
}
"""What to write in place of operators from other databases."""


_WORDS: Final = {
    r"LATEST\s+(?:BY|ON)": "the last row of each k is FROM A [PARTITION BY k ROWS 1] EMIT CHANGES",
    r"SAMPLE\s+BY": "write GROUP BY time_bucket(INTERVAL '1' HOUR, ts)",
}
"""What to write in place of clauses from other databases."""


def _other_dialect(sql: str, place: Place) -> str | None:
    """What to write in place of syntax from other databases."""
    top = re.search(
        r"\bSELECT\s+(?:DISTINCT\s+)?TOP\s*(?:\(\s*)?(\d+)$", sql[: place.end], re.IGNORECASE
    )
    if top is not None:
        return f"write LIMIT {top[1]} at the end, after ORDER BY"
    for written, hint in _WORDS.items():
        if re.search(rf"\b{written}$", sql[: place.end], re.IGNORECASE):
            return hint
    around = sql[max(0, place.start - 3) : place.end + 1]
    return next((hint for written, hint in _OPERATORS.items() if written in around), None)


def _highlighted(sql: str, error: dict[str, object]) -> Place:
    """The position, which sqlglot reports as line and column of a token's last character."""
    line, column = int(str(error.get("line") or 1)), int(str(error.get("col") or 1))
    starts = [0]
    for _ in range(line - 1):
        starts.append(sql.find("\n", starts[-1]) + 1)
    end = min(starts[-1] + column, len(sql))
    size = len(str(error.get("highlight") or "x"))
    return Place(sql, max(0, end - size), end)


def read_expression(sql: str) -> exp.Expr:
    """A condition or another standalone expression."""
    tokens = tokenize(sql[:MOST_CHARACTERS])
    if not tokens:
        raise SqlSyntaxError("expected a condition, got nothing")
    with parser_errors(sql, tokens):
        tree = _parse(sql, tokens, Parameters())
        require_whole(tree, sql)
    if not isinstance(tree, exp.Expr) or isinstance(tree, exp.Query | exp.Command):
        raise SqlSyntaxError("expected a condition", place=token_place(sql, tokens[0]))
    return tree
