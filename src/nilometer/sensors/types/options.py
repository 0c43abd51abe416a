"""The options of a stream type: what each means, how it is read, and what it is otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nilometer.errors import DurationError, InputError, NilometerError
from nilometer.model.names import nearest
from nilometer.model.time import parse_duration
from nilometer.sensors.types.address import ADDRESS

_YES: Final = {"true", "yes", "on", "1"}
_NO: Final = {"false", "no", "off", "0"}


@dataclass(frozen=True)
class Option:
    """One option: `parse` reads its text and raises ValueError saying what would be right."""

    name: str
    meaning: str
    parse: Callable[[str], Any]
    default: Any = None
    """The value, already read, where the option is not given."""


def read_options(
    stream_type: str, known: Sequence[Option], given: Mapping[str, str]
) -> dict[str, Any]:
    """The values of all options of a type, given or not; a wrong one is refused by name."""
    table = {option.name: option for option in known}
    chosen = {option.name: option.default for option in known}
    for name, text in given.items():
        if name.lower() == ADDRESS:
            continue  # every sensor has one
        option = table.get(name.lower())
        if option is None:
            raise InputError(
                f"stream type {stream_type} has no option {name!r}",
                detail=f"its options are {', '.join(sorted(table)) or 'none'}",
                hint=nearest(name, table),
            )
        chosen[option.name] = _value(stream_type, option, text)
    return chosen


def _value(stream_type: str, option: Option, text: str) -> Any:
    try:
        return option.parse(str(text))
    except (ValueError, DurationError, InputError) as error:
        raise InputError(
            f"option {option.name} of stream type {stream_type} cannot be {str(text)!r}",
            detail=f"{option.name}: {option.meaning}",
            hint=error.hint if isinstance(error, NilometerError) else str(error),
        ) from error


def seconds(text: str) -> float:
    """A duration in seconds.

    >>> seconds("1500 ms")
    1.5
    """
    return parse_duration(text) / 1_000_000


def whole(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers within closed bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\s*-?[0-9]+\s*", text) or not least <= int(text) <= most:
            raise ValueError(f"write a whole number from {least} to {most}")
        return int(text)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """A parser of one of a few words, in any case."""

    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(f"write one of {', '.join(words)}")
        return text.strip().lower()

    return parse


def yes_or_no(text: str) -> bool:
    """A truth value."""
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise ValueError("write true or false")
    return word in _YES
