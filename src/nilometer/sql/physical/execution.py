"""The names by which users choose how windowed plans are executed."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.operators.stage import Execution


def choose_execution(name: str) -> Execution | None:
    """The execution with a name; None for "auto".

    >>> choose_execution("auto"), choose_execution("NTA")
    (None, <Execution.NTA: 'nta'>)
    """
    if not isinstance(name, str) or name.lower() not in ("auto", *Execution):
        raise InputError(
            f"unknown execution {name}", hint=f"choose one of auto, {', '.join(Execution)}"
        )
    return None if name.lower() == "auto" else Execution(name.lower())
