"""How windowed plans are executed, as a user says it."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.operators.stage import Execution


def choose_execution(given: str) -> Execution | None:
    """The execution of a name; None for "auto".

    >>> choose_execution("auto"), choose_execution("NTA")
    (None, <Execution.NTA: 'nta'>)
    """
    if not isinstance(given, str) or given.lower() not in ("auto", *Execution):
        raise InputError(
            f"there is no execution {given}", hint=f"choose one of auto, {', '.join(Execution)}"
        )
    return None if given.lower() == "auto" else Execution(given.lower())
