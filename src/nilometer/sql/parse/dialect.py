"""Spark's SQL with the papers' windows: a dialect of sqlglot.

FROM Camera1 A, Camera2 B [RANGE 1 HOUR], Camera3 [ROWS 5] C
WINDOW(A, B) = 5 SECONDS AND DWINDOW(B, C) = 10 S AND WINDOW(A, C) BETWEEN -1 S AND 3 S
EMIT APPEND
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place
from nilometer.model.time import FOREVER, is_time_unit
from nilometer.sql.parse.match_parser import MatchParser
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.read_length import is_missing_unit, is_part_of_length, length_of, no_unit

_EMIT: Final = TokenType.PREWHERE  # a token that Spark's SQL does not use, at the right position
NAMED_WINDOWS: Final = "named_windows"
"""The argument that holds a query's clause `WINDOW w AS (…)`; see `rewrite.put_named_windows`."""
_WINDOW_WORDS: Final = ("RANGE", "ROWS", "PARTITION BY", "UNBOUNDED")
_WINDOW_HINT: Final = (
    "write WINDOW = 5 SECONDS, WINDOW(A, B) = 5 SECONDS or DWINDOW(A, B) = 5 SECONDS"
)
_BEFORE_CONDITIONS: Final = (TokenType.WHERE, TokenType.ON, TokenType.AND, TokenType.OR)
_ROWS_HINT: Final = "write [ROWS 10] or [PARTITION BY k ROWS 10]"
_EMIT_HINT: Final = "write EMIT CHANGES, EMIT CHANGES EVERY 5 SECONDS or EMIT APPEND"
_OPERATORS: Final = (
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD),
    *(TokenType.DIV, TokenType.DPIPE),
)
_PARTITION_HINT: Final = "compute it in a subquery: (SELECT *, … AS p FROM A) S [PARTITION BY p …]"
_FROM_START_HINT: Final = "write SELECT … FROM A WHERE … FROM START"
_RANGE_HINT: Final = "write [RANGE 5 SECONDS]"
_SLIDE_HINT: Final = "write [RANGE 1 HOUR SLIDE 5 MINUTES]"
_CONDITION_HINT: Final = (
    "put conditions in WHERE, and windows in a WINDOW clause before or after it"
)


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
    """``[RANGE w]``, ``[ROWS n]`` or ``[PARTITION BY k ROWS n]`` after a stream.

    ``[UNBOUNDED]`` has no end, ``[RANGE w EXCLUSIVE]`` is a microsecond shorter.
    ``[RANGE w SLIDE s]`` has hopping windows.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "length": False,
        "rows": False,
        "expressions": False,
        "windows": False,
    }


class Emit(exp.Expression):
    """``EMIT APPEND``, ``EMIT CHANGES``, ``EMIT CHANGES EVERY d``."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "every": False}


class FromStart(exp.Expression):
    """``FROM START``, after a query."""

    arg_types: ClassVar[dict[str, bool]] = {}


