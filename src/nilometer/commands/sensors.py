"""The commands `nilometer sensors list | watch | test`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from nilometer.commands.server_access import (
    CaOption,
    Server,
    ServerOption,
    TokenFileOption,
    find_asked,
)
from nilometer.errors import InputError

if TYPE_CHECKING:
    from nilometer.commands.folder_sensors import FolderSensors
    from nilometer.commands.server_sensors import ServerSensors
    from nilometer.commands.show_sensors import Overview

sensors_app = typer.Typer(
    name="sensors",
    help="Look at the sensors of a database: all of them, live, or one by itself.",
    no_args_is_help=True,
)

_WIDE: Final = 160

DatabaseOption = Annotated[
    Path | None, typer.Option("--db", metavar="FOLDER", help="The folder of the database.")
]
CatalogOption = Annotated[
    str | None,
    typer.Option("--catalog", metavar="URL", help="Its catalog, if that is in PostgreSQL."),
]
StreamArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Only this stream or sensor table.")
]


@sensors_app.command("list")
def list_sensors(
    name: StreamArgument = None,
    *,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """List all sensors, with the status of those that a running query needs."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    with _overview(name, db, catalog, _find_server(db, server, token_file, ca)) as overview:
        console.print(overview.table(full=True))
        console.print(overview.source.summary(), style="dim", soft_wrap=True)


@sensors_app.command("watch")
def watch_sensors(
    name: StreamArgument = None,
    *,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after this long; by default on Ctrl-C.")
    ] = None,
) -> None:
    """Show live what a running database reads from its sensors."""
    with _overview(name, db, catalog, _find_server(db, server, token_file, ca)) as overview:
        overview.watch(Console(highlight=False), seconds)


@sensors_app.command("test")
def read_one_sensor(
    name: Annotated[str, typer.Argument(help="The stream or sensor table.")],
    sensor: Annotated[
        str | None, typer.Argument(help="The sensor, by its first static column.")
    ] = None,
    *,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to read it.")] = 5,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many readings to show.")] = 10,
) -> None:
    """Read one sensor by itself, and show what comes; nothing is stored in the database."""
    from nilometer.commands.try_sensor import try_sensor, try_sensor_of_server  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    asked = _find_server(db, server, token_file, ca)
    if asked is not None:
        came = try_sensor_of_server(asked, name, sensor, seconds, limit, console)
    else:
        folder = _folder(_required(db), catalog)
        came = try_sensor(folder, catalog, name, sensor, seconds, limit, console)
    if not came:
        raise typer.Exit(1)


def _required(db: Path | None) -> Path:
    if db is None:
        raise InputError(
            "expected a database or a server", hint="name one: --db FOLDER, or --server URL"
        )
    return db


def _find_server(
    db: Path | None, url: str | None, token_file: Path | None, ca: Path | None
) -> Server | None:
    """The server of --server; a folder shows its sensors even while a server has it open."""
    if url is not None and db is not None:
        raise InputError("--server and --db do not go together", hint="leave one of them out")
    return find_asked(url, token_file, ca, None, lambda _: None, "sensors list")


@contextmanager
def _overview(
    name: str | None, db: Path | None, catalog: str | None, server: Server | None
) -> Iterator[Overview]:
    from nilometer.commands.show_sensors import Overview  # noqa: PLC0415  takes its time to load

    with closing(_source(name, db, catalog, server)) as source:
        yield Overview(source)


def _source(
    name: str | None, db: Path | None, catalog: str | None, server: Server | None
) -> FolderSensors | ServerSensors:
    if server is not None:
        client = server.open()
        from nilometer.commands.server_sensors import ServerSensors  # noqa: PLC0415

        return ServerSensors(client, server.url, name)
    from nilometer.commands.folder_sensors import FolderSensors  # noqa: PLC0415

    return FolderSensors(_folder(_required(db), catalog), catalog, name)


def _folder(db: Path, catalog: str | None) -> Path:
    """The folder of an existing database: looking at one must not create one."""
    from nilometer.upkeep.catalog_place import settle_catalog  # noqa: PLC0415

    folder = db.expanduser()
    place = settle_catalog(folder, catalog)
    if not folder.is_dir() or (isinstance(place, Path) and not place.is_file()):
        raise InputError(
            f"there is no database at {db}",
            hint=f'make one: nilometer sql --db {db} "CREATE SENSOR TABLE …"',
        )
    return folder
