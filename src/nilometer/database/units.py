"""Named Python functions for streams (before the log) and deliveries (after a query)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.model.installed import installed, load_installed
from nilometer.model.names import nearest

ENTRY_POINTS: Final = "nilometer.units"


class Units:
    """The functions given to `Database.register_unit`; statements name them, never import code."""

    def __init__(self) -> None:
        self._registered: dict[str, Callable[..., Any]] = {}
        self._listeners: list[Callable[[], None]] = []

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Register a function or a class under a name for streams and deliveries."""
        if not isinstance(name, str) or not name:
            raise InputError("a unit needs a name", detail=f"got {name!r}")
        if not callable(function):
            raise InputError(
                f"unit {name} is not a function",
                detail=f"got {type(function).__name__}",
                hint="give a function, or a class whose objects can be called",
            )
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise InputError(
                f"unit {name} is async",
                hint="write a plain function: it runs in a thread of its own",
            )
        self._registered[name.lower()] = function
        for tell in self._listeners:
            tell()

    def find(self, name: str) -> Callable[..., Any]:
        """The function of this name: a registered one, or that of an installed package."""
        if (function := self._registered.get(name.lower())) is not None:
            return function
        others = installed(ENTRY_POINTS)
        if name.lower() in others:
            loaded: Callable[..., Any] = load_installed(others[name.lower()], "unit")
            self._registered[name.lower()] = loaded
            return loaded
        known = sorted({*self._registered, *others})
        raise InputError(
            f"there is no unit {name}",
            detail=f"known: {', '.join(known)}" if known else "none is registered",
            hint=nearest(name, known) or f'register it: db.register_unit("{name}", function)',
        )

    def when_registered(self, tell: Callable[[], None]) -> None:
        """Call back for every unit that is registered."""
        self._listeners.append(tell)
