"""A user's aggregate in Python, as a function of the list of all values of a group."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from nilometer.errors import InputError

ARGUMENT: Final = "x"
"""Values of several arguments are structs with the fields x0, x1, …, and their number is passed."""


class PythonAggregate:
    """Called with the values of a group, or with structs and the number of arguments.

    A function gets a pandas Series for each argument. A class is instantiated; the object receives
    each value by `update(value, …)` and returns by `finish()`; one with `retract(value, …)`
    receives only the changes since the values that it received before, as long as that is less
    than to start again.
    """

    def __init__(self, name: str, aggregate: Callable[..., Any]) -> None:
        self.name = name
        self.aggregate = aggregate
        self._is_class = isinstance(aggregate, type)
        self._can_retract = self._is_class and hasattr(aggregate, "retract")
        self._received = threading.local()
        for method in ("update", "finish") if self._is_class else ():
            if not callable(getattr(aggregate, method, None)):
                raise InputError(
                    f"the aggregate {name} has no method {method}",
                    hint="a class has update(value) and finish(), and may have retract(value)",
                )

    def __reduce__(self) -> tuple[type[PythonAggregate], tuple[str, Callable[..., Any]]]:
        return PythonAggregate, (self.name, self.aggregate)

    def takes(self, arguments: int) -> bool:
        """Whether it can be called with this many arguments."""
        called, values = self.aggregate, [None] * arguments
        if self._is_class:
            called, values = self.aggregate.update, [None, *values]  # type: ignore[attr-defined]
        try:
            inspect.signature(called).bind(*values)
        except TypeError:
            return False
        except ValueError:  # some functions written in C have no signature
            pass
        return True

    def __call__(self, values: Sequence[Any] | None, arguments: int = 1) -> Any:
        """The value of the aggregate; None without values."""
        if not values:
            return None
        rows = [tuple(one.values()) if arguments > 1 else (one,) for one in values]
        if not self._is_class:
            import pandas as pd  # noqa: PLC0415  slow to load

            return self.aggregate(*(pd.Series(list(column)) for column in zip(*rows, strict=True)))
        return self._up_to_date(rows).finish()

    def _up_to_date(self, rows: list[tuple[Any, ...]]) -> Any:
        """An object that has received exactly these rows."""
        before, self._received.now = getattr(self._received, "now", None), None
        counted = self._counted(rows)
        if before is not None and counted is not None:
            instance, known = before
            gone, new = known - counted, counted - known
            if gone.total() + new.total() < len(rows):
                for row in gone.elements():
                    instance.retract(*row)
                for row in new.elements():
                    instance.update(*row)
                self._received.now = (instance, counted)
                return instance
        instance = self.aggregate()
        for row in rows:
            instance.update(*row)
        if counted is not None:
            self._received.now = (instance, counted)
        return instance

    def _counted(self, rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]] | None:
        """How often each row occurs; None if that is useless or unknown."""
        try:
            return Counter(rows) if self._can_retract else None
        except TypeError:
            return None
