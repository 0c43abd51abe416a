"""The hint of a statement: an algorithm for its join, or how its changing answer is executed."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import InputError, Place, SqlError
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.operators.offered_algorithms import find_algorithm
from nilometer.operators.stage import Execution
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.join_plan import ChosenAlgorithm
from nilometer.sql.rewrite.modes import unwrap

_EXECUTIONS: Final = ", ".join(f"/*+ {one.upper()} */" for one in Execution)


def take_hint(
    tree: exp.Query, sql: str
) -> tuple[exp.Query, Execution | ChosenAlgorithm | None, Place | None]:
    """A query without the hint of its first SELECT, the hint's content, and its position."""
    hint = _first_select(tree).args.get("hint")
    if hint is None:
        return tree, None, None
    place = place_of(hint, sql)
    chosen = _read(hint, place)
    bare = tree.copy()
    _first_select(bare).set("hint", None)
    return bare, chosen, place


def _first_select(tree: exp.Query) -> exp.Expr:
    first: exp.Expr = unwrap(tree)
    while isinstance(first, exp.SetOperation):
        first = unwrap(first.this)
    return first


def _read(hint: exp.Hint, place: Place) -> Execution | ChosenAlgorithm:
    one = hint.expressions[0] if len(hint.expressions) == 1 else None
    if not isinstance(one, exp.Var | exp.Anonymous):
        raise SqlError(
            "a hint must be a single name: an algorithm, or an execution for a changing answer",
            place=place,
            hint=f"write one such as /*+ BEW */ or {_EXECUTIONS}, or leave it out",
        )
    name, parameters = one.name, _parameters(one, place)
    if not parameters and name.lower() in [str(one) for one in Execution]:
        return Execution(name.lower())
    try:
        return ChosenAlgorithm(find_algorithm(name), place, AlgorithmParameters.read(parameters))
    except InputError as error:
        raise SqlError.at(place, error) from None


def _parameters(hint: exp.Expr, place: Place) -> dict[str, str]:
    """The parameters of a hint as they are written: NAME(tau = '2 s', buckets = 10)."""
    parameters: dict[str, str] = {}
    for one in hint.expressions:
        if not (
            isinstance(one, exp.EQ)
            and isinstance(one.this, exp.Column)
            and isinstance(one.expression, exp.Literal)
        ):
            raise SqlError(
                "a hint parameter must have the form name = text or number",
                place=place,
                detail=f"got {one.sql()}",
                hint="write one such as /*+ LAZY(tau = '2 s', order = 'A, B') */",
            )
        if one.this.name in parameters:
            raise SqlError(f"the parameter {one.this.name} is given twice", place=place)
        parameters[one.this.name] = one.expression.name
    return parameters


def refuse_execution(place: Place | None) -> SqlError:
    """The error about an execution hint for a query without a changing answer."""
    return SqlError(
        "the answer of this query does not change, so it has no execution to choose",
        place=place,
        hint="leave the hint out",
    )


def refuse_algorithm(chosen: ChosenAlgorithm) -> SqlError:
    """The error about an algorithm where there is no join with appended results."""
    return SqlError(
        f"the answer of this query changes, and {chosen.name} only appends results",
        place=chosen.place,
        hint=f"leave the hint out, or write one of {_EXECUTIONS}",
    )
