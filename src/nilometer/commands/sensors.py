"""The commands `nilometer sensors list | watch | test`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from nilometer.errors import InputError

sensors_app = typer.Typer(
    name="sensors",
    help="Look at the sensors of a database: all of them, live, or one by itself.",
    no_args_is_help=True,
)

_WIDE: Final = 160

DatabaseOption = Annotated[
    Path, typer.Option("--db", metavar="FOLDER", help="The folder of the database.")
]
CatalogOption = Annotated[
    str | None,
    typer.Option("--catalog", metavar="URL", help="Its catalog, where that is in PostgreSQL."),
]
StreamArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Only this stream or sensor table.")
]


@sensors_app.command("list")
def list_sensors(
    name: StreamArgument = None, *, db: DatabaseOption, catalog: CatalogOption = None
) -> None:
    """List all sensors, and how those are doing that a running query needs."""
    from nilometer.commands.show_sensors import Overview  # noqa: PLC0415  takes its time to load

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    with Overview(_folder(db, catalog), catalog, name) as overview:
        console.print(overview.table(full=True))
        console.print(overview.summary(), style="dim", soft_wrap=True)


@sensors_app.command("watch")
def watch_sensors(
    name: StreamArgument = None,
    *,
    db: DatabaseOption,
    catalog: CatalogOption = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End after so long; else with Ctrl-C.")
    ] = None,
) -> None:
    """Show live what a running database reads from its sensors."""
    from nilometer.commands.show_sensors import Overview  # noqa: PLC0415

    with Overview(_folder(db, catalog), catalog, name) as overview:
        overview.watch(Console(highlight=False), seconds)


@sensors_app.command("test")
def read_one_sensor(
    name: Annotated[str, typer.Argument(help="The stream or sensor table.")],
    sensor: Annotated[
        str | None, typer.Argument(help="The sensor, by its first static column.")
    ] = None,
    *,
    db: DatabaseOption,
    catalog: CatalogOption = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="For how long to read it.")] = 5,
    most: Annotated[int, typer.Option("--limit", min=1, help="How many readings to show.")] = 10,
) -> None:
    """Read one sensor by itself, and show what comes; nothing is stored in the database."""
    from nilometer.commands.try_sensor import try_sensor  # noqa: PLC0415

    if not try_sensor(
        _folder(db, catalog),
        catalog,
        name,
        sensor,
        seconds,
        most,
        Console(highlight=False, markup=False),
    ):
        raise typer.Exit(1)


def _folder(db: Path, catalog: str | None) -> Path:
    """The folder of a database that is there: to look at one is not to make one."""
    from nilometer.database.home import CATALOG_FILE  # noqa: PLC0415

    folder = db.expanduser()
    if not folder.is_dir() or (catalog is None and not (folder / CATALOG_FILE).is_file()):
        raise InputError(
            f"there is no database at {db}",
            hint=f'make one: nilometer sql --db {db} "CREATE SENSOR TABLE …"',
        )
    return folder
