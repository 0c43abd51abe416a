"""The location of a log: a local path, or a URI of any file system that pyarrow supports."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from nilometer.errors import LogError
from nilometer.log.local_storage import LocalStorage
from nilometer.log.remote_storage import RemoteStorage
from nilometer.log.storage import Storage

_IN_ONE_REQUEST: Final = "allow_delayed_open"
"""An option of Arrow for S3: a small object is written by one request instead of three."""


def inside(location: str, name: str) -> str:
    """The location of something inside another; a URI's part after the `?` stays at its end.

    >>> inside("s3://plant/logs?region=eu-north-1", "a")
    's3://plant/logs/a?region=eu-north-1'
    """
    if "://" not in location:
        return f"{location.rstrip('/')}/{name}"
    folder, mark, options = location.partition("?")
    name = name.replace("%2F", "%252F")  # read as a URI, it would be a folder, or `..`
    return f"{folder.rstrip('/')}/{name}{mark}{options}"


def parent(location: str) -> tuple[str, str]:
    """The reverse: the folder of something, and its name in it.

    >>> parent("s3://plant/logs/a?region=eu-north-1")
    ('s3://plant/logs?region=eu-north-1', 'a')
    """
    path, mark, options = location.partition("?") if "://" in location else (location, "", "")
    folder, _, name = path.rpartition("/")
    return f"{folder or '.'}{mark}{options}", name


def in_object_store(location: str) -> bool:
    """Whether files cannot be added to there, so that every append is an object."""
    return isinstance(storage_at(location), RemoteStorage)


def find_file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system that a URI names, and the path in it."""
    system, path = fs.FileSystem.from_uri(uri)
    return system, path


def storage_at(location: str | Path) -> Storage:
    """The storage that a path or a URI names."""
    if isinstance(location, Path) or "://" not in location:
        return LocalStorage(Path(location).absolute())
    parts = urlsplit(location)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)).absolute())
    uri = location
    if parts.scheme == "s3":
        _let_s3_be_quiet()
        if _IN_ONE_REQUEST not in parts.query:
            uri = f"{location}{'&' if parts.query else '?'}{_IN_ONE_REQUEST}=true"
    try:
        system, folder = find_file_system(uri)
    except (ValueError, OSError) as problem:
        raise LogError(
            "no file system for this location",
            detail=f"{location}: {problem}",
            hint="give a local path, or a URI such as s3://bucket/folder",
        ) from problem
    return RemoteStorage(location, system, folder)


@cache
def _let_s3_be_quiet() -> None:
    """Silence the S3 library, which logs even success to standard output; errors are raised."""
    with suppress(pa.ArrowInvalid):  # this process already uses S3 elsewhere
        fs.initialize_s3(fs.S3LogLevel.Off)
