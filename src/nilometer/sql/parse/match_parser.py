"""MATCH_RECOGNIZE after an entry of FROM (SQL:2016), with WITHIN as in Flink."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.model.row_patterns import Pattern
from nilometer.sql.parse.pattern_text import PatternText, variable_name
from nilometer.sql.parse.window_call_parser import WindowCallParser

SEMANTICS: Final = "semantics"
"""The metadata key by which a call notes that RUNNING or FINAL precedes it."""
NAVIGATION: Final = ("FIRST", "LAST", "PREV", "NEXT")
_HINT: Final = (
    "write S MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(B.v) AS v "
    "PATTERN (A B) WITHIN INTERVAL '5' SECONDS DEFINE B AS B.v > A.v)"
)
_SKIP_HINT: Final = (
    "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST A, TO LAST A or TO A"
)
_WITHIN_HINT: Final = "write WITHIN INTERVAL '5' SECONDS"
_EMPTY: Final = ("SHOW", "OMIT", "WITH")


class MatchCall(exp.Expression, exp.Func):
    """The matches of a pattern in the rows of an entry of FROM."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "input": True,
        "partition": False,
        "order": False,
        "measures": False,
        "all_rows": False,
        "skip": True,
        "pattern": True,
        "within": False,
        "subsets": False,
        "define": False,
    }

    @property
    def pattern(self) -> Pattern:
        pattern: Pattern = self.args["pattern"]
        return pattern


