"""The command `nilometer shell`, which `nilometer sql` becomes on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Never

import typer

from nilometer.commands import options
from nilometer.commands.command_options import (
    CatalogOption,
    DatabaseOption,
    LogsOption,
    ParameterOption,
)
from nilometer.commands.server_access import (
    CaOption,
    Server,
    ServerOption,
    TokenFileOption,
    ask_server,
)

USUAL_SERVER: Final = "http://127.0.0.1:8642"
"""The default server: where `nilometer serve` listens."""


def shell(  # noqa: PLR0913, PLR0917  one argument for each option
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    logs: LogsOption = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Run the statements of a file; - is stdin."
        ),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Continue after a statement that fails."),
    ] = False,
    form: Annotated[
        options.Format, typer.Option("--format", help="Output format of answers.")
    ] = options.Format.TABLE,
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many rows of an answer a table shows.")
    ] = None,
    param: ParameterOption = None,
) -> None:
    """Type statements one after the other, at a running server or a database of your own.

    Without --server and --db it is the server at http://127.0.0.1:8642. Statements end with
    a semicolon; \\? shows what else can be typed. Statements can also come through a pipe:

      echo "SHOW STREAMS;" | nilometer shell --server http://127.0.0.1:8642
    """
    location = options.read_location(db, catalog, logs)
    url = USUAL_SERVER if server is None and location is None else server
    start_shell(
        ask_server(url, token_file, ca, location, "shell"),
        location,
        options.Sources(),
        file=file,
        keep_going=keep_going,
        form=form,
        limit=limit,
        param=param or [],
    )


def start_shell(
    asked: Server | None,
    location: options.DatabaseLocation | None,
    sources: options.Sources,
    *,
    file: str | None = None,
    keep_going: bool = False,
    form: options.Format = options.Format.TABLE,
    limit: int | None = None,
    param: Sequence[str] = (),
) -> Never:
    """Run a shell to its end, and the command with it."""
    from nilometer.commands.parameter_option import read_parameters  # noqa: PLC0415
    from nilometer.commands.shell.run_shell import ShellRequest, run_shell  # noqa: PLC0415

    if asked is None and location is None and not (sources.streams or sources.tables):
        asked = ask_server(USUAL_SERVER, None, None, None, "shell")
    request = ShellRequest(
        asked, location, sources, file, keep_going, form, limit, read_parameters(param)
    )
    raise typer.Exit(0 if run_shell(request) else 1)
