"""Reads the database's own statements word by word; every error has its place."""

from __future__ import annotations

from typing import Final, NoReturn

from sqlglot import exp
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place, SqlError, SqlSyntaxError
from nilometer.sql.parse.dialect import Nilometer, NilometerParser
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.placed_parser import token_place
from nilometer.sql.parse.query_text import require_whole

_SHOWN: Final = 40


class StatementReader(NilometerParser):
    """The dialect's parser, for statements that sqlglot does not know."""

    parameters: Parameters

    @classmethod
    def over(cls, sql: str, tokens: list[Token], parameters: Parameters) -> StatementReader:
        """A reader positioned before the first of these tokens."""
        reader = cls(error_level=ErrorLevel.IMMEDIATE, dialect=Nilometer)
        reader.sql = sql
        reader.parameters = parameters
        reader._chunks = [tokens]
        reader._advance_chunk()
        return reader

    @property
    def current(self) -> Token:
        """The word that comes next."""
        token: Token = self._curr
        return token

    @property
    def at_end(self) -> bool:
        return bool(self._index >= len(self._tokens))

    @property
    def last(self) -> Token:
        """The word that was read last."""
        token: Token = self._prev
        return token

    @property
    def rest(self) -> list[Token]:
        """The remaining words."""
        return list(self._tokens[self._index :])

    def at(self, *words: str) -> bool:
        """Whether these words come next, ignoring case; a quoted name is not a word."""
        following = self._tokens[self._index : self._index + len(words)]
        return [_word(token) for token in following] == list(words)

    def take(self, *words: str) -> bool:
        """Skip these words if they come next."""
        if not self.at(*words):
            return False
        self._advance(len(words))
        return True

    def go_on(self) -> None:
        """Skip the next word."""
        self._advance()

    def expect(self, word: str, what: str, hint: str) -> None:
        """Skip a word that must come next; `what` says what was expected, and where."""
        if not self.take(word):
            self.refuse(f"expected {what}", hint=hint)

    def name(self, what: str, hint: str) -> tuple[str, Place]:
        """A name that must come next, and its place."""
        token = self.current
        if self.at_end or not self._is_name(token):
            self.refuse(f"expected {what}", hint=hint)
        self._advance()
        if self.at("."):
            place = Place(self.sql, token.start, self.current.end + 1)
            raise SqlSyntaxError(
                "a name cannot contain a dot",
                place=place,
                hint=f"write {token.text} alone, or in backticks",
            )
        return token.text, token_place(self.sql, token)

    def _is_name(self, token: Token) -> bool:
        return token.token_type in {*self.ID_VAR_TOKENS, TokenType.IDENTIFIER}

    def length(self, what: str, minimum: int, hint: str) -> int:
        """A length of time that must come next, in microseconds, at least `minimum`."""
        first = self.current
        length = self._parse_length(hint)
        if length < minimum:
            place = Place(self.sql, first.start, self._prev.end + 1)
            few = "cannot be negative" if minimum == 0 else "must be greater than zero"
            raise SqlError(
                f"{what} {few}",
                place=place,
                detail=f"got {self.sql[place.start : place.end]}",
                hint=hint,
            )
        return int(length)

    def value(self, what: str, hint: str) -> exp.Expr:
        """An expression that must come next."""
        if self.at_end or self.current.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.refuse(f"expected {what}", hint=hint)
        tree = self._parse_disjunction()
        if not isinstance(tree, exp.Expr):
            self.refuse(f"expected {what}", hint=hint)
        require_whole(tree, self.sql)
        return self.parameters.bind(tree, self.sql)

    def type_tree(self) -> exp.DataType | None:
        """A type, if one comes next."""
        tree = None if self.at_end else self._parse_types(allow_identifiers=False)
        return tree if isinstance(tree, exp.DataType) else None

    def finish(self, hint: str) -> None:
        """Refuse words after the end of the statement."""
        if not self.at_end:
            self.refuse("expected the end of the statement", hint=hint)

    def refuse(self, message: str, hint: str, at: Token | None = None) -> NoReturn:
        """Raise an error: what was expected, what was found instead, and what to write."""
        token = at or (None if self.at_end else self.current)
        detail = "got nothing" if token is None else f"got {self._shown(token)}"
        place = token_place(self.sql, token) if token is not None else self._behind
        raise SqlSyntaxError(message, place=place, detail=detail, hint=hint)

    def _shown(self, token: Token) -> str:
        text = self.sql[token.start : token.end + 1]
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    @property
    def _behind(self) -> Place:
        """The position after the last word."""
        end = self._tokens[-1].end + 1 if self._tokens else 0
        return Place(self.sql, end, end + 1)


def _word(token: Token) -> str:
    is_quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if is_quoted else token.text.upper()
