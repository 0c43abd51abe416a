"""parquet: results as files in a folder, every row in exactly one of them.

A file is named after its first row and appears whole or not at all. The contents of a file are
decided before it is written, so another attempt replaces a file by an identical one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import quote

import pyarrow.parquet as pq

from nilometer.deliveries.unit import Chunk, ChunkSize, UnitSetting
from nilometer.model.options import Option, OptionError, one_of

_ASIDE: Final = ".unfinished"
"""Readers of Parquet skip files whose names begin with a dot."""


class ParquetUnit:
    """Writes files below allowed folders."""

    chunk: ClassVar = ChunkSize(rows=100_000, bytes=64 << 20, every=60.0)
    options: ClassVar = (
        Option("folder", "the folder for the files; by default one named after the delivery", str),
        Option("compression", "of the files", one_of("zstd", "snappy", "gzip", "none"), "zstd"),
    )

    def __init__(self, setting: UnitSetting) -> None:
        self._folder = allowed_folder(setting)
        self._compression = setting.options["compression"]
        self._folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def check(cls, setting: UnitSetting) -> None:
        """Refuse a folder that is not allowed, or not empty."""
        folder = allowed_folder(setting)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OptionError(
                "the folder is not empty",
                detail="files of another delivery would hold rows twice",
                hint="choose another folder, or empty this one",
                option="folder",
            )

    def deliver(self, chunk: Chunk) -> None:
        """Write a file; once this returns, the file is durable."""
        name = f"{chunk.first_row:016d}.parquet"
        aside = self._folder / _ASIDE
        with open(aside, "wb") as file:
            pq.write_table(chunk.rows, file, compression=self._compression)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Do nothing: nothing is held between files."""


def allowed_folder(setting: UnitSetting) -> Path:
    """The folder for a delivery's files; after following links it lies below an allowed folder."""
    name = setting.options["folder"] or quote(setting.delivery, safe="").replace(".", "%2E")
    roots = [root.resolve() for root in setting.folders]
    folder = _resolved(roots, name)
    if folder is None or not any(root in folder.parents for root in roots):
        raise OptionError(
            f"files may not be written to {name!r}",
            hint="name a folder without .. , or let the server allow others: delivery_folders",
            option="folder",
        )
    return folder


def _resolved(roots: Sequence[Path], name: str) -> Path | None:
    """The folder itself, links followed; None: no folder can have this name."""
    try:
        folder = (roots[0] / name).resolve()
        folder.exists()
    except (ValueError, OSError, RuntimeError):
        return None
    return folder
