"""A write-ahead of a log in an object store: what was acknowledged gets there, and once."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from nilometer.errors import LogError, LogFullError
from nilometer.log.local_storage import LocalSegments, LocalStorage
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.transactions import read_transactions
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from tests.file_systems import register_file_system
from tests.patience import wait_for
from tests.unit.fallible_store import FallibleStore
from tests.unit.log_samples import LAYOUT, rows_from
from tests.unit.write_ahead_samples import KEYS, LOG, OPTIONS, add, opened, stored


@pytest.fixture
def store() -> FallibleStore:
    store = FallibleStore()
    register_file_system("ahead", fs.PyFileSystem(store))
    return store


def fill(ahead: WriteAhead) -> int:
    """Append until there is no room; returns how many rows there are."""
    rows = 0
    while True:
        try:
            add(ahead, rows, 20)
        except LogFullError:
            return rows
        rows += 20


def objects(store: FallibleStore) -> int:
    return sum(one.endswith((".seg", ".pack")) for one in store.objects)


def test_a_thousand_appends_are_few_objects(store: FallibleStore, tmp_path: Path) -> None:
    options = replace(OPTIONS, ship_size=1 << 20)
    with opened(tmp_path / "a", options) as ahead:
        for one in range(1000):
            add(ahead, one * 3, 3)
        assert ahead.waiting_rows == 3000
        assert (stored(), objects(store)) == ([], 1)  # that one says where it begins
        assert ahead.end.row == 3000
        assert ahead.ship() == 3000
        assert (ahead.waiting_rows, ahead.waiting_since) == (0, None)
        assert stored() == list(range(3000))
        assert objects(store) <= 3
    with LogWriter.open(LOG, LAYOUT) as log:
        assert log.recent_keys(10) == [b"%d" % one for one in range(2990, 3000)]
        assert log.watermark == 2997


def test_what_comes_while_rows_are_shipped_waits_for_the_next_time(
    store: FallibleStore, tmp_path: Path
) -> None:
    with opened(tmp_path / "a") as ahead:
        rows = iter(range(3, 300, 3))
        add(ahead, 0, 3)
        store.step = lambda: add(ahead, next(rows), 3)
        before = objects(store)
        ahead.ship()
        store.step = lambda: None
        assert objects(store) == before + 1
        assert ahead.waiting_rows > 0
    assert stored() == list(range(next(rows)))


def test_every_append_is_an_object_without(store: FallibleStore) -> None:
    with LogWriter.open(LOG, LAYOUT) as log:
        for one in range(100):
            log.append(rows_from(one * 3, 3))
        assert objects(store) == 100
        assert log.pack()
        assert objects(store) < 100


def test_it_is_shipped_by_size_and_by_time(store: FallibleStore, tmp_path: Path) -> None:
    with opened(tmp_path / "a", replace(OPTIONS, ship_every=50_000)) as ahead:
        add(ahead, 0, 3)
        wait_for(lambda: stored() == [0, 1, 2])
    with opened(tmp_path / "a") as ahead:
        for one in range(1, 200):
            add(ahead, one * 3, 3)
        wait_for(lambda: len(stored()) > 300)
    assert stored() == list(range(600))


def test_what_is_in_the_store_is_cut_off(store: FallibleStore, tmp_path: Path) -> None:
    with opened(tmp_path / "a", replace(OPTIONS, write_ahead=100_000)) as ahead:
        for one in range(300):
            add(ahead, one * 10, 10)
            if one % 20 == 0:
                ahead.ship()
                ahead.trim()
        assert ahead.stored_bytes < 50_000
    assert stored() == list(range(3000))


def test_a_store_that_is_away_fills_the_write_ahead(store: FallibleStore, tmp_path: Path) -> None:
    with opened(tmp_path / "a", replace(OPTIONS, write_ahead=60_000)) as ahead:
        store.is_away = True
        rows = fill(ahead)
        with pytest.raises(LogFullError, match="the write-ahead is full"):
            add(ahead, rows, 20)
        assert ahead.stored_bytes <= 60_000
        with pytest.raises(LogError):
            ahead.ship()
        assert (ahead.waiting_rows, ahead.waiting_since) == (rows, 1_000_000)
        store.is_away = False
        ahead.ship()
        assert stored() == list(range(rows))
        add(ahead, rows, 20)
    assert stored() == list(range(rows + 20))


def test_the_oldest_rows_that_wait_can_be_dropped(store: FallibleStore, tmp_path: Path) -> None:
    with opened(tmp_path / "a") as ahead:
        store.is_away = True
        for one in range(100):
            add(ahead, one * 10, 10)
        lost = ahead.drop_oldest()
        assert 0 < lost < 1000
        assert ahead.waiting_rows == 1000 - lost
        store.is_away = False
        ahead.ship()
        assert stored() == list(range(lost, 1000))


@dataclass
class Killed:
    """What is there if the process is killed at one step."""

    objects: dict[str, bytes]
    folder: Path
    acknowledged: list[int]
    under_way: list[int]
    is_keyed: bool


@dataclass
class History:
    """A random history, with a copy of everything at each step."""

    store: FallibleStore
    folder: Path
    copies: Path
    killed: list[Killed] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    under_way: list[int] = field(default_factory=list)
    is_keyed: bool = True
    next: int = 0

    def step(self) -> None:
        objects, last = dict(self.store.objects), self.killed[-1] if self.killed else None
        if not self.folder.exists():
            return
        copy = self.copies / str(len(self.killed))
        shutil.copytree(self.folder, copy)
        is_new = last is None or (objects, _content(copy)) != (last.objects, _content(last.folder))
        if is_new:
            rows = list(self.acknowledged), list(self.under_way)
            now = Killed(objects, copy, *rows, self.is_keyed)
            self.killed.append(now)
        else:
            shutil.rmtree(copy)

    def run(self, chance: random.Random) -> None:
        for _ in range(2):
            with opened(self.folder, _small(chance)) as ahead:
                for _ in range(8):
                    self._act(ahead, chance)

    def _act(self, ahead: WriteAhead, chance: random.Random) -> None:
        match chance.choice("aaaaaswkt"):
            case "a":
                count = chance.randint(1, 40)
                self.under_way = list(range(self.next, self.next + count))
                self.is_keyed = chance.random() < 0.5
                add(ahead, self.next, count, keyed=self.is_keyed)
                self.next += count
                self.acknowledged += self.under_way
                self.under_way = []
            case "s":
                ahead.ship(at_least=chance.choice([0, 0, 2000]))
            case "w":
                ahead.append(None, watermark=self.next)
            case "k":
                ahead.append(None, keys=[b"x"])
            case _:
                ahead.trim()


def _small(chance: random.Random) -> LogOptions:
    return replace(OPTIONS, ship_size=chance.choice([1500, 4000, 100_000]))


def _content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*.*")} | {
        "head": (folder / "head").read_bytes() if (folder / "head").exists() else b""
    }


def _stepped(monkeypatch: pytest.MonkeyPatch, kind: type, names: Sequence[str], step: Any) -> None:
    """Let methods take a step before and after what they do."""
    for name in names:
        good = getattr(kind, name)

        def stepped(*given: Any, _good: Any = good, **more: Any) -> Any:
            step()
            result = _good(*given, **more)
            step()
            return result

        monkeypatch.setattr(kind, name, stepped)


@pytest.mark.parametrize("seed", range(4))
def test_a_process_is_killed_at_any_step(
    store: FallibleStore, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(store, tmp_path / "a", tmp_path / "copies")
    monkeypatch.setattr(WriteAhead, "_run", lambda _: None)  # what ships is the history alone
    with monkeypatch.context() as patched:
        store.step = history.step
        _stepped(patched, LocalSegments, ("add", "sync", "publish", "begin"), history.step)
        _stepped(patched, LocalStorage, ("write", "delete"), history.step)
        history.run(random.Random(seed))
        store.step = lambda: None
    assert stored() == history.acknowledged
    assert len(history.killed) > 30
    for one in history.killed:
        store.objects.clear()
        store.objects.update(one.objects)
        with opened(one.folder) as ahead:
            seen, rows = stored(), [*one.acknowledged, *one.under_way]
            assert ahead.end.row in (len(one.acknowledged), len(rows))
            if ahead.end.row < len(rows):  # a sensor delivers it again if it has a key
                if one.is_keyed:
                    assert not {b"%d" % n for n in one.under_way} & set(ahead.recent_keys(KEYS))
                    add(ahead, one.under_way[0], len(one.under_way))
                else:
                    rows = one.acknowledged
            ahead.ship()
            assert stored()[: len(seen)] == seen
            assert stored() == rows
            add(ahead, 10**6, 3)
        assert stored() == [*rows, 10**6, 10**6 + 1, 10**6 + 2]


def test_nothing_is_shipped_that_a_power_failure_could_take(
    store: FallibleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows would get its place in the write-ahead, and would seem to be in the store."""
    steps: list[str] = []
    with opened(tmp_path / "a", replace(OPTIONS, fsync=Fsync.NEVER)) as ahead:
        add(ahead, 0, 10)
        _stepped(monkeypatch, LocalSegments, ["sync"], lambda: steps.append("sync"))
        store.step = lambda: steps.append("store")
        ahead.ship()
        assert steps[:2] == ["sync", "sync"]
        assert "store" in steps


