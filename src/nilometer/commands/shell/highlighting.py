"""Colours statements while they are typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.commands.shell.split_input import MARK
from nilometer.errors import SqlSyntaxError
from nilometer.sql.parse.query_text import tokenize

STYLES: Final = {
    "keyword": "bold ansiblue",
    "string": "ansigreen",
    "number": "ansimagenta",
    "comment": "italic ansibrightblack",
    "command": "bold",
}
_PLAIN: Final = (TokenType.VAR, TokenType.IDENTIFIER)
_KINDS: Final = {TokenType.NUMBER: "number", TokenType.STRING: "string"}


class StatementLexer(Lexer):
    """Marks keywords, strings, numbers and comments, using the parser's own words."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(split_lines(list(marked(document.text))))
        return lambda number: lines[number] if number < len(lines) else []


def marked(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of a text, each with its style; together they are the text.

    >>> list(marked("SELECT 'a' -- b"))[:3]
    [('class:keyword', 'SELECT'), ('', ' '), ('class:string', "'a'")]
    """
    if text.lstrip().startswith(MARK):
        yield "class:command", text
        return
    try:
        tokens, read = tokenize(text), len(text)
    except SqlSyntaxError as error:
        read = 0 if error.place is None else error.place.start
        tokens = _tokens(text[:read])
    end = 0
    for token in tokens:
        start, stop = token.start, token.end + 1
        if start < end:
            continue
        yield from _between(text[end:start])
        yield _style(token), text[start:stop]
        end = stop
    yield from _between(text[end:read])
    if read < len(text):
        yield ("class:comment" if text.startswith("/*", read) else "class:string"), text[read:]


def _tokens(text: str) -> list[Token]:
    try:
        return tokenize(text)
    except SqlSyntaxError:
        return []


def _between(text: str) -> Iterator[tuple[str, str]]:
    """The text between words: spaces and comments."""
    if text:
        yield ("class:comment" if text.strip() else ""), text


def _style(token: Token) -> str:
    if token.token_type in _PLAIN:
        return ""
    kind = _KINDS.get(token.token_type, "keyword" if token.text[:1].isalpha() else None)
    return "" if kind is None else f"class:{kind}"
