"""`nilometer tokens`: who may use a server; works while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from nilometer.errors import InputError
from nilometer.log.clock import now_micros
from nilometer.model.time import format_instant, parse_duration

if TYPE_CHECKING:
    from nilometer.server.tokens import Tokens

tokens_app = typer.Typer(
    name="tokens", help="Make, list and revoke the tokens of a server.", no_args_is_help=True
)

DatabaseOption = Annotated[
    Path, typer.Option("--db", metavar="FOLDER", help="The database that is served.")
]
CatalogOption = Annotated[
    str | None,
    typer.Option("--catalog", metavar="URL", help="Its catalog, if that is in PostgreSQL."),
]


class ScopeName(StrEnum):
    """read looks; write runs queries and changes rows; admin affects things outside the server."""

    read = "read"
    write = "write"
    admin = "admin"


@tokens_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    scope: Annotated[
        ScopeName, typer.Option(help="What it allows; each scope includes those before it.")
    ],
    *,
    db: DatabaseOption,
    catalog: CatalogOption = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long it is valid, such as 30d.")
    ] = None,
) -> None:
    """Make a token and print it: this is the only time that it can be seen."""
    from nilometer.server.scopes import Scope  # noqa: PLC0415  takes its time to load

    length = None if expires is None else parse_duration(expires)
    with _tokens(db, catalog) as tokens:
        until = None if length is None else now_micros() + length
        typer.echo(tokens.create(name, Scope(scope.value), expires=until))


@tokens_app.command("list")
def list_tokens(*, db: DatabaseOption, catalog: CatalogOption = None) -> None:
    """List the tokens: their names and what they allow; of the tokens themselves a hash is kept."""
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "scope", "created (UTC)", "expires (UTC)"):
        table.add_column(heading, no_wrap=True)
    now = now_micros()
    _require_there(db, catalog)
    with _tokens(db, catalog) as tokens:
        for one in tokens.all():
            ends = "never" if one.expires is None else format_instant(one.expires)[:19]
            expired = "" if one.is_valid(now) else " (expired)"
            table.add_row(
                one.name,
                " ".join(sorted(one.scopes)),
                format_instant(one.created)[:19],
                ends + expired,
            )
    Console(highlight=False, markup=False, emoji=False).print(table)


@tokens_app.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    *,
    db: DatabaseOption,
    catalog: CatalogOption = None,
) -> None:
    """End a token: a server that runs refuses it within seconds."""
    _require_there(db, catalog)
    with _tokens(db, catalog) as tokens:
        if not tokens.revoke(name):
            raise InputError(f"there is no token {name}", hint="nilometer tokens list shows them")
    typer.echo(f"token {name} revoked")


def _require_there(db: Path, catalog: str | None) -> None:
    """Refuse a missing database: listing or revoking tokens must not create one by mistake."""
    from nilometer.upkeep.catalog_place import settle_catalog  # noqa: PLC0415

    place = settle_catalog(db.expanduser(), catalog)
    if isinstance(place, Path) and not place.is_file():
        raise InputError(f"there is no database in {db}", hint="nilometer serve makes one")


@contextmanager
def _tokens(db: Path, catalog: str | None) -> Iterator[Tokens]:
    """The tokens of a database that exists, or that is about to be served."""
    from nilometer.sensors.catalog.catalog import SensorCatalog  # noqa: PLC0415
    from nilometer.server.tokens import Tokens  # noqa: PLC0415
    from nilometer.upkeep.catalog_place import settle_catalog  # noqa: PLC0415

    with SensorCatalog.open(settle_catalog(db.expanduser(), catalog)) as opened:
        yield Tokens(opened)
