"""Small files that are written as a whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from nilometer.log.local_storage import sync_folder


def write_whole(file: Path, content: bytes) -> None:
    """Write a file that gets its name once all of it is on the disk."""
    aside = file.with_name(f".{file.name}.{uuid4().hex[:12]}")
    try:
        with aside.open("wb") as written:
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
        aside.replace(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)
