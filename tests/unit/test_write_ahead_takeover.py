"""Several machines with write-aheads of one log, and write-aheads that were copied or lost."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.errors import LogError, LogTakenError
from nilometer.log.reader import LogReader
from nilometer.log.waiting_rows import waiting_in
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.unit.fallible_store import FallibleStore
from tests.unit.log_samples import LAYOUT, rows_from
from tests.unit.write_ahead_samples import KEYS, LOG, OPTIONS, add, machine, opened, stored


@pytest.fixture
def store() -> FallibleStore:
    store = FallibleStore()
    register_file_system("ahead", fs.PyFileSystem(store))
    return store


def test_another_machine_takes_over(store: FallibleStore, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with machine(store, first) as ahead:
        add(ahead, 0, 10)
        ahead.ship()
        add(ahead, 10, 10)
        with opened(second) as other:
            assert set(other.recent_keys(KEYS)) == {b"%d" % one for one in range(10)}
            add(other, 15, 5)  # not known here, so they are delivered again
            add(other, 100, 5)
            other.ship()
            add(ahead, 20, 5)  # it does not know yet
            with pytest.raises(LogTakenError):
                ahead.ship()
            with pytest.raises(LogTakenError):
                add(ahead, 25, 5)
    rows = [*range(10), *range(15, 20), *range(100, 105)]
    assert stored() == rows
    assert waiting_in(first)[0] == 15
    with opened(first) as ahead:
        ahead.ship()
        assert stored() == [*rows, *range(10, 15), *range(20, 25)]


@pytest.mark.parametrize("seed", range(6))
def test_machines_take_over_from_each_other(
    store: FallibleStore, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteAhead, "_run", lambda _: None)
    chance = random.Random(seed)
    acknowledged, next_row = set[int](), 0
    for _ in range(30):
        folder = tmp_path / chance.choice("abc")
        with machine(store, folder) as ahead:
            known = set(ahead.recent_keys(KEYS))
            again = [one for one in sorted(acknowledged) if b"%d" % one not in known]
            if again and chance.random() < 0.5:  # readings that are on the disk of another machine
                for one in chance.sample(again, chance.randint(1, len(again))):
                    add(ahead, one, 1)
            for _ in range(chance.randint(0, 4)):
                count = chance.randint(1, 20)
                add(ahead, next_row, count)
                acknowledged |= set(range(next_row, next_row + count))
                next_row += count
                if chance.random() < 0.4:
                    ahead.ship(at_least=chance.choice([0, 2000]))
    for name in "abc":
        with opened(tmp_path / name) as ahead:
            ahead.ship()
    assert sorted(stored()) == sorted(acknowledged)


def test_a_folder_that_was_restored_from_a_copy(store: FallibleStore, tmp_path: Path) -> None:
    """What it lacks is in the store; it must not take new rows for rows that are there."""
    folder, copy = tmp_path / "a", tmp_path / "copy"
    with machine(store, folder) as ahead:
        add(ahead, 0, 10)
        ahead.ship()
        add(ahead, 10, 10)
    shutil.copytree(folder, copy)
    with opened(folder) as ahead:
        add(ahead, 20, 10)
    assert stored() == list(range(30))
    with opened(copy) as ahead:
        assert ahead.waiting_rows == 0
        add(ahead, 30, 10)
    assert stored() == list(range(40))
    assert waiting_in(copy.with_name("copy.aside-1"))[0] == 10


def test_a_store_that_was_restored_from_a_copy(store: FallibleStore, tmp_path: Path) -> None:
    """Rows that are still on the disk get there again."""
    with machine(store, tmp_path / "a") as ahead:
        add(ahead, 0, 10)
        ahead.ship()
        copy = dict(store.objects)
        add(ahead, 10, 10)
        ahead.ship()
    store.objects.clear()
    store.objects.update(copy)
    with opened(tmp_path / "a") as ahead:
        ahead.ship()
        assert stored() == list(range(20))


def test_rows_that_wait_for_a_log_that_is_gone_are_reported(
    store: FallibleStore, tmp_path: Path
) -> None:
    with machine(store, tmp_path / "a") as ahead:
        add(ahead, 0, 10)
    store.objects.clear()
    with (
        pytest.raises(
            LogError, match="rows are waiting on this disk for a log that no longer exists"
        ) as error,
        opened(tmp_path / "a"),
    ):
        pass
    assert "10 rows" in str(error.value.detail)
    assert waiting_in(tmp_path / "a")[0] == 10


def test_a_lost_disk_loses_what_was_not_shipped(store: FallibleStore, tmp_path: Path) -> None:
    with machine(store, tmp_path / "a") as ahead:
        add(ahead, 0, 10)
        ahead.ship()
        add(ahead, 10, 10)
    shutil.rmtree(tmp_path / "a")
    with opened(tmp_path / "a") as ahead:
        add(ahead, 20, 10)
    assert stored() == [*range(10), *range(20, 30)]


def test_columns_change_while_rows_wait(store: FallibleStore, tmp_path: Path) -> None:
    with machine(store, tmp_path / "a") as ahead:
        add(ahead, 0, 10)
    wider = replace(LAYOUT, stored=LAYOUT.stored.append(pa.field("w", pa.int32())))
    with LogWriter.open(LOG, wider, may_change=True) as log:
        ahead = WriteAhead(tmp_path / "a", log, OPTIONS, lambda: 0)
        rows = pa.RecordBatch.from_arrays(
            [*rows_from(10, 5).columns, pa.array(range(5), pa.int32())], schema=wider.stored
        )
        ahead.append(rows, watermark=10)
        ahead.close()
    table = pa.Table.from_batches(LogReader.open(LOG).batches())
    assert table["k"].to_pylist() == list(range(15))
    assert table["w"].to_pylist() == [*[None] * 10, *range(5)]


def test_keys_that_a_broker_uses_again_do_not_count(store: FallibleStore, tmp_path: Path) -> None:
    """What waits has keys that the store knows from other rows: nobody else has appended it."""
    with machine(store, tmp_path / "a") as ahead:
        add(ahead, 0, 10)
        ahead.ship()
        keys = [b"%d" % one for one in range(10)]
        ahead.append(rows_from(10, 10), watermark=10, keys=keys, row_keys=keys)
    with opened(tmp_path / "a") as ahead:
        ahead.ship()
        assert stored() == list(range(20))


def test_keys_of_packed_objects_of_another_machine_count(
    store: FallibleStore, tmp_path: Path
) -> None:
    with machine(store, tmp_path / "a") as ahead:
        for one in range(40):
            add(ahead, one, 1)
            ahead.ship()
        add(ahead, 40, 40)
    with opened(tmp_path / "b") as ahead:
        for one in range(50, 100):
            add(ahead, one, 1)
            ahead.ship()
        while ahead._store.pack():
            pass
    assert any(one.endswith(".pack") for one in store.objects)
    with opened(tmp_path / "a") as ahead:
        ahead.ship()
    assert stored() == [*range(40), *range(50, 100), *range(40, 50)]


@pytest.mark.parametrize("seed", range(6))
def test_sources_that_give_again_what_comes_after_the_last_key(
    store: FallibleStore, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source with positions, read in other pieces by every machine; only the last has a key."""
    monkeypatch.setattr(WriteAhead, "_run", lambda _: None)
    chance = random.Random(seed)

    def read_on(folder: Path, pieces: int, *, last: bool = False) -> None:
        with LogWriter.open(LOG, LAYOUT) as log:
            ahead = WriteAhead(folder, log, OPTIONS, lambda: 0, known_by=lambda key: key[:1])
            ahead.ship()
            place = max((int(one[1:]) for one in ahead.recent_keys(KEYS)), default=0)
            for _ in range(pieces):
                rows = rows_from(place, chance.randint(1, 15))
                place += len(rows)
                key = b"s%d" % place
                row_keys = [b"s"] * (len(rows) - 1) + [key]
                ahead.append(rows, watermark=place, keys=[key], row_keys=row_keys)
                if chance.random() < 0.3:
                    ahead.ship()
            store.is_away = not last
            ahead.close()
            store.is_away = False

    for _ in range(25):
        read_on(tmp_path / chance.choice("abc"), chance.randint(0, 4))
    for name in "abc":
        read_on(tmp_path / name, 1, last=True)
    assert stored() == list(range(len(stored())))
    assert len(stored()) > 100
