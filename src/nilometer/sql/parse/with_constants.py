"""A statement's text with its parameters replaced by constants: for queries kept as text.

When a statement is executed, its parameters are bound in the tree. Only where a server keeps the
text of a query are constants written into it, each as the dialect writes constants of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import TokenType

from nilometer.sql.parse.parameters import constant_of
from nilometer.sql.parse.query_text import tokenize

_COUNTS: Final = (TokenType.LIMIT, TokenType.OFFSET)
"""Clauses followed by a number, which cannot be in parentheses."""


def with_constants(sql: str, values: Mapping[str, object]) -> str:
    """The text with every `:name` that has a value replaced by that value.

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
