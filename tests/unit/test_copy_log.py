"""Logs that are copied to other places, of the same kind or another, tell the same and go on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from nilometer.errors import LogError
from nilometer.log.copy_log import copy_log
from nilometer.log.location import inside, storage_at
from nilometer.log.options import LogOptions
from nilometer.log.parts import write_part
from nilometer.log.published import read_layout
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register, registrations
from nilometer.log.remote_storage import RemoteStorage
from nilometer.log.segment_format import read_header
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.unit.log_samples import LAYOUT, OPTIONS_TO_PACK, ObjectStore, numbers_in, rows_from
from tests.unit.test_log_base import Changelog
from tests.unit.test_log_packing import content_of, fill, pack_all


class Store(ObjectStore):
    """One whose folders can be deleted."""

    def delete_dir(self, path: str) -> None:
        for name in [one for one in self.objects if one.startswith(f"{path.strip('/')}/")]:
            del self.objects[name]

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        folders = {one.rpartition("/")[0] for one in self.objects}
        return [
            fs.FileInfo(one, fs.FileType.Directory) if one.strip("/") in folders else info
            for one, info in zip(paths, super().get_file_info(paths), strict=True)
        ]


@pytest.fixture
def store() -> Store:
    store = Store()
    register_file_system("copies", fs.PyFileSystem(store))
    return store


@pytest.fixture
def places(tmp_path: Path, store: Store) -> dict[str, str]:
    return {
        "local": str(tmp_path / "a"),
        "remote": "copies://things/a",
        "other local": str(tmp_path / "b"),
        "other remote": "copies://things/b",
    }


def make(location: str, seed: int) -> None:
    """A log with packed and growing segments, keys, batches, readers, and old rows deleted."""
    chance = random.Random(seed)
    writer = fill(location, chance.choice([0, 1, 300, 1500]), max_keys=3)
    if chance.random() < 0.7:
        pack_all(writer)
    for number in range(chance.choice([0, 1, 40])):
        row = writer.end.row
        part = write_part(inside(location, f"part{number}"), [rows_from(row, 2)])
        assert part is not None
        writer.append_parts([part], watermark=row, key=("query", number))
    register(location, "reader", writer.end, {"query": "q"}, now=1, named=True)
    if chance.random() < 0.5:
        register(location, "other", LogReader.open(location).start, {}, now=2, named=True)
    row = writer.end.row
    writer.append(rows_from(row, chance.choice([0, 5])), watermark=row)
    writer.close()


def all_of(location: str) -> tuple[Any, ...]:
    reader = LogReader.open(location)
    known = sorted((one.reader, one.position, dict(one.about)) for one in registrations(location))
    return (
        content_of(location),
        reader.end,
        reader.watermark,
        known,
        read_layout(storage_at(location)),
    )


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(one, marks=pytest.mark.soak) for one in (0, 2, 3))]
)
@pytest.mark.parametrize("to", ["other local", "other remote"])
@pytest.mark.parametrize("source", ["local", "remote"])
def test_a_copy_tells_the_same_and_goes_on(
    places: dict[str, str], source: str, to: str, seed: int
) -> None:
    make(places[source], seed)
    before = all_of(places[source])
    assert copy_log(places[source], places[to]) is not None
    assert all_of(places[to]) == before
    with LogWriter.open(places[to], LAYOUT, OPTIONS_TO_PACK) as writer:
        with LogWriter.open(places[source], LAYOUT, OPTIONS_TO_PACK) as original:
            assert (writer.end, writer.watermark) == (original.end, original.watermark)
            assert writer.recent_keys(10_000) == original.recent_keys(10_000)
        for number in range(300):
            writer.append(rows_from(writer.end.row, 1), watermark=number)
        assert content_of(places[to])[: len(before[0])] == before[0]
        pack_all(writer)
        end = writer.end
    reader = LogReader.open(places[to])
    numbers = numbers_in(reader.read(reader.start))
    assert numbers == list(range(end.row - len(numbers), end.row))
    commit(places[to], "reader", end, now=3)


def test_a_batch_that_is_there_is_not_added_to_the_copy_again(places: dict[str, str]) -> None:
    with LogWriter.open(places["local"], LAYOUT) as writer:
        part = write_part(inside(places["local"], "part"), [rows_from(0, 2)])
        assert part is not None
        assert writer.append_parts([part], watermark=1, key=("q", 7))
    for source, to in (("local", "remote"), ("remote", "other remote"), ("remote", "other local")):
        copy_log(places[source], places[to])
        with LogWriter.open(places[to], LAYOUT) as writer:
            part = write_part(inside(places[to], "part"), [rows_from(2, 2)])
            assert part is not None
            assert not writer.append_parts([part], watermark=2, key=("q", 7))
            assert writer.end.row == 2


def test_a_torn_end_is_left_behind(places: dict[str, str], tmp_path: Path) -> None:
    with LogWriter.open(places["local"], LAYOUT) as writer:
        writer.append(rows_from(0, 10), watermark=3)
    [file] = (tmp_path / "a").glob("*.seg")
    with file.open("ab") as opened:
        opened.write(b"half a frame")
    copy_log(places["local"], places["remote"])
    with LogWriter.open(places["remote"], LAYOUT) as writer:
        writer.append(rows_from(10, 1))
    reader = LogReader.open(places["remote"])
    assert numbers_in(reader.read(reader.start)) == list(range(11))


@pytest.mark.parametrize("to", ["other local", "other remote"])
@pytest.mark.parametrize("source", ["local", "remote"])
def test_the_base_of_a_changelog_is_copied(places: dict[str, str], source: str, to: str) -> None:
    log = Changelog(places[source], seed=5)
    for _ in range(400):
        log.append()
    pack_all(log.writer)
    assert LogReader.open(places[source]).base is not None
    log.writer.close()
    copy_log(places[source], places[to])
    log.location = places[to]
    log.check()
    log.open()
    for _ in range(50):
        log.append()
    log.check()
    log.writer.close()


def test_a_copied_object_says_how_long_it_is(places: dict[str, str], store: Store) -> None:
    """So that one that is not whole is found out; a segment that grows does not say it."""
    with LogWriter.open(places["local"], LAYOUT) as writer:
        for number in range(3):
            writer.append(rows_from(number * 10, 10))
    copy_log(places["local"], places["remote"])
    [name] = [one for one in store.objects if one.endswith(".seg")]
    header = read_header(store.objects[name])
    assert header is not None
    assert header.length == len(store.objects[name])
    copy_log(places["remote"], places["other local"])
    [file] = Path(places["other local"]).glob("*.seg")
    header = read_header(file.read_bytes())
    assert header is not None
    assert header.length == 0


@pytest.mark.parametrize("to", ["other local", "remote"])
def test_there_is_no_log_before_all_of_it_is_there(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    """Broken off anywhere, it can be copied again."""
    make(places["local"], seed=3)
    before = all_of(places["local"])
    kind = type(storage_at(places[to]))
    write, left = kind.write, 0

    def break_off(self: Any, name: str, *given: Any, **more: Any) -> None:
        nonlocal left
        if storage_at(places[to]).location == self.location:
            left -= 1
            if left < 0:
                raise OSError("the line is dead")
        write(self, name, *given, **more)

    steps = 0
    with monkeypatch.context() as broken:
        broken.setattr(kind, "write", break_off)
        while True:
            left = steps
            try:
                copy_log(places["local"], places[to])
                break
            except (OSError, LogError):
                assert read_layout(storage_at(places[to])) is None
                steps += 1
    assert steps > (5 if kind is RemoteStorage else 1)
    assert all_of(places[to]) == before


def test_a_log_that_is_written_is_not_copied(places: dict[str, str]) -> None:
    with (
        LogWriter.open(places["local"], LAYOUT, LogOptions()),
        pytest.raises(LogError, match="already open for writing"),
    ):
        copy_log(places["local"], places["remote"])
    assert copy_log(places["other local"], places["remote"]) is None
