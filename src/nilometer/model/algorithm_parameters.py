"""What a hint gives an algorithm beside its name: `/*+ LAZY(tau = '2 s', order = 'A, B') */`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nilometer.errors import DurationError, InputError
from nilometer.model.time import format_duration, parse_duration


@dataclass(frozen=True)
class AlgorithmParameters:
    """Parameters of an algorithm; None leaves the choice to the algorithm.

    >>> AlgorithmParameters.read({"tau": "2 s", "order": "A, C, B"})
    AlgorithmParameters(tau=2000000, order=('A', 'C', 'B'), buckets=None, cleanup=None)
    """

    tau: int | None = None
    """The interval of re-evaluation and expiration (microseconds)."""
    order: tuple[str, ...] | None = None
    """All streams, by name, in the order of the for-loops."""
    buckets: tuple[int, ...] | None = None
    """Of the hash tables: one number for all streams, or one for each stream, 0 for no table."""
    cleanup: int | None = None
    """After how many tuples old ones are removed."""

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> AlgorithmParameters:
        """Parameters from what a user wrote; raises an error that says what is wrong with it."""
        parameters: dict[str, Any] = {}
        for name, text in texts.items():
            reader = _READERS.get(name.lower())
            if reader is None:
                raise InputError(
                    f"there is no parameter {name!r} of algorithms", hint=f"choose {_NAMES}"
                )
            parameters[name.lower()] = reader(text)
        return cls(**parameters)

    @property
    def given(self) -> dict[str, str]:
        """The parameters that are not left to the algorithm, as they are written."""
        written = {
            "tau": None if self.tau is None else format_duration(self.tau),
            "order": None if self.order is None else ", ".join(self.order),
            "buckets": None if self.buckets is None else ", ".join(map(str, self.buckets)),
            "cleanup": None if self.cleanup is None else str(self.cleanup),
        }
        return {name: text for name, text in written.items() if text is not None}


def _read_order(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _read_buckets(text: str) -> tuple[int, ...]:
    return tuple(_read_count(one, minimum=0) for one in text.split(","))


def _read_count(text: str, minimum: int = 1) -> int:
    if not text.strip().isdecimal() or int(text) < minimum:
        raise InputError(f"a number of {minimum} or more is expected, got {text.strip()!r}")
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
