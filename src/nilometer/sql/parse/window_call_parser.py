"""Time windows in FROM: ``TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' MINUTE)``."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.model.time_windows import (
    MOST_OVERLAPS,
    RESOLUTION,
    HoppingWindows,
    SessionWindows,
    TimeWindows,
)
from nilometer.sql.parse.call_parser import CallParser

_ORDERS: Final = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
"""The arguments of each function, in order."""
_OPTIONAL: Final = ("TIMECOL", "OFFSET")
_LENGTHS: Final = ("SIZE", "SLIDE", "OFFSET", "GAP")
_HINTS: Final = {
    "TUMBLE": "write TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "HOP": (
        "write HOP(TABLE S, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES): the "
        "interval between windows, then their length"
    ),
    "SESSION": "write SESSION(TABLE S PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTES)",
}


class WindowCall(exp.Expression, exp.Func):
    """Time windows over the rows of an entry of FROM."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "input": True,
        "windows": True,
        "time": False,
        "expressions": False,
    }

    @property
    def function(self) -> str:
        """The name of the function in upper case."""
        return str(self.args["this"])

    @property
    def windows(self) -> TimeWindows:
        windows: TimeWindows = self.args["windows"]
        return windows


class EndsCall(exp.Expression, exp.Func):
    """The answers of a query over windows, as a stream: each comes when its window ends."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True}


class WindowCallParser(CallParser):
    """A parser for the time windows of the standard and of Flink."""

    def _parse_table_parts(self, *args: Any, **named: Any) -> exp.Table | exp.Dot | None:
        if self._next.token_type != TokenType.L_PAREN or self._curr.text.upper() not in _ORDERS:
            return super()._parse_table_parts(*args, **named)
        if named.get("fast"):
            return None
        first = self._curr
        return self._placed(exp.Table(this=self._parse_window_call()), first)

    def _parse_window_call(self) -> WindowCall:
        first = self._curr
        name = first.text.upper()
        self._advance(2)
        arguments: dict[str, Any] = {}
        order = list(_ORDERS[name])
        while self._curr.token_type != TokenType.R_PAREN:
            self._parse_window_argument(name, order, arguments)
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            self._refuse(f"expected a comma or ) in {name}", hint=_HINTS[name])
        missing = [one for one in order if one not in _OPTIONAL]
        if missing:
            self._refuse(f"{name} needs {_ARGUMENTS[missing[0]]}", first, hint=_HINTS[name])
        arguments["windows"] = self._windows(name, arguments, first)
        return self._placed(WindowCall(this=name, **arguments), first)

    def _parse_window_argument(
        self, name: str, order: list[str], arguments: dict[str, Any]
    ) -> None:
        wanted = order[0] if order else None
        if self._next.token_type == TokenType.FARROW:
            wanted = self._curr.text.upper()
            if wanted not in order:
                self._refuse(f"{name} has no argument {wanted} here", hint=_HINTS[name])
            self._advance(2)
        elif wanted == "TIMECOL" and self._curr.text.upper() != "DESCRIPTOR":
            order.remove("TIMECOL")
            wanted = order[0]
        if wanted is None:
            self._refuse(f"{name} has too many arguments", hint=_HINTS[name])
        order.remove(wanted)
        match wanted:
            case "DATA":
                arguments["input"] = self._parse_window_input(name)
                arguments["expressions"] = self._parse_sessions_of(name)
            case "TIMECOL":
                arguments["time"] = self._parse_descriptor(name)
            case _:
                arguments[wanted] = self._parse_length(_HINTS[name])

    def _parse_window_input(self, name: str) -> exp.Expr:
        first = self._curr
        self._match(TokenType.TABLE)
        table = self._parse_table()
        if table is None:
            self._refuse(f"{name} needs {_ARGUMENTS['DATA']}", first, hint=_HINTS[name])
        return table

    def _parse_sessions_of(self, name: str) -> list[exp.Expr]:
        first = self._curr
        if not self._match(TokenType.PARTITION_BY):
            return []
        if name != "SESSION":
            self._refuse(
                f"the windows of {name} cannot be partitioned",
                first,
                hint="leave out PARTITION BY, and group by the column",
            )
        if self._match(TokenType.L_PAREN):
            columns: list[exp.Expr] = self._parse_csv(self._parse_column)
            self._match_r_paren()
            return columns
        columns = [self._parse_session_key(name)]
        while self._curr.token_type == TokenType.COMMA and self._at_another_column():
            self._advance()
            columns.append(self._parse_session_key(name))
        return columns

    def _parse_session_key(self, name: str) -> exp.Expr:
        key = self._parse_column()
        if key is None:
            self._refuse("expected a column after PARTITION BY", hint=_HINTS[name])
        return key

    def _at_another_column(self) -> bool:
        """Whether a comma is followed by another column, not by the next argument."""
        word, behind = self._next, self._tokens[self._index + 2 : self._index + 3]
        is_named = bool(behind) and behind[0].token_type == TokenType.FARROW
        is_length = word.token_type in (TokenType.NUMBER, TokenType.INTERVAL)
        return not is_named and not is_length and word.text.upper() != "DESCRIPTOR"

    def _parse_descriptor(self, name: str) -> exp.Expr:
        if self._curr.text.upper() != "DESCRIPTOR" or self._next.token_type != TokenType.L_PAREN:
            self._refuse("expected DESCRIPTOR and the column of the time", hint=_HINTS[name])
        self._advance(2)
        column = self._parse_column()
        self._match_r_paren()
        if column is None:
            self._refuse("expected the column of the time", hint=_HINTS[name])
        return column

    def _windows(self, name: str, arguments: dict[str, Any], first: Any) -> TimeWindows:
        lengths: dict[str, int] = {key: arguments.pop(key) for key in _LENGTHS if key in arguments}
        return self._make_windows(lengths, first, _HINTS[name])

    def _make_windows(self, lengths: dict[str, int], first: Any, hint: str) -> TimeWindows:
        """Windows of these lengths; raises an error for impossible ones."""
        for key, length in lengths.items():
            if length % RESOLUTION or (length <= 0 and key != "OFFSET"):
                self._refuse(
                    "the length of a window must be a whole number of milliseconds, at least 1",
                    first,
                    hint=hint,
                )
        if "GAP" in lengths:
            return SessionWindows(lengths["GAP"])
        size = lengths["SIZE"]
        slide = lengths.get("SLIDE", size)
        if size // slide >= MOST_OVERLAPS:
            self._refuse(
                f"a row may belong to at most {MOST_OVERLAPS:,} windows",
                first,
                hint="use a longer hop",
            )
        return HoppingWindows(size, slide, lengths.get("OFFSET", 0) % slide)


_ARGUMENTS: Final = {
    "DATA": "an input: a stream or a query",
    "SIZE": "the length of its windows",
    "SLIDE": "how often a window begins",
    "GAP": "the gap after which a session ends",
}
