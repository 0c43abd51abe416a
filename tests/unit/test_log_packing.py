"""Packed segments: smaller, and for everybody who reads the same; killed anywhere, old or new."""

from __future__ import annotations

import random
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import fs

from nilometer.errors import LogError, LogGapError
from nilometer.log.background import Background
from nilometer.log.delivery_keys import newest_keys
from nilometer.log.frame import Frame
from nilometer.log.layout import LogLayout
from nilometer.log.location import storage_at
from nilometer.log.options import LogOptions
from nilometer.log.packed_segment import _indexes
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.segment_files import needless_files, segment_files
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.forks import FORKS
from tests.patience import LONG
from tests.unit.log_samples import LAYOUT, OPTIONS_TO_PACK, ObjectStore, numbers_in, rows_from
from tests.unit.packing_children import ENDED, pack_until
from tests.unit.test_log_takeover import Stepped, SteppedStore

LOG = "packs://things/log"


@pytest.fixture
def store() -> SteppedStore:
    store = SteppedStore()
    register_file_system("packs", fs.PyFileSystem(store))
    return store


def fill(
    location: str | Path,
    appends: int,
    options: LogOptions = OPTIONS_TO_PACK,
    max_keys: int = 1,
) -> LogWriter:
    """A log of small appends of many kinds."""
    chance = random.Random(7)
    writer = LogWriter.open(location, LAYOUT, options)
    row = writer.end.row
    for _ in range(appends):
        count = chance.choice([0, 1, 1, 1, 3])
        keys = [b"key %d" % (row + one) for one in range(chance.randint(0, max_keys))]
        writer.append(rows_from(row, count), watermark=row + chance.randint(-3, 3), keys=keys)
        row += count
    return writer


def content_of(location: str | Path) -> list[tuple[Any, ...]]:
    """All that a reader sees of a log."""
    reader = LogReader.open(location)
    return [_frame_content(one) for one in reader.read(reader.start)]


def content_with_keys(location: Path) -> tuple[Any, ...]:
    return content_of(location), newest_keys(storage_at(location), (1 << 40, 0), 10_000)


def _frame_content(frame: Frame) -> tuple[Any, ...]:
    return frame.start, frame.end, frame.watermark, frame.rows.to_pylist()


def pack_all(writer: LogWriter) -> None:
    while writer.pack():
        pass


def test_a_packed_log_tells_the_same_and_takes_far_less(tmp_path: Path) -> None:
    writer = fill(tmp_path / "log", 2000)
    before, keys, size = (
        content_of(tmp_path / "log"),
        writer.recent_keys(10_000),
        writer.stored_bytes,
    )
    end = writer.end
    pack_all(writer)
    assert content_of(tmp_path / "log") == before
    assert writer.recent_keys(10_000) == keys
    assert writer.stored_bytes < size / 8
    assert len(segment_files(storage_at(tmp_path / "log"))) < 40, "packs were not merged"
    writer.close()
    with LogWriter.open(tmp_path / "log", LAYOUT, OPTIONS_TO_PACK) as again:
        assert (again.end, again.recent_keys(10_000)) == (end, keys)
        again.append(rows_from(end.row, 5))
    assert numbers_in(LogReader.open(tmp_path / "log").read(Position(0, 0)))[-1] == end.row + 4


@pytest.mark.parametrize("packs", [0, 1, pytest.param(3, marks=pytest.mark.soak), 1000])
def test_batches_hold_what_frames_hold(tmp_path: Path, packs: int) -> None:
    """Also of a log of which some segments are packed, and some packs are packed again."""
    writer = fill(tmp_path / "log", 2000)
    for _ in range(packs):
        writer.pack()
    reader, chance = LogReader.open(tmp_path / "log"), random.Random(packs)
    frames = pa.Table.from_batches([one.rows for one in reader.read(reader.start)])
    assert pa.Table.from_batches(list(reader.batches())).equals(frames)
    for _ in range(20):
        low, high = sorted(chance.choices(range(writer.end.row), k=2))
        table = pa.Table.from_batches(list(reader.batches((low, high))), frames.schema)
        assert _between(table, low, high).equals(_between(frames, low, high))
    writer.close()


def test_packs_without_rows_are_read(store: SteppedStore) -> None:
    """While nothing comes, a query appends its watermark alone."""
    with LogWriter.open(LOG, LAYOUT, OPTIONS_TO_PACK) as writer:
        for watermark in range(200):
            writer.append(None, watermark=watermark)
        pack_all(writer)
        assert _objects(store) < 50
        writer.append(rows_from(0, 5))
    reader = LogReader.open(LOG)
    assert numbers_in(reader.read(reader.start)) == list(range(5))
    assert [one.column("k").to_pylist() for one in reader.batches()] == [list(range(5))]


