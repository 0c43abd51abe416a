"""Calls in a tree as functions of `kernels.functions.table`: by their names, with their operands.

Calls are read as they are written (`placed_parser`), but some have words of their own between
their operands, such as SUBSTRING(s FROM 2), and operators are functions, too.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.kernels.functions.table import FUNCTIONS
from nilometer.kernels.iterate import ITERATIONS

_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_OF_UNITS: Final = {"dateadd": "timestampadd", "datediff": "timestampdiff"}
_UNARY: Final[dict[type[exp.Expr], str]] = {exp.Abs: "abs", exp.BitwiseNot: "~"}
_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.DPipe: "concat",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
}

_OF_LAMBDAS: Final[dict[type[exp.Expr], str]] = {
    exp.Transform: "transform",
    exp.ArrayFilter: "filter",
}
_REDUCED: Final = ("initial", "merge", "finish")


def read_call(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name of a function and its operands; None if the node is something else."""
    call = _read(node)
    if call is None or (call[0] not in FUNCTIONS and call[0] not in ITERATIONS):
        return None
    name, operands = call
    return name, [one for one in operands if one is not None]


def _read(node: exp.Expr) -> tuple[str, list[exp.Expr | None]] | None:
    if type(node) in _UNARY:
        return _UNARY[type(node)], [node.this]
    if type(node) in _BINARY:
        return _BINARY[type(node)], [node.this, node.expression]
    args = node.args
    match node:
        case exp.Anonymous() if isinstance(node.this, str):
            return _plain(node.name.lower(), node.expressions)
        case exp.Greatest() | exp.Least():
            return node.key, [node.this, *node.expressions]
        case exp.Substring():
            return "substring", [node.this, args.get("start"), args.get("length")]
        case exp.Trim():
            name = _TRIMS.get(str(args.get("position") or ""), "")
            return name, [args.get("expression"), node.this]
        case exp.StrPosition():
            return "locate", [args.get("substr"), node.this, args.get("position")]
        case exp.Overlay():
            return "overlay", [node.this, node.expression, args.get("from_"), args.get("for_")]
        case exp.Extract():
            return "date_part", [exp.Literal.string(node.this.name), node.expression]
        case exp.TimestampTrunc() | exp.DateTrunc():
            return "date_trunc", [exp.Literal.string(args["unit"].name), node.this]
        case exp.Escape():
            return _escaped(node)
        case exp.Bracket() if len(node.expressions) == 1 and not args.get("offset"):
            return "[]", [node.this, node.expressions[0]]
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return ".", [node.this, exp.Literal.string(node.expression.name)]
        case exp.Transform() | exp.ArrayFilter():
            return _OF_LAMBDAS[type(node)], [node.this, node.expression]
        case exp.Exists() if isinstance(node.expression, exp.Lambda):
            return "exists", [node.this, node.expression]
        case exp.Reduce():
            return "aggregate", [node.this, *(args.get(one) for one in _REDUCED)]
        case exp.Array():
            return "array", list(node.expressions)
        case exp.Struct() if all(isinstance(one, exp.PropertyEQ) for one in node.expressions):
            return "named_struct", _fields(node)
    return None


def _plain(name: str, operands: list[exp.Expr]) -> tuple[str, list[exp.Expr | None]]:
    """A plain call; DATEADD(HOUR, 1, ts) has a unit."""
    if operands and isinstance(operands[0], exp.Var):
        unit = exp.Literal.string(operands[0].name)
        return _OF_UNITS.get(name, ""), [unit, *operands[1:]]
    return name, list(operands)


def _escaped(node: exp.Escape) -> tuple[str, list[exp.Expr | None]] | None:
    """x LIKE 'a!%' ESCAPE '!'"""
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike):
        return None
    return _BINARY[type(inner)], [inner.this, inner.expression, node.expression]


def _fields(node: exp.Struct) -> list[exp.Expr | None]:
    fields: list[exp.Expr | None] = []
    for one in node.expressions:
        fields += [exp.Literal.string(one.name), one.expression]
    return fields
