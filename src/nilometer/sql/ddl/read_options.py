"""WITH (name = value, …)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.ddl.parts import GivenOption
from nilometer.sql.ddl.statement_reader import StatementReader

_HINT: Final = "write WITH (interval = '5s', retries = 3)"
_ENDS: Final = (TokenType.COMMA, TokenType.R_PAREN, TokenType.L_PAREN, TokenType.EQ)


def read_options(reader: StatementReader) -> Mapping[str, str]:
    """The options by lower-case name, with their values as text."""
    return {name: one.value for name, one in read_placed_options(reader, "WITH").items()}


def read_placed_options(
    reader: StatementReader, word: str, hint: str = _HINT
) -> dict[str, GivenOption]:
    """The same with their positions; they follow `word`, which has been read."""
    options: dict[str, GivenOption] = {}
    reader.expect("(", f"( after {word}", hint)
    while True:
        name, place = _name(reader, hint)
        if name in options:
            raise SqlSyntaxError(
                f"the option {name} is given twice", place=place, hint="leave one of them out"
            )
        reader.expect("=", f"= after the option {name}", hint)
        value = _value(reader, name, hint)
        options[name] = GivenOption(value, Place(reader.sql, place.start, reader.last.end + 1))
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the option", hint)
    return options


def _words(reader: StatementReader) -> list[Token]:
    """The words up to the next comma, parenthesis or equals sign."""
    words: list[Token] = []
    while not reader.at_end and reader.current.token_type not in _ENDS:
        words.append(reader.current)
        reader.go_on()
    return words


def _name(reader: StatementReader, hint: str) -> tuple[str, Place]:
    """A word, words joined by dots, or a string."""
    words = _words(reader)
    if not words:
        reader.refuse("expected the name of an option", hint=hint)
    place = Place(reader.sql, words[0].start, words[-1].end + 1)
    if len(words) == 1 and words[0].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return words[0].text.lower(), place
    text = reader.sql[place.start : place.end].lower()
    if not text.replace(".", "").replace("_", "").replace("-", "").isalnum():
        raise SqlSyntaxError(
            "expected the name of an option", place=place, detail=f"got {text}", hint=hint
        )
    return text, place


def _secret(reader: StatementReader) -> str:
    """The reference to a secret, as stored."""
    hint = "write secret('NAME') for the environment variable NILOMETER_SECRET_NAME"
    token = reader.current
    if reader.at_end or token.token_type != TokenType.STRING or not _is_plain(token.text):
        reader.refuse("expected the name of a secret in quotes", hint=hint)
    reader.go_on()
    reader.expect(")", ") after the name of the secret", hint)
    return f"secret('{token.text}')"


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("_", "").isalnum() and name[0].isalpha()


def _value(reader: StatementReader, name: str, hint: str) -> str:
    """A string, number, word or length of time, as written; or secret('NAME')."""
    if reader.take("SECRET", "("):
        return _secret(reader)
    words = _words(reader)
    if not words:
        reader.refuse(f"expected the value of the option {name}", hint=hint)
    if len(words) == 1 and words[0].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return words[0].text
    place = Place(reader.sql, words[0].start, words[-1].end + 1)
    if any(word.token_type == TokenType.STRING for word in words):
        raise SqlSyntaxError(
            f"the option {name} has one value",
            place=place,
            detail=f"got {reader.sql[place.start : place.end]}",
            hint=hint,
        )
    return " ".join(reader.sql[place.start : place.end].split())