def _between(rows: pa.Table, low: int, high: int) -> pa.Table:
    times = rows.column(str(LAYOUT.time)).cast(pa.int64())
    return rows.filter(pc.and_(pc.greater_equal(times, low), pc.less_equal(times, high)))


def test_a_read_of_a_range_of_times_leaves_packs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fill(tmp_path / "log", 600) as writer:
        pack_all(writer)
        last = writer.end.row - 1
    reader = LogReader.open(tmp_path / "log")
    decoded = []
    real = pa.ipc.read_record_batch
    monkeypatch.setattr(
        "pyarrow.ipc.read_record_batch", lambda *given: decoded.append(1) or real(*given)
    )
    numbers = numbers_in(reader.read(reader.start, times=(last, None)))
    assert last in numbers
    assert len(decoded) < 60


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int16()), pa.struct([("a", pa.string())]), pa.bool_()]
)
def test_rows_of_any_type_stay_what_they_are(tmp_path: Path, kind: pa.DataType) -> None:
    values = {
        pa.list_(pa.int16()): [[1], None, [], [2, None]],
        pa.bool_(): [True, None, False, None],
    }.get(kind, [{"a": "x"}, None, {"a": None}, {"a": "ß" * 50}])
    schema = pa.schema([pa.field("v", kind, metadata={"unit": "m"})], metadata={"made": "here"})
    options = OPTIONS_TO_PACK
    with LogWriter.open(tmp_path / "log", LogLayout(schema, None), options) as writer:
        for number in range(300):
            rows = pa.array(values[number % 4 :] + values[: number % 3], kind)
            writer.append(pa.RecordBatch.from_arrays([rows], schema=schema))
        before = content_of(tmp_path / "log")
        pack_all(writer)
        assert content_of(tmp_path / "log") == before
    frame = next(iter(LogReader.open(tmp_path / "log").read(Position(0, 0))))
    assert frame.rows.schema.equals(schema, check_metadata=True)


def test_a_process_that_packs_is_killed_before_each_step(tmp_path: Path) -> None:
    original = tmp_path / "original"
    with fill(original, 250):
        before = content_of(original)
    step, ends = 0, []
    while True:
        log = tmp_path / f"log{step}"
        shutil.copytree(original, log)
        process = FORKS.Process(target=pack_until, args=(str(log), step))
        process.start()
        process.join()
        ends.append(process.exitcode)
        assert content_of(log) == before
        with LogWriter.open(log, LAYOUT, OPTIONS_TO_PACK) as writer:
            assert not needless_files(storage_at(log))
            assert not list(log.glob(".*"))
            assert content_of(log) == before
            pack_all(writer)
            assert content_of(log) == before
        if process.exitcode == 0:
            break
        step += 1 if step < 12 else 7
    assert set(ends[:-1]) == {ENDED}
    assert step > 12


def test_a_damaged_pack_is_found(tmp_path: Path) -> None:
    with fill(tmp_path / "log", 400) as writer:
        pack_all(writer)
    path = min((tmp_path / "log").glob("*.pack"))
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        _indexes.clear()
        with pytest.raises(LogError, match="damaged"):
            content_with_keys(tmp_path / "log")
    path.write_bytes(whole[:-1])
    with pytest.raises(LogError, match="damaged"):
        content_of(tmp_path / "log")


def test_what_is_packed_is_deleted_like_any_other(tmp_path: Path) -> None:
    options = LogOptions(segment=18_000, memory=0)
    with fill(tmp_path / "log", 300, options, 0) as writer:
        first = LogReader.open(tmp_path / "log").start
        writer.pack()
        writer.pack()
        assert writer.trim() > 3
        start = LogReader.open(tmp_path / "log").start
        assert start.row > 100
        with pytest.raises(LogGapError):
            list(LogReader.open(tmp_path / "log").read(first))
    assert not list((tmp_path / "log").glob("*.pack"))


def test_segments_that_are_deleted_while_they_are_packed_stay_deleted(tmp_path: Path) -> None:
    options = LogOptions(segment=18_000, memory=0)
    with fill(tmp_path / "log", 300, options, 0) as writer:
        writer._packer.pack(lambda: writer.trim() and None)
        assert not list((tmp_path / "log").glob("*.pack"))
        assert not list((tmp_path / "log").glob(".*"))
        assert len(segment_files(storage_at(tmp_path / "log"))) == 1


