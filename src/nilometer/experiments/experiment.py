"""What an experiment is: what it measures, what it draws, and which claims it judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from nilometer.errors import NilometerError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, str | int | float]
"""One measured point: a line of the CSV file. All rows of an experiment have the same names."""

Item = TypeVar("Item")
Choice = TypeVar("Choice")


class SkippedError(NilometerError):
    """What an experiment needs is not here: it is left out, and says why."""


class Profile(StrEnum):
    """How much an experiment runs."""

    FULL = "full"
    """With the papers' parameters."""
    QUICK = "quick"
    """In less than a minute, most of them."""
    SMOKE = "smoke"
    """In a few seconds: shows that it runs, not what the paper claims."""


class Progress(Protocol):
    """Where an experiment says how far it has come."""

    def track(self, items: Sequence[Item], title: str) -> Iterable[Item]:
        """The items, one by one, as they are worked on."""


@dataclass(frozen=True)
class Silent:
    """No progress is shown."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items."""
        yield from items


@dataclass(frozen=True)
class Setting:
    """Under which conditions an experiment runs."""

    profile: Profile
    progress: Progress = Silent()
    seed: int = 1

    def choose(self, full: Choice, quick: Choice, smoke: Choice) -> Choice:
        """What the profile wants."""
        return {Profile.FULL: full, Profile.QUICK: quick, Profile.SMOKE: smoke}[self.profile]


@dataclass(frozen=True)
class Outcome:
    """Whether a claim held, and the figures that say so."""

    holds: bool
    figures: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, as an inequality on what was measured."""

    text: str
    """What the paper says, in our words."""
    inequality: str
    """How that is judged here."""
    check: Callable[[Sequence[Row]], Outcome]
    reason: str = ""
    """Why it does not hold here, where that was found; shown only if it does not."""


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    name: str
    """As in `nilometer experiments run NAME`: paper-figure-number."""
    paper: str
    """TR-010, SSDBM, STEAM, Golab or Nile."""
    figure: str
    title: str
    measure: Callable[[Setting], list[Row]]
    draw: Callable[[Figure, Sequence[Row]], None]
    claims: tuple[Claim, ...]
    parameters: str
    """With which parameters, from where, and what had to be chosen."""
