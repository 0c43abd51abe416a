"""Upgrades the tables of a catalog to this version, once, even if others open it concurrently."""

from __future__ import annotations

import threading
from functools import cache
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from nilometer.errors import CatalogError
from nilometer.sensors.catalog.engine import BEGIN, shown
from nilometer.sensors.catalog.schema import VERSION_TABLE

_LOCK_NUMBER: Final = 0x6E696C6F
"""The advisory lock that migrations in PostgreSQL agree on."""
_ONE_AT_A_TIME: Final = threading.Lock()
"""Alembic supports only one migration at a time in a process."""


def migrate(engine: Engine) -> None:
    """Create or upgrade the tables.

    A catalog of a later version, or of one before the first release, is refused and left unchanged.
    """
    steps = _steps()
    with engine.connect() as connection:
        if _revision(connection) == steps.get_current_head():
            return
    with (
        _ONE_AT_A_TIME,
        engine.connect().execution_options(**{BEGIN: "BEGIN IMMEDIATE"}) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})"))
        _refuse_unknown(engine, steps, _revision(connection))
        _upgrade(connection, steps)


@cache
def known_revisions() -> frozenset[str]:
    """The revisions that this release can read, the earlier ones by upgrading them."""
    return frozenset(step.revision for step in _steps().walk_revisions())


def _steps() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "nilometer.sensors.catalog:migrations")
    return ScriptDirectory.from_config(config)


def _upgrade(connection: Connection, steps: ScriptDirectory) -> None:
    """Run the steps that are missing, oldest first."""
    context = _context(connection)
    missing = list(steps.iterate_revisions("head", _revision(connection) or "base"))
    with Operations.context(context):
        for step in reversed(missing):
            step.module.upgrade()
    context.stamp(steps, "head")


def _revision(connection: Connection) -> str | None:
    return _context(connection).get_current_revision()


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})


def _refuse_unknown(engine: Engine, steps: ScriptDirectory, revision: str | None) -> None:
    if revision is None or revision in known_revisions():
        return
    detail = (
        f"{shown(engine.url)} has revision {revision}, this version knows "
        f"{steps.get_current_head()}"
    )
    if revision < min(known_revisions()):
        raise CatalogError(
            "the catalog was written before the first release of Nilometer",
            detail=detail,
            hint="create the database anew in another place, with its streams and queries",
        )
    raise CatalogError(
        "the catalog was written by a later version of Nilometer",
        detail=detail,
        hint="upgrade Nilometer",
    )
