"""How windowed plans are executed, as a user says it: for a database, or in a hint."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import InputError, SqlError
from nilometer.operators.stage import Execution
from nilometer.sql.modes import unwrap
from nilometer.sql.scalars import place_of

_CHOICES: Final = ", ".join(f"/*+ {one.upper()} */" for one in Execution)


def choose_execution(given: str) -> Execution | None:
    """The execution of a name; None for "auto".

    >>> choose_execution("auto"), choose_execution("NTA")
    (None, <Execution.NTA: 'nta'>)
    """
    if not isinstance(given, str) or given.lower() not in ("auto", *Execution):
        raise InputError(
            f"there is no execution {given}", hint=f"choose one of auto, {', '.join(Execution)}"
        )
    return None if given.lower() == "auto" else Execution(given.lower())


def take_hint(tree: exp.Query, sql: str) -> tuple[exp.Query, Execution | None]:
    """A query without the hint of its first SELECT, and what that says."""
    first: exp.Expr = unwrap(tree)
    while isinstance(first, exp.SetOperation):
        first = unwrap(first.this)
    hint = first.args.get("hint")
    if hint is None:
        return tree, None
    names = [one.name.lower() for one in hint.expressions if isinstance(one, exp.Var)]
    if len(hint.expressions) != 1 or names not in [[str(one)] for one in Execution]:
        raise SqlError(
            "a hint says how an answer that changes is executed",
            place=place_of(hint, sql),
            hint=f"write one of {_CHOICES}, or leave it out",
        )
    bare = tree.copy()
    found = bare.find(exp.Hint)
    assert found is not None
    found.pop()
    return bare, Execution(names[0])


def refuse_hint(sql: str, tree: exp.Query) -> SqlError:
    """What is said to a hint where there is nothing to choose."""
    hint = tree.find(exp.Hint)
    assert hint is not None
    return SqlError(
        "the answer of this query does not change, so there is no execution to choose",
        place=place_of(hint, sql),
        hint="leave the hint out",
    )
