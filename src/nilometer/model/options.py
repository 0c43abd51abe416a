"""Options in WITH (…): what each means, how it is parsed, and its default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nilometer.errors import DurationError, InputError, NilometerError
from nilometer.model.names import nearest
from nilometer.model.secrets import is_secret
from nilometer.model.time import parse_duration

_YES: Final = {"true", "yes", "on", "1"}
_NO: Final = {"false", "no", "off", "0"}
_UNITS: Final = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """One option: `parse` reads its text and raises ValueError saying what would be right."""

    name: str
    meaning: str
    parse: Callable[[str], Any]
    default: Any = None
    """The default, already parsed, for when the option is not given."""
    is_secret: bool = False
    """Whether its value is never shown."""


class OptionError(InputError):
    """An option that is not known, or whose value is invalid."""

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        option: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.option = option
        """The option's name as it was given."""


def read_options(owner: str, known: Sequence[Option], texts: Mapping[str, str]) -> dict[str, Any]:
    """The values of all options, given or default; a wrong one is refused by name."""
    table = {option.name: option for option in known}
    chosen = {option.name: option.default for option in known}
    for name, text in texts.items():
        option = table.get(name.lower())
        if option is None:
            raise OptionError(
                f"{owner} has no option {name!r}",
                detail=f"its options are {', '.join(sorted(table)) or 'none'}",
                hint=nearest(name, table),
                option=name,
            )
        chosen[option.name] = _value(owner, option, text)
    return chosen


def _value(owner: str, option: Option, text: str) -> Any:
    try:
        return option.parse(str(text))
    except (ValueError, DurationError, InputError) as error:
        is_hidden = option.is_secret or is_secret(option.name)
        shown = "what was given" if is_hidden else repr(str(text))
        raise OptionError(
            f"option {option.name} of {owner} cannot be {shown}",
            detail=f"{option.name}: {option.meaning}",
            hint=error.hint if isinstance(error, NilometerError) else str(error),
            option=option.name,
        ) from error


def seconds(text: str) -> float:
    """A duration in seconds.

    >>> seconds("1500 ms")
    1.5
    """
    return parse_duration(text) / 1_000_000


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers within inclusive bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\s*-?[0-9]+\s*", text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"write a whole number from {minimum} to {maximum}")
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


def parse_size(text: str) -> int:
    """A number of bytes from text such as '64MB'.

    >>> parse_size("64MB"), parse_size("1.5 kb"), parse_size("10")
    (67108864, 1536, 10)
    """
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InputError(
            "cannot read a size",
            detail=f"got {text!r}",
            hint="write a number and a unit, such as '64MB' or '1.5 GB'",
        )
    return int(float(match[1]) * unit)


def parse_count(text: str) -> int:
    """A number of rows.

    >>> parse_count("1000000"), parse_count("1 000 000")
    (1000000, 1000000)
    """
    digits = re.sub("[ _]", "", text)
    if not digits.isdecimal() or len(digits) > 18:
        raise InputError(
            "cannot read a number of rows", detail=f"got {text!r}", hint="write it as '1000000'"
        )
    return int(digits)
