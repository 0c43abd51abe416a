"""The spec of MATCH_RECOGNIZE: a program, and the inputs of its conditions and measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from nilometer.kernels.match_search import Tracked
from nilometer.model.expressions import Expression
from nilometer.model.row_patterns import PatternStep
from nilometer.operators.change_specs import AggregateCall


@dataclass(frozen=True, slots=True)
class Navigation:
    """A column of one row: the first or last of some variables' rows, or one near it."""

    column: int
    variables: frozenset[int]
    last: bool = True
    offset: int = 0
    """How many of these rows are skipped, from that end."""
    steps: int = 0
    """How many rows after it, of whichever variable; before it, if negative."""
    final: bool = False
    """Whether the whole match is seen, not only its rows until now."""

    def is_near(self, variable: int) -> bool:
        """Whether it refers to the current row itself, or to one some steps away."""
        return self.last and not self.offset and variable in self.variables


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate of the rows of some variables."""

    call: AggregateCall
    variables: frozenset[int]
    final: bool = False


@dataclass(frozen=True, slots=True)
class VariableName:
    """The name of the variable of the last row: CLASSIFIER()."""

    final: bool = False


@dataclass(frozen=True, slots=True)
class Numbered:
    """The number of the match in its partition: MATCH_NUMBER()."""


Slot: TypeAlias = Navigation | Aggregated | VariableName | Numbered
"""An argument of an expression: what it sees of a match."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The DEFINE of a variable: over a row and its neighbours, and over the match so far."""

    plain: Expression | None = None
    near: tuple[Navigation, ...] = ()
    """The arguments of `plain`: columns of the row itself, or of rows some steps away."""
    rest: Expression | None = None
    slots: tuple[Slot, ...] = ()
    """The arguments of `rest`."""
    text: str = ""


class SkipTo(StrEnum):
    """Where the next match may begin."""

    PAST = "PAST LAST ROW"
    NEXT = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class Matching:
    """A pattern, and the output of its matches."""

    program: tuple[PatternStep, ...]
    variables: tuple[str, ...]
    conditions: tuple[Condition, ...]
    within: int | None
    """The maximum time between the first and the last row of a match."""
    skip: SkipTo
    skip_to: frozenset[int]
    all_rows: bool
    slots: tuple[Slot, ...]
    measures: tuple[Expression, ...]
    """Over the slots."""
    before: tuple[int, ...]
    """The columns of the input that are shown before the measures."""
    behind: tuple[int, ...]

    @property
    def steps(self) -> list[int]:
        """How far from the rows of a match other rows are looked at."""
        return [one.steps for one in self._all_slots if isinstance(one, Navigation)]

    @property
    def back(self) -> int:
        """How many rows before a match are looked at."""
        return max(0, *(-one for one in self.steps), 0)

    @property
    def ahead(self) -> int:
        """How many rows after a row are looked at."""
        return max(0, *self.steps, 0)

    @property
    def counts(self) -> bool:
        return any(isinstance(one, Numbered) for one in self.slots)

    @property
    def is_free(self) -> bool:
        """Whether a match does not affect others that begin later."""
        return self.skip is SkipTo.NEXT and not self.counts

    @property
    def asked(self) -> frozenset[int]:
        """Variables whose conditions see the match so far."""
        return frozenset(n for n, one in enumerate(self.conditions) if one.rest is not None)

    @property
    def tracked(self) -> tuple[Tracked, ...]:
        """What these see of the match so far, apart from aggregates."""
        counts: dict[tuple[frozenset[int], bool], int] = {}
        for number, condition in enumerate(self.conditions):
            for one in condition.slots:
                if isinstance(one, Navigation) and not one.is_near(number):
                    key = (one.variables, one.last)
                    counts[key] = max(counts.get(key, 0), one.offset + 1)
        return tuple(Tracked(*key, count) for key, count in counts.items())

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
