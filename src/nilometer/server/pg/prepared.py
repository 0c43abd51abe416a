"""Statements that a client has prepared, and portals from which it fetches rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nilometer.server.pg.statements import (
    Command,
    StatementAnswer,
)
from nilometer.server.pg.values import TEXT

if TYPE_CHECKING:
    pass


@dataclass
class Prepared:
    command: Command | None
    """None: an empty statement."""
    oids: Sequence[int] = ()


@dataclass
class Portal:
    prepared: Prepared
    values: Sequence[object] = ()
    formats: Sequence[int] = ()
    answer: StatementAnswer | None = None
    left: Iterator[list[bytes | None]] | None = None
    """Rows that have not been sent yet."""


def type_oids(prepared: Prepared) -> list[int]:
    """The types of a statement's parameters: as given by the client, or text."""
    count = 0 if prepared.command is None else prepared.command.parameters
    count = max(count, len(prepared.oids))
    oids = [*prepared.oids, *([0] * (count - len(prepared.oids)))]
    return [one or TEXT for one in oids]


def has_rows(portal: Portal) -> bool:
    command = portal.prepared.command
    return command is not None and command.copy is None and command.tag is None
