"""Where the copy of a log ends: at what was published, or before an unwanted batch.

A log only grows, so each of its prefixes is a log, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nilometer.errors import LogError
from nilometer.log.frame_format import Flag
from nilometer.log.head import Head
from nilometer.log.local_storage import LocalStorage
from nilometer.log.recovery import LogState
from nilometer.log.segment_files import segment_files
from nilometer.log.segment_reader import SegmentReader, open_segment


@dataclass(frozen=True)
class LastBatch:
    """The last batch that a copy of a log may hold."""

    writer: str | None
    """The writer of the batch; None: any writer."""
    number: int

    def is_before(self, batches: Mapping[str, int]) -> bool:
        """Whether one of these batches, by writer, is no longer wanted."""
        return any(
            number > self.number
            for writer, number in batches.items()
            if self.writer in (None, writer)
        )


def cut_log(folder: Path, head: Head, last: LastBatch) -> Head:
    """The head of a copy without any batch after this one, given the published head."""
    storage, end = LocalStorage(folder), head.end
    for file in reversed(segment_files(storage)):
        if file.is_packed or file.first > end.segment:
            continue  # packed segments existed before the state that batches are compared with
        with open_segment(storage, file.first) as segment:
            header, begin = segment.good_header()
            if last.is_before(header.batches):
                continue
            stop = end.byte if file.first == end.segment else segment.size
            state = _read_on(segment, LogState.after_header(header, begin), stop, last)
        return Head(state.end, state.watermark, (state.end.segment, state.end.byte))
    raise LogError(
        "the log does not reach back far enough",
        detail=f"{folder} has only batches after {last.number}",
        hint="keep results for longer: HISTORY",
    )


def _read_on(segment: SegmentReader, state: LogState, stop: int, last: LastBatch) -> LogState:
    """The state after the last transaction that is wanted."""
    complete = state
    for byte, frame in segment.frames(state.end.byte, stop):
        batch = segment.keys(byte, frame)[0] if frame.flags & Flag.BATCH else None
        if batch is not None and last.is_before({batch[0]: batch[1]}):
            break
        state = state.after(frame, batch)
        if not frame.more:
            complete = state
    return complete
