"""What installed packages add through entry points; nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nilometer.errors import InputError
from nilometer.extras import require_packages
from nilometer.model.names import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed(group: str, taken: Container[str] = ()) -> dict[str, EntryPoint]:
    """What packages add to a group, by lower-case name; names already taken are left out."""
    from importlib.metadata import entry_points  # noqa: PLC0415  takes its time to load

    entries = {one.name.lower(): one for one in entry_points(group=group)}
    return {name: one for name, one in entries.items() if name not in taken}


def load_installed(entry: EntryPoint, noun: str) -> Any:
    """Load an entry point; if that fails, the error blames its package."""
    try:
        return entry.load()
    except Exception as error:  # a package may fail in any way during import
        raise InputError(
            f"{noun} {entry.name} cannot be loaded",
            detail=f"{entry.value}: {type(error).__name__}: {error}",
            hint="repair or remove the package that provides it",
        ) from error


@dataclass(frozen=True)
class KnownClasses(Mapping[str, type]):
    """Classes by name: those that come with Nilometer, and those of installed packages.

    A class is imported when it is requested, so a broken package affects only those who use it.
    """

    noun: str
    group: str
    """The entry point group by which packages add classes; names of built-in ones stay theirs."""
    built_in: Mapping[str, str]
    """The places of classes, as module:class."""
    packages: Mapping[str, tuple[str, str]]
    """What built-in ones import that comes only with an extra: extra and package."""
    needed: tuple[str, ...]
    """The attributes that a class has."""
    form: str
    """What such a class has, in words."""

    def find(self, name: str) -> type:
        """The class of a name in any case; raises InputError if there is none."""
        if name.lower() not in self:
            raise InputError(
                f"there is no {self.noun} {name!r}",
                detail=f"known: {', '.join(self)}",
                hint=nearest(name, self)
                or f"packages add {self.noun}s by the entry point {self.group}",
            )
        return self[name.lower()]

    def package(self, name: str) -> str:
        """The installed package that a class comes from."""
        if name in self.built_in:
            return "nilometer"
        distribution = self._others[name].dist
        return distribution.name if distribution is not None else self._others[name].module

    def __getitem__(self, name: str) -> type:
        if (place := self.built_in.get(name)) is None:
            return self._load(self._others[name])
        if name in self.packages:
            extra, package = self.packages[name]
            require_packages(f"{self.noun} {name}", extra, [package])
        module, _, attribute = place.partition(":")
        loaded: type = getattr(import_module(module), attribute)
        return loaded

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self.built_in, *self._others}))

    def __len__(self) -> int:
        return len({*self.built_in, *self._others})

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        return installed(self.group, taken=self.built_in)

    def _load(self, entry: EntryPoint) -> type:
        loaded = load_installed(entry, self.noun)
        missing = [one for one in self.needed if not hasattr(loaded, one)]
        if missing or not isinstance(loaded, type):
            raise InputError(
                f"{self.noun} {entry.name} is not a {self.noun}",
                detail=f"{entry.value} has no {', '.join(missing)}" if missing else entry.value,
                hint=f"a {self.noun} is a class with {self.form}",
            )
        return loaded
