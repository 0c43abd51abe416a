"""A statement as coloured text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import NilometerError
from nilometer.server.console.drawing import Shape, shape
from nilometer.sql.query_text import tokenize

_PLAIN: Final = (TokenType.VAR, TokenType.IDENTIFIER)
_KINDS: Final = {TokenType.NUMBER: "number", TokenType.STRING: "string"}


def highlighted_sql(text: str) -> Shape:
    """The text, its keywords, numbers and strings marked; as it is if it cannot be read."""
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
    if token.token_type in _PLAIN:
        return None
    return _KINDS.get(token.token_type, "keyword" if token.text[:1].isalpha() else None)
