"""`nilometer check`."""

from __future__ import annotations

from typing import Annotated

import typer

from nilometer.model.names import count


def check(
    place: Annotated[
        str, typer.Argument(metavar="DATABASE|BACKUPS", help="A folder, or the URI of backups.")
    ],
    *,
    logs: Annotated[
        str | None,
        typer.Option(
            "--logs", metavar="FOLDER|URI", help="Its logs, if they are stored elsewhere."
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option("--catalog", metavar="URL", help="Its catalog, if that is in PostgreSQL."),
    ] = None,
) -> None:
    """Read all of a database, or of backups, and say what is damaged; nothing is changed.

    The exit code is 0 if everything is intact, and 1 if not.
    """
    from nilometer.upkeep.check import check as check_place  # noqa: PLC0415  takes its time

    checked = check_place(place, logs, catalog)
    for problem in checked.problems:
        typer.echo(str(problem))
    if checked.problems:
        typer.echo(f"{checked.what}: {count(len(checked.problems), 'problem')}")
        raise typer.Exit(1)
    typer.echo(f"{checked.what}: everything is intact")
