"""Expressions of a statement: names resolved, anything not allowed there refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from nilometer.errors import (
    AmbiguousNameError,
    SqlError,
    SqlSyntaxError,
    UnknownNameError,
)
from nilometer.sql.bind.scope import Scope, StarColumn, require_usable
from nilometer.sql.expressions.aggregate_calls import aggregates_in, is_aggregate
from nilometer.sql.expressions.explosive_functions import require_bounded
from nilometer.sql.expressions.function_kinds import GENERATORS, TIME_GROUPS, WINDOW_FUNCTIONS
from nilometer.sql.expressions.growth import copy_of
from nilometer.sql.expressions.pattern_calls import bound_patterns, require_quick_patterns
from nilometer.sql.expressions.scalars import Scalar, rebuild
from nilometer.sql.expressions.unsafe_functions import refuse_unsafe
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of, put_at

_AGGREGATE_HINTS: Final = {
    "GROUP BY": "group by columns of the streams, or aggregate in a subquery first",
    "ORDER BY": "add GROUP BY, or order by columns of the streams",
    "PARTITION BY": "partition by columns of the stream",
}


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions in one scope; `clause` names where they are, for error messages."""

    scope: Scope
    clause: str
    functions: Collection[str] | None = None
    """User-defined functions, in lower case, where aggregates are allowed; else empty."""
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    """Columns of the list, in lower case, that may be used here."""

    def bind(self, tree: exp.Expr) -> Scalar:
        """The expression with every name resolved."""
        self._refuse(tree)
        place = place_of(tree, self.scope.sql)
        resolved = self._resolve(tree)
        if self.aliases:  # which may stand for aggregates
            for call in aggregates_in(resolved, self.functions or ()):
                self._refuse_nested(call)
        functions = self.functions or ()
        require_bounded(resolved, place, functions)
        require_quick_patterns(resolved, place, functions)
        bound_patterns(resolved, place, functions)
        return Scalar(resolved, place)

    def _resolve(self, tree: exp.Expr) -> exp.Expr:
        match tree:
            case exp.Column() if isinstance(tree.this, exp.Star):
                raise self._misplaced_star(tree)
            case exp.Dot() if _is_of_lambda(tree):
                return tree.copy()
            case exp.Column() if not tree.args.get("table") and tree.name.lower() in self.aliases:
                place = place_of(tree, self.scope.sql)
                return exp.Paren(this=copy_of(self.aliases[tree.name.lower()], place))
            case exp.Column() | exp.Dot() if (names := _names(tree)) is not None:
                return put_at(self.scope.resolve(tree, names), place_of(tree, self.scope.sql))
            case exp.Column() if not isinstance(tree.this, exp.Identifier):
                place = place_of(tree, self.scope.sql)
                raise SqlSyntaxError("expected the name of a column", place=place)
            case exp.Count() if isinstance(tree.this, exp.Star):
                return tree.copy()
            case exp.Star():
                raise self._misplaced_star(tree)
            case exp.Struct():
                return self._struct(tree)
            case exp.In() if isinstance(tree.this, exp.Tuple) and not tree.args.get("query"):
                return self._resolve(self._one_of(tree))
        return rebuild(tree, self._resolve)

    def _one_of(self, tree: exp.In) -> exp.Expr:
        """(a, b) IN ((1, 2), (3, 4)) as comparisons of single values."""
        values, comparisons = tree.this.expressions, []
        for one in tree.expressions:
            others = one.expressions if isinstance(one, exp.Tuple) else [one]
            if len(others) != len(values):
                raise SqlError(
                    f"IN compares {len(values)} values with {len(others)}",
                    place=place_of(tree, self.scope.sql),
                    hint="write (a, b) IN ((1, 2), (3, 4))",
                )
            pairs = zip(values, others, strict=True)
            equal = [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in pairs]
            comparisons.append(exp.and_(*equal, copy=False))
        return exp.Paren(this=exp.or_(*comparisons, copy=False))

    def _struct(self, tree: exp.Struct) -> exp.Expr:
        """struct(A.*, b AS x) with explicit field names, as Spark assigns them."""
        fields: list[exp.Expr] = []
        for number, value in enumerate(tree.expressions, start=1):
            starred = self.starred(value)
            if starred is not None:
                for one in starred:
                    fields += [exp.Literal.string(one.name), one.meaning]
                continue
            if isinstance(value, exp.PropertyEQ):
                name, value = value.this.name, value.expression  # noqa: PLW2901
            else:
                named = isinstance(value, exp.Alias | exp.Column | exp.Dot)
                name = value.alias_or_name if named else f"col{number}"
            fields += [exp.Literal.string(name), self._resolve(value.unalias())]
        return exp.Anonymous(this="named_struct", expressions=fields)

    def starred(self, tree: exp.Expr) -> list[StarColumn] | None:
        """The columns of a star, * or A.*, without its EXCEPT; None if the tree is not a star."""
        if isinstance(tree, exp.Star):
            star, columns = tree, self.scope.star_of_all()
        elif isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            star, columns = tree.this, self.scope.star(self.scope.unit(tree.args["table"]))
        else:
            return None
        for variant in ("ilike", "replace", "rename"):
            if star.args.get(variant):
                raise SqlError(
                    f"* {variant.upper()} is not supported",
                    place=place_of(tree, self.scope.sql),
                    hint="write the columns, or * EXCEPT (k)",
                )
        for name in star.args.get("except_") or ():
            columns = self._without(columns, name)
        units = {unit.name: unit for unit in self.scope.units}
        for one in columns:
            require_usable(units[one.unit], one.meaning, place_of(tree, self.scope.sql))
        return columns

    def _without(self, columns: list[StarColumn], name: exp.Expr) -> list[StarColumn]:
        """The columns of a star without the one that EXCEPT names, as k or A.k."""
        matches = [one for one in columns if _is_named(one, name)]
        place = place_of(name, self.scope.sql)
        if not matches:
            raise UnknownNameError(
                f"there is no column {name.sql()}",
                place=place,
                detail=f"there are {', '.join(one.name for one in columns)}",
            )
        if len(matches) > 1:
            raise AmbiguousNameError(
                f"column {name.sql()} is ambiguous",
                place=place,
                detail=f"{', '.join(one.unit for one in matches)} each have one",
                hint=f"write {matches[0].unit}.{name.name}",
            )
        return [one for one in columns if one is not matches[0]]

    def _refuse(self, tree: exp.Expr) -> None:
        for node in tree.walk():
            error = self._refusal(node)
            if error is not None:
                raise error
        for call in aggregates_in(tree, self.functions or ()):
            self._refuse_nested(call)

    def _refuse_nested(self, call: exp.Expr) -> None:
        """Refuse SUM(COUNT(x)), and SUM(x) FILTER (WHERE COUNT(x) > 1)."""
        parts = list(call.iter_expressions())
        while isinstance(call, exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
            parts = [*parts, *call.this.iter_expressions()]
            parts.remove(call.this)
            call = call.this
        for part in parts:
            for inner in aggregates_in(part, self.functions or ()):
                raise SqlError(
                    "aggregates cannot be nested",
                    place=place_of(inner, self.scope.sql),
                    hint="aggregate in a subquery first: (SELECT … GROUP BY …) AS S",
                )

    def _refusal(self, node: exp.Expr) -> SqlError | None:
        match node:
            case exp.Exists() if isinstance(node.this, exp.Query | exp.Subquery):
                message = "EXISTS is only allowed in WHERE, alone or combined with AND"
                hint = "move it there, or join with the stream instead"
            case exp.Subquery() | exp.Query():
                message = "a subquery is only allowed in FROM here"
                hint = "join with it instead"
            case exp.Window():
                message = "OVER is only allowed in the SELECT list and in QUALIFY"
                hint = "compute it in a subquery: FROM (SELECT *, LAG(v) OVER (…) AS p FROM A) a"
            case exp.QueryTransform():
                message = "TRANSFORM … USING is not supported"
                hint = "register a function: db.create_function"
            case exp.Parameter() | exp.SessionParameter():
                message = "variables are not supported"
                hint = "write a parameter, :name, and pass its value"
            case exp.Func() if _makes_rows(node):
                message = (
                    f"the function {written(node)}, which returns several rows, is not allowed here"
                )
                hint = "unnest arrays in FROM: FROM A, UNNEST(A.x) AS u (item)"
            case exp.Func() if _is_own(node, WINDOW_FUNCTIONS, self.functions):
                message = f"{written(node)} needs OVER, which is not supported"
                hint = "put a window after a stream, [RANGE 1 HOUR], or in a WINDOW clause"
            case exp.Func() if _is_own(node, TIME_GROUPS, self.functions):
                if is_clock_window(node):
                    return None
                message = (
                    f"the function {written(node)} groups rows by time and is not allowed here"
                )
                hint = "group by date_trunc('minute', ts) or window(ts, '1 minute')"
            case exp.Any() if not isinstance(node.parent, exp.Binary):
                message = "ANY is only allowed after LIKE and comparisons"
                hint = (
                    "use COUNT(*) FILTER (WHERE …) > 0 to test whether any row of a group "
                    "meets a condition"
                )
            case exp.Func() if is_aggregate(node, self.functions or ()):
                return self._aggregate(node)
            case exp.Func():
                return refuse_unsafe(node, self.scope.sql)
            case _:
                return None
        return SqlError(message, place=place_of(node, self.scope.sql), hint=hint)

    def _aggregate(self, node: exp.Func) -> SqlError | None:
        if self.functions is not None:
            return None
        return SqlError(
            f"the aggregate {written(node)} is not allowed in {self.clause}",
            place=place_of(node, self.scope.sql),
            hint=_AGGREGATE_HINTS.get(self.clause, "put conditions on groups in HAVING"),
        )

    def _misplaced_star(self, tree: exp.Expr) -> SqlError:
        return SqlError(
            "a star is not allowed here",
            place=place_of(tree, self.scope.sql),
            hint="a star is allowed in the SELECT list, or in struct(A.*)",
        )


def _makes_rows(node: exp.Func) -> bool:
    return isinstance(node, exp.UDTF) or written(node).lower() in GENERATORS


def _is_own(node: exp.Func, names: Collection[str], users: Collection[str] | None) -> bool:
    """Whether a call is one of these Spark functions, not a user's of the same name."""
    name = written(node).lower()
    return name in names and name not in (users or ())


def is_clock_window(node: exp.Func) -> bool:
    """Whether a call is window(ts, length), with one window for each row."""
    return written(node).lower() == "window" and len(list(node.iter_expressions())) == 2


def _is_named(column: StarColumn, name: exp.Expr) -> bool:
    if not isinstance(name, exp.Column):
        return False
    table = name.args.get("table")
    is_own = table is None or find_name(table, [column.unit]) is not None
    return is_own and find_name(name.this, [column.name]) is not None


def _is_of_lambda(tree: exp.Dot) -> bool:
    """Whether a dotted name begins with a parameter of the lambda around it: x -> x.f"""
    around = tree.find_ancestor(exp.Lambda)
    first = tree.parts[0].name if tree.parts else ""
    return around is not None and first in [parameter.name for parameter in around.expressions]


def _names(tree: exp.Column | exp.Dot) -> list[exp.Identifier] | None:
    """The parts of a dotted name; None if it is something else, such as f(x).y."""
    if isinstance(tree, exp.Column):
        parts = [part for part in tree.parts if isinstance(part, exp.Identifier)]
        return parts if len(parts) == len(tree.parts) else None
    before = _names(tree.this) if isinstance(tree.this, exp.Column | exp.Dot) else None
    last = tree.expression
    return [*before, last] if before is not None and isinstance(last, exp.Identifier) else None
