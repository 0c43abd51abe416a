"""`nilometer move-logs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from nilometer.commands.command_options import CatalogOption
from nilometer.model.names import count

_MEGABYTE: Final = 1_000_000


def move_logs(
    db: Annotated[Path, typer.Argument(metavar="DATABASE", help="Its folder.")],
    to: Annotated[
        str,
        typer.Argument(metavar="PLACE", help="A new folder, or a URI such as s3://bucket/folder."),
    ],
    *,
    catalog: CatalogOption = None,
) -> None:
    """Move the logs of a database that nobody has open; its queries resume, each row once.

    nilometer move-logs plant s3://bucket/plant
    """
    from nilometer.upkeep.logs_place import logs_of  # noqa: PLC0415
    from nilometer.upkeep.move_logs import move_logs as move  # noqa: PLC0415  takes its time

    def tell(name: str, size: int) -> None:
        typer.echo(f"{name}: {size / _MEGABYTE:,.1f} MB")

    moved = move(db, to, catalog=catalog, tell=tell)
    total = f"{count(moved.logs, 'log')}, {moved.size / _MEGABYTE:,.1f} MB"
    typer.echo(f"moved the logs of {db} to {logs_of(db.expanduser().absolute())}: {total}")
    typer.echo(f"the old ones are still in {moved.before}: delete them when all is well")
