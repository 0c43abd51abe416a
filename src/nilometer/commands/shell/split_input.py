"""Text as it comes in, cut into statements and into commands of the shell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from nilometer.errors import SqlSyntaxError
from nilometer.sql.parse.query_text import MOST_CHARACTERS, tokenize

MARK = "\\"
"""With which commands of the shell begin."""


@dataclass(frozen=True)
class Piece:
    r"""A statement without its semicolon, or a command such as \d, and the line where it begins."""

    text: str
    line: int = 1

    @property
    def is_command(self) -> bool:
        return self.text.startswith(MARK)


def split_text(text: str) -> tuple[list[str], str]:
    r"""The statements of a text that a semicolon ends, and what follows the last of these.

    >>> split_text("SELECT ';' AS a; SELECT 2;\nSELECT")
    (["SELECT ';' AS a", ' SELECT 2'], '\nSELECT')
    """
    try:
        tokens = tokenize(text)
    except SqlSyntaxError as error:
        return _split_before(text, error)
    found, start = [], 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append(text[start : token.start])
            start = token.end + 1
    return found, text[start:]


def _split_before(text: str, error: SqlSyntaxError) -> tuple[list[str], str]:
    """The statements before a quote or comment that is left open."""
    if error.place is None or not error.place.start:
        return [], text
    found, rest = split_text(text[: error.place.start])
    return found, rest + text[error.place.start :]


def is_complete(text: str) -> bool:
    r"""Whether what was typed can be run: a command, nothing, or all up to a semicolon.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';"), is_complete("SELECT 1;"), is_complete("")
    (False, False, True, True)
    """
    if not text.strip() or text.lstrip().startswith(MARK):
        return True
    return not has_words(split_text(text)[1])


def has_words(text: str) -> bool:
    """Whether there is more than space and comments in a text."""
    try:
        return bool(tokenize(text))
    except SqlSyntaxError:
        return True


def read_pieces(lines: Iterable[str]) -> Iterator[Piece]:
    r"""Statements and commands as they are complete; what is left in the end is one more.

    A command stands on a line of its own, between statements.

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
            found, rest = split_text(waiting)
            if not found and len(waiting) > MOST_CHARACTERS:
                found, rest = [waiting], ""  # it is refused as too long, with its place
            for text in found:
                yield from _piece(text, begun)
                begun += text.count("\n")
            waiting = rest
    yield from _piece(waiting, begun)


def _piece(text: str, line: int) -> Iterator[Piece]:
    stripped = text.strip()
    if stripped and has_words(stripped):
        before = len(text) - len(text.lstrip())
        yield Piece(stripped, line + text.count("\n", 0, before))
