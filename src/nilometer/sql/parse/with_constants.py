"""A statement's text with constants where its parameters stood: for queries that are kept as text.

Whatever answers a statement binds its parameters in the tree. Only where a server keeps the text
of a query, the constants are written into it, each as the dialect writes constants of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import TokenType

from nilometer.sql.parse.parameters import constant_of
from nilometer.sql.parse.query_text import tokenize

_COUNTS: Final = (TokenType.LIMIT, TokenType.OFFSET)
"""Behind these stands a number, which can have no brackets."""


def with_constants(sql: str, values: Mapping[str, object]) -> str:
    """The text, in which every `:name` that has a value is written as that value.

    >>> with_constants("SELECT k FROM A WHERE name = :n AND ':n' <> d LIMIT :k", {"n": "x", "k": 3})
    "SELECT k FROM A WHERE name = ('x') AND ':n' <> d LIMIT 3"
    """
    parts, done = [], 0
    tokens = tokenize(sql)
    for number, (colon, name) in enumerate(pairwise(tokens)):
        is_parameter = colon.token_type == TokenType.COLON and name.start == colon.end + 1
        if not is_parameter or name.text not in values:
            continue
        text = constant_of(values[name.text]).sql("spark")
        before = tokens[number - 1].token_type if number else None
        parts += [sql[done : colon.start], text if before in _COUNTS else f"({text})"]
        done = name.end + 1
    return "".join([*parts, sql[done:]])
