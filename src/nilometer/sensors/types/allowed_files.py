"""Which files may be sensors of this process: any, unless a server restricts them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nilometer.errors import InputError

_allowed: list[tuple[Path, ...] | None] = [None]


def allow_files(folders: Iterable[Path] | None) -> None:
    """Allow only files below these folders as sensors, following links; None: any file."""
    _allowed[0] = None if folders is None else tuple(one.resolve() for one in folders)


def require_allowed(path: str | Path) -> None:
    """Refuse a file, or a pattern of files, that lies elsewhere, whether it exists or not."""
    folders = _allowed[0]
    if folders is None:
        return
    if any(_is_below(Path(os.path.normpath(path)), folder) for folder in folders):
        return
    raise InputError(
        "this server does not read files there",
        detail=f"got {path}",
        hint="its configuration says where it may: [files] allowed"
        if not folders
        else f"it reads below {', '.join(str(one) for one in folders)}",
    )


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path is inside a folder, both as written and after following links."""
    return path.is_absolute() and path.is_relative_to(folder) and _leads_below(path, folder)


def _leads_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder)
