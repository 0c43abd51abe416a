"""What is said about an algorithm beside its name: `/*+ LAZY(tau = '2 s', order = 'A, B') */`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nilometer.algorithms.join_task import JoinTask
from nilometer.errors import DurationError, InputError
from nilometer.model.time import format_duration, parse_duration


@dataclass(frozen=True)
class Parameters:
    """Parameters of an algorithm; None is its own choice.

    >>> Parameters.read({"tau": "2 s", "order": "A, C, B"})
    Parameters(tau=2000000, order=('A', 'C', 'B'), buckets=None, cleanup=None)
    """

    tau: int | None = None
    """The interval of re-evaluation and expiration (microseconds)."""
    order: tuple[str, ...] | None = None
    """All streams, by name, in the order of the for-loops."""
    buckets: tuple[int, ...] | None = None
    """Of the hash tables: one number for all streams, or one for each."""
    cleanup: int | None = None
    """After how many tuples old ones are removed."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Parameters:
        """From what a user wrote; an error says what is wrong with it."""
        found: dict[str, Any] = {}
        for name, text in given.items():
            reader = _READERS.get(name.lower())
            if reader is None:
                raise InputError(
                    f"there is no parameter {name!r} of algorithms", hint=f"choose {_NAMES}"
                )
            found[name.lower()] = reader(text)
        return cls(**found)

    @property
    def given(self) -> dict[str, str]:
        """Those that are not left to the algorithm, as they are written."""
        written = {
            "tau": None if self.tau is None else format_duration(self.tau),
            "order": None if self.order is None else ", ".join(self.order),
            "buckets": None if self.buckets is None else ", ".join(map(str, self.buckets)),
            "cleanup": None if self.cleanup is None else str(self.cleanup),
        }
        return {name: text for name, text in written.items() if text is not None}

    def with_order(self, order: Sequence[str]) -> Parameters:
        """The same with an order, where none was given."""
        return self if self.order is not None else replace(self, order=tuple(order))

    def numbers(self, task: JoinTask) -> list[int] | None:
        """The order by the places of streams."""
        if self.order is None:
            return None
        places = {name.lower(): i for i, name in enumerate(task.network.streams)}
        wanted = [places.get(name.lower()) for name in self.order]
        if None in wanted or sorted(one for one in wanted if one is not None) != sorted(
            places.values()
        ):
            raise InputError(
                f"an order names every stream once, got {', '.join(self.order)}",
                hint=f"the streams are {', '.join(task.network.streams)}",
            )
        return [one for one in wanted if one is not None]

    def bucket_numbers(self, task: JoinTask) -> list[int] | None:
        """The number of buckets of each stream's hash table."""
        if self.buckets is None:
            return None
        if len(self.buckets) not in (1, task.streams):
            raise InputError(
                f"there are {len(self.buckets)} numbers of buckets for {task.streams} streams",
                hint="give one for all, or one for each stream",
            )
        return list(self.buckets * (task.streams // len(self.buckets)))


def _read_order(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _read_buckets(text: str) -> tuple[int, ...]:
    return tuple(_read_count(one) for one in text.split(","))


def _read_count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise InputError(f"a number of 1 or more is expected, got {text.strip()!r}")
    return int(text)


def _read_tau(text: str) -> int:
    try:
        tau = parse_duration(text)
    except DurationError as error:
        raise InputError(f"cannot read tau, got {text!r}", hint=error.hint) from None
    if tau <= 0:
        raise InputError(f"tau must be longer than 0, got {text!r}")
    return tau


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "tau": _read_tau,
    "order": _read_order,
    "buckets": _read_buckets,
    "cleanup": _read_count,
}
_NAMES: Final = ", ".join(_READERS)
