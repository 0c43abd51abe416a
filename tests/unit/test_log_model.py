"""A log against a list: whatever is done to it, it holds what a plain list of frames would."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyarrow import fs

from nilometer.errors import LogGapError
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.parts import write_part
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, forget, register, registrations
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.unit.log_samples import LAYOUT, ObjectStore, numbers_in, rows_dropped, rows_from

READERS = ("slow", "fast", "a/b.c")
_names = (f"log{number}" for number in itertools.count())


@pytest.fixture(autouse=True, scope="module")
def frames_are_cut() -> Iterator[None]:
    """Let frames of three rows count as large ones, which several tasks share; packs are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nilometer.log.reader._LARGE", 3)
        patch.setattr("nilometer.log.pack_segments._BLOCK", 2000)
        patch.setattr("nilometer.log.compaction.FEW", 3)
        yield


class LogMachine(RuleBasedStateMachine):
    """Rows are numbers 0, 1, …, so what a range holds follows from its row numbers alone."""

    remote = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.location = f"objects://{next(_names)}/log" if self.remote else self.folder / "log"
        self.count = 0
        self.watermark: int | None = None
        self.watermarks: list[tuple[Position, int | None]] = []
        self.keys: list[bytes] = []
        self.batches = {"q": 0, "r": 0}
        self.committed: dict[str, Position] = {}
        self.gone = 0

    @initialize(
        segment=st.sampled_from([1, 700, 5000]),
        memory=st.sampled_from([0, 3000, 1 << 20]),
        fsync=st.sampled_from([Fsync.ALWAYS, Fsync.NEVER]),
        compression=st.sampled_from([None, "zstd"]),
    )
    def begin(self, segment: int, memory: int, fsync: Fsync, compression: str | None) -> None:
        self.options = LogOptions(
            fsync=fsync, segment=segment, memory=memory, compression=compression
        )
        self.writer = LogWriter.open(self.location, LAYOUT, self.options)
        self.reader = LogReader.open(self.location)
        self.places = [self.reader.start]

    @rule(count=st.sampled_from([0, 1, 2, 7, 300]), ahead=st.none() | st.integers(-5, 5))
    def append(self, count: int, ahead: int | None) -> None:
        watermark = None if ahead is None else self.count + ahead
        keys = [b"key %d" % (self.count + one) for one in range(count % 5)]
        end = self.writer.append(rows_from(self.count, count), watermark=watermark, keys=keys)
        self.keys += keys
        self._appended(count, watermark, end)

    @rule(counts=st.lists(st.sampled_from([0, 3, 400]), max_size=3), writer=st.sampled_from("qr"))
    def append_parts(self, counts: list[int], writer: str) -> None:
        parts, first = [], self.count
        for number, count in enumerate(counts):
            batches = [rows_from(first, count // 2), rows_from(first + count // 2, -(-count // 2))]
            part = write_part(self.folder / f"part{number}", batches, None)
            assert (part.rows if part else 0) == count
            parts += [part] if part else []
            first += count
        self.batches[writer] += 1
        key = (writer, self.batches[writer])
        assert self.writer.append_parts(parts, watermark=first, key=key)
        assert not self.writer.append_parts(parts, watermark=first + 9, key=key)
        assert self.writer.last_key == key
        self._appended(first - self.count, first, self.writer.end)

    def _appended(self, count: int, watermark: int | None, end: Position) -> None:
        self.count += count
        if watermark is not None:
            self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        self.places.append(end)
        self.watermarks.append((end, self.watermark))
        assert end.row == self.count
        assert end == self.writer.end

    @rule(data=st.data(), within=st.booleans())
    def read_a_range(self, data: st.DataObject, within: bool) -> None:
        start = data.draw(st.sampled_from(self.places))
        if start.row < self.gone:
            return
        end = data.draw(st.sampled_from([one for one in self.places if one >= start]))
        if within:
            rows = data.draw(st.integers(1, 500))
            end = min(end, limited := self.reader.limit(start, rows))
            assert limited.row - start.row <= rows
            assert limited.row == min(start.row + rows, self.count)
            self.places.append(end)
        for log in (self.reader, self.writer):
            frames = list(log.read(start, end))
            assert numbers_in(frames) == list(range(start.row, end.row))
            places = [start, *(one.end for one in frames)]
            assert all(a.row == one.start.row for a, one in zip(places, frames, strict=False))
            for one in frames:
                known = [watermark for place, watermark in self.watermarks if place <= one.end]
                assert one.watermark == (known[-1] if known else None)

    @rule(data=st.data(), parts=st.integers(1, 6))
    def split(self, data: st.DataObject, parts: int) -> None:
        start = data.draw(st.sampled_from(self.places))
        end = data.draw(st.sampled_from(self.places))
        if start.row < self.gone or start >= end:
            return
        ranges = self.reader.split(start, end, parts)
        assert 1 <= len(ranges) <= parts
        assert ranges[0][0] == start
        assert ranges[-1][1] == end
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
        numbers = [numbers_in(self.reader.read(*one)) for one in ranges]
        assert numbers == [list(range(a.row, b.row)) for a, b in ranges]

    @rule(earliest=st.none() | st.integers(0, 900), latest=st.none() | st.integers(0, 900))
    def read_by_time(self, earliest: int | None, latest: int | None) -> None:
        numbers = numbers_in(self.reader.read(self.reader.start, times=(earliest, latest)))
        kept = range(self.gone, self.count)
        wanted = [
            one
            for one in kept
            if (earliest is None or one >= earliest) and (latest is None or one <= latest)
        ]
        assert set(wanted) <= set(numbers)
        assert numbers == sorted(set(numbers))

    @rule(reader=st.sampled_from(READERS), named=st.booleans())
    def register(self, reader: str, named: bool) -> None:
        registered = register(self.location, reader, self.reader.start, {}, now=1, named=named)
        assert registered.position == self.committed.setdefault(reader, self.reader.start)

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(sorted(self.committed)))
        place = data.draw(st.sampled_from(self.places))
        self.committed[reader] = max(self.committed[reader], place)
        commit(self.location, reader, place, now=2)
        positions = {one.reader: one.position for one in registrations(self.location)}
        assert positions == self.committed

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(sorted(self.committed)))
        forget(self.location, reader)
        del self.committed[reader]

    @rule()
    def trim(self) -> None:
        if self.writer.trim():
            self.gone = self.reader.start.row
            needed = (one.row for one in self.committed.values())
            assert self.gone <= min(needed, default=self.count)
        assert self.reader.start.row == self.gone

    @rule()
    def drop_oldest(self) -> None:
        before = rows_dropped(self.location)
        lost = self.writer.drop_oldest()
        oldest = self.reader.start.row
        assert lost == oldest - self.gone
        assert rows_dropped(self.location) == before + lost
        self.gone = oldest

    @rule(data=st.data(), limit=st.sampled_from([1, 2, 50]))
    def pack(self, data: st.DataObject, limit: int) -> None:
        """One who reads meanwhile goes on as if nothing had happened."""
        start = data.draw(st.sampled_from([one for one in self.places if one.row >= self.gone]))
        reading = self.reader.read(start)
        numbers = numbers_in(itertools.islice(reading, 2))
        for _ in range(limit):
            if not self.writer.pack():
                break
        else:
            assert limit < 50, "it never ends"
        numbers += numbers_in(reading)
        assert numbers == list(range(start.row, self.count))

    @rule()
    def what_is_gone_is_a_gap(self) -> None:
        for place in (one for one in self.places if one.row < self.gone):
            with pytest.raises(LogGapError) as gap:
                list(self.reader.read(place))
            assert gap.value.rows == self.gone - place.row

    @rule()
    def reopen(self) -> None:
        before, key = self.writer.end, self.writer.last_key
        self.writer.close()
        self.writer = LogWriter.open(self.location, LAYOUT, self.options)
        assert self.writer.end == before
        assert self.writer.last_key == key

    @invariant()
    def ends_agree(self) -> None:
        if not hasattr(self, "writer"):
            return
        assert (self.reader.end.row, self.writer.end.row) == (self.count, self.count)
        assert self.reader.watermark == self.watermark == self.writer.watermark
        keys = self.writer.recent_keys(7)
        assert keys == self.keys[len(self.keys) - len(keys) :]
        assert len(keys) == min(7, len(self.keys)) or rows_dropped(self.location)
        sizes = self._sizes()
        assert self.writer.stored_bytes == sum(sizes)

    def _sizes(self) -> list[int]:
        if self.remote:
            return [len(one) for name, one in STORE.objects.items() if self._is_mine(name)]
        return [
            one.stat().st_size
            for one in Path(self.location).iterdir()
            if one.suffix in (".seg", ".pack")
        ]

    def _is_mine(self, name: str) -> bool:
        return f"objects://{name}".startswith(f"{self.location}/") and name.endswith(
            (".seg", ".pack")
        )

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.close()
        shutil.rmtree(self.folder)


class RemoteLogMachine(LogMachine):
    remote = True


STORE = ObjectStore()
register_file_system("objects", fs.PyFileSystem(STORE))


@pytest.mark.parametrize("machine", [LogMachine, RemoteLogMachine])
def test_a_log_is_a_list(machine: type[LogMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=15, stateful_step_count=30, deadline=None)
    )


@pytest.mark.soak
@pytest.mark.parametrize("machine", [LogMachine, RemoteLogMachine])
def test_a_log_is_a_list_for_longer(machine: type[LogMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=300, stateful_step_count=50, deadline=None)
    )
