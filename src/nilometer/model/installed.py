"""What installed packages add through entry points; nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from nilometer.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed(group: str, taken: Container[str] = ()) -> dict[str, EntryPoint]:
    """What packages add to a group, by lower-case name; names already taken are left out."""
    from importlib.metadata import entry_points  # noqa: PLC0415  takes its time to load

    found = {one.name.lower(): one for one in entry_points(group=group)}
    return {name: one for name, one in found.items() if name not in taken}


def load_installed(entry: EntryPoint, noun: str) -> Any:
    """Load an entry point; if that fails, the error blames its package."""
    try:
        return entry.load()
    except Exception as error:  # a package may fail in any way during import
        raise InputError(
            f"{noun} {entry.name} cannot be loaded",
            detail=f"{entry.value}: {type(error).__name__}: {error}",
            hint="repair or remove the package that brings it",
        ) from error
