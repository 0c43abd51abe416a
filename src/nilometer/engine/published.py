"""How far the results in a bucket's files are in their logs, for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from uuid import uuid4

_NAME: Final = "published-{}.json"


def read_published(folder: Path, bucket: int) -> int:
    """The last file of a bucket whose results are all durable in their logs; -1: none."""
    try:
        return int(json.loads((folder / _NAME.format(bucket)).read_bytes())["durable"])
    except (FileNotFoundError, ValueError):  # written in part: all is published once more
        return -1


def write_published(folder: Path, bucket: int, durable: int) -> None:
    """Remember it."""
    path = folder / _NAME.format(bucket)
    aside = path.with_name(f".{path.name}.{uuid4().hex}")
    aside.write_text(json.dumps({"durable": durable}))
    aside.replace(path)
