"""SUM, COUNT, AVG, MIN and MAX, updated as values are added and removed (Nile 4.4 and 6.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, Final


class AggregateFunction(ABC):
    """An aggregate over some values, which are not NULL."""

    @abstractmethod
    def add(self, value: Any) -> None:
        """Add a value."""

    @abstractmethod
    def remove(self, value: Any) -> None:
        """Remove a value."""

    @abstractmethod
    def result(self) -> Any:
        """The aggregate of the current values; without any it is NULL, or the count 0."""


class Count(AggregateFunction):
    """The number of values."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any) -> None:
        self._count += 1

    def remove(self, value: Any) -> None:
        self._count -= 1

    def result(self) -> int:
        return self._count


class Sum(AggregateFunction):
    """The sum; two numbers, as the paper says of NTA."""

    def __init__(self) -> None:
        self._count = 0
        self._total = 0

    def add(self, value: Any) -> None:
        self._count += 1
        self._total += value

    def remove(self, value: Any) -> None:
        self._count -= 1
        self._total -= value

    def result(self) -> Any:
        return self._total if self._count else None


class Average(Sum):
    """The mean."""

    def result(self) -> Any:
        return self._total / self._count if self._count else None


class Maximum(AggregateFunction):
    """The largest value, with values kept in order: a value to be removed is found by its value."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        insort(self._values, value)

    def remove(self, value: Any) -> None:
        del self._values[bisect_left(self._values, value)]

    def result(self) -> Any:
        return self._values[-1] if self._values else None


class Minimum(Maximum):
    """The smallest value."""

    def result(self) -> Any:
        return self._values[0] if self._values else None


FUNCTIONS: Final[Mapping[str, type[AggregateFunction]]] = {
    "COUNT": Count,
    "SUM": Sum,
    "AVG": Average,
    "MIN": Minimum,
    "MAX": Maximum,
}
