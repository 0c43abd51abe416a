"""`nilometer backup` and `nilometer restore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nilometer.commands.server_access import (
    CaOption,
    Server,
    ServerOption,
    TokenFileOption,
    read_token,
)
from nilometer.errors import InputError, in_one_line
from nilometer.model.names import count

if TYPE_CHECKING:
    from nilometer.upkeep.manifest import Manifest

_MEGABYTE: Final = 1_000_000
_LONGEST: Final = 24 * 3600
_HEADINGS: Final = ("name", "created (UTC)", "size", "files", "database")


def backup(
    first: Annotated[
        str | None, typer.Argument(metavar="DATABASE", help="Its folder; not with --server.")
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="DESTINATION", help="A folder, or a URI such as s3://bucket/folder."
        ),
    ] = None,
    *,
    shown: Annotated[
        bool, typer.Option("--list", help="Show the backups in a destination instead.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Then remove all but its last N backups."),
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option("--logs", metavar="FOLDER", help="Its logs, if they are stored elsewhere."),
    ] = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
) -> None:
    """Back up a database, even while it is in use; backups share unchanged files.

    nilometer backup plant /mnt/backups --keep 30
    nilometer backup --list /mnt/backups
    nilometer backup --server https://plant:8642
    """
    if (shown or server is not None) and second is not None:
        raise InputError("only a destination is needed here", detail=f"got {first} and {second}")
    if keep is not None and (shown or server is not None):
        raise InputError(
            "--keep is for backups that are made here",
            hint="a server has keep_backups in its configuration",
        )
    if server is not None:
        _ask(Server(server, read_token(token_file), ca), first, shown=shown)
        return
    if first is None or (second is None and not shown):
        raise InputError(
            "where should the backup go?", hint="nilometer backup DATABASE DESTINATION"
        )
    if second is None:
        _show(first)
        return
    from nilometer.upkeep.backup import make_backup  # noqa: PLC0415  takes its time to load
    from nilometer.upkeep.in_use import held_still  # noqa: PLC0415

    with held_still(Path(first).expanduser()):
        result = make_backup(Path(first), second, logs)
    _tell(result.manifest.name, len(result.manifest.files), result.manifest.size, result.written)
    if keep is not None:
        from nilometer.upkeep.remove import remove_backups  # noqa: PLC0415

        removed = remove_backups(second, result.manifest.database, keep)
        _tell_removed(len(removed.names), removed.freed)


def restore(
    source: Annotated[
        str, typer.Argument(metavar="BACKUPS", help="The destination that was backed up to.")
    ],
    db: Annotated[Path, typer.Argument(metavar="DATABASE", help="A new folder.")],
    *,
    name: Annotated[
        str | None, typer.Option(help="Which backup, as shown by --list; by default the newest.")
    ] = None,
) -> None:
    """Make a database from a backup; its queries resume from there when it is opened."""
    from nilometer.upkeep.restore import restore_backup  # noqa: PLC0415  takes its time to load

    manifest = restore_backup(source, db, name)
    size = f"{count(len(manifest.files), 'file')}, {_size(manifest.size)}"
    typer.echo(f"restored the backup {manifest.name} of {manifest.database} to {db}: {size}")


def _ask(server: Server, destination: str | None, *, shown: bool) -> None:
    """Ask a server to do it, to a destination that its configuration allows."""
    if shown:
        raise InputError("--list reads the destination itself", hint="leave out --server")
    if server.warning is not None:
        typer.echo(server.warning, err=True)
    with server.open(_LONGEST) as client:
        result = client.back_up(destination)
    _tell(result["name"], result["files"], result["size"], result["written"])
    _tell_removed(result["removed"], result["freed"])


def _tell(name: str, files: int, size: int, written: int) -> None:
    summary = f"{count(files, 'file')}, {_size(size)}, {_size(written)} new"
    typer.echo(f"made the backup {name}: {summary}")


def _tell_removed(backups: int, freed: int) -> None:
    if backups:
        typer.echo(f"removed {count(backups, 'old backup')}, {_size(freed)}")


def _show(destination: str) -> None:
    from nilometer.errors import BackupError  # noqa: PLC0415
    from nilometer.upkeep.backup import list_backups  # noqa: PLC0415  takes its time to load

    backups = list_backups(destination)
    if not backups:
        typer.echo(f"there are no backups in {destination}")
        return
    rows = [_HEADINGS, *(_row(one) for one in backups if not isinstance(one, BackupError))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
    for one in backups:
        if isinstance(one, BackupError):
            typer.echo(in_one_line(one))


def _row(one: Manifest) -> tuple[str, ...]:
    created = one.created[:19].replace("T", " ")
    return one.name, created, _size(one.size), str(len(one.files)), one.database


def _size(size: int) -> str:
    return f"{size / _MEGABYTE:,.1f} MB"