def test_a_write_ahead_that_is_packed_meanwhile(
    store: FallibleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteAhead, "_run", lambda _: None)  # nothing ships but this test
    options = replace(OPTIONS, ship_size=50_000)
    with opened(tmp_path / "a", options) as ahead:
        for one in range(120):
            add(ahead, one * 20, 20)
        ahead._options = replace(options, ship_size=30_000)
        ahead._ship_object()
        assert 0 < len(stored()) < 2400
        assert ahead._start.byte > 20_000
        while ahead._local.pack():
            pass
        assert any(one.generation for one in ahead._local.segments)
        ahead.ship()
        assert stored() == list(range(2400))
        assert ahead.recent_keys(KEYS) == [b"%d" % one for one in range(2400 - KEYS, 2400)]


def test_transactions_are_read_while_files_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path / "log")
    options = LogOptions(segment=20_000, history=FOREVER)
    with LogWriter.open(tmp_path / "log", LAYOUT, options) as writer:
        for one in range(100):
            writer.append(rows_from(one * 20, 20), watermark=one)
        good = LocalStorage.open

        def open_late(self: LocalStorage, name: str) -> Any:
            """A file is packed between the look for it and its opening."""
            monkeypatch.setattr(LocalStorage, "open", good)
            writer.pack()
            monkeypatch.setattr(LocalStorage, "open", open_late)
            return good(self, name)

        monkeypatch.setattr(LocalStorage, "open", open_late)
        transactions = list(read_transactions(storage, Position(0, 0), writer.end))
    assert [one.watermark for one in transactions] == list(range(100))
    assert [one.end.row for one in transactions] == list(range(20, 2020, 20))
    assert any(name.endswith(".pack") for name, _ in storage.files())
