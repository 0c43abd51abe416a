"""The configuration of a server: a TOML file."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from nilometer.database.query_status import QueryLimits
from nilometer.errors import InputError, NilometerError
from nilometer.model.names import nearest
from nilometer.model.options import parse_size
from nilometer.model.time import parse_duration
from nilometer.server.console.pages import ConsolePage, require_distinct, required_page
from nilometer.server.settings import ServerSettings


@dataclass(frozen=True)
class FunctionConfig:
    """A Python function that statements may call."""

    function: Callable[..., Any]
    returns: str = "boolean"
    by_row: bool = False
    aggregate: bool = False
    """Whether it is given all values of a group."""


@dataclass(frozen=True)
class ServerConfig:
    """All that a server is told about itself."""

    settings: ServerSettings = field(default_factory=ServerSettings)
    limits: QueryLimits = field(default_factory=QueryLimits)
    """Of queries that name none of their own."""
    functions: Mapping[str, FunctionConfig] = field(default_factory=dict)
    units: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Pre- and post-processing units."""
    files: tuple[Path, ...] = ()
    """Below which folders streams may read files."""
    delivery_folders: tuple[Path, ...] = ()
    """Below which folders deliveries may write files."""
    pages: tuple[ConsolePage, ...] = ()
    """What applications add to the console."""
    secrets: Path | None = None
    """The folder in which secrets lie, each in a file."""


def read_config(path: Path | None) -> ServerConfig:
    """What a file says; without one, the defaults."""
    if path is None:
        return ServerConfig()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}", detail=error.strerror) from None
    except ValueError as error:
        raise InputError(f"{path} is no TOML file", detail=str(error)) from None
    folder = path.expanduser().absolute().parent
    unknown = next((key for key in content if key not in _SECTIONS), None)
    if unknown is not None:
        raise _unknown(unknown, _SECTIONS)
    found = {
        name: read(_table(content.get(name, {}), name), folder) for name, read in _SECTIONS.items()
    }
    return ServerConfig(
        found["server"],
        found["limits"],
        found["functions"],
        found["units"],
        found["files"],
        found["deliveries"],
        found["console"],
        found["secrets"],
    )


