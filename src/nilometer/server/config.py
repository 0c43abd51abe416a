"""The configuration of a server: a TOML file."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from nilometer.database.query_status import QueryLimits
from nilometer.errors import InputError, NilometerError
from nilometer.model.options import parse_size
from nilometer.model.time import FOREVER, parse_duration
from nilometer.sensors.log_options import StreamDefaults, read_stream_options
from nilometer.server.config_values import (
    folder_of,
    is_texts,
    read_toml,
    read_values,
    setting,
    table,
    unknown,
)
from nilometer.server.console.pages import ConsolePage, require_distinct, required_page
from nilometer.server.log_settings import LogSettings, log_settings
from nilometer.server.settings import ServerSettings
from nilometer.server.spark_settings import spark_settings

_OF_STREAMS: Final = (
    "history",
    "disk",
    "when_full",
    "durability",
    "ship_size",
    "ship_every",
    "write_ahead",
)


@dataclass(frozen=True)
class FunctionConfig:
    """A Python function that statements may call."""

    function: Callable[..., Any]
    returns: str = "boolean"
    by_row: bool = False
    aggregate: bool = False
    """Whether it receives all values of a group."""
    cost: float | None = None


@dataclass(frozen=True)
class QuerySettings:
    """What holds for queries that are created."""

    buckets: int | None = None
    """How many buckets those with an engine of their own get; None: what the database had."""


@dataclass(frozen=True)
class ServerConfig:
    """The configuration of a server."""

    settings: ServerSettings = field(default_factory=ServerSettings)
    limits: QueryLimits = field(default_factory=QueryLimits)
    """Limits of queries that set none of their own."""
    streams: StreamDefaults = field(default_factory=StreamDefaults)
    """Defaults for streams that do not specify these options."""
    functions: Mapping[str, FunctionConfig] = field(default_factory=dict)
    units: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Pre- and post-processing units."""
    files: tuple[Path, ...] = ()
    """Streams may read files below these folders."""
    delivery_folders: tuple[Path, ...] = ()
    """Deliveries may write files below these folders."""
    pages: tuple[ConsolePage, ...] = ()
    """Pages that applications add to the console."""
    secrets: Path | None = None
    """The folder with secrets, each in a file."""
    log: LogSettings = field(default_factory=LogSettings)
    queries: QuerySettings = field(default_factory=QuerySettings)


def read_config(path: Path | None) -> ServerConfig:
    """Read a configuration file; without one, return the defaults."""
    if path is None:
        return ServerConfig()
    content = read_toml(path)
    folder = folder_of(path)
    wrong = next((key for key in content if key not in _SECTIONS), None)
    if wrong is not None:
        raise unknown(wrong, _SECTIONS)
    sections = {
        name: read(table(content.get(name, {}), name), folder) for name, read in _SECTIONS.items()
    }
    return ServerConfig(
        sections["server"],
        sections["limits"],
        sections["streams"],
        sections["functions"],
        sections["units"],
        sections["files"],
        sections["deliveries"],
        sections["console"],
        sections["secrets"],
        sections["log"],
        sections["queries"],
    )


def _read_settings(section: Mapping[str, Any], folder: Path) -> ServerSettings:
    return ServerSettings(**read_values("server", section, fields(ServerSettings), folder))


def _read_queries(section: Mapping[str, Any], folder: Path) -> QuerySettings:
    return QuerySettings(**read_values("queries", section, fields(QuerySettings), folder))


def _read_limits(section: Mapping[str, Any], _: Path) -> QueryLimits:
    readers: dict[str, Callable[[str], int]] = {
        "results": parse_size,
        "state": parse_size,
        "history": parse_duration,
    }
    limits: dict[str, Any] = {}
    for key, value in section.items():
        if key not in readers:
            raise unknown(f"limits.{key}", [f"limits.{name}" for name in readers])
        try:
            limits[key] = readers[key](str(value))
        except NilometerError as error:
            raise InputError(
                f"limits.{key}: {error.message}", detail=error.detail, hint=error.hint
            ) from None
    return QueryLimits(**limits)


