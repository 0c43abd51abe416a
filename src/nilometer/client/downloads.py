"""Rows of a query or stream as a file: what to request, and where the file goes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final
from urllib.parse import quote

from nilometer.client.calls import Call
from nilometer.client.replies import read_nothing
from nilometer.errors import InputError

FORMATS: Final = ("csv", "jsonl", "arrow", "parquet")
_KINDS: Final = ("queries", "streams")


@dataclass(frozen=True)
class Download:
    """What to download of a query or stream, and into which file."""

    name: str
    path: Path
    form: str
    start: str | datetime | None = None
    end: str | datetime | None = None
    columns: Sequence[str] = ()
    per: Sequence[str] = ()
    bucket: str | None = None
    points: int | None = None
    answer: bool = False

    @property
    def calls(self) -> list[Call[None]]:
        """The calls to try: a query of this name or, if there is none, a stream."""
        options = {
            "format": self.form,
            "start": _instant(self.start),
            "end": _instant(self.end),
            "bucket": self.bucket,
            "points": None if self.points is None else str(self.points),
            "answer": "true" if self.answer else None,
        }
        params: dict[str, str | list[str]] = {
            name: value for name, value in options.items() if value is not None
        }
        params |= {"columns": list(self.columns), "per": list(self.per)}
        kinds = _KINDS[:1] if self.answer else _KINDS
        name = quote(self.name, safe="")
        return [Call("GET", f"/{k}/{name}/download", read_nothing, params=params) for k in kinds]

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """The file while it is written; it gets its name once it is complete."""
        folder = self.path.absolute().parent
        with NamedTemporaryFile(dir=folder, prefix=f".{self.path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(file.name)
                raise


def download_of(
    name: str,
    path: str | Path,
    form: str | None,
    start: str | datetime | None,
    end: str | datetime | None,
    columns: Sequence[str],
    per: Sequence[str],
    bucket: str | None,
    points: int | None,
    answer: bool,
) -> Download:
    """A download; without a format, the name of the file decides."""
    file = Path(path).expanduser()
    chosen = (form or file.suffix.removeprefix(".")).lower()
    if chosen not in FORMATS:
        raise InputError(
            f"unknown format {chosen!r}" if chosen else "the file's name has no extension",
            detail=f"formats are {', '.join(FORMATS)}",
            hint='end its name with one of them, or give form="csv"',
        )
    return Download(name, file, chosen, start, end, columns, per, bucket, points, answer)


def _instant(at: str | datetime | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at
