"""Which operator of a pipeline runs next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """An operator, as far as a scheduler looks at it."""

    @property
    def name(self) -> str: ...


Operator = TypeVar("Operator", bound=Named)


class Scheduler(Protocol):
    """Decides who is asked first."""

    def order(self, operators: Sequence[Operator]) -> Iterable[Operator]:
        """The operators, from scans to the answer, in the order in which they are asked.

        The first that has something to do runs, then the next order is wanted. Operators that
        are left out do not run; if no other can, the pipeline rests.
        """


class RoundRobin:
    """One after the other: who has just run is asked last (Nile section 3.1)."""

    def __init__(self) -> None:
        self._next = 0

    def order(self, operators: Sequence[Operator]) -> Iterable[Operator]:
        """The operators, beginning behind the one that ran last."""
        first = self._next
        for place in (*range(first, len(operators)), *range(min(first, len(operators)))):
            self._next = place + 1
            yield operators[place]


class AnswersFirst:
    """The operator nearest to the answer: tuples leave before others are taken in."""

    def order(self, operators: Sequence[Operator]) -> Iterable[Operator]:
        """The operators, from the answer to the scans."""
        return reversed(operators)
