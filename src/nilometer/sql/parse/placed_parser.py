"""Spark's parser, which also records the positions of clauses, calls and subqueries.

sqlglot knows the positions of names only, but an error has to underline GROUP BY as well. It also
accepts some malformed statements (SELECT k, FROM A), which are refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place, SqlSyntaxError
from nilometer.kernels.functions.table import FUNCTIONS
from nilometer.kernels.functions.time_units import UNITS

_READ_BY_OTHERS: Final = frozenset({"abs", "array", "date_trunc", "greatest", "least", "mod"})
"""Functions that other rules recognise by their node types."""
_WITH_UNITS: Final = {
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "dateadd"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"), "datediff"),
}
"""Functions whose first of three operands may be a unit, and what they become then."""


def _unit_or_none(name: str) -> Callable[[list[Any]], exp.Expr]:
    """A builder for calls with or without a unit."""

    def read(operands: list[Any]) -> exp.Expr:
        unit = operands[0].name.upper() if operands and isinstance(operands[0], exp.Column) else ""
        if len(operands) != 3 or unit not in UNITS:
            return exp.Anonymous(this=name, expressions=operands)
        return exp.Anonymous(
            this=_WITH_UNITS[name], expressions=[exp.Var(this=unit), *operands[1:]]
        )

    return read


def _read_date_trunc(operands: list[Any]) -> exp.Expr:
    """A call with a unit in quotes: another text would be read as the name of one."""
    if len(operands) == _PAIR and operands[0].is_string:
        read: exp.Expr = SparkParser.FUNCTIONS["DATE_TRUNC"](operands)
        return read
    return exp.Anonymous(this="date_trunc", expressions=operands)


def _known_calls() -> dict[str, Callable[..., Any]]:
    """Builders of calls; functions that are evaluated here stay as written."""
    plain = {name.upper() for name in FUNCTIONS if name not in _READ_BY_OTHERS}
    known = {name: read for name, read in SparkParser.FUNCTIONS.items() if name not in plain}
    units = {name: _unit_or_none(name) for name in _WITH_UNITS}
    return {**known, **units, "DATE_TRUNC": _read_date_trunc}


_PAIR: Final = 2
Node = TypeVar("Node", bound=exp.Expr)
Element = TypeVar("Element")
Result = TypeVar("Result")
Modifier = tuple[str, Any]

_WRITTEN: Final = "written"
_OPERATOR: Final = "operator"
_COMPLETE: Final = "complete"
_STEPS_PER_TOKEN: Final = 20
_MOST_STEPS_BACK: Final = 20_000


def token_place(sql: str, token: Token | None) -> Place:
    """The position of a token; the end of the text if there is none."""
    if not token or token.end < token.start or not token.text:
        return Place(sql, len(sql.rstrip()), len(sql.rstrip()) + 1)
    return Place(sql, token.start, token.end + 1)


def written(call: exp.Func) -> str:
    """The name of a function as written."""
    return str(call.meta.get(_WRITTEN) or call.sql_name())


def write_as(call: exp.Func, name: str) -> None:
    """Let a function that replaces another be called by the other's name."""
    call.meta[_WRITTEN] = name


def operator_place(operation: exp.SetOperation, sql: str) -> Place:
    """The position of UNION ALL or another set operator between two queries."""
    return Place(sql, *operation.meta[_OPERATOR])


def move_places(tree: exp.Expr, by: int) -> None:
    """Move the positions of a tree by this many characters."""
    for node in tree.walk():
        for key in ("start", "end"):
            if key in node.meta:
                node.meta[key] += by
        if _OPERATOR in node.meta:
            start, end = node.meta[_OPERATOR]
            node.meta[_OPERATOR] = (start + by, end + by)


def _from_keyword(parse: Callable[[Any], Modifier]) -> Callable[[Any], Modifier]:
    """A clause parser whose node begins at the keyword."""

    def run(parser: PlacedParser) -> Modifier:
        first = parser._curr
        key, clause = parse(parser)
        for node in clause if isinstance(clause, list) else [clause]:
            if isinstance(node, exp.Expr):
                parser._placed(node, first)
        return key, clause

    return run


