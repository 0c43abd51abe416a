"""A statement as coloured text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import NilometerError
from nilometer.server.console.drawing import Shape, shape
from nilometer.sql.parse.dialect import Nilometer
from nilometer.sql.parse.query_text import tokenize

_PLAIN: Final = (TokenType.VAR, TokenType.IDENTIFIER)
_OURS: Final = frozenset(
    {"STREAM", "SENSOR", "QUERY", "DELIVERY", "LATENESS", "EVERY", "SECOND", "SECONDS", "MINUTE"}
    | {"MINUTES", "HOUR", "HOURS", "DAY", "DAYS", "START", "STOP"}
    | {"ALERT", "CLEAR", "PER", "DELIVER"}
)
"""Keywords that the tokenizer takes for names."""
_PARTS: Final = frozenset({"GROUP", "ORDER", "PARTITION", "BY", "EMIT", "CHANGES", "APPEND"})
"""Words that the tokenizer combines into one: GROUP BY."""
_KINDS: Final = {TokenType.NUMBER: "number", TokenType.STRING: "string"}


def keywords() -> list[str]:
    """The highlighted words, one by one, in capitals."""
    alone = {one.upper() for one in Nilometer.Tokenizer.KEYWORDS if one.isidentifier()}
    return sorted(alone | _OURS | _PARTS)


def highlighted_sql(text: str) -> Shape:
    """The text with its keywords, numbers and strings highlighted; plain if it cannot be parsed."""
    try:
        parts = tuple(_parts(text))
    except NilometerError:
        parts = (text,)
    return Shape("pre", {"class": "nm-text nm-mono nm-sql", "tabindex": 0}, parts)


def _parts(text: str) -> Iterator[Shape | str]:
    end = 0
    for token in tokenize(text):
        start, stop = token.start, token.end + 1
        kind = _kind(token)
        if kind is not None and start >= end:
            yield text[end:start]
            yield shape("span", text[start:stop], class_=kind)
            end = stop
    yield text[end:]


def _kind(token: Token) -> str | None:
    if token.token_type is TokenType.VAR and token.text.upper() in _OURS:
        return "keyword"
    if token.token_type in _PLAIN:
        return None
    return _KINDS.get(token.token_type, "keyword" if token.text[:1].isalpha() else None)
