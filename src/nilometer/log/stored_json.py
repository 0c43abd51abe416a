"""Small files of JSON beside a log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nilometer.errors import LogError
from nilometer.log.sealed import seal, unseal
from nilometer.log.storage import Storage


def read_json(storage: Storage, name: str) -> dict[str, Any] | None:
    """The content of such a file; None if it does not exist."""
    try:
        content: dict[str, Any] = json.loads(unseal(storage.read(name)))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LogError(
            "the log is damaged",
            detail=f"{storage.location}/{name} cannot be read: {error}",
            hint="restore the file from a copy",
        ) from error
    return content


def json_bytes(fields: Mapping[str, Any]) -> bytes:
    """The content of such a file, as bytes."""
    return seal(json.dumps(fields).encode())
