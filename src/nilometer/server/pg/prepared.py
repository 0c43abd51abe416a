"""Statements that a client has prepared, and portals from which it fetches rows."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.errors import InputError, LimitError
from nilometer.server.limits import Weights
from nilometer.server.pg import wire
from nilometer.server.pg.statements import (
    Command,
    StatementAnswer,
)
from nilometer.server.pg.values import TEXT, format_of, read_value

_MOST_PREPARED: Final = 1000
_MOST_TEXT: Final = 1 << 20
"""The maximum number of characters of all prepared statements of a connection."""


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


class PreparedStatements:
    """What one connection has prepared, and its portals, whose answers are held until fetched."""

    def __init__(self, token: str, weights: Weights) -> None:
        """`weights`: the sizes of answers whose rows were not all sent yet, by token."""
        self._token = token
        self._weights = weights
        self._weight = 0
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}

    def prepare(self, name: str, text: str, commands: Sequence[Command], oids: list[int]) -> None:
        """Keep a statement, which was read from a text."""
        if len(commands) > 1:
            raise InputError("several statements cannot be prepared as one")
        if name and name in self._prepared:
            raise InputError(f"prepared statement {name} already exists")
        if len(self._prepared) >= _MOST_PREPARED:
            raise LimitError(f"there are {_MOST_PREPARED} prepared statements already")
        held = sum(len(one.command.text) for one in self._prepared.values() if one.command)
        if held + len(text) > _MOST_TEXT:
            raise LimitError("the prepared statements are too long", hint="close some")
        self._prepared[name] = Prepared(commands[0] if commands else None, oids)

    def bind(self, body: wire.Body) -> None:
        """Make a portal of a prepared statement and the values in a message."""
        portal, name = body.text(), body.text()
        prepared = self.find(name)
        value_formats = [body.int16() for _ in range(body.count())]
        contents = [body.value() for _ in range(body.count())]
        formats = [body.int16() for _ in range(body.count())]
        oids = type_oids(prepared)
        if len(contents) != len(oids):
            raise wire.ProtocolError(f"expected {len(oids)} values, got {len(contents)}")
        try:
            values = [
                read_value(content, oids[place], format_of(value_formats, place))
                for place, content in enumerate(contents)
            ]
        except (ValueError, ArithmeticError, IndexError, struct.error) as error:
            raise InputError("cannot read the value of a parameter", detail=str(error)) from None
        if len(self._portals) >= _MOST_PREPARED:
            raise LimitError(f"there are {_MOST_PREPARED} portals already")
        self._portals[portal] = Portal(prepared, values, formats)

    def find(self, name: str) -> Prepared:
        if name not in self._prepared:
            raise InputError(f"there is no prepared statement {name!r}")
        return self._prepared[name]

    def find_portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise InputError(f"there is no portal {name!r}")
        return self._portals[name]

    def close(self, kind: bytes, name: str) -> None:
        """Forget a statement (S) or a portal (P)."""
        held = self._prepared if kind == b"S" else self._portals
        held.pop(name, None)

    def close_portals(self) -> None:
        """Forget all portals."""
        self._portals.clear()
        self._weigh()

    def hold(self, portal: Portal, answer: StatementAnswer) -> None:
        """Keep an answer with its portal; refused if the token's answers are too large."""
        self._weigh(_size(answer))
        portal.answer = answer

    def _weigh(self, more: int = 0) -> None:
        """Count the rows that are held, plus this many bytes."""
        weight = sum(_size(one.answer) for one in self._portals.values()) + more
        self._weights.change(self._token, weight - self._weight)
        self._weight = weight


def _size(answer: StatementAnswer | None) -> int:
    return 0 if answer is None or answer.rows is None else answer.rows.nbytes


def type_oids(prepared: Prepared) -> list[int]:
    """The types of a statement's parameters: as given by the client, or text."""
    count = 0 if prepared.command is None else prepared.command.parameters
    count = max(count, len(prepared.oids))
    oids = [*prepared.oids, *([0] * (count - len(prepared.oids)))]
    return [one or TEXT for one in oids]


def has_rows(portal: Portal) -> bool:
    command = portal.prepared.command
    return command is not None and command.copy is None and command.tag is None
