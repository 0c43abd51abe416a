"""Lengths of time in statements: 5 SECONDS, INTERVAL '5' SECOND, '5s', 1 HOUR 30 M."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import DurationError, Place, SqlSyntaxError
from nilometer.model.time import is_time_unit, parse_signed_duration

_EXAMPLES: Final = "write a number and a unit, such as 5 SECONDS, 0.8 S or 1 HOUR 30 MINUTES"
_CALENDAR: Final = ("MONTH", "MONTHS", "QUARTER", "QUARTERS", "YEAR", "YEARS")


def is_part_of_length(token: Token, before: Token) -> bool:
    """Whether a token can continue a length: a number, a string, or a unit of time."""
    if token.token_type in (TokenType.NUMBER, TokenType.STRING):
        return True
    if token.token_type == TokenType.DCOLON:  # 10s reads as ten, a SMALLINT
        return token.start == before.start
    if token.token_type == TokenType.DOT:  # .25
        return before.token_type != TokenType.NUMBER
    text = token.text.lower()
    return bool(text) and is_time_unit(text.lstrip("0123456789."))


def is_missing_unit(token: Token, before: Token) -> bool:
    """Whether a token after a number, where a unit should be, is not a unit."""
    is_number = before.token_type in (TokenType.NUMBER, TokenType.STRING)
    return is_number and not before.text[-1:].isalpha() and token.token_type == TokenType.VAR


def no_unit(sql: str, first: Token, unit: Token) -> SqlSyntaxError:
    """The error for an unknown unit such as 5 PARSECS."""
    name = unit.text.upper()
    is_calendar = name in _CALENDAR
    return SqlSyntaxError(
        _no_length(name) if is_calendar else f"unknown unit of time {name}",
        place=Place(sql, first.start, unit.end + 1),
        detail=f"got {sql[first.start : unit.end + 1]}",
        hint="use days, such as 30 DAYS" if is_calendar else _EXAMPLES,
    )


def _no_length(unit: str) -> str:
    return f"{unit} have no fixed length" if unit.endswith("S") else f"a {unit} has no fixed length"


def length_of(sql: str, tokens: Sequence[Token]) -> int:
    """The length in microseconds given by consecutive tokens."""
    start, end = tokens[0].start, tokens[-1].end + 1
    try:
        return parse_signed_duration(_without_quotes(sql, tokens))
    except DurationError as error:
        raise SqlSyntaxError(
            error.message.replace("a duration", "the length of time"),
            place=Place(sql, start, end),
            detail=f"got {sql[start:end]}",
            hint=_hint(error),
        ) from None


def _hint(error: DurationError) -> str | None:
    if "exceed" in error.message:
        return "write a shorter one, such as 30 DAYS"
    return _EXAMPLES if error.message.startswith("cannot read") else None


def _without_quotes(sql: str, tokens: Sequence[Token]) -> str:
    characters = list(sql[tokens[0].start : tokens[-1].end + 1])
    for token in tokens:
        if token.token_type == TokenType.STRING:
            for place in (token.start, token.end):
                characters[place - tokens[0].start] = " "
    return "".join(characters)
