"""Spark's SQL with the papers' windows: a dialect of sqlglot.

FROM Camera1 A, Camera2 B [RANGE 1 HOUR], Camera3 [ROWS 5] C
WINDOW(A, B) = 5 SECONDS AND DWINDOW(B, C) = 10 S AND WINDOW(A, C) BETWEEN -1 S AND 3 S
EMIT APPEND
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import DurationError, Place, SqlSyntaxError
from nilometer.model.time import is_time_unit, parse_signed_duration

_EMIT: Final = TokenType.PREWHERE  # a token that Spark's SQL does not have, in the right place
_STEPS_PER_TOKEN: Final = 20
_MOST_STEPS_BACK: Final = 20_000
_WINDOW_WORDS: Final = ("RANGE", "ROWS", "PARTITION BY")
Node = TypeVar("Node", bound=exp.Expression)

_VALUES: Final = (TokenType.NUMBER, TokenType.STRING)


class WindowClause(exp.Expression):
    """``WINDOW … AND DWINDOW …``: the windows of a query, in order."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class PairWindowNode(exp.Expression):
    """``WINDOW(A, B) = w`` (kind "window"), ``DWINDOW`` ("dwindow"), ``BETWEEN`` ("between").

    Without streams it is ``WINDOW = w``. Lengths are microseconds.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "expressions": False,
        "low": False,
        "high": True,
    }


class StreamWindow(exp.Expression):
    """``[RANGE w]``, ``[ROWS n]`` or ``[PARTITION BY k ROWS n]`` behind a stream."""

    arg_types: ClassVar[dict[str, bool]] = {"length": False, "rows": False, "expressions": False}


class Emit(exp.Expression):
    """``EMIT APPEND``, ``EMIT CHANGES``, ``EMIT CHANGES EVERY d``."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "every": False}


