"""The slots that conditions and measures of MATCH_RECOGNIZE read from a match.

`LAST(A.v, 1)`, `PREV(v)`, `SUM(A.v)`, `A.v` become slots: columns of which the rest of an
expression is computed. Expressions inside them are computed for each row, below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from nilometer.errors import NotYetError, SqlError, UnknownNameError
from nilometer.model.expressions import Argument
from nilometer.model.names import nearest
from nilometer.operators.match_spec import Aggregated, Navigation, Numbered, Slot, VariableName
from nilometer.sql.bind.windowed.bind_over import FRAMED
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.aggregate_calls import is_aggregate, read_aggregate
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.compound_aggregates import simplify_aggregate
from nilometer.sql.expressions.scalars import ColumnRef, column, rebuild
from nilometer.sql.parse.match_parser import NAVIGATION, SEMANTICS
from nilometer.sql.parse.pattern_text import variable_name
from nilometer.sql.parse.places import place_of, put_at, text_of

MATCH: Final = ""
"""The name of the source whose columns are slots."""
_OF_MATCH: Final = ("MATCH_NUMBER", "CLASSIFIER", "MATCH_ROWTIME")
_MOST_STEPS: Final = 1000


@dataclass
class Arguments:
    """The expressions computed for every row, for all slots."""

    trees: list[exp.Expr] = field(default_factory=list)

    def number(self, tree: exp.Expr) -> int:
        if tree not in self.trees:
            self.trees.append(tree)
        return self.trees.index(tree)


@dataclass
class SlotReader:
    """Reads the expressions of one condition, or of all measures."""

    sql: str
    catalog: Catalog
    variables: Mapping[str, frozenset[int]]
    """The variables and subsets of the pattern."""
    all: frozenset[int]
    arguments: Arguments
    final: bool = False
    """Whether measures see the whole match, unless RUNNING says otherwise."""
    defines: int | None = None
    """The variable whose condition is read; None: measures."""
    slots: list[Slot] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def read(self, tree: exp.Expr) -> exp.Expr:
        """The expression over slots."""
        name = _function(tree)
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            raise SqlError(
                "a star is not allowed here",
                place=place_of(tree, self.sql),
                hint="write COUNT(A.*), or ALL ROWS PER MATCH",
            )
        if name in NAVIGATION:
            return self.slot(self._navigation(tree), tree)
        if name in _OF_MATCH:
            return self.slot(self._of_match(name, tree), tree)
        if is_aggregate(tree, self.catalog.functions):
            return self.slot(self._aggregate(tree), tree)
        if isinstance(tree, exp.Column | exp.Dot) and _first_name(tree) is not None:
            return self.slot(self._navigation(tree), tree)
        return rebuild(tree, self.read)

    def read_row(self, tree: exp.Expr) -> exp.Expr | None:
        """A condition of the row itself, without the names of variables; None if it sees more."""
        for node in tree.walk():
            if _function(node) in (*NAVIGATION, *_OF_MATCH):
                return None
            if is_aggregate(node, self.catalog.functions):
                return None
        of = self._variables_in(tree)
        if any(self.defines not in one for one in of):
            return None
        return self._stripped(tree)

    def is_available(self, tree: exp.Expr) -> bool:
        """Whether a condition of a row can be evaluated here, and not by Spark alone."""

        def known(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column | exp.Dot):
                return column(ColumnRef(MATCH, "x"))
            return rebuild(node, known)

        subset = SubsetCompiler(
            self.sql, lambda _: Argument(0), self.catalog.functions, self.catalog.zone
        )
        try:
            subset.compile(known(tree))
        except NotInSubsetError:
            return False
        return True

    def slot(self, slot: Slot, tree: exp.Expr) -> exp.Expr:
        if slot not in self.slots:
            name = text_of(tree, self.sql)
            self.slots.append(slot)
            self.names.append(name if name not in self.names else f"{name} ({len(self.names)})")
        name = self.names[self.slots.index(slot)]
        return put_at(column(ColumnRef(MATCH, name)), place_of(tree, self.sql))

    def _navigation(self, tree: exp.Expr) -> Navigation:
        """FIRST and LAST find a row of a variable, PREV and NEXT go on from there."""
        name = _function(tree)
        if name in ("PREV", "NEXT"):
            inner, steps = self._with_count(tree, 1)
            start = self._navigation(inner)
            if start.steps:
                raise self._misplaced(tree)
            final = self._is_final(tree) if SEMANTICS in tree.meta else start.final
            return replace(start, steps=-steps if name == "PREV" else steps, final=final)
        offset, inner = 0, tree
        if name in NAVIGATION:
            inner, offset = self._with_count(tree, 0)
        for node in inner.walk():
            if _function(node) in (*NAVIGATION, *_OF_MATCH):
                raise self._misplaced(node)
            if is_aggregate(node, self.catalog.functions):
                raise self._misplaced(node)
        number = self.arguments.number(self._stripped(inner))
        of, last = self._one_of(inner), name != "FIRST"
        return Navigation(number, of, last, offset, 0, self._is_final(tree))

    def _misplaced(self, tree: exp.Expr) -> SqlError:
        return SqlError(
            f"{text_of(tree, self.sql)} is not allowed here",
            place=place_of(tree, self.sql),
            hint="FIRST and LAST are allowed inside PREV and NEXT: PREV(FIRST(A.v, 1), 2)",
        )

    def _with_count(self, tree: exp.Expr, default: int) -> tuple[exp.Expr, int]:
        """The argument of a call, and its number of rows."""
        operands = tree.expressions
        if len(operands) not in (1, 2):
            raise SqlError(
                f"{tree.name.upper()} takes a value and a number of rows",
                place=place_of(tree, self.sql),
                hint=f"write {tree.name.upper()}(A.v) or {tree.name.upper()}(A.v, 1)",
            )
        if len(operands) == 1:
            return operands[0], default
        count = operands[1]
        is_number = isinstance(count, exp.Literal) and not count.is_string
        if not is_number or not count.name.isdecimal() or int(count.name) > _MOST_STEPS:
            raise SqlError(
                f"expected a whole number of rows, at most {_MOST_STEPS:,}",
                place=place_of(count, self.sql),
                hint="write 1",
            )
        return operands[0], int(count.name)

    def _of_match(self, name: str, tree: exp.Expr) -> Slot:
        if tree.expressions or self.defines is not None:
            raise SqlError(
                f"{name}() is only allowed in MEASURES, without arguments",
                place=place_of(tree, self.sql),
                hint=f"write MEASURES {name}() AS x",
            )
        if name == "MATCH_NUMBER":
            return Numbered()
        if name == "CLASSIFIER":
            return VariableName(self._is_final(tree))
        return Navigation(self.arguments.number(exp.column("_time")), self.all, final=True)

    def _aggregate(self, tree: exp.Expr) -> Aggregated:
        of = self._one_of(tree)
        counted = tree.this if isinstance(tree, exp.Count) else None
        if isinstance(counted, exp.Column) and isinstance(counted.this, exp.Star):
            name = counted.args["table"]
            require_variable(_variable_name(name), name, list(self.variables), self.sql)
            bare = tree.copy()
            bare.set("this", exp.Star())
        else:
            bare = self._stripped(tree)
        called = bare.this if isinstance(bare, exp.Filter) else bare
        if type(called) not in FRAMED or simplify_aggregate(bare, self.sql) is not bare:
            raise NotYetError(
                f"{text_of(tree, self.sql)} is not supported for matches yet",
                place=place_of(tree, self.sql),
                hint="COUNT, SUM, AVG, MIN, MAX, variances and MEDIAN are supported",
            )
        read = read_aggregate(bare, self.sql)
        place = None if read.argument is None else self.arguments.number(read.argument)
        return Aggregated(read.call(place), of, self._is_final(tree))

    def _is_final(self, tree: exp.Expr) -> bool:
        semantics = tree.meta.get(SEMANTICS)
        if semantics == "FINAL" and self.defines is not None:
            raise SqlError(
                "a condition only sees the match so far, not its end",
                place=place_of(tree, self.sql),
                hint="leave FINAL out",
            )
        return self.final if semantics is None else semantics == "FINAL"

    def _one_of(self, tree: exp.Expr) -> frozenset[int]:
        """The variables whose rows an expression is computed from."""
        variables = set(self._variables_in(tree))
        if len(variables) > 1:
            raise SqlError(
                "an expression over a row may only use one variable",
                place=place_of(tree, self.sql),
                detail=f"{text_of(tree, self.sql)} uses several",
                hint="combine variables outside: LAST(A.v) - LAST(B.v)",
            )
        return variables.pop() if variables else self.all

    def _variables_in(self, tree: exp.Expr) -> list[frozenset[int]]:
        """The variables that columns in a tree name; all of them where one names none."""
        variables = []
        for node in _columns(tree):
            name = _first_name(node)
            if name is not None:
                variables.append(self._variable(node, name))
        return variables

    def _variable(self, node: exp.Expr, name: exp.Identifier) -> frozenset[int]:
        if len(_parts(node)) == 1:
            return self.all
        known = self.variables.get(_variable_name(name))
        return self.all if known is None else known

    def _stripped(self, tree: exp.Expr) -> exp.Expr:
        """An expression without the names of variables."""
        return _without_variables(tree, lambda name: _variable_name(name) in self.variables)


def require_variable(name: str, tree: exp.Expr, known: Sequence[str], sql: str) -> None:
    """Refuse a name that is not a variable of the pattern."""
    if name not in known:
        raise UnknownNameError(
            f"the pattern has no variable {name}",
            place=place_of(tree, sql),
            detail=f"it has {', '.join(known)}",
            hint=nearest(name, list(known)),
        )


def _function(tree: exp.Expr) -> str:
    return str(tree.this).upper() if isinstance(tree, exp.Anonymous) else ""


def _variable_name(name: exp.Identifier) -> str:
    return variable_name(f"`{name.name}`" if name.args.get("quoted") else name.name)


def _columns(tree: exp.Expr) -> list[exp.Expr]:
    """The columns in a tree, with their fields."""
    if isinstance(tree, exp.Column | exp.Dot) and _first_name(tree) is not None:
        return [tree]
    return [one for child in tree.iter_expressions() for one in _columns(child)]


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    parts: list[exp.Expr] = tree.parts if isinstance(tree, exp.Column | exp.Dot) else []
    return parts


def _first_name(tree: exp.Expr) -> exp.Identifier | None:
    parts = _parts(tree)
    return parts[0] if parts and isinstance(parts[0], exp.Identifier) else None


def _without_variables(tree: exp.Expr, is_variable: Callable[[exp.Identifier], bool]) -> exp.Expr:
    name = _first_name(tree)
    if name is None:
        return rebuild(tree, lambda child: _without_variables(child, is_variable))
    parts = _parts(tree)
    if len(parts) == 1 or not is_variable(name):
        return tree.copy()
    bare: exp.Expr = exp.Column(this=parts[1].copy())
    if len(parts) > 2:
        bare = exp.Dot.build([bare, *(part.copy() for part in parts[2:])])
    bare.meta.update(tree.meta)
    return bare
