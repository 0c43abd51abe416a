"""Ships Nilometer to executors that may not have it installed, or have another version."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from nilometer.model.installed import installed
from nilometer.operators.offered_algorithms import ENTRY_POINTS

_LEFT_OUT: Final = ("__pycache__", "static")


def zip_packages(folder: Path) -> Path:
    """An archive that Python can import from; it does not include dependencies.

    Besides Nilometer it holds the packages whose algorithms may run there.
    """
    archive = folder / "nilometer.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as zipped:
        for root in (Path(__file__).parents[1], *_with_algorithms()):
            for file in sorted(root.rglob("*")):
                inside = file.relative_to(root.parent)
                if file.is_file() and not set(_LEFT_OUT) & set(inside.parts):
                    zipped.write(file, str(inside))
    return archive


def _with_algorithms() -> Iterator[Path]:
    """The folders of the packages that offer algorithms; none of these is imported."""
    for name in sorted({one.module.split(".")[0] for one in installed(ENTRY_POINTS).values()}):
        spec = find_spec(name)
        if spec is not None:
            yield from map(Path, spec.submodule_search_locations or ())