def test_objects_that_are_deleted_while_they_are_packed_are_no_error(store: SteppedStore) -> None:
    with fill(LOG, 300, LogOptions(segment=18_000, memory=0), 0) as writer:
        writer._packer.pack(lambda: writer.trim() and None)
        assert _objects(store) == 1
        assert not [one for one in store.objects if ".pack" in one]


def test_an_object_that_is_lost_while_it_is_packed_is_an_error(store: SteppedStore) -> None:
    with fill(LOG, 300) as writer:
        lost = sorted(one for one in store.objects if one.endswith(".seg"))[20]
        with pytest.raises(FileNotFoundError):
            writer._packer.pack(lambda: store.objects.pop(lost, None) and None)
        assert not [one for one in store.objects if ".pack" in one]


def test_rows_are_appended_while_segments_are_packed(tmp_path: Path) -> None:
    with fill(tmp_path / "log", 300) as writer:
        first = writer.end.row
        added = iter(range(first, first + 100))

        def append() -> None:
            if (row := next(added, None)) is not None:
                thread = threading.Thread(target=lambda: writer.append(rows_from(row, 1)))
                thread.start()
                thread.join(LONG)
                assert not thread.is_alive()

        writer._packer.pack(append)
        pack_all(writer)
        last = writer.end.row
        assert last > first
    assert numbers_in(LogReader.open(tmp_path / "log").read(Position(0, 0))) == list(range(last))


def test_the_background_packs_and_stops_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background(pause=0.01)
    monkeypatch.setattr("nilometer.log.writer.in_background", background.add)
    with fill(tmp_path / "log", 300) as writer:
        before, full = content_of(tmp_path / "log"), threading.Event()
        while len(list((tmp_path / "log").glob("*.seg"))) > 1:
            full.wait(0.01)
        assert content_of(tmp_path / "log") == before
        assert writer.end.row
    assert not background._works


def test_objects_are_merged(store: SteppedStore) -> None:
    with fill(LOG, 200) as writer:
        before, keys = content_of(LOG), writer.recent_keys(500)
        count = _objects(store)
        pack_all(writer)
        assert _objects(store) < count / 4
        assert (content_of(LOG), writer.recent_keys(500)) == (before, keys)
    with LogWriter.open(LOG, LAYOUT, OPTIONS_TO_PACK) as writer:
        assert content_of(LOG) == before
        writer.append(rows_from(writer.end.row, 3))
        pack_all(writer)
        assert content_of(LOG)[: len(before)] == before


def _objects(store: ObjectStore) -> int:
    return sum(one.endswith((".seg", ".pack")) for one in store.objects)


def test_a_writer_that_packs_is_stopped_before_each_step_and_another_takes_over(
    store: SteppedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.log.compaction.FEW", 4)
    step = 0
    while True:
        store.objects.clear()
        writer = fill(LOG, 6)
        stepped = Stepped(store, writer.pack, step)
        was_stopped = stepped.is_stopped
        before = content_of(LOG)
        with LogWriter.open(LOG, LAYOUT, OPTIONS_TO_PACK) as second:
            assert content_of(LOG) == before
            row = second.end.row
            second.append(rows_from(row, 2))
            while second.pack():
                assert content_of(LOG)[: len(before)] == before
            later = content_of(LOG)
            _finish(stepped)
            assert content_of(LOG) == later
            second.append(rows_from(row + 2, 2))
        with LogWriter.open(LOG, LAYOUT, OPTIONS_TO_PACK) as third:
            pack_all(third)
        assert content_of(LOG)[: len(later)] == later
        if not was_stopped:
            break
        step += 1
    assert step > 10


def _finish(stepped: Stepped) -> None:
    """What a writer does that was taken over may fail in any way: it must do no harm."""
    with suppress(FileNotFoundError, KeyError):
        stepped.finish()


def test_packs_that_come_late_bring_nothing_back(store: SteppedStore) -> None:
    """A writer that was taken over shows a pack of segments that were deleted meanwhile."""
    options = LogOptions(memory=0)
    first = fill(LOG, 40, options, 0)
    stepped = Stepped(store, first.pack, 1 << 30)
    pack = next(one for one in store.objects if one.endswith(".pack"))
    kept = {name: store.objects[name] for name in (pack, f"{pack}.whole")}
    _finish(stepped)
    with LogWriter.open(LOG, LAYOUT, options) as second:
        second.append(rows_from(second.end.row, 2))
        second.append(rows_from(second.end.row, 2))
        second.trim()
        oldest = LogReader.open(LOG).start
        store.objects.update(kept)
        assert LogReader.open(LOG).start == oldest
        assert numbers_in(LogReader.open(LOG).read(oldest))
