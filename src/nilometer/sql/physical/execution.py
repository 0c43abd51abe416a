"""The names by which users choose how windowed plans are executed."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.operators.stage import Execution


def choose_execution(given: str) -> Execution | None:
    """The execution with a name; None for "auto".

    >>> choose_execution("auto"), choose_execution("NTA")
    (None, <Execution.NTA: 'nta'>)
    """
    if not isinstance(given, str) or given.lower() not in ("auto", *Execution):
        raise InputError(
            f"unknown execution {given}", hint=f"choose one of auto, {', '.join(Execution)}"
        )
    return None if given.lower() == "auto" else Execution(given.lower())
