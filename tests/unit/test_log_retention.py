"""How long segments stay: for the slowest reader, for the history, within the disk budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nilometer.errors import LogFullError, LogGapError
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, forget, register
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from tests.unit.log_samples import LAYOUT, numbers_in, rows_dropped, rows_from

SMALL = LogOptions(segment=1000, compression=None)


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def segments(log: Path) -> int:
    return len(list(log.glob("*.seg")))


def test_segments_disappear_when_the_slowest_reader_commits(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        register(log, "slow", writer.end, {}, now=0, named=True)
        register(log, "fast", writer.end, {}, now=0, named=False)
        ends = [writer.append(rows_from(one * 50, 50)) for one in range(8)]
        assert segments(log) == 8
        commit(log, "fast", ends[-1], now=1)
        assert writer.trim() == 0
        commit(log, "slow", ends[2], now=1)
        assert writer.trim() == 3
        assert writer.stored_bytes == sum(one.stat().st_size for one in log.glob("*.seg"))
        assert numbers_in(writer.read(ends[2])) == list(range(150, 400))
        forget(log, "slow")
        assert writer.trim() == 4
        assert segments(log) == 1, "the last one stays, it says where the log goes on"


def test_any_number_of_readers_share_one_copy(tmp_path: Path) -> None:
    sizes = []
    for readers in (1, 10):
        log = tmp_path / f"log{readers}"
        with LogWriter.open(log, LAYOUT, SMALL) as writer:
            for one in range(readers):
                register(log, f"reader {one}", writer.end, {}, now=0, named=True)
            for one in range(100):
                writer.append(rows_from(one * 50, 50))
            sizes.append(writer.stored_bytes)
    assert sizes[0] == sizes[1]


def test_history_is_counted_from_when_a_segment_was_full(tmp_path: Path) -> None:
    clock = Clock()
    options = LogOptions(segment=1000, compression=None, history=100)
    with LogWriter.open(tmp_path / "log", LAYOUT, options, clock) as writer:
        for one in range(4):
            clock.now = one * 10
            writer.append(rows_from(one * 50, 50))
        clock.now = 109
        assert writer.trim() == 0
        clock.now = 110
        assert writer.trim() == 1
        clock.now = 10_000
        assert writer.trim() == 2


def test_a_history_for_ever_is_never_trimmed(tmp_path: Path) -> None:
    options = LogOptions(segment=1000, history=FOREVER)
    with LogWriter.open(tmp_path / "log", LAYOUT, options) as writer:
        for one in range(4):
            writer.append(rows_from(one * 50, 50))
        assert writer.trim() == 0


def test_segments_with_recent_delivery_keys_stay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, replace(SMALL, keys_kept=3)) as writer:
        for one in range(8):
            writer.append(rows_from(one * 50, 50), keys=[b"%d" % one])
        assert writer.trim() == 5
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        assert writer.recent_keys(3) == [b"5", b"6", b"7"]
        assert writer.recent_keys(0) == []


def test_a_full_log_refuses_rows_until_its_readers_have_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = LogOptions(compression=None, disk=30_000)
    with LogWriter.open(log, LAYOUT, options) as writer:
        register(log, "reader", writer.end, {}, now=0, named=True)
        rows = 0
        while writer.stored_bytes < 30_000 - 2000:
            rows = writer.append(rows_from(rows, 50)).row
        with pytest.raises(LogFullError, match="the log is full"):
            writer.append(rows_from(rows, 100))
        assert 0 < writer.stored_bytes <= 30_000
        half = LogReader.open(log).limit(LogReader.open(log).start, rows // 2)
        commit(log, "reader", half, now=1)
        writer.append(rows_from(rows, 50))
        assert numbers_in(writer.read(half)) == list(range(half.row, rows + 50))


def fill(writer: LogWriter, disk: int) -> None:
    rows = 0
    while True:
        rows = writer.append(rows_from(rows, 20)).row
        assert writer.stored_bytes <= disk


@pytest.mark.parametrize("kept", ["unread", "history", "all"])
@pytest.mark.parametrize("disk", range(9_000, 30_000, 2_100))
def test_a_log_never_takes_more_than_its_budget(tmp_path: Path, disk: int, kept: str) -> None:
    """The heads of new segments are counted, too, and none is begun that makes no room."""
    log = tmp_path / "log"
    history = {"unread": 0, "history": 3600 * 1_000_000, "all": FOREVER}[kept]
    options = LogOptions(compression=None, disk=disk, history=history)
    with LogWriter.open(log, LAYOUT, options) as writer:
        if kept == "unread":
            register(log, "reader", writer.end, {}, now=0, named=True)
        with pytest.raises(LogFullError):
            fill(writer, disk)
        assert writer.stored_bytes == sum(one.stat().st_size for one in log.glob("*.seg")) <= disk


def test_a_full_log_with_nothing_unread_takes_rows(tmp_path: Path) -> None:
    """Though all that it has lies in the segment that still grows."""
    options = LogOptions(compression=None, disk=4000)
    with LogWriter.open(tmp_path / "log", LAYOUT, options) as writer:
        for one in range(50):
            writer.append(rows_from(one * 50, 50))
            assert writer.stored_bytes <= 4000


def test_what_is_dropped_is_counted_and_a_gap_for_who_had_not_read_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        assert writer.drop_oldest() == 0
        for one in range(4):
            writer.append(rows_from(one * 50, 50))
        assert writer.drop_oldest() == 50
        assert writer.drop_oldest() == 50
        reader = LogReader.open(log)
        with pytest.raises(LogGapError) as gap:
            list(reader.read(Position(0, 0)))
        assert (gap.value.rows, gap.value.oldest) == (100, reader.start)
        with pytest.raises(LogGapError):
            list(writer.read(Position(0, 0)))
        assert numbers_in(reader.read(reader.start)) == list(range(100, 200))
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        assert rows_dropped(log) == 100


def test_segments_that_go_while_they_are_read_are_a_gap(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        for one in range(4):
            writer.append(rows_from(one * 50, 50))
        reader = LogReader.open(log)
        frames = reader.read(reader.start)
        assert next(frames).end.row == 50
        assert writer.trim() == 3
        with pytest.raises(LogGapError) as gap:
            list(frames)
        assert gap.value.rows == 100


def test_a_place_at_the_end_of_a_deleted_segment_is_no_gap(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, SMALL) as writer:
        first = writer.append(rows_from(0, 50))
        writer.append(rows_from(50, 50))
        writer.append(rows_from(100, 50))
        register(log, "reader", first, {}, now=0, named=True)
        assert writer.trim() == 1
        reader = LogReader.open(log)
        reader.check(first)
        assert numbers_in(reader.read(first)) == list(range(50, 150))
