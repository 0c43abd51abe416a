"""Table functions in FROM: ``PERIODS(Meter [RANGE 7 DAYS], by => sensor, value => P)``."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.mining.registry import MODULES
from nilometer.model.time import is_time_unit
from nilometer.sql.parse.placed_parser import PlacedParser

_CALL_HINT: Final = "write PEAKS(Spectra, counts => values): the input first, then name => value"


class TableCall(exp.Expression, exp.Func):
    """A table function: its name, its input as an entry of FROM, and its other arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": False}

    @property
    def function(self) -> str:
        """The name of the function in upper case."""
        return str(self.args["this"])


class NamedArgument(exp.Expression):
    """``name => value``; the value is an expression, a `Length` or a query in parentheses."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Length(exp.Expression):
    """A length of time in microseconds."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class CallParser(PlacedParser):
    """Spark's parser, extended with table functions; a subclass with windows reads lengths."""

    def _parse_length(self, hint: str) -> int:
        raise NotImplementedError

    def _parse_table_parts(self, *args: Any, **named: Any) -> exp.Table | exp.Dot | None:
        if self._next.token_type != TokenType.L_PAREN or self._curr.text.upper() not in MODULES:
            return super()._parse_table_parts(*args, **named)
        if named.get("fast"):
            return None
        first = self._curr
        return self._placed(exp.Table(this=self._parse_table_call()), first)

    def _parse_table_call(self) -> TableCall:
        first = self._curr
        name = first.text.upper()
        self._advance(2)
        if self._curr.token_type in (TokenType.R_PAREN, TokenType.FARROW):
            self._refuse(f"{name} needs an input: a stream or a query", hint=_CALL_HINT)
        source = self._parse_input(name)
        arguments = []
        while self._match(TokenType.COMMA):
            arguments.append(self._parse_named_argument())
        if not self._match(TokenType.R_PAREN):
            self._refuse_argument()
        return self._placed(TableCall(this=name, input=source, expressions=arguments), first)

    def _parse_input(self, name: str) -> exp.Expr:
        first = self._curr
        if self._next.token_type == TokenType.FARROW:
            self._refuse(f"the first argument of {name} is its input", hint=_CALL_HINT)
        source = self._parse_table()
        if source is None:
            self._refuse(f"{name} needs an input: a stream or a query", first, hint=_CALL_HINT)
        return source

    def _parse_named_argument(self) -> NamedArgument:
        first = self._curr
        if self._next.token_type != TokenType.FARROW:
            self._refuse("expected a named argument: name => value", hint=_CALL_HINT)
        self._advance(2)
        value = self._parse_argument_value()
        if value is None:
            self._refuse(f"expected a value of {first.text}", hint=_CALL_HINT)
        return self._placed(NamedArgument(this=first.text.lower(), expression=value), first)

    def _parse_argument_value(self) -> exp.Expr | None:
        first = self._curr
        is_number = first.token_type == TokenType.NUMBER and is_time_unit(self._next.text)
        if first.token_type == TokenType.INTERVAL or is_number:
            length = self._parse_length("write every => 5 SECONDS")
            return self._placed(Length(this=length), first)
        in_brackets = first.token_type == TokenType.L_PAREN
        if in_brackets and self._next.token_type in (TokenType.SELECT, TokenType.WITH):
            self._advance()
            query = self._parse_select()
            self._match_r_paren()
            return query if query is None else self._placed(query, first)
        value = self._parse_disjunction()
        is_signed = isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal)
        # sqlglot does not record the positions of these.
        is_unplaced = is_signed or isinstance(value, exp.Null | exp.Boolean)
        return self._placed(value, first) if value is not None and is_unplaced else value

    def _refuse_argument(self) -> NoReturn:
        if self._curr.token_type == TokenType.FARROW:
            self._refuse("a name must precede =>", hint=_CALL_HINT)
        self._refuse("expected a comma or ) in the arguments of a table function", hint=_CALL_HINT)
