"""Registrations, static rows, parts, and what a log refuses."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import LogError
from nilometer.log import local_storage
from nilometer.log.frame_format import Chunks
from nilometer.log.head import HEAD
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.parts import Part, write_part
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, forget, register, registrations, release, touch
from nilometer.log.segment_format import segment_name
from nilometer.log.static_rows import add_static_rows, expand, read_static_rows
from nilometer.log.writer import LogWriter
from tests.unit.log_samples import LAYOUT, numbers_in, rows_from

SENSORS = LogLayout(
    pa.schema([(SENSOR, pa.int32()), (TIME, TIMESTAMP), ("heat", pa.float64())]),
    TIME,
    SensorLayout(
        pa.schema([("id", pa.int64()), ("room", pa.string())]),
        1,
        "reading",
        pa.schema([("heat", pa.float64()), ("at", TIMESTAMP)]),
        "at",
    ),
)


def static(*versions: int) -> pa.Table:
    columns = {SENSOR: pa.array(versions, pa.int32()), "id": [one * 10 for one in versions]}
    return pa.table({**columns, "room": [f"room {one}" for one in versions]})


def test_a_segment_that_is_being_begun_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    force, write = os.fsync, local_storage._write_all

    def look() -> None:
        reader = LogReader.open(tmp_path)
        seen.append(numbers_in(reader.read(reader.start)))

    def look_and_force(descriptor: int) -> None:
        look()
        force(descriptor)

    def look_and_write(descriptor: int, place: int, chunks: Chunks) -> int:
        look()
        return write(descriptor, place, chunks)

    LogWriter.open(tmp_path, LAYOUT).close()
    (tmp_path / segment_name(0)).unlink()
    (tmp_path / HEAD).unlink()
    monkeypatch.setattr(os, "fsync", look_and_force)
    monkeypatch.setattr(local_storage, "_write_all", look_and_write)
    with LogWriter.open(tmp_path, LAYOUT, LogOptions(segment=1)) as log:
        for first in (0, 3, 6):
            log.append(rows_from(first, 3))
    assert [] in seen
    assert [0, 1, 2] in seen
    assert [0, 1, 2, 3, 4, 5] in seen


@given(name=st.text(max_size=300))
def test_a_reader_may_have_any_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    log = tmp_path_factory.getbasetemp() / "names"
    name = name.encode("utf-8", "replace").decode()
    register(log, name, Position(1, 2, 3, 4), {"sql": "…"}, now=5, named=False)
    (registered,) = registrations(log)
    assert (registered.reader, registered.position, registered.about) == (
        name,
        Position(1, 2, 3, 4),
        {"sql": "…"},
    )
    forget(log, name)
    assert registrations(log) == []


def test_the_life_of_a_registration(tmp_path: Path) -> None:
    first = register(tmp_path, "q", Position(0, 64), {}, now=1, named=True)
    assert (first.active, first.named, first.seen) == (True, True, 1)
    assert commit(tmp_path, "q", Position(2, 64, 0, 9), now=2).position.row == 9
    assert commit(tmp_path, "q", Position(1, 64, 0, 5), now=3).position.row == 9
    assert touch(tmp_path, "q", now=4).seen == 4
    gone = release(tmp_path, "q", now=5)
    assert (gone.active, gone.pid, gone.position.row) == (False, None, 9)
    again = register(tmp_path, "q", Position(7, 64), {"a": 1}, now=6, named=True)
    assert (again.active, again.position.row, again.about) == (True, 9, {"a": 1})
    assert registrations(tmp_path) == [again]


def test_only_registered_readers_commit(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="unknown reader"):
        commit(tmp_path, "q", Position(0, 0), now=1)


def test_signs_of_life_do_not_undo_commits(tmp_path: Path) -> None:
    register(tmp_path, "q", Position(0, 0), {}, now=0, named=True)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(touch, tmp_path, "q", now=one) for one in range(50)]
        for row in range(50):
            commit(tmp_path, "q", Position(0, 64 * row, 0, row), now=row)
            assert registrations(tmp_path)[0].position.row == row
        assert all(one.result() for one in calls)


def test_static_rows_are_all_there_however_many_files_they_were(tmp_path: Path) -> None:
    log = tmp_path / "log"
    LogWriter.open(log, SENSORS).close()
    assert read_static_rows(log).num_rows == 0
    for one in range(80):
        add_static_rows(log, static(one))
        assert read_static_rows(log)[SENSOR].to_pylist() == list(range(one + 1))
    assert len(list((log / "static").glob("*.arrow"))) < 40
    assert read_static_rows(log).equals(static(*range(80)))


def test_readings_get_the_static_values_of_their_version() -> None:
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([3, 1, 3], pa.int32()),
            pa.array([5, 6, 7], TIMESTAMP),
            pa.array([1.5, None, 2.5]),
        ],
        schema=SENSORS.stored,
    )
    expanded = expand(SENSORS, rows, static(1, 2, 3))
    assert expanded.schema == SENSORS.shown
    assert expanded["id"].to_pylist() == [30, 10, 30]
    assert expanded["room"].to_pylist() == ["room 3", "room 1", "room 3"]
    assert expanded["reading"].field("heat").to_pylist() == [1.5, None, 2.5]
    assert expanded["reading"].field("at").equals(rows[TIME])
    assert expanded[TIME].equals(rows[TIME])
    with pytest.raises(LogError, match="sensors that it does not know"):
        expand(SENSORS, rows, static(1, 2))


def test_a_log_without_sensors_shows_what_it_stores() -> None:
    assert expand(LAYOUT, rows_from(0, 2), static()).equals(rows_from(0, 2))


def made_part(folder: Path, rows: pa.RecordBatch) -> Part:
    part = write_part(folder / "part", [rows])
    assert part is not None
    return part


def test_a_part_that_is_not_what_its_task_said_is_an_error(tmp_path: Path) -> None:
    """Nothing of the batch is added: neither of a part that is lost nor of those beside it."""
    part = made_part(tmp_path, rows_from(0, 300))
    other = write_part(tmp_path / "other", [rows_from(300, 300)], None)
    alike = write_part(tmp_path / "alike", [rows_from(301, 300)], None)
    assert other is not None and alike is not None  # noqa: PT018
    file = Path(other.path)
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-100] ^= 1
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        for wrong, said in (
            (None, "no such file"),
            (b"", "0 bytes instead of"),
            (whole[:-64], "bytes instead of"),
            (whole + bytes(64), "bytes instead of"),
            (Path(alike.path).read_bytes(), "frames differ"),
        ):
            if wrong is None:
                file.unlink()
            else:
                file.write_bytes(wrong)
            with pytest.raises(LogError, match="differs from what its task wrote") as error:
                writer.append_parts([part, other], watermark=None, key=("q", 1))
            assert said in str(error.value)
            assert "executors share" in str(error.value)
            assert writer.end.row == 0
        file.write_bytes(flipped)
        with pytest.raises(LogError, match="damaged"):
            writer.append_parts([part, other], watermark=None, key=("q", 1))
    file.write_bytes(whole)
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        assert writer.end.row == 0
        assert writer.append_parts([part, other], watermark=None, key=("q", 1))
        assert numbers_in(writer.read(Position(0, 0))) == list(range(600))


def test_a_log_has_one_writer(tmp_path: Path) -> None:
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        with pytest.raises(LogError, match="already open for writing") as error:
            LogWriter.open(tmp_path / "log", LAYOUT)
        assert "held by process" in str(error.value)
        writer.append(rows_from(0, 1))
    LogWriter.open(tmp_path / "log", LAYOUT).close()


def test_what_a_log_refuses(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(LogError, match="there is no log here"):
        LogReader.open(log)
    with LogWriter.open(log, LAYOUT) as writer:
        with pytest.raises(LogError, match="do not have the columns of the log"):
            writer.append(rows_from(0, 3).drop_columns(["v"]))
        part = made_part(tmp_path, rows_from(0, 3).drop_columns(["v"]))
        with pytest.raises(LogError, match="do not have the columns of the log"):
            writer.append_parts([part], watermark=None, key=("q", 1))
        assert writer.append(rows_from(0, 3)).row == 3
    with pytest.raises(LogError, match="the log has other columns"):
        LogWriter.open(log, SENSORS)
    words = pa.schema([("word", pa.dictionary(pa.int32(), pa.string()))])
    with pytest.raises(LogError, match="dictionary"):
        LogWriter.open(tmp_path / "other", LogLayout(words, None))


def test_a_log_that_failed_once_takes_nothing_until_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT) as writer:
        writer.append(rows_from(0, 3))
        with monkeypatch.context() as broken:
            broken.setattr("os.fdatasync", _no_disk)
            with pytest.raises(OSError, match="no disk"):
                writer.append(rows_from(3, 3))
        with pytest.raises(LogError, match="can no longer be written"):
            writer.append(rows_from(3, 3))
    with LogWriter.open(log, LAYOUT) as writer:
        rows = writer.end.row
        assert rows in (3, 6)
        assert numbers_in(writer.read(Position(0, 0))) == list(range(rows))


def test_a_frame_that_is_cut_tells_no_more_than_was_known_before_it(tmp_path: Path) -> None:
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        writer.append(rows_from(0, 3), watermark=2)
        end = writer.append(rows_from(3, 5), watermark=7)
        reader = LogReader.open(tmp_path / "log")
        cut = reader.limit(reader.start, 5)
        for log in (reader, writer):
            before, after = log.read(reader.start, cut), log.read(cut, end)
            assert [(len(one.rows), one.watermark) for one in before] == [(3, 2), (2, 2)]
            assert [(len(one.rows), one.watermark) for one in after] == [(3, 7)]


def test_a_batch_is_not_added_after_a_later_one(tmp_path: Path) -> None:
    part = made_part(tmp_path, rows_from(0, 3))
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        for number, is_new in ((5, True), (5, False), (4, False), (6, True)):
            key = ("query", number)
            assert writer.append_parts([part], watermark=None, key=key) is is_new
        assert writer.end.row == 6


def test_a_repaired_log_holds_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT) as writer:
        end = writer.append(rows_from(0, 3), watermark=7)
        size = writer.stored_bytes
        with monkeypatch.context() as broken:
            broken.setattr("os.fdatasync", _no_disk)
            with pytest.raises(OSError, match="no disk"):
                writer.append(rows_from(3, 5), watermark=9)
            assert (writer.end, writer.watermark) == (end, 7)
        writer.repair()
        assert (writer.end, writer.watermark, writer.stored_bytes) == (end, 7, size)
        assert LogReader.open(log).end == end
        writer.append(rows_from(3, 2), watermark=8)
        assert numbers_in(writer.read(Position(0, 0))) == list(range(5))
    writer.repair()
    with pytest.raises(LogError, match="can no longer be written"):
        writer.append(rows_from(5, 1))
    with LogWriter.open(log, LAYOUT) as again:
        assert (again.end.row, again.watermark) == (5, 8)
        assert numbers_in(again.read(Position(0, 0))) == list(range(5))


def _no_disk(_: int) -> None:
    raise OSError("no disk")


def test_large_appends_become_several_frames_that_are_there_together(tmp_path: Path) -> None:
    rows = rows_from(0, 1_000_000)
    with LogWriter.open(tmp_path / "log", LAYOUT) as writer:
        writer.append(rows, watermark=5, keys=[b"a"])
        frames = list(LogReader.open(tmp_path / "log").read(Position(0, 0)))
        assert len(frames) > 1
        assert [one.watermark for one in frames] == [None] * (len(frames) - 1) + [5]
        assert pa.Table.from_batches([one.rows for one in frames]).equals(
            pa.Table.from_batches([rows])
        )


@pytest.mark.parametrize("fsync", list(Fsync))
def test_readers_follow_a_writer_in_other_threads(tmp_path: Path, fsync: Fsync) -> None:
    log = tmp_path / "log"
    options = LogOptions(fsync=fsync, fsync_every=5000, segment=30_000, memory=20_000)
    done = threading.Event()
    with LogWriter.open(log, LAYOUT, options) as writer, ThreadPoolExecutor(2) as pool:
        sources = (writer, LogReader.open(log))
        readers = [pool.submit(_follow, one, done) for one in sources]
        for one in range(150):
            writer.append(rows_from(one * 40, 40), watermark=one)
        done.set()
        assert [one.result() for one in readers] == [list(range(6000))] * 2


def _follow(log: LogWriter | LogReader, done: threading.Event) -> list[int]:
    numbers: list[int] = []
    place = Position(0, 0)
    last = False
    while not last:
        last = done.is_set()
        for frame in log.read(place):
            numbers += frame.rows.column("k").to_pylist()
            place = frame.end
    return numbers
