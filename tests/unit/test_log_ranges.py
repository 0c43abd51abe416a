"""Large objects of a log are read in few requests, several at the same time."""

from __future__ import annotations

import io
from uuid import uuid4

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.log import remote_storage
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.unit.log_samples import LAYOUT, numbers_in, rows_from
from tests.unit.test_log_remote import WatchedStore, segments

BEGIN = Position(0, 0)


class CountedFile(io.BytesIO):
    """A file that notes how long each range is that is read of it."""

    def __init__(self, content: bytes, ranges: list[int]) -> None:
        super().__init__(content)
        self._ranges = ranges

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        if content:
            self._ranges.append(len(content))
        return content


class RangedStore(WatchedStore):
    """Notes what is read, in requests for ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.ranges: list[int] = []

    def open_input_file(self, path: str) -> pa.NativeFile:
        super().open_input_file(path)
        if not path.endswith(".seg"):
            return super().open_input_file(path)
        self.opened.append(path)
        return pa.PythonFile(CountedFile(self.objects[path.strip("/")], self.ranges), mode="r")

    def count_anew(self) -> None:
        self.opened, self.ranges, self.most_readers = [], [], 0


@pytest.fixture
def collected() -> tuple[RangedStore, str]:
    """A log of eight objects of megabytes, as durability = 'disk' writes them, not read yet."""
    store = RangedStore()
    register_file_system("ranged", fs.PyFileSystem(store))
    log = f"ranged://things/{uuid4().hex}"
    with LogWriter.open(log, LAYOUT, LogOptions(compression=None)) as writer:
        for one in range(8):
            writer.append(rows_from(one * 200_000, 200_000))
    assert min(len(store.objects[one]) for one in segments(store)) > 3 << 20
    return store, log


def numbers_of(store: RangedStore, log: str, start: Position = BEGIN) -> list[int]:
    """All numbers from an offset on; only what is read for them is counted."""
    reader = LogReader.open(log)
    end = reader.end
    store.count_anew()
    return numbers_in(reader.read(start, end))


def test_large_objects_are_each_one_request_and_several_at_once(
    collected: tuple[RangedStore, str],
) -> None:
    store, log = collected
    assert numbers_of(store, log) == list(range(1_600_000))
    assert sorted(store.ranges) == sorted(len(store.objects[one]) for one in segments(store))
    assert store.most_readers > 1


def test_what_one_reader_has_read_is_there_for_others_of_the_process(
    collected: tuple[RangedStore, str],
) -> None:
    store, log = collected
    first = numbers_of(store, log)
    assert numbers_of(store, log) == first
    assert not store.opened


def test_a_reader_at_the_end_of_an_object_does_not_fetch_it(
    collected: tuple[RangedStore, str],
) -> None:
    store, log = collected
    end = LogReader.open(log).end
    with LogWriter.open(log, LAYOUT) as writer:
        writer.append(rows_from(0, 10))
    assert numbers_of(store, log, end) == list(range(10))
    assert [one.strip("/") for one in store.opened] == segments(store)[-1:]


def test_no_more_is_read_ahead_than_there_is_room_for(
    collected: tuple[RangedStore, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = collected
    size = max(len(store.objects[one]) for one in segments(store))
    monkeypatch.setattr(remote_storage, "_ROOM_AHEAD", 2 * size)
    reader = LogReader.open(log)
    end = reader.end
    store.count_anew()
    frames = reader.read(BEGIN, end)
    next(frames)
    next(frames)
    assert len(store.opened) == 3
    assert len(list(frames)) == 6


def test_an_object_that_is_too_large_is_read_in_large_ranges(
    collected: tuple[RangedStore, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = collected
    monkeypatch.setattr(remote_storage, "_LARGE", 1 << 20)
    assert numbers_of(store, log) == list(range(1_600_000))
    sizes = [len(store.objects[one]) for one in segments(store)]
    assert len(store.opened) == len(sizes)
    # One for the header of each, and then as few as there can be.
    assert len(store.ranges) <= sum(2 + size // (2 << 20) for size in sizes)
