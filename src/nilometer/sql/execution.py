"""How windowed plans are executed, as a user says it."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.operators.stage import Execution


def choose_execution(given: str) -> Execution:
    """The execution of a name; "auto" is what measurement has shown to be best.

    >>> choose_execution("auto"), choose_execution("NTA")
    (<Execution.TPA: 'tpa'>, <Execution.NTA: 'nta'>)
    """
    if not isinstance(given, str) or given.lower() not in ("auto", *Execution):
        raise InputError(
            f"there is no execution {given}", hint=f"choose one of auto, {', '.join(Execution)}"
        )
    return Execution.TPA if given.lower() == "auto" else Execution(given.lower())
