"""The replay of a box that has left: its bursts one after the other, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from nilometer_papers.idhm.page_state import BeltState


@dataclass
class Replay:
    """The queries' results for one box; the state is that of the bursts shown so far."""

    box: int
    verdicts: pa.Table
    peaks: pa.Table
    state: BeltState = field(default_factory=BeltState)
    shown: int = 0

    def __post_init__(self) -> None:
        bursts = pc.unique(self.verdicts.column("burst").drop_null()).to_pylist()
        self._bursts: list[int] = sorted(bursts)
        self._left: Iterator[int] = iter(self._bursts)

    @property
    def bursts(self) -> int:
        """How many bursts there are."""
        return len(self._bursts)

    def step(self) -> bool:
        """Take in the next burst; returns whether there was one."""
        burst = next(self._left, None)
        if burst is None:
            return False
        self.state.take_verdicts(_of(self.verdicts, burst))
        self.state.take_peaks(_of(self.peaks, burst))
        self.shown += 1
        return True

    @property
    def progress(self) -> str:
        """How far the replay is, in words."""
        if not self.bursts:
            return f"Nothing is kept of box {self.box} any more."
        return f"Box {self.box} once more: burst {self.shown} of {self.bursts}."


def _of(rows: pa.Table, burst: int) -> pa.Table:
    return rows.filter(pc.equal(rows.column("burst"), burst))
