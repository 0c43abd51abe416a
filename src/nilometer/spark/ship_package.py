"""Nilometer on its way to executors that may not have it installed, or another version of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

_LEFT_OUT: Final = ("__pycache__", "static")


def zip_package(folder: Path) -> Path:
    """The package as an archive that Python imports from; what it depends on is not in it."""
    root = Path(__file__).parents[1]
    archive = folder / "nilometer.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        for file in sorted(root.rglob("*")):
            inside = file.relative_to(root.parent)
            if file.is_file() and not set(_LEFT_OUT) & set(inside.parts):
                made.write(file, str(inside))
    return archive
