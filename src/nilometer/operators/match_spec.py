"""MATCH_RECOGNIZE before it runs: a program, what its conditions and measures look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from nilometer.kernels.match_search import Tracked
from nilometer.model.expressions import Expression
from nilometer.model.row_patterns import Step
from nilometer.operators.change_specs import AggregateCall


@dataclass(frozen=True, slots=True)
class Navigation:
    """A column of one row: the first or last of some variables' rows, or one near it."""

    column: int
    variables: frozenset[int]
    last: bool = True
    offset: int = 0
    """How many of these rows are passed over, from that end."""
    steps: int = 0
    """How many rows further on, whosever they are; before it, if negative."""
    final: bool = False
    """Whether the whole match is seen, and not only its rows until now."""

    def is_near(self, variable: int) -> bool:
        """Whether it is of the row itself that is one of a variable, or so many steps from it."""
        return self.last and not self.offset and variable in self.variables


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate of the rows of some variables."""

    call: AggregateCall
    variables: frozenset[int]
    final: bool = False


@dataclass(frozen=True, slots=True)
class Classified:
    """The name of the variable of the last row: CLASSIFIER()."""

    final: bool = False


@dataclass(frozen=True, slots=True)
class Numbered:
    """The number of the match in its partition: MATCH_NUMBER()."""


Slot: TypeAlias = Navigation | Aggregated | Classified | Numbered
"""What an expression sees of a match: an argument of it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What DEFINE says of a variable: of a row and its neighbours, and of the match so far."""

    plain: Expression | None = None
    near: tuple[Navigation, ...] = ()
    """The arguments of `plain`: columns of the row itself, or so many steps from it."""
    rest: Expression | None = None
    slots: tuple[Slot, ...] = ()
    """The arguments of `rest`."""
    text: str = ""


class Skip(StrEnum):
    """Where the next match may begin."""

    PAST = "PAST LAST ROW"
    NEXT = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class Matching:
    """A pattern, and what is shown of its matches."""

    program: tuple[Step, ...]
    variables: tuple[str, ...]
    conditions: tuple[Condition, ...]
    within: int | None
    """The last row of a match is at most so much later than its first."""
    skip: Skip
    skip_to: frozenset[int]
    all_rows: bool
    slots: tuple[Slot, ...]
    measures: tuple[Expression, ...]
    """Over the slots."""
    before: tuple[int, ...]
    """Columns of the input that are shown before the measures."""
    behind: tuple[int, ...]

    @property
    def steps(self) -> list[int]:
        """How far from rows of a match others are looked at."""
        return [one.steps for one in self._all_slots if isinstance(one, Navigation)]

    @property
    def back(self) -> int:
        """How many rows before a match are looked at."""
        return max(0, *(-one for one in self.steps), 0)

    @property
    def ahead(self) -> int:
        """How many rows behind a row are looked at."""
        return max(0, *self.steps, 0)

    @property
    def counts(self) -> bool:
        return any(isinstance(one, Numbered) for one in self.slots)

    @property
    def is_free(self) -> bool:
        """Whether a match says nothing of others that begin later."""
        return self.skip is Skip.NEXT and not self.counts

    @property
    def asked(self) -> frozenset[int]:
        """Variables whose conditions see the match so far."""
        return frozenset(n for n, one in enumerate(self.conditions) if one.rest is not None)

    @property
    def tracked(self) -> tuple[Tracked, ...]:
        """What of the match so far these see, apart from aggregates."""
        found: dict[tuple[frozenset[int], bool], int] = {}
        for number, condition in enumerate(self.conditions):
            for one in condition.slots:
                if isinstance(one, Navigation) and not one.is_near(number):
                    key = (one.variables, one.last)
                    found[key] = max(found.get(key, 0), one.offset + 1)
        return tuple(Tracked(*key, count) for key, count in found.items())

    @property
    def sees_all(self) -> bool:
        return any(isinstance(one, Aggregated) for one in self._asked_slots)

    @property
    def _asked_slots(self) -> Iterator[Slot]:
        return (slot for one in self.conditions for slot in one.slots)

    @property
    def _all_slots(self) -> Iterator[Slot]:
        yield from self.slots
        yield from self._asked_slots
        yield from (slot for one in self.conditions for slot in one.near)
