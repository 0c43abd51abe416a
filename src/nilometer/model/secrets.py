"""Passwords, tokens and keys in options and addresses: never shown, and kept elsewhere.

`secret('NAME')`, in an option or within an address, stands for what the environment variable
NILOMETER_SECRET_NAME holds where it is used: the catalog keeps the name alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from nilometer.errors import InputError

HIDDEN: Final = "…"
_NAMES: Final = re.compile(
    r"pass(word|phrase|wd)?|secret|token|api[_-]?key|access[_-]?key|credential|authorization|headers?$",
    re.IGNORECASE,
)
_PARAMETERS: Final = re.compile(
    r"key|auth|code|pwd|sig|signature|jwt|sas|bearer|sid|session(_?id)?|otp|pin|cookie"
    r"|.*[_-](key|auth|sig|signature)|x-(amz|goog)-.*",
    re.IGNORECASE,
)
"""Of queries in URLs; options of such names may be names of files."""
_ACCOUNT: Final = re.compile(r"(?<=://)([^/?#\s@:'\"]*):[^/?#\s'\"]*(?=@)")
_QUERY: Final = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s'\"]*)")
_ADDRESS: Final = "address"
_REFERENCE: Final = re.compile(r"secret\('([A-Za-z][A-Za-z0-9_]*)'\)")
VARIABLE: Final = "NILOMETER_SECRET_"
_resolved: Final[set[str]] = set()
"""What secrets stood for in this process: no text that is shown may have it."""


def with_secrets(text: str) -> str:
    """A text with what its secrets stand for; raises InputError if one is not there.

    Within a longer text, which is a URL then, they are written as URLs need it.

    >>> with_secrets("mqtt://ann@host")
    'mqtt://ann@host'
    """
    if (whole := _REFERENCE.fullmatch(text)) is not None:
        return _secret(whole)
    return _REFERENCE.sub(lambda found: quote(_secret(found), safe=""), text)


def options_with_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """The same for the values of options."""
    return {name: with_secrets(text) for name, text in options.items()}


def _secret(found: re.Match[str]) -> str:
    name = f"{VARIABLE}{found[1]}"
    if name not in os.environ:
        raise InputError(
            f"there is no secret {found[1]}",
            detail=f"the environment variable {name} is not set",
            hint="set it where the database runs",
        )
    value = os.environ[name].rstrip("\n")
    if value:
        _resolved.update({value, quote(value, safe="")})
    return value


def is_secret(name: str) -> bool:
    """Whether an option of this name has a value that is not to be shown."""
    return _NAMES.search(name) is not None


def shown_text(text: str) -> str:
    """A text without the passwords in its URLs.

    >>> shown_text("cannot reach mqtt://ann:pass@host/x?token=abc&n=1")
    'cannot reach mqtt://ann:…@host/x?token=…&n=1'
    """
    for value in _resolved:
        text = text.replace(value, HIDDEN)
    text = _ACCOUNT.sub(rf"\1:{HIDDEN}", text)
    return _QUERY.sub(_shown_parameter, text)


def _shown_parameter(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    is_hidden = is_secret(name) or _PARAMETERS.fullmatch(name)
    return f"{name}={HIDDEN if is_hidden else value}"


def shown_address(address: str) -> str:
    """The value of a stream column, an address or a JSON object of options, fit to be shown.

    >>> shown_address('{"address": "tcp://h:1", "password": "x"}')
    '{"address": "tcp://h:1", "password": "…"}'
    """
    if address.lstrip().startswith("{"):
        try:
            found = json.loads(address)
        except ValueError:
            return HIDDEN
        return json.dumps(
            {name: _shown_value(name, value) for name, value in found.items()}, ensure_ascii=False
        )
    return shown_text(address)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they were given, fit to be shown.

    >>> shown_options({"user": "ann", "password": "x"})
    {'user': 'ann', 'password': '…'}
    """
    return {
        name: HIDDEN
        if is_secret(name)
        else shown_address(text)
        if name.lower() == _ADDRESS
        else shown_text(text)
        for name, text in options.items()
    }


def _shown_value(name: str, value: object) -> object:
    if is_secret(name):
        return HIDDEN
    return shown_text(value) if isinstance(value, str) else value
