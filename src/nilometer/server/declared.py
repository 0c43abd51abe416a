"""Streams and sensor tables as everyone with the scope read may see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nilometer.model.secrets import shown_address, shown_options
from nilometer.sensors.declaration import Declaration, Sensor


@dataclass(frozen=True)
class Declared:
    """A stream or sensor table with all its sensors, whether wanted now or not."""

    declaration: Declaration
    sensors: tuple[Sensor, ...]


def without_secrets(declaration: Declaration, sensors: Sequence[Sensor]) -> Declared:
    """A declaration without passwords in options and addresses."""
    return Declared(
        replace(declaration, options=shown_options(declaration.options)),
        tuple(replace(one, address=shown_address(one.address)) for one in sensors),
    )
