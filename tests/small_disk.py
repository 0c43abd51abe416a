"""A real file system with little room, which a test fills and empties."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FILLER = "filler"
_CHUNK = 1 << 16


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.folder / _FILLER).open("ab", buffering=0) as file:
            for size in (_CHUNK, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def empty(self) -> None:
        (self.folder / _FILLER).unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a small disk at a folder; skips the test if that is not allowed."""
    folder.mkdir(parents=True)
    if os.geteuid() != 0:
        pytest.skip("to mount a small file system needs root")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
