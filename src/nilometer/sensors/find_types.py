"""Stream types by name: those that come with Nilometer, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.extras import require_packages
from nilometer.model.installed import installed, load_installed
from nilometer.model.names import nearest
from nilometer.sensors.stream_type import ENTRY_POINTS
from nilometer.sensors.types.options import read_options

_BUILT_IN: Final = {
    "file": "nilometer.sensors.types.file:FileStream",
    "http": "nilometer.sensors.types.http:HttpStream",
    "kafka": "nilometer.sensors.types.kafka:KafkaStream",
    "mqtt": "nilometer.sensors.types.mqtt:MqttStream",
    "python": "nilometer.sensors.types.python:PythonStream",
    "synthetic": "nilometer.sensors.types.synthetic:SyntheticStream",
    "tcp": "nilometer.sensors.types.tcp:TcpStream",
}
_PACKAGES: Final = {"kafka": ["confluent_kafka"]}
"""The packages that built-in types import, available only with the extra of that name."""


class KnownTypes(Mapping[str, type]):
    """Names and classes of stream types; a class is imported when it is requested."""

    def __init__(self, others: Mapping[str, EntryPoint]) -> None:
        self._others = others

    def __getitem__(self, name: str) -> type:
        if (place := _BUILT_IN.get(name)) is not None:
            require_packages(f"stream type {name}", name, _PACKAGES.get(name, ()))
            module, _, attribute = place.partition(":")
            found: type = getattr(import_module(module), attribute)
            return found
        return _load(self._others[name])

    def __contains__(self, name: object) -> bool:
        # Without importing: a broken package affects only those who use its type.
        return name in _BUILT_IN or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*_BUILT_IN, *self._others}))

    def __len__(self) -> int:
        return len({*_BUILT_IN, *self._others})

    def package(self, name: str) -> str:
        """The installed package that a type comes from."""
        if name in _BUILT_IN:
            return "nilometer"
        found = self._others[name].dist
        return found.name if found is not None else self._others[name].module


def known_types() -> KnownTypes:
    """All stream types; other packages cannot use the names of built-in ones."""
    return KnownTypes(installed(ENTRY_POINTS, taken=_BUILT_IN))


def stream_class(name: str) -> type:
    """The class of a stream type."""
    known = known_types()
    if name.lower() not in known:
        raise InputError(
            f"there is no stream type {name!r}",
            detail=f"known are {', '.join(known)}",
            hint=nearest(name, known) or f"packages add types by the entry point {ENTRY_POINTS}",
        )
    return known[name.lower()]


def check_options(name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The values of a type's options; a type that declares none accepts any."""
    declared = getattr(stream_class(name), "options", None)
    if declared is None:
        return dict(options)
    return read_options(name, declared, options)


def check_reachable(name: str, address: str) -> None:
    """Refuse addresses that a type may not contact; most types may contact any."""
    check = getattr(stream_class(name), "check_address", None)
    if check is not None:
        check(address)


def _load(entry: EntryPoint) -> type:
    found = load_installed(entry, "stream type")
    missing = [
        one
        for one in ("init_stream", "read_stream", "close_stream", "can_wait")
        if not hasattr(found, one)
    ]
    if missing or not isinstance(found, type):
        raise InputError(
            f"stream type {entry.name} is not a stream type",
            detail=f"{entry.value} has no {', '.join(missing)}" if missing else entry.value,
            hint="a stream type is a class with init_stream, read_stream and close_stream",
        )
    return found
