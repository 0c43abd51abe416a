"""Finds the server that a command uses, and its token.

A token is read from the environment or a file, never from the command line, where everybody on the
machine could read it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from nilometer.commands.options import DatabaseLocation
from nilometer.errors import InputError, InUseError
from nilometer.extras import require_extras

if TYPE_CHECKING:
    import ssl

    from nilometer.client import Client

TOKEN_VARIABLE: Final = "NILOMETER_TOKEN"
_OTHERS: Final = 0o077
_LONGEST: Final = 1000
_LOCAL: Final = ("localhost", "::1")
_STATEMENT_SECONDS: Final = 600.0
"""How long to wait for an answer; the server ends most statements long before."""

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask a running server, such as http://127.0.0.1:8642. Its token is read from the "
        f"environment variable {TOKEN_VARIABLE}, or the file given by --token-file.",
        rich_help_panel="A running server",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="A file with the token; it must be readable by you alone.",
        rich_help_panel="A running server",
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE.pem",
        help="Certificates to trust, if those of this machine do not cover the server.",
        rich_help_panel="A running server",
    ),
]


@dataclass(frozen=True)
class Server:
    """A server, and how to connect to it."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca: Path | None = None

    def open(self, seconds: float = _STATEMENT_SECONDS) -> Client:
        """A client that waits this long for answers; nothing is sent yet."""
        require_extras("--server", "client")
        from nilometer.client import Client  # noqa: PLC0415  takes its time to load

        verify = True if self.ca is None else _trusted(self.ca)
        return Client(self.url, self.token, timeout=seconds, verify=verify)

    @property
    def warning(self) -> str | None:
        """A warning if the token is sent insecurely."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme != "http" or host in _LOCAL or host.startswith("127."):
            return None
        if self.token is None:
            return None
        return f"the token crosses the network to {host} unencrypted: use https"


def ask_server(
    url: str | None,
    token_file: Path | None,
    ca: Path | None,
    location: DatabaseLocation | None,
    command: str,
) -> Server | None:
    """The server that was named, or that has the database open; users are told which."""
    server = find_asked(
        url, token_file, ca, None if location is None else location.folder, _note, command
    )
    if server is not None and (warning := server.warning) is not None:
        _note(f"warning: {warning}")
    return server


def _note(text: str) -> None:
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    console.print(Text(text, style="dim"), soft_wrap=True)


def find_asked(
    url: str | None,
    token_file: Path | None,
    ca: Path | None,
    folder: Path | None,
    say: Callable[[str], None],
    command: str,
) -> Server | None:
    """The server of --server, otherwise the one that has the folder of --db open.

    `command` is the command that a hint recommends.
    """
    if url is not None and folder is not None:
        raise InputError("--server and --db do not go together", hint="leave one of them out")
    if url is not None:
        return Server(url, read_token(token_file), ca)
    if folder is not None:
        return _server_of(folder, token_file, ca, say, command)
    for option, value in (("--token-file", token_file), ("--ca", ca)):
        if value is not None:
            raise InputError(f"{option} is for a server", hint="name it with --server")
    return None


def _server_of(
    folder: Path,
    token_file: Path | None,
    ca: Path | None,
    say: Callable[[str], None],
    command: str,
) -> Server | None:
    """The server that has a database open, if there is one and a token; otherwise None.

    InUseError if it is open but cannot be reached: it says how to continue.
    """
    from nilometer.model.served_at import find_server, holder_of  # noqa: PLC0415  needs sockets

    holder = holder_of(folder)
    if holder is None:
        if token_file is not None or ca is not None:
            option = "--token-file" if token_file is not None else "--ca"
            raise InputError(
                f"{option} is for a server, and none has {folder} open",
                hint="leave it out, or start one: nilometer serve",
            )
        return None
    served = find_server(folder)
    if served is None:
        raise InUseError(
            f"the database {folder} is in use",
            detail=f"{holder} has it open",
            hint="close it there, or use another one",
        )
    token = read_token(token_file)
    if token is None:
        raise InUseError(
            f"the database {folder} is in use",
            detail=f"the server at {served.address} (process {served.pid}) has it open",
            hint=f"ask that server: {TOKEN_VARIABLE}=… nilometer {command} --server "
            f"{served.address} …; nilometer tokens create NAME --scope read --db "
            f"{shlex.quote(str(folder))} makes a token",
        )
    say(f"asking the server at {served.address}, which has {folder} open")
    return Server(served.address, token, ca)


def read_token(file: Path | None) -> str | None:
    """The token in the file, otherwise that of the environment; None if there is none."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip() or None
    try:
        with file.expanduser().open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & _OTHERS:
                raise InputError(
                    f"other users can read the token in {file}",
                    hint=f"chmod 600 {shlex.quote(str(file))}",
                )
            token = opened.read(_LONGEST).strip()
    except OSError as error:
        raise InputError(f"cannot read the token in {file}", detail=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError(f"there is no token in {file}", detail="it is not text") from None
    if not token or any(c.isspace() or not c.isprintable() for c in token):
        raise InputError(
            f"there is no token in {file}",
            hint="write what nilometer tokens create has printed into it, and nothing else",
        )
    return token


def _trusted(ca: Path) -> ssl.SSLContext:
    import ssl  # noqa: PLC0415  takes its time to load, and is rarely needed

    try:
        return ssl.create_default_context(cafile=str(ca.expanduser()))
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"cannot read the certificates in {ca}",
            detail=error.strerror or str(error),
            hint="--ca names a file with certificates in PEM form",
        ) from None
