"""Passwords, tokens and keys in options and addresses: never shown, and stored elsewhere.

`secret('NAME')`, in an option or within an address, stands for the value of the environment
variable NILOMETER_SECRET_NAME where it is used, or else of the file NAME in the folder of secrets:
the catalog stores only the name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from nilometer.errors import InputError

HIDDEN: Final = "…"
_TOKEN: Final = "nm_"
"""The prefix of server tokens."""
_NAMES: Final = re.compile(
    r"pass(word|phrase|wd)?|secret|token|api[_-]?key|access[_-]?key|credential|authorization|headers?$",
    re.IGNORECASE,
)
_PARAMETERS: Final = re.compile(
    r"key|auth|code|pwd|pw|sig|sign|signature|hmac|jwt|sas|bearer|sid|session(_?id)?|otp|pin"
    r"|cookie|ticket|app_?id|licen[cs]e|.*[_-](key|auth|pwd|sig|signature)|x-(amz|goog)-.*",
    re.IGNORECASE,
)
"""Query parameters in URLs; options with such names may be names of files."""
_ACCOUNT: Final = re.compile(r"(?<=://)([^/?#\s@:'\"]*):[^/?#\s'\"]*(?=@)")
_QUERY: Final = re.compile(r"(?<=[?&;#])([^=&;#?\s]+)=([^&;#\s'\"]*)")
_ADDRESS: Final = "address"
_REFERENCE: Final = re.compile(r"secret\('([A-Za-z][A-Za-z0-9_]*)'\)")
_REFERRED: Final = re.compile(rf"(\w+\s*=\s*)?{_REFERENCE.pattern}")
VARIABLE: Final = "NILOMETER_SECRET_"
_folder: Final[list[Path | None]] = [None]
_OTHERS: Final = 0o077
_resolved: Final[set[str]] = set()
"""The values of secrets resolved in this process: no text that is shown may contain them."""


def read_secrets_in(folder: Path | None) -> None:
    """Also look for secrets among the files of a folder; None: nowhere else."""
    _folder[0] = folder


def with_secrets(text: str) -> str:
    """A text with its secrets filled in; raises InputError if one is not found.

    Within a longer text, which must be a URL, they are encoded as URLs need it.

    >>> with_secrets("mqtt://ann@host")
    'mqtt://ann@host'
    """
    if (whole := _REFERENCE.fullmatch(text)) is not None:
        return _secret(whole)
    return _REFERENCE.sub(lambda reference: quote(_secret(reference), safe=""), text)


def options_with_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """Options whose values have their secrets filled in."""
    return {name: with_secrets(text) for name, text in options.items()}


def _secret(reference: re.Match[str]) -> str:
    variable = f"{VARIABLE}{reference[1]}"
    value = os.environ[variable] if variable in os.environ else _in_folder(reference[1], variable)
    value = value.rstrip("\n")
    if value:
        _resolved.update({value, quote(value, safe="")})
    return value


def _in_folder(name: str, variable: str) -> str:
    """The content of a secret's file; a file that others can read is refused."""
    missing = f"the environment variable {variable} is not set"
    folder = _folder[0]
    if folder is None:
        hint = "set it where the database runs"
        raise InputError(f"there is no secret {name}", detail=missing, hint=hint)
    file = folder / name
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & _OTHERS:
                raise InputError(
                    f"other users can read the secret {name}",
                    detail=f"it is in {file}",
                    hint=f"chmod 600 {file}",
                )
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(
            f"there is no secret {name}",
            detail=f"{missing}, and {file} cannot be read: {why}",
            hint="set one of them where the database runs",
        ) from None


def is_secret(name: str) -> bool:
    """Whether an option of this name has a value that must not be shown."""
    return _NAMES.search(name) is not None


def holds_secret(statement: str) -> bool:
    """Whether a text may contain a secret in the clear; such a text is stored nowhere.

    >>> holds_secret("CREATE … WITH (password = 'x')"), holds_secret("… password = secret('P')")
    (True, False)
    """
    rest = _REFERRED.sub("", statement)
    return is_secret(rest) or shown_text(statement) != statement or _TOKEN in statement


def plain_secrets(options: Mapping[str, str]) -> list[str]:
    """The options that give a secret in the clear, and not as `secret('NAME')`.

    >>> plain_secrets({"user": "ann", "password": "x", "token": "secret('T')"})
    ['password']
    """
    return [name for name, text in options.items() if _is_plain(name, text)]


def note_plain(names: Collection[str]) -> str:
    """A note on secrets in the clear, to follow a sentence; empty: nothing to say."""
    if not names:
        return ""
    listed = ", ".join(dict.fromkeys(names))
    return (
        f"; what {listed} holds is stored in the catalog in plain text: "
        "secret('NAME') in its place keeps it elsewhere"
    )


def _is_plain(name: str, text: str) -> bool:
    if is_secret(name):
        return _REFERENCE.search(text) is None
    # What a reference stands for is hidden already.
    hidden = _REFERENCE.sub(HIDDEN, text)
    return shown_address(hidden) != _rewritten(hidden)


def _rewritten(address: str) -> str:
    """An address as `shown_address` writes it, with nothing left out."""
    try:
        return json.dumps(json.loads(address), ensure_ascii=False) if _is_json(address) else address
    except ValueError:
        return address


def _is_json(address: str) -> bool:
    return address.lstrip().startswith("{")


def shown_text(text: str) -> str:
    """A text without the passwords in its URLs.

    >>> shown_text("cannot reach mqtt://ann:pass@host/x?token=abc&n=1")
    'cannot reach mqtt://ann:…@host/x?token=…&n=1'
    """
    for value in _resolved:
        text = text.replace(value, HIDDEN)
    text = _ACCOUNT.sub(rf"\1:{HIDDEN}", text)
    return _QUERY.sub(_shown_parameter, text)


def _shown_parameter(parameter: re.Match[str]) -> str:
    name, value = parameter[1], parameter[2]
    decoded = unquote(name)
    is_hidden = is_secret(decoded) or _PARAMETERS.fullmatch(decoded)
    return f"{name}={HIDDEN if is_hidden else value}"


def shown_address(address: str) -> str:
    """The value of a stream column, an address or a JSON object of options, with secrets hidden.

    >>> shown_address('{"address": "tcp://h:1", "password": "x"}')
    '{"address": "tcp://h:1", "password": "…"}'
    """
    if _is_json(address):
        try:
            options = json.loads(address)
        except ValueError:
            return HIDDEN
        return json.dumps(
            {name: _shown_value(name, value) for name, value in options.items()}, ensure_ascii=False
        )
    return shown_text(address)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they were given, with secrets hidden.

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
