"""The text of the statements given to a command."""

from __future__ import annotations

import sys
from pathlib import Path

from nilometer.errors import InputError


def read_text(statement: str | None, file: str | None) -> str:
    """The text given as an argument or in a file; `-` is the standard input."""
    if (statement is None) == (file is None):
        raise InputError(
            "expected a statement or a file of statements",
            detail="got neither" if file is None else "got both",
            hint='write "SELECT …" in quotes, or -f queries.sql',
        )
    if file is None:
        return str(statement)
    if file == "-":
        return sys.stdin.read()
    return read_file(file)


def read_file(file: str) -> str:
    """The text of a file of statements."""
    try:
        return Path(file).expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {file}", detail=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read {file}", detail="it is not text in UTF-8") from None
