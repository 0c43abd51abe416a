"""Splits input into statements and shell commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from nilometer.errors import SqlSyntaxError
from nilometer.sql.parse.query_text import MOST_CHARACTERS, tokenize

MARK = "\\"
"""The first character of shell commands."""


@dataclass(frozen=True)
class Piece:
    r"""A statement without its semicolon, or a command such as \d, and the line where it begins."""

    text: str
    line: int = 1

    @property
    def is_command(self) -> bool:
        return self.text.startswith(MARK)


def split_text(text: str) -> tuple[list[str], str]:
    r"""The statements of a text that end with a semicolon, and the rest.

    >>> split_text("SELECT ';' AS a; SELECT 2;\nSELECT")
    (["SELECT ';' AS a", ' SELECT 2'], '\nSELECT')
    """
    try:
        tokens = tokenize(text)
    except SqlSyntaxError as error:
        return _split_before(text, error)
    statements, start = [], 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append(text[start : token.start])
            start = token.end + 1
    return statements, text[start:]


def _split_before(text: str, error: SqlSyntaxError) -> tuple[list[str], str]:
    """The statements before an unclosed quote or comment."""
    if error.place is None or not error.place.start:
        return [], text
    statements, rest = split_text(text[: error.place.start])
    return statements, rest + text[error.place.start :]


def is_complete(text: str) -> bool:
    r"""Whether the input can be run: a command, nothing, or text up to a semicolon.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';"), is_complete("SELECT 1;"), is_complete("")
    (False, False, True, True)
    """
    if not text.strip() or text.lstrip().startswith(MARK):
        return True
    return not has_words(split_text(text)[1])


def has_words(text: str) -> bool:
    """Whether a text contains more than spaces and comments."""
    try:
        return bool(tokenize(text))
    except SqlSyntaxError:
        return True


def read_pieces(lines: Iterable[str]) -> Iterator[Piece]:
    r"""Statements and commands once they are complete; the rest at the end is one more.

    A command must be on its own line, between statements.

    >>> [one.text for one in read_pieces(["SELECT\n", "1; \n", "\\d T\n", "SELECT 2\n"])]
    ['SELECT\n1', '\\d T', 'SELECT 2']
    """
    waiting, begun = "", 1
    for number, line in enumerate(lines, 1):
        if not waiting.strip():
            waiting, begun = "", number
            if line.lstrip().startswith(MARK):
                yield Piece(line.strip(), number)
                continue
        waiting += line
        if ";" in line or len(waiting) > MOST_CHARACTERS:
            statements, rest = split_text(waiting)
            if not statements and len(waiting) > MOST_CHARACTERS:
                statements, rest = [waiting], ""  # it is refused as too long, with its position
            for text in statements:
                yield from _piece(text, begun)
                begun += text.count("\n")
            waiting = rest
    yield from _piece(waiting, begun)


def _piece(text: str, line: int) -> Iterator[Piece]:
    stripped = text.strip()
    if stripped and has_words(stripped):
        before = len(text) - len(text.lstrip())
        yield Piece(stripped, line + text.count("\n", 0, before))
