"""File systems of tests, which logs find by the scheme of a URI."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pyarrow import fs

from nilometer.log import location

_SYSTEMS: Final[dict[str, fs.FileSystem]] = {}
_find_others = location.find_file_system


def register_file_system(scheme: str, system: fs.FileSystem) -> None:
    """Make `scheme://path` refer to that path in this file system, in this process."""
    _SYSTEMS[scheme] = system
    location.find_file_system = _find


def _find(uri: str) -> tuple[fs.FileSystem, str]:
    parts = urlsplit(uri)
    system = _SYSTEMS.get(parts.scheme)
    return _find_others(uri) if system is None else (system, parts.netloc + parts.path)
