"""A log in a store that can only put, get, list and delete whole objects."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.errors import LogError, LogGapError
from nilometer.log import remote_storage
from nilometer.log.dead_letters import dead_letter_log, dead_letters_at
from nilometer.log.delete import delete_log
from nilometer.log.local_storage import LocalStorage
from nilometer.log.location import inside, parent, storage_at
from nilometer.log.options import LogOptions
from nilometer.log.parts import write_part
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register, registrations
from nilometer.log.remote_storage import RemoteStorage
from nilometer.log.writer import LogWriter
from nilometer.upkeep.places import file_name
from tests.file_systems import register_file_system
from tests.s3_server import S3_ENVIRONMENT, s3_server
from tests.soak_programs import moto_server
from tests.unit.log_samples import LAYOUT, ObjectStore, numbers_in, rows_from

LOG = "bucket://things/log"


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore()
    register_file_system("bucket", fs.PyFileSystem(store))
    return store


def segments(store: ObjectStore) -> list[str]:
    return sorted(one for one in store.objects if one.endswith(".seg"))


def test_every_append_is_an_object(store: ObjectStore) -> None:
    with LogWriter.open(LOG, LAYOUT) as writer:
        assert LogReader.open(LOG).end.row == 0
        for one in range(3):
            writer.append(rows_from(one * 10, 10), watermark=one)
        part = write_part("bucket://things/part", [rows_from(30, 5)])
        assert part is not None
        assert writer.append_parts([part], watermark=34, key=("q", 1))
        assert len(segments(store)) == 4
    reader = LogReader.open(LOG)
    assert (reader.end.row, reader.watermark) == (35, 34)
    assert numbers_in(reader.read(reader.start)) == list(range(35))


class WatchedStore(ObjectStore):
    """Counts listings, and how many objects are open at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.listings = 0
        self.readers = 0
        self.most_readers = 0
        self.lock = threading.Lock()

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.listings += 1
        return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        with self.lock:
            self.readers += 1
            self.most_readers = max(self.most_readers, self.readers)
        time.sleep(0.002)
        with self.lock:
            self.readers -= 1
        return super().open_input_file(path)


@pytest.mark.parametrize("as_frames", [True, False])
def test_small_objects_are_listed_once_and_read_together(as_frames: bool) -> None:
    store = WatchedStore()
    register_file_system("watched", fs.PyFileSystem(store))
    log = "watched://things/log"
    with LogWriter.open(log, LAYOUT) as writer:
        for one in range(60):
            # The rows of every tenth do not fit into what is read ahead.
            writer.append(rows_from(one * 50_000, 50_000 if one % 10 == 5 else 10))
    large = [one for one in segments(store) if len(store.objects[one]) > 1 << 16]
    assert len(large) == 6
    reader = LogReader.open(log)
    start, end = reader.start, reader.end
    store.listings, store.most_readers = 0, 0
    if as_frames:
        numbers = numbers_in(reader.read(start, end))
    else:
        numbers = [n for rows in reader.batches(span=(start, end)) for n in rows["k"].to_pylist()]
    wanted = [one * 50_000 + n for one in range(60) for n in range(50_000 if one % 10 == 5 else 10)]
    assert numbers == wanted
    assert store.listings <= 3
    assert store.most_readers > 1


def test_an_object_that_is_deleted_while_others_are_read_ahead_is_a_gap(
    store: ObjectStore,
) -> None:
    with LogWriter.open(LOG, LAYOUT) as writer:
        for one in range(20):
            writer.append(rows_from(one * 10, 10))
    reader = LogReader.open(LOG)
    frames = reader.read(reader.start)
    parts = [numbers_in([next(frames)])]
    for one in segments(store)[:9]:
        del store.objects[one]
    with pytest.raises(LogGapError, match="rows of the log were deleted"):
        parts.extend(numbers_in([one]) for one in frames)
    assert [n for some in parts for n in some] == list(range(10))