class PlacedParser(SparkParser):
    """Spark's parser, with positions."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        token: _from_keyword(parse) for token, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
    }

    FUNCTIONS: ClassVar = _known_calls()
    FUNCTION_PARSERS: ClassVar = {
        name: parse
        for name, parse in SparkParser.FUNCTION_PARSERS.items()
        if name not in ("CEIL", "FLOOR", "CHAR", "CHR", "INITCAP")
    }

    _steps = 0

    def _placed(self, node: Node, first: Token) -> Node:
        """The node, placed from a token to the one read last."""
        node.meta.update(start=first.start, end=self._prev.end, line=first.line, col=first.col)
        return node

    def _refuse(
        self, message: str, token: Token | None = None, hint: str | None = None
    ) -> NoReturn:
        place = token_place(self.sql, token or self._curr or self._prev)
        raise SqlSyntaxError(message, place=place, hint=hint)

    def _advance(self, times: int = 1) -> None:
        """Move forward or back by words; raises an error if the parser goes in circles."""
        self._steps += 1
        if self._steps > _STEPS_PER_TOKEN * len(self._tokens) + _MOST_STEPS_BACK:
            self._refuse(
                "the statement is too complicated",
                hint="is a bracket unclosed, or are brackets nested too deeply?",
            )
        super()._advance(times)

    def expression(self, instance: Any, *args: Any, **named: Any) -> Any:
        if isinstance(instance, exp.Distinct) and self._prev.token_type == TokenType.DISTINCT:
            self._placed(instance, self._prev)
        return super().expression(instance, *args, **named)

    def _parse_csv(
        self, parse_method: Callable[[], Element | None], sep: TokenType = TokenType.COMMA
    ) -> list[Element]:
        """A list; a trailing comma is an error."""

        def parse() -> Element | None:
            comma = self._prev
            item = parse_method()
            if item is None and comma.token_type == sep and comma is self._prev:
                self.raise_error("Expected something after the comma", comma)
            return item

        return super()._parse_csv(parse, sep)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        select = self._prev
        projections, exclude = super()._parse_projections()
        if not projections:
            self.raise_error(f"Expected columns after {select.text.upper()}", select)
        return projections, exclude

    def _parse_query_modifiers(self, this: Any) -> Any:
        """The clauses of a query; they are read once, so that no join can follow WHERE."""
        if isinstance(this, exp.Select) and this.meta.get(_COMPLETE):
            return this
        parsed = super()._parse_query_modifiers(this)
        if isinstance(parsed, exp.Select):
            parsed.meta[_COMPLETE] = True
        return parsed

    def _parse_select(self, *args: Any, **named: Any) -> exp.Expr | None:
        return self._placed_if(exp.Subquery, super()._parse_select, *args, **named)

    def _parse_paren(self) -> exp.Expr | None:
        return self._placed_if(exp.Subquery, super()._parse_paren)

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        first = self._curr
        node = super()._parse_in(this, alias)
        query = node.args.get("query")
        if query is not None:
            self._placed(query, first)
        return node

    def _parse_star_ops(self) -> exp.Expr | None:
        star = self._prev
        node = super()._parse_star_ops()
        return node if node is None else self._placed(node, star)

    def _parse_placeholder(self) -> exp.Expr | None:
        return self._placed_if(exp.Expr, super()._parse_placeholder)

    def _parse_hint(self) -> exp.Hint | None:
        return self._placed_if(exp.Hint, self._parse_any_hint)

    def _parse_any_hint(self) -> exp.Hint | None:
        """The hint, without names if it is malformed: it has a parser of its own."""
        try:
            hint = super()._parse_hint()
        except SqlglotError:
            hint = exp.Hint(expressions=[])
        return hint if hint is None or isinstance(hint, exp.Hint) else exp.Hint(expressions=[])

    def _parse_table_sample(self, as_modifier: bool = False) -> exp.TableSample | None:
        return self._placed_if(exp.TableSample, super()._parse_table_sample, as_modifier)

    def _parse_pivot(self) -> exp.Pivot | None:
        self._refuse_pivot_without_aggregate()
        return self._placed_if(exp.Pivot, super()._parse_pivot)

    def _refuse_pivot_without_aggregate(self) -> None:
        """Refuse PIVOT (v FOR k IN …)."""
        if self._curr.token_type != TokenType.PIVOT:
            return
        inside = self._tokens[self._index + 2 :]
        for number, token in enumerate(inside):
            if token.token_type == TokenType.L_PAREN:
                return
            if token.token_type == TokenType.FOR:
                value = self.sql[inside[0].start : token.start].strip() if number else "v"
                self._refuse(
                    "PIVOT needs an aggregate, which makes one value of several rows",
                    inside[0],
                    hint=f"write PIVOT (MAX({value}) FOR k IN (1, 2))",
                )

    def _parse_lateral(self) -> exp.Lateral | None:
        return self._placed_if(exp.Lateral, super()._parse_lateral)

    def _parse_function_call(self, *args: Any, **named: Any) -> exp.Expr | None:
        name = self._curr
        try:
            call = self._placed_if(exp.Expr, super()._parse_function_call, *args, **named)
        except ParseError as error:
            if "number of provided arguments" in str(error):
                self.raise_error(f"too many arguments for {name.text}", name)
            raise
        if call is not None:
            called = call.this if isinstance(call, exp.Window | exp.Filter) else call
            called.meta[_WRITTEN] = name.text
        return call

    def _parse_join(self, *args: Any, **named: Any) -> exp.Join | None:
        first = self._curr
        join = super()._parse_join(*args, **named)
        if join is None and self._prev is first and first.token_type == TokenType.COMMA:
            self.raise_error("Expected a stream, a table or a subquery after the comma", first)
        if join is not None and first.token_type != TokenType.COMMA:
            self._placed(join, first)
        return join

    def parse_set_operation(self, *args: Any, **named: Any) -> exp.SetOperation | None:
        first, second = self._curr, self._next
        operation = super().parse_set_operation(*args, **named)
        if operation is not None:
            has_two = second.token_type in (TokenType.ALL, TokenType.DISTINCT)
            operation.meta[_OPERATOR] = (first.start, (second if has_two else first).end + 1)
        return operation

    def _placed_if(
        self, kind: type[Node], parse: Callable[..., Result], *args: Any, **named: Any
    ) -> Result:
        """What a method parses, with its position if it is of that type."""
        first = self._curr
        node = parse(*args, **named)
        if isinstance(node, kind):
            self._placed(node, first)
        return node
