"""The forms in which a user writes time windows; each adds bounds on differences of times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nilometer.errors import WindowError
from nilometer.model.time import (
    Duration,
    format_duration,
    parse_duration,
    parse_signed_duration,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """``time(later) - time(earlier) <= limit``; closed: a difference of exactly the limit is in."""

    earlier: str
    later: str
    limit: int


@dataclass(frozen=True, slots=True)
class UniformWindow:
    """``WINDOW = w``: every two streams within w of each other."""

    length: int

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def bounds(self, streams: Sequence[str]) -> Iterable[Bound]:
        return (Bound(a, b, self.length) for a in streams for b in streams if a != b)

    def __str__(self) -> str:
        return f"WINDOW = {format_duration(self.length)}"


@dataclass(frozen=True, slots=True)
class PairWindow:
    """``WINDOW(A, B) BETWEEN low AND high``: low <= time(B) - time(A) <= high."""

    first: str
    second: str
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise WindowError(
                f"a window needs two different streams, got {self.first} twice",
                hint="to join a stream with itself give it two names",
            )
        if self.low > self.high:
            raise WindowError(
                f"the window between {self.first} and {self.second} is empty",
                detail=f"{format_duration(self.low)} is more than {format_duration(self.high)}",
                hint="write the smaller bound first",
            )

    @property
    def names(self) -> tuple[str, ...]:
        return (self.first, self.second)

    def bounds(self, streams: Sequence[str]) -> Iterable[Bound]:
        return (
            Bound(self.first, self.second, self.high),
            Bound(self.second, self.first, -self.low),
        )

    def __str__(self) -> str:
        pair = f"({self.first}, {self.second})"
        if self.low == -self.high:
            return f"WINDOW{pair} = {format_duration(self.high)}"
        if self.low == 0:
            return f"DWINDOW{pair} = {format_duration(self.high)}"
        return f"WINDOW{pair} BETWEEN {format_duration(self.low)} AND {format_duration(self.high)}"


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """``A [RANGE w]``: no other stream's tuple is more than w later than A's."""

    stream: str
    length: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.stream,)

    def bounds(self, streams: Sequence[str]) -> Iterable[Bound]:
        return (Bound(self.stream, other, self.length) for other in streams if other != self.stream)

    def __str__(self) -> str:
        return f"{self.stream} [RANGE {format_duration(self.length)}]"


@dataclass(frozen=True, slots=True)
class DerivedWindow:
    """Bounds that follow from other parts of a statement."""

    limits: tuple[Bound, ...]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for bound in self.limits for name in (bound.earlier, bound.later))

    def bounds(self, streams: Sequence[str]) -> Iterable[Bound]:
        return self.limits

    def __str__(self) -> str:
        return self.text


Window: TypeAlias = UniformWindow | PairWindow | RangeWindow | DerivedWindow
Windows: TypeAlias = (
    Duration | Window | Mapping[tuple[str, str], Duration] | Iterable["Window | Duration"]
)
"""What ``windows=`` accepts: one length for all pairs, lengths per pair, or a list of windows."""


def window(first: str, second: str, length: Duration) -> PairWindow:
    """``WINDOW(first, second) = length``: within that length of each other, in either order.

    >>> str(window("A", "B", "10s"))
    'WINDOW(A, B) = 10s'
    """
    w = parse_duration(length)
    return PairWindow(first, second, -w, w)


def dwindow(first: str, second: str, length: Duration) -> PairWindow:
    """``DWINDOW(first, second) = length``: first comes first, second at most that much later.

    >>> str(dwindow("A", "B", "10s"))
    'DWINDOW(A, B) = 10s'
    """
    return PairWindow(first, second, 0, parse_duration(length))


def between(first: str, second: str, low: Duration, high: Duration) -> PairWindow:
    """``low <= time(second) - time(first) <= high``, both bounds signed and inclusive.

    >>> str(between("A", "B", "-1s", "10s"))
    'WINDOW(A, B) BETWEEN -1s AND 10s'
    """
    return PairWindow(first, second, parse_signed_duration(low), parse_signed_duration(high))


def range_window(stream: str, length: Duration) -> RangeWindow:
    """``stream [RANGE length]``: others join it until that long after its time.

    >>> str(range_window("A", "1h"))
    'A [RANGE 3600s]'
    """
    return RangeWindow(stream, parse_duration(length))


def read_windows(windows: Windows) -> tuple[Window, ...]:
    """The windows that a user gave in any accepted form."""
    if isinstance(windows, (UniformWindow, PairWindow, RangeWindow, DerivedWindow)):
        return (windows,)
    if isinstance(windows, Mapping):
        return tuple(_pair(pair, length) for pair, length in windows.items())
    if isinstance(windows, Iterable) and not isinstance(windows, str):
        return tuple(w for one in windows for w in read_windows(one))
    return (UniformWindow(parse_duration(windows)),)


def _pair(pair: object, length: Duration) -> PairWindow:
    match pair:
        case (str() as first, str() as second):
            return window(first, second, length)
    raise WindowError(
        "a window between two streams needs their two names",
        detail=f"got {pair!r}",
        hint='write windows={("A", "B"): "10s"}',
    )
