"""Names as SQL compares them: ignoring case, unless they are quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from sqlglot import exp


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


AnyNamed = TypeVar("AnyNamed", bound=Named)


def find(name: exp.Identifier, known: Sequence[AnyNamed]) -> AnyNamed | None:
    """The item of that name; an unquoted name ignores case."""
    exact_name = find_name(name, [one.name for one in known])
    return None if exact_name is None else next(one for one in known if one.name == exact_name)


def find_name(name: exp.Identifier, known: Iterable[str]) -> str | None:
    """The spelling of a name as declared."""
    names = list(known)
    if name.name in names:
        return name.name
    if not isinstance(name, exp.Identifier) or name.quoted:  # the parser accepts $1 as a name
        return None
    return next((one for one in names if one.lower() == name.name.lower()), None)
