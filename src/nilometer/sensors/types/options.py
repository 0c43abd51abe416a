"""The options of stream types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nilometer.model import options
from nilometer.model.options import Option
from nilometer.sensors.types.address import ADDRESS


def read_options(
    stream_type: str, known: Sequence[Option], texts: Mapping[str, str]
) -> dict[str, Any]:
    """The values of all options of a type, given or not; an invalid one is refused by name."""
    others = {name: text for name, text in texts.items() if name.lower() != ADDRESS}
    return options.read_options(f"stream type {stream_type}", known, others)