class TrimmedStore(ObjectStore):
    """Objects of which the oldest segment is deleted whenever it is opened, so many times."""

    deletions = 0

    def open_input_file(self, path: str) -> pa.NativeFile:
        if self.deletions and path.strip("/") == segments(self)[0]:
            self.deletions -= 1
            del self.objects[path.strip("/")]
        return super().open_input_file(path)


@pytest.mark.parametrize("deleted", [1, 30])
def test_the_start_is_known_while_many_objects_are_deleted(deleted: int) -> None:
    """As when a reader commits: the writer deletes what was read, one object after another."""
    store = TrimmedStore()
    register_file_system("trimmed", fs.PyFileSystem(store))
    location = "trimmed://things/log"
    with LogWriter.open(location, LAYOUT) as writer:
        for number in range(40):
            writer.append(rows_from(number, 1))
        store.deletions = deleted
        reader = LogReader.open(location)
        start = reader.start
        assert (start.segment, start.row) == (deleted, deleted)
        store.deletions = 5
        reader.check(reader.place_of(39))
        with pytest.raises(LogGapError):
            reader.check(Position(0, 0, 0, 0))


def test_the_start_is_known_while_objects_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is missing, the next one still exists: both are in the pack."""
    monkeypatch.setattr("nilometer.log.compaction.FEW", 4)
    store = ObjectStore()
    register_file_system("packed", fs.PyFileSystem(store))
    with LogWriter.open("packed://things/log", LAYOUT) as writer:
        for number in range(10):
            writer.append(rows_from(number, 1))
        look, log = store.get_file_info_selector, fs.FileSelector("things/log")
        listed, second = [look(log)], segments(store)[1]
        content = store.objects[second]
        assert writer.pack()
        reader = LogReader.open("packed://things/log")
        assert reader.start.row == 0
        store.objects[second] = content

        def see(selector: fs.FileSelector) -> list[fs.FileInfo]:
            return listed.pop() if listed and selector.base_dir == log.base_dir else look(selector)

        monkeypatch.setattr(store, "get_file_info_selector", see)
        assert reader.start.row == 0
        assert not listed


def test_a_file_that_is_still_being_written_does_not_count(store: ObjectStore) -> None:
    with LogWriter.open(LOG, LAYOUT) as writer:
        end = writer.append(rows_from(0, 10))
        writer.append(rows_from(10, 10))
    last = segments(store)[-1]
    whole = store.objects[last]
    for cut in (0, 10, 100, 400, len(whole) - 1):
        store.objects[last] = whole[:cut]
        reader = LogReader.open(LOG)
        assert reader.end == end
        assert numbers_in(reader.read(Position(0, 0))) == list(range(10))
    with LogWriter.open(LOG, LAYOUT) as writer:
        assert writer.end == end
        writer.append(rows_from(10, 3))
    assert numbers_in(LogReader.open(LOG).read(Position(0, 0))) == list(range(13))


class ReplacingStore(ObjectStore):
    """Replaces files in steps, as HDFS does: readers see some of them without the new content."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bytes | None] = []
        """What readers of heads see first."""

    def open_input_file(self, path: str) -> pa.NativeFile:
        if "/heads/" not in path or not self.seen:
            return super().open_input_file(path)
        content = self.seen.pop(0)
        if content is None:
            raise FileNotFoundError(path)
        return pa.BufferReader(content)


@pytest.fixture
def replacing(monkeypatch: pytest.MonkeyPatch) -> ReplacingStore:
    monkeypatch.setattr(remote_storage, "_HEAD_SECONDS", 0)
    store = ReplacingStore()
    register_file_system("replacing", fs.PyFileSystem(store))
    return store


@pytest.mark.parametrize("seen", [[b""], [None], [None, b"", b""]])
def test_a_head_that_is_being_replaced_is_read_again(
    replacing: ReplacingStore, seen: list[bytes | None]
) -> None:
    with LogWriter.open("replacing://things/log", LAYOUT) as writer:
        for one in range(3):
            writer.append(rows_from(one * 10, 10))
        replacing.seen = list(seen)
        assert LogReader.open("replacing://things/log").end.row == 30
    assert not replacing.seen


