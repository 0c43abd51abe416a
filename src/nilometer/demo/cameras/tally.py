"""The progress of a running query, added up from the health that its server reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Tally:
    """Adds up the micro-batches of a query."""

    def __init__(self, streams: Sequence[str]) -> None:
        self.rows = dict.fromkeys(streams, 0)
        self.results = 0
        self.batches = 0
        self.last: Mapping[str, Any] | None = None
        """The last micro-batch."""

    def take(self, samples: Sequence[Mapping[str, Any]], results: int) -> None:
        """Add the new samples, and set the number of results."""
        self.results = results
        for sample in samples:
            if self.last is None or sample["time"] > self.last["time"]:
                self.last = sample
                self.batches += 1
                for name, stream in sample["streams"].items():
                    self.rows[name] += stream["rows"]

    @property
    def rows_in(self) -> int:
        return sum(self.rows.values())