def _read_streams(section: Mapping[str, Any], _: Path) -> StreamDefaults:
    history, options = 0, {}
    for key, value in section.items():
        if key not in _OF_STREAMS:
            raise unknown(f"streams.{key}", [f"streams.{name}" for name in _OF_STREAMS])
        try:
            if key == "history":
                is_forever = str(value).lower() == "forever"
                history = FOREVER if is_forever else parse_duration(str(value))
            else:
                options[key] = str(value)
                read_stream_options({key: str(value)})
        except NilometerError as error:
            raise InputError(
                f"streams.{key}: {error.message}", detail=error.detail, hint=error.hint
            ) from None
    return StreamDefaults(history, options)


def _read_functions(section: Mapping[str, Any], folder: Path) -> dict[str, FunctionConfig]:
    functions = {}
    for name, value in section.items():
        key = f"functions.{name}"
        if isinstance(value, str):
            functions[name] = FunctionConfig(_load(key, value))
            continue
        options = table(value, key)
        for option in options:
            if option not in ("function", "returns", "by_row", "aggregate", "cost"):
                raise unknown(f"{key}.{option}", [f"{key}.function", f"{key}.returns"])
        functions[name] = FunctionConfig(
            _load(key, options.get("function")),
            str(options.get("returns", "boolean")),
            bool(options.get("by_row", False)),
            bool(options.get("aggregate", False)),
            setting(f"{key}.cost", options["cost"], "float", folder) if "cost" in options else None,
        )
    return functions


def _read_units(section: Mapping[str, Any], _: Path) -> dict[str, Callable[..., Any]]:
    return {name: _load(f"units.{name}", value) for name, value in section.items()}


def _read_files(section: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    return _read_folders("files", "allowed", section, folder)


def _read_deliveries(section: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    return _read_folders("deliveries", "folders", section, folder)


def _read_folders(
    section: str, name: str, content: Mapping[str, Any], folder: Path
) -> tuple[Path, ...]:
    for key in content:
        if key != name:
            raise unknown(f"{section}.{key}", [f"{section}.{name}"])
    value = content.get(name, [])
    if not is_texts(value):
        raise InputError(f"{section}.{name} must be a list of folders", detail=f"got {value!r}")
    return tuple((folder / Path(one).expanduser()).resolve() for one in value)


def _read_secrets(section: Mapping[str, Any], folder: Path) -> Path | None:
    for key in section:
        if key != "folder":
            raise unknown(f"secrets.{key}", ["secrets.folder"])
    if "folder" not in section:
        return None
    path: Path = setting("secrets.folder", section["folder"], "Path | None", folder)
    if not path.is_dir():
        raise InputError("secrets.folder is not a folder", detail=f"got {path}")
    return path


def _read_pages(section: Mapping[str, Any], _: Path) -> tuple[ConsolePage, ...]:
    for key in section:
        if key != "pages":
            raise unknown(f"console.{key}", ["console.pages"])
    names = section.get("pages", [])
    if not is_texts(names):
        raise InputError("console.pages must be a list of pages", detail=f"got {names!r}")
    pages = [required_page(f"console.pages: {one}", _find("console.pages", one)) for one in names]
    require_distinct(pages)
    return tuple(pages)


_SECTIONS: Final[Mapping[str, Callable[[Mapping[str, Any], Path], Any]]] = {
    "server": _read_settings,
    "queries": _read_queries,
    "limits": _read_limits,
    "streams": _read_streams,
    "functions": _read_functions,
    "units": _read_units,
    "files": _read_files,
    "deliveries": _read_deliveries,
    "console": _read_pages,
    "secrets": _read_secrets,
    "log": log_settings,
    "spark": spark_settings,  # used earlier, when Spark was started: only checked here
}


def _load(key: str, reference: object) -> Callable[..., Any]:
    """The Python function that a text such as "module:attribute" refers to."""
    loaded = _find(key, reference)
    if not callable(loaded):
        raise InputError(
            f"{key}: {reference} is not a function", detail=f"got {type(loaded).__name__}"
        )
    checked: Callable[..., Any] = loaded
    return checked


def _find(key: str, reference: object) -> Any:
    """The object that a text such as "module:attribute" refers to."""
    if not isinstance(reference, str) or reference.count(":") != 1:
        raise InputError(
            f"{key} names nothing of a module",
            detail=f"got {reference!r}",
            hint='write "module:attribute"',
        )
    module, attribute = reference.split(":")
    try:
        value: Any = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except Exception as error:
        raise InputError(
            f"{key}: {reference} cannot be loaded", detail=f"{type(error).__name__}: {error}"
        ) from error
    return value
