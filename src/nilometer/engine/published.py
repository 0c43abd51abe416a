"""Up to which file the results of a bucket are durable in their logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from uuid import uuid4

from nilometer.log.sealed import seal, unseal

_NAME: Final = "published-{}.json"


def read_published(folder: Path, bucket: int) -> int:
    """The last file of a bucket whose results are all durable in their logs; -1: none."""
    try:
        return read_published_file(folder, bucket)
    except ValueError:  # partly written: everything is published again
        return -1


def read_published_file(folder: Path, bucket: int) -> int:
    """The same, but raises ValueError if the file is damaged."""
    try:
        content = (folder / _NAME.format(bucket)).read_bytes()
    except FileNotFoundError:
        return -1
    return int(json.loads(unseal(content))["durable"])


def write_published(folder: Path, bucket: int, durable: int) -> None:
    """Store the number of that file."""
    path = folder / _NAME.format(bucket)
    aside = path.with_name(f".{path.name}.{uuid4().hex}")
    aside.write_bytes(seal(json.dumps({"durable": durable}).encode()))
    aside.replace(path)
