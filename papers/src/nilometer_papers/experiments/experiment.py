"""The definition of an experiment: what it measures, what it draws, and the claims it judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    """A requirement of an experiment is missing: it is skipped, with the reason."""


class Profile(StrEnum):
    """The extent of an experiment."""

    FULL = "full"
    """With the papers' parameters."""
    QUICK = "quick"
    """In less than a minute, most of them."""
    SMOKE = "smoke"
    """In a few seconds: shows that it runs, not what the paper claims."""


class Progress(Protocol):
    """Reports the progress of an experiment."""

    def track(self, items: Sequence[Item], title: str) -> Iterable[Item]:
        """The items, one by one, as they are worked on."""


@dataclass(frozen=True)
class Silent:
    """Reports no progress."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items."""
        yield from items


@dataclass(frozen=True)
class Setting:
    """The conditions of an experiment."""

    profile: Profile
    progress: Progress = Silent()
    seed: int = 1

    def choose(self, full: Choice, quick: Choice, smoke: Choice) -> Choice:
        """The choice for the profile."""
        return {Profile.FULL: full, Profile.QUICK: quick, Profile.SMOKE: smoke}[self.profile]


@dataclass(frozen=True)
class Outcome:
    """Whether a claim held, and the figures that show it."""

    holds: bool
    figures: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, as an inequality on the measurements."""

    text: str
    """The paper's statement, in our words."""
    inequality: str
    """How it is judged here."""
    check: Callable[[Sequence[Row]], Outcome]
    reason: str = ""
    """Why it does not hold here, if known; shown only if it does not."""
    same_as: str = ""
    """The counted claim that it repeats: the experiment's name, a colon, and the claim's text."""

    def repeats(self, other: str) -> Claim:
        """The same claim, shown in its place and counted with the other one."""
        return replace(self, same_as=other)


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
    """The parameters, their origin, and what had to be chosen."""