class NilometerParser(SparkParser):
    """Spark's parser, taught the windows."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        **SparkParser.QUERY_MODIFIER_PARSERS,
        TokenType.WINDOW: lambda self: ("windows", self._parse_stream_windows()),
        _EMIT: lambda self: ("emit", self._parse_emit()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)

    _steps = 0

    def _advance(self, times: int = 1) -> None:
        """Go on by a word, or back; a text on which the parser goes in circles is given up."""
        self._steps += 1
        if self._steps > _STEPS_PER_TOKEN * len(self._tokens) + _MOST_STEPS_BACK:
            raise SqlSyntaxError(
                "the statement is too complicated",
                place=token_place(self.sql, self._curr or self._prev),
                hint="are brackets left open, or nested in each other?",
            )
        super()._advance(times)

    def _parse_stream_windows(self) -> WindowClause:
        first = self._curr
        windows = [self._parse_pair_window()]
        while self._match(TokenType.AND):
            if self._curr.token_type != TokenType.WINDOW:
                self._refuse("expected WINDOW or DWINDOW")
            windows.append(self._parse_pair_window())
        return self._placed(WindowClause(expressions=windows), first)

    def _parse_pair_window(self) -> PairWindowNode:
        first = self._curr
        self._advance()
        directed = first.text.upper() == "DWINDOW"
        streams = []
        if self._match(TokenType.L_PAREN):
            streams = self._parse_csv(lambda: self._parse_id_var(any_token=False))
            self._match_r_paren()
            if len(streams) != 2:
                self._refuse(f"a window stands between two streams, got {len(streams)}", first)
        elif directed:
            self._refuse("expected (first stream, second stream) after DWINDOW")
        node = PairWindowNode(kind="dwindow" if directed else "window", expressions=streams)
        if streams and not directed and self._match(TokenType.BETWEEN):
            node.set("kind", "between")
            node.set("low", self._parse_length())
            if not self._match(TokenType.AND):
                self._refuse("expected AND and the upper bound of the window")
        elif not self._match(TokenType.EQ):
            self._refuse(
                "expected = and a length"
                if directed or not streams
                else "expected = and a length, or BETWEEN"
            )
        node.set("high", self._parse_length())
        return self._placed(node, first)

    def _parse_length(self) -> int:
        """A length of time in microseconds; the text is read as everywhere else."""
        first = self._curr
        self._match(TokenType.INTERVAL)
        self._match(TokenType.DASH)
        while self._is_part_of_length():
            self._advance()
        if self._curr is first or self._prev.token_type == TokenType.INTERVAL:
            self._refuse("expected a length of time such as 5 SECONDS")
        try:
            return parse_signed_duration(self.sql[first.start : self._prev.end + 1])
        except DurationError as error:
            place = Place(self.sql, first.start, self._prev.end + 1)
            raise SqlSyntaxError(
                error.message, place=place, detail=error.detail, hint=error.hint
            ) from None

    def _is_part_of_length(self) -> bool:
        token = self._curr
        if token.token_type in _VALUES:
            return True
        if token.token_type == TokenType.DCOLON:  # 10s reads as ten, a SMALLINT
            return token.start == self._prev.start
        text = token.text.lower()
        return bool(text) and is_time_unit(text.lstrip("0123456789."))

    def _parse_emit(self) -> Emit:
        first = self._curr
        self._advance()
        kind = first.text.upper().split()[-1]
        every = self._parse_length() if self._match_text_seq("EVERY") else None
        return self._placed(Emit(kind=kind, every=every), first)

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        """An alias, with a window of the stream before or behind it."""
        window = self._parse_stream_window()
        alias = super()._parse_table_alias(alias_tokens)
        window = window or self._parse_stream_window()
        if window is not None:
            alias = alias or exp.TableAlias()
            alias.set("stream_window", window)
        return alias

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if not self._at_stream_window():
            return super()._parse_bracket(this)
        if not isinstance(this, exp.Table):
            self._refuse("a window stands behind a stream in FROM")
        return this

    def _at_stream_window(self) -> bool:
        opens = self._curr.token_type == TokenType.L_BRACKET
        return opens and " ".join(self._next.text.upper().split()) in _WINDOW_WORDS

    def _parse_stream_window(self) -> StreamWindow | None:
        if not self._at_stream_window():
            return None
        first = self._curr
        self._advance()
        window = StreamWindow()
        if self._match(TokenType.RANGE):
            window.set("length", self._parse_length())
        else:
            if self._match(TokenType.PARTITION_BY):
                window.set("expressions", self._parse_csv(self._parse_column))
            if not self._match(TokenType.ROWS):
                self._refuse("expected ROWS and a number of rows")
            if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdecimal():
                self._refuse("expected a whole number of rows")
            window.set("rows", int(self._curr.text))
            self._advance()
        if not self._match(TokenType.R_BRACKET):
            self._refuse("expected ] after the window")
        return self._placed(window, first)

    def _refuse(self, message: str, token: Token | None = None) -> NoReturn:
        place = token_place(self.sql, token or self._curr or self._prev)
        raise SqlSyntaxError(message, place=place, hint=_hint(message))

    def _placed(self, node: Node, first: Token) -> Node:
        node.meta.update(start=first.start, end=self._prev.end, line=first.line, col=first.col)
        return node


def token_place(sql: str, token: Token | None) -> Place:
    """Where a token stands; the end of the text if there is none."""
    if not token or token.end < token.start or not token.text:
        return Place(sql, len(sql.rstrip()), len(sql.rstrip()) + 1)
    return Place(sql, token.start, token.end + 1)


def _hint(message: str) -> str | None:
    if "ROWS" in message or "rows" in message:
        return "write [ROWS 10] or [PARTITION BY k ROWS 10]"
    if "length" in message or "streams" in message or "DWINDOW" in message:
        return "write WINDOW = 5 SECONDS, WINDOW(A, B) = 5 SECONDS or DWINDOW(A, B) = 5 SECONDS"
    return None


class Nilometer(Spark):
    """The dialect."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar = {
            **Spark.Tokenizer.KEYWORDS,
            "DWINDOW": TokenType.WINDOW,
            "EMIT APPEND": _EMIT,
            "EMIT CHANGES": _EMIT,
            "EXPLAIN": TokenType.VAR,
        }

    Parser = NilometerParser
