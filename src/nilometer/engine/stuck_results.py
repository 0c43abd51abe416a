"""Results that cannot be appended to the log of their query at present, in files of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nilometer.engine.plan_set import PlanEntry
from nilometer.errors import LogError
from nilometer.log.local_storage import sync_folder
from nilometer.log.sealed import seal, unseal

STUCK: Final = "stuck"
_WHY: Final = ".why"


@dataclass(frozen=True)
class WaitingResults:
    """Results of a query on their way to its log."""

    known: PlanEntry
    report: Mapping[str, Any]
    frames: Sequence[bytes]

    @property
    def key(self) -> tuple[str, int]:
        return self.known.query, int(self.report["key"])


def put_aside(folder: Path, one: WaitingResults) -> None:
    """Set aside results that cannot be appended, so that the bucket's files can be deleted."""
    folder = folder / STUCK / one.known.query
    folder.mkdir(parents=True, exist_ok=True)
    report = {**one.report, "sizes": [len(frame) for frame in one.frames]}
    head = json.dumps(report).encode()
    aside = folder / f".{report['key']:012d}"
    aside.write_bytes(seal(len(head).to_bytes(8, "little") + head + b"".join(one.frames)))
    aside.replace(folder / f"{report['key']:012d}")


def note_why(folder: Path, query: str, attempt: int | None, failure: Mapping[str, Any]) -> None:
    """Write down why this attempt of a query cannot append its results."""
    path = folder / STUCK / query / _WHY
    path.write_text(json.dumps({"failure": failure, "attempt": attempt}))
    sync_folder(path.parent)


def read_stuck(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The results that were set aside, and their reports; raises LogError if damaged."""
    try:
        content = unseal(content)
        size = int.from_bytes(content[:8], "little")
        report: dict[str, Any] = json.loads(content[8 : 8 + size])
        frames, start = [], 8 + size
        for length in report["sizes"]:
            frames.append(content[start : start + length])
            start += length
    except (ValueError, KeyError, TypeError) as error:
        raise LogError("results that wait for their log are damaged", detail=str(error)) from None
    if start != len(content):
        raise LogError("results that wait for their log are damaged", detail="they are truncated")
    return report, frames


def stuck_queries(folder: Path) -> list[str]:
    """The queries whose results currently cannot be appended."""
    try:
        return os.listdir(folder / STUCK)
    except FileNotFoundError:
        return []


def stuck_results(folder: Path, query: str, attempt: int) -> dict[str, Any] | None:
    """Why this attempt cannot append the results of a query to their log, if it cannot.

    The cause that stopped an earlier attempt may be cured, and only not be retried yet.
    """
    try:
        stored: dict[str, Any] = json.loads((folder / STUCK / query / _WHY).read_bytes())
        return stored["failure"] if stored["attempt"] == attempt else None
    except (FileNotFoundError, ValueError, KeyError):
        return None
