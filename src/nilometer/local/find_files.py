"""The files that a path refers to, and what kind they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from nilometer.errors import InputError
from nilometer.local.csv_header import check_header


class FileKind(StrEnum):
    """The formats of files, by Spark's names for them."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


_KINDS: Final = {
    ".parquet": FileKind.PARQUET,
    ".csv": FileKind.CSV,
    ".csv.gz": FileKind.CSV,
    ".json": FileKind.JSON,
    ".json.gz": FileKind.JSON,
    ".jsonl": FileKind.JSON,
    ".jsonl.gz": FileKind.JSON,
    ".ndjson": FileKind.JSON,
    ".ndjson.gz": FileKind.JSON,
}
_HINT: Final = (
    "files are recognised by their extensions: .parquet, .csv, .json, .jsonl, .ndjson, also with "
    ".gz"
)
_EMPTY: Final = "a stream's columns are known from its files: one needs at least a header or a row"


@dataclass(frozen=True, slots=True)
class Files:
    """A file, or all files of one kind in a folder."""

    path: Path
    kind: FileKind

    def paths(self) -> list[Path]:
        """The files that exist, sorted by name."""
        if not self.path.is_dir():
            return [self.path]
        files = (file for file in _visible(self.path) if kind_of(file.name) is self.kind)
        return sorted(file for file in files if file.stat().st_size)

    @property
    def pattern(self) -> str:
        """The pattern of the files' names for Spark's `pathGlobFilter`; it skips all others."""
        endings = [ending for ending, kind in _KINDS.items() if kind is self.kind]
        return f"*{{{','.join([*endings, *map(str.upper, endings)])}}}"


def kind_of(name: str) -> FileKind | None:
    """The format of a file, by its name.

    >>> kind_of("a.2026.CSV.gz"), kind_of("notes.txt")
    (<FileKind.CSV: 'csv'>, None)
    """
    lowered = name.lower()
    return next((kind for ending, kind in _KINDS.items() if lowered.endswith(ending)), None)


def find_files(name: str, path: Path) -> Files:
    """The files of the stream or table `name`; an error if there are none, or several kinds."""
    if path.is_dir():
        files = {file: kind for file in sorted(_visible(path)) if (kind := kind_of(file.name))}
        kinds = set(files.values())
        if not kinds:
            raise InputError(
                f"there are no files for {name} in {path}",
                hint=f"put one there, so that its columns are known; {_HINT}",
            )
        if len(kinds) > 1:
            raise InputError(
                f"the files for {name} in {path} are of several kinds",
                detail=f"there are {' and '.join(sorted(kinds))}",
                hint="put each kind into a folder of its own",
            )
        if not any(file.stat().st_size for file in files):
            raise InputError(f"the files for {name} in {path} are empty", hint=_EMPTY)
        kind = kinds.pop()
        if kind is FileKind.CSV:
            check_header(next(iter(files)))
        return Files(path, kind)
    if not path.exists():
        raise InputError(f"there is no file or folder {path} for {name}")
    kind = kind_of(path.name)
    if kind is None:
        raise InputError(f"cannot tell the format of {path}", hint=_HINT)
    if not path.stat().st_size:
        raise InputError(f"the file {path} for {name} is empty", hint=_EMPTY)
    if kind is FileKind.CSV:
        check_header(path)
    return Files(path, kind)


def require_folder(name: str, path: Path) -> None:
    """Refuse to follow what is not a folder."""
    if not path.is_dir():
        raise InputError(
            f"there is no folder {path} for {name}",
            detail="it is a file" if path.exists() else None,
            hint="--follow reads the files of a folder, and those that are put there later",
        )


def _visible(folder: Path) -> Iterator[Path]:
    """Files that Spark will read: neither their names nor their folders' begin with _ or a dot."""
    for entry in folder.iterdir():
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            yield from _visible(entry)
        else:
            yield entry
