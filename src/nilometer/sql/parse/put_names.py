"""Names for unnamed subqueries in FROM."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_UNNAMED: Final = "the subquery"
"""A name that cannot be written without quotes; it appears in errors."""


def put_names(tree: exp.Expr) -> None:
    """Give a name to every subquery in FROM."""
    number = 0
    for entry in tree.find_all(exp.Subquery):
        if not isinstance(entry.parent, exp.From | exp.Join) or entry.alias:
            continue
        number += 1
        name = _UNNAMED if number == 1 else f"{_UNNAMED} {number}"
        identifier, alias = exp.to_identifier(name, quoted=True), entry.args.get("alias")
        if alias is None:
            entry.set("alias", exp.TableAlias(this=identifier))
        else:
            alias.set("this", identifier)