def test_a_head_that_stays_empty_is_reported_and_the_next_writer_cures_it(
    replacing: ReplacingStore,
) -> None:
    log = "replacing://things/log"
    with LogWriter.open(log, LAYOUT) as writer:
        for one in range(3):
            writer.append(rows_from(one * 10, 10))
    (head,) = [one for one in replacing.objects if "/heads/" in one]
    for gone in (False, True):
        replacing.objects[head] = b""
        if gone:
            del replacing.objects[head]
        with pytest.raises(LogError, match="the end of the log cannot be read"):
            _ = LogReader.open(log).end
    with LogWriter.open(log, LAYOUT) as writer:
        writer.append(rows_from(30, 10))
    assert numbers_in(LogReader.open(log).read(Position(0, 0))) == list(range(40))


def test_a_writer_that_ended_before_its_first_head_has_published_nothing(
    replacing: ReplacingStore,
) -> None:
    log = "replacing://things/log"
    with LogWriter.open(log, LAYOUT) as writer:
        writer.append(rows_from(0, 10))
    (head,) = [one for one in replacing.objects if "/heads/" in one]
    for content in (b"", None):
        if content is None:
            del replacing.objects[head]
        else:
            replacing.objects[head] = content
        assert not list(LogReader.open(log).read(Position(0, 0)))


@pytest.mark.parametrize("arrived", [0, 100, None])
def test_a_store_that_failed_takes_rows_again(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, arrived: int | None
) -> None:
    """However much of the object has arrived, all of it included."""
    good = RemoteStorage.write

    def write(self: RemoteStorage, name: str, chunks: Iterable[Any], **given: Any) -> None:
        content = b"".join(bytes(one) for one in chunks)
        good(self, name, [content[:arrived]], **given)
        raise OSError("timed out")

    with LogWriter.open(LOG, LAYOUT) as writer:
        for one in range(2):
            with monkeypatch.context() as broken:
                broken.setattr(RemoteStorage, "write", write)
                with pytest.raises(LogError, match="cannot write to the log"):
                    writer.append(rows_from(one * 10, 10))
            writer.repair()
            writer.append(rows_from(one * 10, 10))
            assert numbers_in(LogReader.open(LOG).read(Position(0, 0))) == list(
                range(one * 10 + 10)
            )
        assert len(segments(store)) == 2
        assert writer.stored_bytes == sum(len(store.objects[one]) for one in segments(store))


def test_the_newest_writer_wins(store: ObjectStore) -> None:
    first = LogWriter.open(LOG, LAYOUT)
    first.append(rows_from(0, 10))
    second = LogWriter.open(LOG, LAYOUT)
    second.append(rows_from(10, 10))
    with pytest.raises(LogError, match="another writer has taken the log over"):
        first.append(rows_from(10, 10))
    second.append(rows_from(20, 10))
    assert numbers_in(LogReader.open(LOG).read(Position(0, 0))) == list(range(30))
    first.close()
    second.close()


def test_objects_are_deleted_when_they_are_read(store: ObjectStore) -> None:
    with LogWriter.open(LOG, LAYOUT, LogOptions(disk=20_000)) as writer:
        register(LOG, "reader", writer.end, {}, now=0, named=True)
        for one in range(60):
            end = writer.append(rows_from(one * 50, 50))
            commit(LOG, "reader", end, now=one)
        assert writer.stored_bytes <= 20_000
        assert writer.trim() > 0
        assert len(segments(store)) == 1
    assert registrations(LOG)[0].position.row == 3000
    with LogWriter.open(LOG, LAYOUT) as writer:
        assert writer.end.row == 3000


def test_arrows_own_mock_file_system_will_do() -> None:
    system, _ = fs.FileSystem.from_uri("mock:///")
    register_file_system("mocked", system)
    with LogWriter.open("mocked://a/log", LAYOUT) as writer:
        writer.append(rows_from(0, 10))
    with LogWriter.open("mocked://a/log", LAYOUT) as writer:
        writer.append(rows_from(10, 10))
        assert numbers_in(writer.read(Position(0, 0))) == list(range(20))