def _read_settings(given: Mapping[str, Any], folder: Path) -> ServerSettings:
    known = {one.name: one for one in fields(ServerSettings)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise _unknown(f"server.{key}", [f"server.{name}" for name in known])
        values[key] = _setting(f"server.{key}", value, str(known[key].type), folder)
    return replace(ServerSettings(), **values)


def _setting(key: str, value: Any, kind: str, folder: Path) -> Any:
    match kind:
        case "Path | None" if isinstance(value, str):
            return folder / Path(value).expanduser()
        case "tuple[str, ...]" if _is_texts(value):
            return tuple(value)
        case "float" if isinstance(value, int | float) and not isinstance(value, bool):
            if value > 0:
                return float(value)
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            if value > 0:
                return value
        case "bool" if isinstance(value, bool):
            return value
        case "str" if isinstance(value, str):
            return value
    raise InputError(f"{key} cannot be {value!r}", hint=_EXPECTED.get(kind))


_EXPECTED: Final = {
    "Path | None": "write the path of a file in quotes",
    "tuple[str, ...]": 'write a list such as ["plant.example"]',
    "float": "write a number greater than zero",
    "int": "write a whole number greater than zero",
    "bool": "write true or false",
    "str": "write text in quotes",
}


def _read_limits(given: Mapping[str, Any], _: Path) -> QueryLimits:
    readers: dict[str, Callable[[str], int]] = {
        "results": parse_size,
        "state": parse_size,
        "history": parse_duration,
    }
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in readers:
            raise _unknown(f"limits.{key}", [f"limits.{name}" for name in readers])
        try:
            found[key] = readers[key](str(value))
        except NilometerError as error:
            raise InputError(
                f"limits.{key}: {error.message}", detail=error.detail, hint=error.hint
            ) from None
    return QueryLimits(**found)


def _read_functions(given: Mapping[str, Any], _: Path) -> dict[str, FunctionConfig]:
    found = {}
    for name, value in given.items():
        key = f"functions.{name}"
        if isinstance(value, str):
            found[name] = FunctionConfig(_load(key, value))
            continue
        options = _table(value, key)
        for option in options:
            if option not in ("function", "returns", "by_row", "aggregate"):
                raise _unknown(f"{key}.{option}", [f"{key}.function", f"{key}.returns"])
        found[name] = FunctionConfig(
            _load(key, options.get("function")),
            str(options.get("returns", "boolean")),
            bool(options.get("by_row", False)),
            bool(options.get("aggregate", False)),
        )
    return found


def _read_units(given: Mapping[str, Any], _: Path) -> dict[str, Callable[..., Any]]:
    return {name: _load(f"units.{name}", value) for name, value in given.items()}


def _read_files(given: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    return _read_folders("files", "allowed", given, folder)


def _read_deliveries(given: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    return _read_folders("deliveries", "folders", given, folder)


def _read_folders(
    section: str, name: str, given: Mapping[str, Any], folder: Path
) -> tuple[Path, ...]:
    for key in given:
        if key != name:
            raise _unknown(f"{section}.{key}", [f"{section}.{name}"])
    value = given.get(name, [])
    if not _is_texts(value):
        raise InputError(f"{section}.{name} is a list of folders", detail=f"got {value!r}")
    return tuple((folder / Path(one).expanduser()).resolve() for one in value)


def _read_secrets(given: Mapping[str, Any], folder: Path) -> Path | None:
    for key in given:
        if key != "folder":
            raise _unknown(f"secrets.{key}", ["secrets.folder"])
    if "folder" not in given:
        return None
    found: Path = _setting("secrets.folder", given["folder"], "Path | None", folder)
    if not found.is_dir():
        raise InputError("secrets.folder is no folder", detail=f"got {found}")
    return found


def _read_pages(given: Mapping[str, Any], _: Path) -> tuple[ConsolePage, ...]:
    for key in given:
        if key != "pages":
            raise _unknown(f"console.{key}", ["console.pages"])
    named = given.get("pages", [])
    if not _is_texts(named):
        raise InputError("console.pages is a list of pages", detail=f"got {named!r}")
    pages = [required_page(f"console.pages: {one}", _find("console.pages", one)) for one in named]
    require_distinct(pages)
    return tuple(pages)


_SECTIONS: Final[Mapping[str, Callable[[Mapping[str, Any], Path], Any]]] = {
    "server": _read_settings,
    "limits": _read_limits,
    "functions": _read_functions,
    "units": _read_units,
    "files": _read_files,
    "deliveries": _read_deliveries,
    "console": _read_pages,
    "secrets": _read_secrets,
}


def _load(key: str, reference: object) -> Callable[..., Any]:
    """The Python function that a text such as "module:attribute" names."""
    found = _find(key, reference)
    if not callable(found):
        raise InputError(f"{key}: {reference} is no function", detail=f"got {type(found).__name__}")
    checked: Callable[..., Any] = found
    return checked


def _find(key: str, reference: object) -> Any:
    """What a text such as "module:attribute" names."""
    if not isinstance(reference, str) or reference.count(":") != 1:
        raise InputError(
            f"{key} names nothing of a module",
            detail=f"got {reference!r}",
            hint='write "module:attribute"',
        )
    module, attribute = reference.split(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise InputError(
            f"{key}: {reference} cannot be loaded", detail=f"{type(error).__name__}: {error}"
        ) from error
    return found


def _table(value: object, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{key} is no table", detail=f"got {value!r}", hint=f"write [{key}]")
    return value


def _unknown(key: str, known: Any) -> InputError:
    return InputError(
        f"the configuration has no {key}",
        hint=nearest(key, known) or f"there are {', '.join(known)}",
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
