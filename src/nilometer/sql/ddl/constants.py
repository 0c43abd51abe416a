"""Values in statements: constants, and expressions of constants alone."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import Place, PredicateError, SqlError, SqlTypeError
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.type_of import type_of
from nilometer.model.expressions import Argument
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.expressions.scalars import Ref
from nilometer.sql.parse.instants import is_instant, read_instant
from nilometer.sql.parse.places import place_of

_UTC: Final = "UTC"
_HINT: Final = (
    "write a number, a text, TRUE, FALSE, NULL, DATE '2026-01-31', TIMESTAMP '…', X'0A' or "
    "ARRAY(1, 2)"
)


def constant_value(tree: exp.Expr, sql: str) -> object:
    """The value of a constant expression; instants without a zone are UTC."""
    if isinstance(tree, exp.HexString):
        return _bytes(tree, sql)
    if isinstance(tree, exp.Array):
        return [_item(one, sql) for one in tree.expressions]
    placed = with_zone(tree, sql)
    _refuse_names(placed, sql)
    try:
        expression = SubsetCompiler(sql, no_column, {}).compile(placed)
        type_of(expression, [])
        return evaluate(expression, [], 1)[0].as_py()
    except NotInSubsetError as error:
        raise SqlError(error.message, place=_place(error, tree, sql), hint=_HINT) from None
    except OverflowError:
        raise SqlTypeError(
            "the number is too large",
            place=place_of(tree, sql),
            hint="the largest whole number is 9223372036854775807; write 1e19 for a DOUBLE",
        ) from None
    except PredicateError as error:
        raise SqlTypeError.at(place_of(tree, sql), error) from None


def _item(tree: exp.Expr, sql: str) -> object:
    """A value inside an array; plain numbers, of which there may be thousands, take a fast path."""
    if isinstance(tree, exp.Neg) and _is_float(tree.this):
        return -float(tree.this.name)
    if _is_float(tree):
        return float(tree.name)
    return constant_value(tree, sql)


def _is_float(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal) and not tree.is_string and "e" in tree.name.lower()


def with_zone(tree: exp.Expr, sql: str) -> exp.Expr:
    """The expression with a zone on each instant: UTC where none is written."""

    def spelled(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Cast) or not is_instant(node):
            return node
        instant = read_instant(node, _UTC)
        if instant is None:
            raise SqlError(
                "cannot read the date or time",
                place=place_of(node, sql),
                detail=f"got {node.this.name}",
                hint="write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00'",
            )
        node.this.set("this", instant.isoformat())
        return node

    return tree.transform(spelled)


def no_column(ref: Ref) -> Argument:
    """The argument of a name in an expression that has none."""
    raise AssertionError(f"names are refused before, but not {ref}")


def _refuse_names(tree: exp.Expr, sql: str) -> None:
    for node in tree.find_all(exp.Column, exp.Query):
        raise SqlError(
            "a value must be a constant",
            place=place_of(node, sql),
            detail=f"got {'a query' if isinstance(node, exp.Query) else node.sql()}",
            hint=f"enclose text in quotes: '{node.name}'" if node.name else _HINT,
        )


def _place(error: SqlError, tree: exp.Expr, sql: str) -> Place:
    return error.place or place_of(tree, sql)


def _bytes(tree: exp.HexString, sql: str) -> bytes:
    try:
        return bytes.fromhex(str(tree.this))
    except ValueError:
        raise SqlError(
            "cannot read the bytes", place=place_of(tree, sql), hint="write X'0AFF'"
        ) from None