class NilometerParser(MatchParser):
    """Spark's parser, extended with the windows."""

    parameters: Parameters = Parameters()
    """Values for lengths and row counts that are given as parameters."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        **MatchParser.QUERY_MODIFIER_PARSERS,
        TokenType.WINDOW: lambda self: self._parse_windows(),
        _EMIT: lambda self: ("emit", self._parse_emit()),
        TokenType.FROM: lambda self: ("from_start", self._parse_from_start()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)
    SET_OP_MODIFIERS: ClassVar = {*MatchParser.SET_OP_MODIFIERS, "emit", "from_start"}

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """As sqlglot does, but keys may also be conditions."""
        kinds = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}
        for token, kind in kinds.items():
            if self._match(token):
                keys = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
                grouping: exp.Cube | exp.Rollup = self.expression(kind(expressions=keys))
                return grouping
        return None

    def _parse_grouping_set(self) -> exp.Expr | None:
        nested = self._parse_grouping_sets() or self._parse_cube_or_rollup()
        return nested or self._parse_disjunction()

    def _parse_windows(self) -> tuple[str, Any]:
        """Windows between streams, or named windows for OVER."""
        after = self._tokens[self._index + 2 : self._index + 3]
        if after and after[0].token_type == TokenType.ALIAS:
            return NAMED_WINDOWS, self._parse_window_clause()
        return "windows", self._parse_stream_windows()

    def _parse_stream_windows(self) -> WindowClause:
        first = self._curr
        windows = [self._parse_pair_window()]
        while self._match(TokenType.AND):
            if self._curr.token_type != TokenType.WINDOW:
                self._refuse("expected WINDOW or DWINDOW", hint=_CONDITION_HINT)
            windows.append(self._parse_pair_window())
        return self._placed(WindowClause(expressions=windows), first)

    def _parse_where(self, skip_where_token: bool = False) -> exp.Where | None:
        index = self._index
        where = super()._parse_where(skip_where_token)
        self._refuse_window_in(index)
        return where

    def _parse_join(self, *args: Any, **named: Any) -> exp.Join | None:
        index = self._index
        join = super()._parse_join(*args, **named)
        self._refuse_window_in(index)
        return join

    def _refuse_window_in(self, index: int) -> None:
        """Refuse WHERE … AND WINDOW = 5 S, where the parser stops at the unit."""
        if not is_time_unit(self._curr.text):
            return
        before = self._tokens[index]
        for token in self._tokens[index + 1 : self._index]:
            is_condition = before.token_type in _BEFORE_CONDITIONS
            if token.token_type == TokenType.WINDOW and is_condition:
                self._refuse("a window is not a condition", token, hint=_CONDITION_HINT)
            before = token

    def _parse_pair_window(self) -> PairWindowNode:
        first = self._curr
        self._advance()
        directed = first.text.upper() == "DWINDOW"
        streams = self._parse_pair()
        if directed and not streams:
            self._refuse("expected (first stream, second stream) after DWINDOW", hint=_WINDOW_HINT)
        node = PairWindowNode(kind="dwindow" if directed else "window", expressions=streams)
        if streams and not directed and self._match(TokenType.BETWEEN):
            node.set("kind", "between")
            node.set("low", self._parse_length(_WINDOW_HINT))
            if not self._match(TokenType.AND):
                self._refuse("expected AND and the upper bound of the window")
        elif not self._match(TokenType.EQ):
            more = "" if directed or not streams else ", or BETWEEN"
            self._refuse(f"expected = and a length{more}", hint=_WINDOW_HINT)
        node.set("high", self._parse_length(_WINDOW_HINT))
        return self._placed(node, first)

    def _parse_pair(self) -> list[exp.Expr]:
        """The two streams of a window in parentheses, if given."""
        keyword = self._prev
        if not self._match(TokenType.L_PAREN):
            return []
        streams = self._parse_csv(lambda: self._parse_id_var(any_token=False))
        self._match_r_paren()
        if len(streams) != 2:
            message = f"a window needs two streams, got {len(streams)}"
            self._refuse(message, keyword, hint=_WINDOW_HINT)
        return streams

    def _parse_length(self, hint: str) -> int:
        """A length of time in microseconds; the hint says what to write if it is missing."""
        first, index = self._curr, self._index
        self._match(TokenType.INTERVAL)
        if (name := self._parse_parameter_name()) is not None:
            return self._parameter_length(name, first)
        self._match(TokenType.DASH)
        while is_part_of_length(self._curr, self._prev):
            self._advance()
        if self._curr is first or self._prev.token_type == TokenType.INTERVAL:
            self._refuse("expected a length of time such as 5 SECONDS", hint=hint)
        if is_missing_unit(self._curr, self._prev):
            raise no_unit(self.sql, first, self._curr)
        return length_of(self.sql, self._tokens[index : self._index])

    def _parse_parameter_name(self) -> str | None:
        """The name of a parameter, if one comes next: `:name`."""
        if self._curr.token_type != TokenType.COLON or not self._next.text.isidentifier():
            return None
        self._advance(2)
        return str(self._prev.text)

    def _parameter_length(self, name: str, first: Token) -> int:
        unit = self._curr.text if is_time_unit(self._curr.text) else ""
        if unit:
            self._advance()
        place = Place(self.sql, first.start, self._prev.end + 1)
        return self.parameters.length(name, unit, place)

    def _parse_emit(self) -> Emit:
        first = self._curr
        self._advance()
        kind = first.text.upper().split()[-1]
        every = None
        if self._match_text_seq("EVERY"):
            every = self._parse_length("write EMIT CHANGES EVERY 5 SECONDS")
        return self._placed(Emit(kind=kind, every=every), first)

    def _parse_from_start(self) -> FromStart | None:
        first = self._curr
        if self._next.text.upper() != "START" or self._next.token_type != TokenType.VAR:
            return None
        self._advance(2)
        if self._curr.token_type in self.QUERY_MODIFIER_TOKENS - {_EMIT}:
            self._refuse("FROM START must be at the end of a query", first, hint=_FROM_START_HINT)
        return self._placed(FromStart(), first)

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        """An alias, with a window of the stream before or after it."""
        before = self._parse_stream_window()
        alias = None if self._at_pivot() else super()._parse_table_alias(alias_tokens)
        behind = self._curr
        window = self._parse_stream_window()
        if before is not None and window is not None:
            self._refuse("a stream can have only one window", behind, hint="leave one of them out")
        window = before or window
        if window is not None:
            if self._at_bracket():
                self._refuse("a stream can have only one window", hint="leave one of them out")
            alias = alias or exp.TableAlias()
            alias.set("stream_window", window)
        elif self._at_bracket():
            self._refuse_bracket()
        if alias is not None and alias.name.upper() == "EMIT" and not alias.this.quoted:
            self._refuse("expected APPEND or CHANGES after EMIT", hint=_EMIT_HINT)
        return alias

    def _at_pivot(self) -> bool:
        """Whether PIVOT comes next, which could be a name, too."""
        is_pivot = self._curr.token_type in (TokenType.PIVOT, TokenType.UNPIVOT)
        return is_pivot and self._next.text.upper() in ("(", "INCLUDE", "EXCLUDE")

    def _refuse_bracket(self) -> NoReturn:
        """Refuse [5 SECONDS] and the like after a stream."""
        self._refuse("expected RANGE or ROWS in the window", self._next, hint=self._range_hint())

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if not self._at_stream_window():
            if self._at_bracket() and isinstance(this, exp.Table):
                self._refuse_bracket()
            return super()._parse_bracket(this)
        if not isinstance(this, exp.Table):
            self._refuse("a window must follow a stream in FROM", hint="write FROM A [ROWS 5]")
        return this

    def _at_bracket(self) -> bool:
        return bool(self._curr.token_type == TokenType.L_BRACKET)

    def _at_stream_window(self) -> bool:
        return self._at_bracket() and " ".join(self._next.text.upper().split()) in _WINDOW_WORDS

    def _range_hint(self) -> str:
        """What to write for [5 SECONDS]."""
        index = self._index
        while self._curr and self._curr.token_type != TokenType.R_BRACKET:
            self._advance()
        words = self.sql[self._tokens[index].end + 1 : self._curr.start] if self._curr else ""
        is_length = self._tokens[index + 1].token_type == TokenType.NUMBER
        return f"write [RANGE {words.strip()}]" if words and is_length else _RANGE_HINT

    def _parse_stream_window(self) -> StreamWindow | None:
        if not self._at_stream_window():
            return None
        first = self._curr
        self._advance()
        window = StreamWindow()
        if self._match_text_seq("UNBOUNDED"):
            window.set("length", FOREVER)
        elif self._match(TokenType.RANGE):
            length = self._parse_length(_RANGE_HINT)
            if self._match_text_seq("EXCLUSIVE"):
                length -= 1
            elif self._match_text_seq("SLIDE"):
                lengths = {"SIZE": length, "SLIDE": self._parse_length(_SLIDE_HINT)}
                window.set("windows", self._make_windows(lengths, first, _SLIDE_HINT))
            window.set("length", length)
        else:
            if self._match(TokenType.PARTITION_BY):
                window.set("expressions", self._parse_csv(self._parse_column))
                if self._curr.token_type in _OPERATORS:
                    self._refuse("PARTITION BY must name columns", hint=_PARTITION_HINT)
            window.set("rows", self._parse_count())
        if not self._match(TokenType.R_BRACKET):
            self._refuse("expected ] after the window")
        return self._placed(window, first)

    def _parse_count(self) -> int:
        if not self._match(TokenType.ROWS):
            self._refuse("expected ROWS and a number of rows", hint=_ROWS_HINT)
        first = self._curr
        if (name := self._parse_parameter_name()) is not None:
            return self.parameters.count(name, Place(self.sql, first.start, self._prev.end + 1))
        if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdecimal():
            self._refuse("expected a whole number of rows", hint=_ROWS_HINT)
        count = int(self._curr.text)
        self._advance()
        return count


class Nilometer(Spark):
    """The dialect."""

    class Tokenizer(Spark.Tokenizer):
        # Spark reads '' inside a string as a quote; sqlglot's would start another string.
        STRING_ESCAPES: ClassVar = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']
        KEYWORDS: ClassVar = {
            **Spark.Tokenizer.KEYWORDS,
            "DWINDOW": TokenType.WINDOW,
            "EMIT APPEND": _EMIT,
            "EMIT CHANGES": _EMIT,
            "EXPLAIN": TokenType.VAR,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }
        COMMANDS: ClassVar = {*Spark.Tokenizer.COMMANDS} - {TokenType.SHOW}

    Parser = NilometerParser