def test_a_file_uri_is_a_local_directory(tmp_path: Path) -> None:
    storage = storage_at(f"file://{tmp_path}/a%20log")
    assert isinstance(storage, LocalStorage)
    assert storage.folder == tmp_path / "a log"


@pytest.mark.parametrize("name", ["../other", "a/b", "a/../../b"])
def test_a_name_with_slashes_stays_one_folder(tmp_path: Path, name: str) -> None:
    """Of a URI `%2F` is a slash: dropping a query would have removed what is not its own."""
    for logs in (f"file://{tmp_path}", "s3://bucket/logs?region=eu-north-1"):
        storage = storage_at(inside(logs, file_name(name)))
        if isinstance(storage, LocalStorage):
            assert storage.folder.parent == tmp_path
            assert storage.folder.name == name.replace("/", "%2F")
        else:
            assert isinstance(storage, RemoteStorage)
            assert storage._folder == f"bucket/logs/{name.replace('/', '%2F')}"
    dead = dead_letters_at(inside("s3://plant/logs", file_name(name)))
    assert dead == inside("s3://plant/logs", file_name(dead_letter_log(name)))


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(LogError, match="no file system for this location"):
        storage_at("nowhere://bucket/log")


def test_options_of_a_uri_stay_behind_what_is_inside() -> None:
    part = inside("s3://plant/logs/?region=x&path=a/b", "q/parts/1.part")
    assert part == "s3://plant/logs/q/parts/1.part?region=x&path=a/b"
    assert parent(part) == ("s3://plant/logs/q/parts?region=x&path=a/b", "1.part")
    assert inside("/data/what?/", "log") == "/data/what?/log"
    assert parent("/data/what?/log") == ("/data/what?", "log")
    assert parent("log") == (".", "log")


@pytest.fixture(params=[s3_server, pytest.param(moto_server, marks=pytest.mark.soak)])
def s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store that speaks S3: the address of a log there."""
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with request.param() as options:
        yield inside(f"s3://things/logs?{options}", "a")


def test_a_log_in_an_s3_store(s3: str, capfd: pytest.CaptureFixture[str]) -> None:
    with LogWriter.open(s3, LAYOUT, LogOptions(history=0)) as writer:
        writer.append(rows_from(0, 10), watermark=3)
        part = write_part(inside(s3, "parts/1.part"), [rows_from(10, 5)])
        assert part is not None
        assert writer.append_parts([part], watermark=7, key=("q", 1))
        reader = LogReader.open(s3)
        assert numbers_in(reader.read(reader.start)) == list(range(15))
        register(s3, "x", reader.start, {}, now=1, named=True)
        commit(s3, "x", reader.end, now=2)
        assert writer.trim() == 1
        assert [one.position for one in registrations(s3)] == [reader.end]
    delete_log(s3)
    assert storage_at(s3).files() == []
    assert capfd.readouterr().out == ""  # the library of S3 writes there what it likes


def test_more_objects_than_s3_lists_at_a_time(s3: str) -> None:
    storage = storage_at(s3)
    storage.make()
    names = [f"{number:04}.part" for number in range(1100)]
    storage.write_all({f"parts/{name}": b"rows" for name in names})
    assert storage.files("parts") == [(name, 4) for name in names]
    delete_log(s3)
    assert storage.files("parts") == []


@pytest.mark.soak
@pytest.mark.limit(600)
def test_a_log_of_more_segments_than_s3_lists_at_a_time(s3: str) -> None:
    with LogWriter.open(s3, LAYOUT) as writer:
        for number in range(1010):
            writer.append(rows_from(number, 1), watermark=number)
    with LogWriter.open(s3, LAYOUT) as writer:
        writer.append(rows_from(1010, 1), watermark=1010)
    reader = LogReader.open(s3)
    assert (reader.end.row, reader.watermark) == (1011, 1010)
    assert numbers_in(reader.read(reader.start)) == list(range(1011))
