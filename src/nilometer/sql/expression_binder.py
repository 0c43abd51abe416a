"""Expressions of a statement: names resolved, what cannot stand there refused."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from nilometer.errors import NotYetError, SqlError
from nilometer.sql.scalars import Scalar, place_of, rebuild
from nilometer.sql.scope import Scope, Unit


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions in one scope; `clause` is where they stand, for errors."""

    scope: Scope
    clause: str

    def bind(self, tree: exp.Expr) -> Scalar:
        """The expression with every name resolved."""
        self._refuse(tree)
        place = place_of(tree, self.scope.sql)
        return Scalar(self._resolve(tree), place)

    def _resolve(self, tree: exp.Expr) -> exp.Expr:
        match tree:
            case exp.Column() if isinstance(tree.this, exp.Star):
                raise self._misplaced_star(tree)
            case exp.Column() | exp.Dot() if (names := _names(tree)) is not None:
                return self.scope.resolve(tree, names)
            case exp.Star():
                raise self._misplaced_star(tree)
            case exp.Struct():
                return self._struct(tree)
        return rebuild(tree, self._resolve)

    def _struct(self, tree: exp.Struct) -> exp.Expr:
        """struct(A.*, b AS x) with the names of its fields spelled out, as Spark gives them."""
        fields: list[exp.Expr] = []
        for number, value in enumerate(tree.expressions, start=1):
            units = self.starred(value)
            if units is not None:
                for name, column in self.scope.star(units):
                    fields += [exp.Literal.string(name), column]
                continue
            if isinstance(value, exp.PropertyEQ):
                name, value = value.this.name, value.expression  # noqa: PLW2901
            else:
                name = value.alias_or_name or f"col{number}"
            fields += [exp.Literal.string(name), self._resolve(value.unalias())]
        return exp.Anonymous(this="named_struct", expressions=fields)

    def starred(self, tree: exp.Expr) -> list[Unit] | None:
        """The units of a star: * or A.*; None if the tree is no star."""
        if isinstance(tree, exp.Star):
            return list(self.scope.units)
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            return [self.scope.unit(tree.args["table"])] if tree.args.get("table") else None
        return None

    def _refuse(self, tree: exp.Expr) -> None:
        for node in tree.walk():
            error = self._refusal(node)
            if error is not None:
                raise error

    def _refusal(self, node: exp.Expr) -> SqlError | None:
        kind: type[SqlError]
        match node:
            case exp.Exists():
                kind, message, hint = NotYetError, "EXISTS cannot be run yet", None
            case exp.Subquery() | exp.Query():
                kind, message = SqlError, "a subquery can stand in FROM only"
                hint = "join with it instead"
            case exp.Window():
                kind, message = SqlError, "OVER is not part of this dialect"
                hint = "windows stand behind streams, [RANGE 1 HOUR], or in a WINDOW clause"
            case exp.Placeholder() | exp.Parameter() | exp.SessionParameter():
                kind, message, hint = SqlError, "statements have no parameters", None
            case exp.AggFunc():
                return self._aggregate(node)
            case _:
                return None
        return kind(message, place=place_of(node, self.scope.sql), hint=hint)

    def _aggregate(self, node: exp.AggFunc) -> SqlError:
        place = place_of(node, self.scope.sql)
        name = node.sql_name().upper()
        if self.clause != "SELECT":
            return SqlError(
                f"the aggregate {name} cannot stand in {self.clause}",
                place=place,
                hint="conditions on groups stand in HAVING",
            )
        return NotYetError(
            f"the aggregate {name} cannot be run yet",
            place=place,
            hint="collect the rows, and aggregate them with Spark",
        )

    def _misplaced_star(self, tree: exp.Expr) -> SqlError:
        return SqlError(
            "a star cannot stand here",
            place=place_of(tree, self.scope.sql),
            hint="stars stand in the SELECT list, or in struct(A.*)",
        )


def _names(tree: exp.Column | exp.Dot) -> list[exp.Identifier] | None:
    """The parts of a dotted name; None if it is something else, such as f(x).y."""
    parts = [part for part in tree.parts if isinstance(part, exp.Identifier)]
    return parts if len(parts) == len(tree.parts) else None
