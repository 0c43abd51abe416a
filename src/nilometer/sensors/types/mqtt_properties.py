"""User properties of messages (MQTT 5): names and texts that publishers or brokers add."""

from __future__ import annotations

from typing import Final

from nilometer.sensors.types.json_fields import FieldPaths, read_fields

_USER: Final = 0x26
_WIDTHS: Final = {0x01: 1, 0x02: 4, 0x23: 2}
"""Format, expiry, topic alias: other properties of a message that are not text."""


def read_properties(text: str) -> dict[str, str]:
    """Names of properties by column.

    >>> read_properties("ts=sent.at, unit=u")
    {'ts': 'sent.at', 'unit': 'u'}
    """
    paths: FieldPaths = read_fields(text)
    return {column: ".".join(map(str, path)) for column, path in paths.items()}


def user_properties(properties: bytes) -> dict[str, str]:
    """The user properties of a message; if a name occurs twice, the last one.

    A truncated or unknown property ends the list: the message itself is valid.

    >>> user_properties(bytes([0x01, 1, 0x26, 0, 1]) + b"a" + bytes([0, 2]) + b"xy")
    {'a': 'xy'}
    """
    by_name: dict[str, str] = {}
    place = 0
    while place < len(properties):
        kind = properties[place]
        place += 1
        if kind in _WIDTHS:
            place += _WIDTHS[kind]
        elif kind == 0x0B:  # a subscription's number, of variable length
            while place < len(properties) and properties[place] >= 128:
                place += 1
            place += 1
        else:
            texts = []
            for _ in range(2 if kind == _USER else 1):
                length = int.from_bytes(properties[place : place + 2], "big")
                texts.append(properties[place + 2 : place + 2 + length])
                place += 2 + length
            if place > len(properties):
                break
            if kind == _USER:
                by_name[texts[0].decode(errors="replace")] = texts[1].decode(errors="replace")
    return by_name
