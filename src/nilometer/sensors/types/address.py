"""How the row of a sensor table specifies its sensor's address."""

from __future__ import annotations

import json
from typing import Final

from nilometer.errors import InputError

ADDRESS: Final = "address"


def read_address(text: str) -> tuple[str, dict[str, str]]:
    """The address and options in a cell: an address, or a JSON object of options.

    >>> read_address("http://127.0.0.1:5001")
    ('http://127.0.0.1:5001', {})
    >>> read_address('{"address": "http://127.0.0.1:5001", "interval": "5s"}')
    ('http://127.0.0.1:5001', {'interval': '5s'})
    """
    if not text.lstrip().startswith("{"):
        return text.strip(), {}
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise InputError(
            "the options of a sensor are not a JSON object",
            detail=f"{error}; got {text[:100]!r}",
            hint='write an address, or options such as {"address": "…", "interval": "5s"}',
        ) from error
    options = {str(name).lower(): _text(name, value) for name, value in parsed.items()}
    return options.pop(ADDRESS, "").strip(), options


def _text(name: str, value: object) -> str:
    """An option's value as text, as in WITH (…)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | dict | list):
        return json.dumps(value)
    raise InputError(
        f"option {name!r} of a sensor has no value",
        hint="leave the option out, or give it a value",
    )
