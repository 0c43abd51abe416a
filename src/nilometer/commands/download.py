"""`nilometer download`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from nilometer.commands.options import DatabaseLocation
from nilometer.commands.server_access import CaOption, ServerOption, TokenFileOption, ask_server
from nilometer.errors import InputError

_FORMATS: Final = ("csv", "jsonl", "arrow", "parquet")
_SECONDS: Final = 600.0
"""How long to wait for the next piece of a file."""
_MEGABYTE: Final = 1_000_000


def download(  # noqa: PLR0913  one argument for each option
    name: Annotated[str, typer.Argument(metavar="NAME", help="A query, stream or sensor table.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Its extension sets the format: mean.parquet")
    ],
    *,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(_FORMATS)}."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only rows from this time on, in UTC: 2026-01-31 12:00"),
    ] = None,
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only rows up to this time.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="COLUMN", help="Only these columns. Repeatable."),
    ] = None,
    bucket: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help='Such as "1 minute": minimum, maximum and mean of every minute.',
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(metavar="N", help="Reduce to this many rows, which look the same in a chart."),
    ] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that distinguishes series, with --bucket or --points. Repeatable.",
        ),
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="For a changing answer: the answer, not its changes.")
    ] = False,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FOLDER", help="A database that a server has open."),
    ] = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Store rows of a query or stream in a file, which is whole or not there.

    nilometer download climate climate.parquet --start 2026-01-31 --server http://127.0.0.1:8642
    nilometer download climate day.csv --bucket "1 minute" --per room --db plant
    """
    chosen = (form or file.suffix.removeprefix(".")).lower()
    if chosen not in _FORMATS:
        raise InputError(
            f"unknown format {chosen!r}" if chosen else "the file's name has no extension",
            detail=f"formats are {', '.join(_FORMATS)}",
            hint="end its name with one of them, or write --format csv",
        )
    folder = file.expanduser().absolute().parent
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", hint="make it first, or choose another")
    location = None if db is None else DatabaseLocation(db.expanduser())
    asked = ask_server(server, token_file, ca, location, "download")
    if asked is None:
        raise InputError(
            "a download needs a running server",
            hint="name it with --server URL, or its database with --db FOLDER; "
            "nilometer serve starts one",
        )
    with asked.open(_SECONDS) as client:
        made = client.download(
            name,
            file,
            form=chosen,
            start=start,
            end=end,
            columns=columns or (),
            per=per or (),
            bucket=bucket,
            points=points,
            answer=answer,
        )
    typer.echo(f"wrote {made}: {made.stat().st_size / _MEGABYTE:,.1f} MB")
