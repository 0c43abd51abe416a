"""Where experiments write: problems are reported before minutes are spent on measuring."""

from __future__ import annotations

import os
from pathlib import Path

from nilometer.commands.destination import writing_errors
from nilometer.errors import InputError


def require_output(folder: Path) -> None:
    """Ensure that the folder exists and is writable; an error says why not."""
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"cannot write to {folder}",
            detail="it is a file",
            hint="name a folder: --output build/experiments",
        )
    with writing_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    _require_access(folder, f"cannot write to {folder}")


def require_page(page: Path) -> None:
    """Ensure that the page and its folder of figures can be written; an error says why not."""
    refusal = f"cannot write {page}"
    if not page.absolute().parent.is_dir():
        raise InputError(refusal, detail=f"there is no folder {page.parent}")
    if page.is_dir() or not page.suffix:
        raise InputError(
            refusal,
            detail="figures go to a folder of the page's name without its suffix",
            hint="name a file with one: --page experiments.md",
        )
    figures = page.with_suffix("")
    if figures.exists() and not figures.is_dir():
        raise InputError(refusal, detail=f"its figures go to {figures}, which is a file")
    _require_access(page.absolute().parent, refusal)


def _require_access(folder: Path, refusal: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(refusal, detail="you have no right to write there")
