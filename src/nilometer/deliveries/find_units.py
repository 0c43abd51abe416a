"""Delivery units by name: those that come with Nilometer, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nilometer.deliveries.unit import ENTRY_POINTS, ChunkSize
from nilometer.model.installed import KnownClasses
from nilometer.model.options import Option, one_of, parse_size, read_options, seconds, whole
from nilometer.model.secrets import options_with_secrets

_BUILT_IN: Final = {
    "kafka": "nilometer.deliveries.units.kafka:KafkaUnit",
    "mqtt": "nilometer.deliveries.units.mqtt:MqttUnit",
    "parquet": "nilometer.deliveries.units.parquet:ParquetUnit",
    "python": "nilometer.deliveries.units.python:PythonUnit",
    "webhook": "nilometer.deliveries.units.webhook:WebhookUnit",
}


def known_units() -> KnownClasses:
    """All delivery units."""
    return KnownClasses(
        "delivery unit",
        ENTRY_POINTS,
        _BUILT_IN,
        {
            "kafka": ("kafka", "confluent_kafka"),
            "mqtt": ("deliveries", "paho"),
            "webhook": ("deliveries", "httpx"),
        },
        ("options", "deliver", "close"),
        "options, deliver and close",
    )


def unit_class(name: str) -> Any:
    """The class of a unit."""
    return known_units().find(name)


def read_unit_options(name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """The values of all options of a delivery: those of its unit, and the common ones."""
    kind = unit_class(name)
    options = (*_of_all(kind), *kind.options)
    return read_options(f"unit {name}", options, options_with_secrets(texts))


def chunk_size(options: Mapping[str, Any]) -> ChunkSize:
    """How much is delivered at a time, from parsed options."""
    return ChunkSize(options["rows"], options["bytes"], options["every"])


def shown_options(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The given options, without secrets."""
    secret = {one.name for one in unit_class(name).options if one.is_secret}
    return {one: "…" if one in secret else text for one, text in texts.items()}


def _of_all(kind: Any) -> tuple[Option, ...]:
    usual: ChunkSize = getattr(kind, "chunk", ChunkSize())
    return (
        Option("start", "whether to begin with the oldest result, or now", _START, "start"),
        Option("rows", "the maximum number of rows at a time", whole(1, 1_000_000), usual.rows),
        Option("bytes", "the approximate maximum of bytes at a time", _size, usual.bytes),
        Option(
            "every", "how long rows are collected before they are delivered", seconds, usual.every
        ),
    )


_START: Final = one_of("start", "now")


def _size(text: str) -> int:
    return max(1, parse_size(text))
