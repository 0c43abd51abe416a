"""Values of a configuration file, parsed by the type of their setting."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.model.names import nearest

_EXPECTED: Final = {
    "Path | None": "write the path of a file in quotes",
    "tuple[str, ...]": 'write a list such as ["plant.example"]',
    "float": "write a number greater than zero",
    "int": "write a whole number greater than zero",
    "int | None": "write a whole number greater than zero",
    "bool": "write true or false",
    "str": "write text in quotes",
}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}", detail=error.strerror) from None
    except ValueError as error:
        raise InputError(f"{path} is not a TOML file", detail=str(error)) from None


def folder_of(path: Path) -> Path:
    """The folder to which paths in a configuration file are relative."""
    return path.expanduser().absolute().parent


def table(value: object, key: str) -> Mapping[str, Any]:
    """A section of a file."""
    if not isinstance(value, dict):
        raise InputError(f"{key} is not a table", detail=f"got {value!r}", hint=f"write [{key}]")
    return value


def read_values(
    section: str, content: Mapping[str, Any], known: Iterable[Field[Any]], folder: Path
) -> dict[str, Any]:
    """The settings of a section, each parsed by its type; unknown ones are refused."""
    types = {one.name: str(one.type) for one in known}
    values = {}
    for key, value in content.items():
        if key not in types:
            raise unknown(f"{section}.{key}", [f"{section}.{name}" for name in types])
        values[key] = setting(f"{section}.{key}", value, types[key], folder)
    return values


def setting(key: str, value: Any, kind: str, folder: Path) -> Any:
    """One value, checked."""
    match kind:
        case "Path | None" if isinstance(value, str):
            return folder / Path(value).expanduser()
        case "tuple[str, ...]" if is_texts(value):
            return tuple(value)
        case "float" if isinstance(value, int | float) and not isinstance(value, bool):
            if value > 0:
                return float(value)
        case "int" | "int | None" if isinstance(value, int) and not isinstance(value, bool):
            if value > 0:
                return value
        case "bool" if isinstance(value, bool):
            return value
        case "str" if isinstance(value, str):
            return value
    raise InputError(f"{key} cannot be {value!r}", hint=_EXPECTED.get(kind))


def is_texts(value: object) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def unknown(key: str, known: Iterable[str]) -> InputError:
    """The error for an unknown setting."""
    names = list(known)
    return InputError(
        f"the configuration has no {key}",
        hint=nearest(key, names) or f"there are {', '.join(names)}",
    )