class Skip(exp.Expression):
    """Where to resume after a match: "PAST", "NEXT", or "FIRST" or "LAST" row of a variable."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "this": False}


class Subset(exp.Expression):
    """``SUBSET U = (A, B)``: a name for the rows of several variables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class Definition(exp.Expression):
    """``A AS condition``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class MatchParser(WindowCallParser):
    """A parser for row patterns."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        token: parse
        for token, parse in WindowCallParser.QUERY_MODIFIER_PARSERS.items()
        if token != TokenType.MATCH_RECOGNIZE
    }
    _in_match = False

    def _parse_table(self, *args: Any, **named: Any) -> exp.Expr | None:
        first = self._curr
        table = super()._parse_table(*args, **named)
        while table is not None and self._curr.token_type == TokenType.MATCH_RECOGNIZE:
            table = self._parse_match(table)
            self._placed(table, first)
            if named.get("joins"):
                for join in self._parse_joins():
                    table.append("joins", join)
        return table

    def _parse_match(self, source: exp.Expr) -> exp.Table:
        first = self._curr
        self._advance()
        if not self._match(TokenType.L_PAREN):
            self._refuse("expected ( after MATCH_RECOGNIZE", hint=_HINT)
        before, self._in_match = self._in_match, True
        call = MatchCall(this="MATCH_RECOGNIZE", input=source, **self._parse_match_parts())
        self._in_match = before
        if not self._match(TokenType.R_PAREN):
            self._refuse("this was not expected here in MATCH_RECOGNIZE", hint=_HINT)
        table = exp.Table(this=self._placed(call, first))
        table.set("alias", self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS))
        table.set("pivots", self._parse_pivots())
        return table

    def _parse_match_parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"partition": self._parse_partition_by()}
        parts["order"] = self._parse_order()
        if self._match_text_seq("MEASURES"):
            parts["measures"] = self._parse_csv(self._parse_measure)
        parts["all_rows"] = self._parse_rows_per_match()
        parts["skip"] = self._parse_skip()
        parts["pattern"] = self._parse_pattern()
        if self._match_text_seq("WITHIN"):
            parts["within"] = self._parse_length(_WITHIN_HINT)
        if self._match_text_seq("SUBSET"):
            parts["subsets"] = self._parse_csv(self._parse_subset)
        if self._match_text_seq("DEFINE"):
            parts["define"] = self._parse_csv(self._parse_definition)
        return parts

    def _parse_measure(self) -> exp.Expr:
        first = self._curr
        value = self._parse_disjunction()
        if value is None:
            self._refuse("expected a measure such as LAST(A.v) AS v", first, hint=_HINT)
        if not self._match(TokenType.ALIAS):
            self._refuse("a measure needs a name", hint="write LAST(A.v) AS v")
        name = self._parse_id_var(any_token=True)
        if name is None:
            self._refuse("expected the name of the measure", hint="write LAST(A.v) AS v")
        return self._placed(exp.Alias(this=value, alias=name), first)

    def _parse_rows_per_match(self) -> bool:
        all_rows = False
        if self._match_text_seq("ALL", "ROWS", "PER", "MATCH"):
            all_rows = True
        elif not self._match_text_seq("ONE", "ROW", "PER", "MATCH"):
            return False
        if self._curr.text.upper() in _EMPTY:
            self._refuse(
                "empty matches and unmatched rows are never shown",
                hint="leave this out",
            )
        return all_rows

    def _parse_skip(self) -> Skip:
        first = self._curr
        if not self._match_text_seq("AFTER", "MATCH"):
            return Skip(kind="PAST")
        if not self._match_text_seq("SKIP"):
            self._refuse("expected SKIP after AFTER MATCH", hint=_SKIP_HINT)
        if self._match_text_seq("PAST", "LAST", "ROW"):
            return self._placed(Skip(kind="PAST"), first)
        if self._match_text_seq("TO", "NEXT", "ROW"):
            return self._placed(Skip(kind="NEXT"), first)
        if not self._match_text_seq("TO"):
            self._refuse("expected PAST LAST ROW or TO …", hint=_SKIP_HINT)
        kind = "LAST"
        if self._match_texts(("FIRST", "LAST")):
            kind = self._prev.text.upper()
        return self._placed(Skip(kind=kind, this=self._parse_variable(_SKIP_HINT)), first)

    def _parse_variable(self, hint: str) -> exp.Identifier:
        first = self._curr
        identifier = self._parse_id_var(any_token=False)
        if not isinstance(identifier, exp.Identifier):
            self._refuse("expected a variable of the pattern", first, hint=hint)
        text = f"`{identifier.name}`" if identifier.args.get("quoted") else identifier.name
        name = exp.Identifier(this=variable_name(text), quoted=True)
        return self._placed(name, first)

    def _parse_pattern(self) -> Pattern:
        if not self._match_text_seq("PATTERN") or not self._match(TokenType.L_PAREN):
            self._refuse("expected PATTERN and a pattern in brackets", hint=_HINT)
        opened, depth = self._prev, 1
        while self._curr:
            kind = self._curr.token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            if depth == 0:
                break
            self._advance()
        if not self._match(TokenType.R_PAREN):
            self._refuse("the pattern is not closed", opened, hint="close it with )")
        return PatternText(self.sql, opened.end + 1, self._prev.start).read()

    def _parse_subset(self) -> Subset:
        first, hint = self._curr, "write SUBSET U = (A, B)"
        name = self._parse_variable(hint)
        if not self._match(TokenType.EQ) or not self._match(TokenType.L_PAREN):
            self._refuse("expected = and variables in brackets", hint=hint)
        members = self._parse_csv(lambda: self._parse_variable(hint))
        if not self._match(TokenType.R_PAREN):
            self._refuse("expected ) after the variables", hint=hint)
        return self._placed(Subset(this=name, expressions=members), first)

    def _parse_definition(self) -> Definition:
        first, hint = self._curr, "write DEFINE A AS A.v > 5, B AS B.v < A.v"
        name = self._parse_variable(hint)
        if not self._match(TokenType.ALIAS):
            self._refuse("expected AS and a condition", hint=hint)
        condition = self._parse_disjunction()
        if condition is None:
            self._refuse("expected a condition", hint=hint)
        return self._placed(Definition(this=name, expression=condition), first)

    def _parse_unary(self) -> exp.Expr | None:
        """An operand; RUNNING or FINAL may precede a call."""
        semantics = self._curr.text.upper()
        behind = self._tokens[self._index + 2 : self._index + 3]
        is_call = bool(behind) and behind[0].token_type == TokenType.L_PAREN
        if not self._in_match or not is_call or semantics not in ("RUNNING", "FINAL"):
            return super()._parse_unary()
        self._advance()
        operand = super()._parse_unary()
        if isinstance(operand, exp.Func):
            operand.meta[SEMANTICS] = semantics
        return operand

    def _parse_function_call(self, *args: Any, **named: Any) -> exp.Expr | None:
        if self._in_match and self._curr.text.upper() in NAVIGATION:
            named["anonymous"] = True
        return super()._parse_function_call(*args, **named)
