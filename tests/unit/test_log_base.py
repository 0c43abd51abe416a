"""Changelogs whose oldest changes become a base: the answer is that of all changes, added up."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.errors import InputError, LogFullError, LogGapError
from nilometer.kernels.net_changes import net_changes
from nilometer.local.answer_fold import AnswerFold
from nilometer.log.frame_format import encode_frame
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.local_storage import LocalStorage
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from nilometer.past.question import TableUse
from nilometer.past.stored import ChangingTable
from tests.file_systems import register_file_system
from tests.unit.log_samples import ObjectStore

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), (TIME, TIMESTAMP), (DIFF, pa.int64())])
LAYOUT = LogLayout(SCHEMA, TIME, changes=True)
SMALL = LogOptions(segment=6000, memory=0, history=1)
Change = tuple[str, int, int, int]
_names = (f"base{number}" for number in itertools.count())


def changes_of(rows: pa.RecordBatch | pa.Table) -> list[Change]:
    times = rows.column(TIME).cast(pa.int64()).to_pylist()
    columns = (rows.column(name).to_pylist() for name in ("k", "n"))
    return list(zip(*columns, times, rows.column(DIFF).to_pylist(), strict=True))


def answer_at(changes: list[Change], instant: int) -> Counter[tuple[str, int]]:
    """What all changes up to an instant make, one by one."""
    counts: Counter[tuple[str, int]] = Counter()
    for key, value, time, copies in changes:
        if time <= instant:
            counts[key, value] += copies
    return Counter({row: copies for row, copies in counts.items() if copies})


class Changelog:
    """Counts per key that go up, written like the results of a query with buckets out of step."""

    def __init__(self, location: str | Path, seed: int, options: LogOptions = SMALL) -> None:
        self.chance = random.Random(seed)
        self.location, self.options = location, options
        self.all: list[Change] = []
        self.counts = dict.fromkeys("abcde", 0)
        self.clocks = dict.fromkeys("abcde", 0)
        self.batch = 0
        self.open()

    def open(self) -> None:
        self.writer = LogWriter.open(self.location, LAYOUT, self.options, net=net_changes)

    @property
    def watermark(self) -> int:
        return min(self.clocks.values())

    def append(self) -> None:
        made: list[Change] = []
        for key in self.chance.choices("abcde", k=self.chance.randint(0, 6)):
            time = self.clocks[key] = self.clocks[key] + self.chance.randint(0, 5)
            if self.counts[key]:
                made.append((key, self.counts[key], time, -1))
            self.counts[key] += 1
            made.append((key, self.counts[key], time, 1))
        if self.chance.random() < 0.3:
            for key in self.clocks:
                self.clocks[key] = max(self.clocks[key], self.watermark + self.chance.randint(0, 9))
        columns = list(zip(*made, strict=True)) or [(), (), (), ()]
        arrays = [
            pa.array(columns[0], pa.string()),
            pa.array(columns[1], pa.int64()),
            pa.array(columns[2], pa.int64()).view(TIMESTAMP),
            pa.array(columns[3], pa.int64()),
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        self.batch += 1
        key_of = ("q", self.batch)
        frame = encode_frame(rows, TIME, None, batch=key_of)
        assert self.writer.append_frames([frame], watermark=self.watermark, key=key_of)
        self.all += made

    def check(self) -> None:
        """From the base on, at every instant, the answer is that of all changes."""
        reader = LogReader.open(self.location)
        stored = [one for frame in reader.read(reader.start) for one in changes_of(frame.rows)]
        base = reader.base
        first = 0 if base is None else base.watermark - 1
        for instant in range(first, max(self.clocks.values()) + 2, 3):
            assert answer_at(stored, instant) == answer_at(self.all, instant)
        assert reader.end.row == len(self.all)
        now = AnswerFold(reader, 1 << 30).now(1000)
        if now.instant is not None:
            current = Counter((one["k"], one["n"]) for one in now.rows.to_pylist())
            assert current == answer_at(self.all, now.instant)


class Follower:
    """Applies what it reads; told that the first changes are gone, it begins with the base."""

    def __init__(self, log: Changelog) -> None:
        self.log = log
        self.place = LogReader.open(log.location).start
        self.had: list[Change] = []
        self.resets = 0

    def read_on(self, rows: int) -> None:
        reader = LogReader.open(self.log.location)
        try:
            end = reader.limit(self.place, rows)
            for frame in reader.read(self.place, end):
                self.had += changes_of(frame.rows)
            self.place = end if end > self.place else reader.end  # where segments begin
        except LogGapError:
            self.had, self.place, self.resets = [], reader.start, self.resets + 1

    def check(self) -> None:
        while self.place < LogReader.open(self.log.location).end:
            self.read_on(50)
        last = max(self.log.clocks.values())
        for instant in range(self.log.watermark - 1, last + 2):
            assert answer_at(self.had, instant) == answer_at(self.log.all, instant)


def place_for(kind: str, tmp_path: Path) -> str | Path:
    if kind == "local":
        return tmp_path / "log"
    register_file_system("bases", fs.PyFileSystem(ObjectStore()))
    return f"bases://{next(_names)}/log"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["local", "remote"])
@pytest.mark.parametrize("seed", range(3))
def test_base_and_changes_are_the_answer(tmp_path: Path, seed: int, kind: str) -> None:
    log = Changelog(place_for(kind, tmp_path), seed)
    followers = [Follower(log)]
    for step in range(150):
        log.append()
        if step % 50 == 0:
            followers.append(Follower(log))
        log.chance.choice(followers).read_on(log.chance.randint(1, 40))
        if log.chance.random() < 0.08:
            log.writer.pack()
        if log.chance.random() < 0.03:
            log.writer.close()
            log.open()
            log.check()
    while log.writer.pack():
        log.check()
    base = LogReader.open(log.location).base
    assert base is not None
    assert base.end_row > 50
    for one in followers:
        one.check()
    assert sum(one.resets for one in followers) > 0
    log.writer.close()


def test_a_reader_that_has_a_name_is_waited_for(tmp_path: Path) -> None:
    log = Changelog(tmp_path / "log", 1)
    reader = LogReader.open(log.location)
    register(log.location, "query", reader.start, {}, now=0, named=True)
    for _ in range(150):
        log.append()
    while log.writer.pack():
        pass
    assert reader.base is None
    middle = reader.place_of(len(log.all) // 2)
    commit(log.location, "query", middle, now=1)
    while log.writer.pack():
        pass
    base = reader.base
    assert base is not None
    assert 0 < base.end_row <= middle.row
    rest = [one for frame in reader.read(middle) for one in changes_of(frame.rows)]
    assert rest == log.all[middle.row :]
    log.writer.close()


def test_a_place_at_the_end_of_what_is_gone_goes_on_after_the_base(tmp_path: Path) -> None:
    log = Changelog(tmp_path / "log", 2)
    reader = LogReader.open(log.location)
    seen = []
    for _ in range(200):
        log.append()
        seen.append(reader.end)
    while log.writer.pack():
        pass
    base = reader.base
    assert base is not None
    for place in seen:
        if place.row < base.end_row:
            with pytest.raises(LogGapError) as gap:
                list(reader.read(place))
            assert gap.value.oldest == base.start
        else:
            changes = [one for frame in reader.read(place) for one in changes_of(frame.rows)]
            assert changes == log.all[place.row :]
    log.writer.close()


@pytest.mark.parametrize("history", [1, FOREVER])
def test_a_changelog_never_runs_full(tmp_path: Path, history: int) -> None:
    options = LogOptions(disk=40_000, memory=0, history=history)
    log = Changelog(tmp_path / "log", 3, options)
    for _ in range(600):
        log.append()
        assert log.writer.stored_bytes <= 40_000
    log.check()
    assert len(log.all) * 40 > 80_000
    log.writer.close()


def test_one_that_nobody_may_fold_runs_full(tmp_path: Path) -> None:
    log = Changelog(tmp_path / "log", 3, LogOptions(disk=40_000, memory=0, history=1))
    start = LogReader.open(log.location).start
    register(log.location, "query", start, {}, now=0, named=True)
    with pytest.raises(LogFullError):
        [log.append() for _ in range(600)]
    log.writer.close()


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize("step", ["put_aside", "show", "delete"])
def test_a_base_is_there_or_not(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Changelog(tmp_path / "log", 4)
    for _ in range(120):
        log.append()
    with monkeypatch.context() as patch:
        patch.setattr("nilometer.log.compaction.next_to_pack", lambda *_, **__: ())

        def cut(*_: object, **__: object) -> None:
            raise PowerCut

        patch.setattr(LocalStorage, step, cut)
        with pytest.raises(PowerCut):
            log.writer.pack()
    assert (LogReader.open(log.location).base is None) == (step != "delete")
    log.check()
    log.writer._closing.close()
    log.open()
    log.check()
    while log.writer.pack():
        log.check()
    assert LogReader.open(log.location).base is not None
    log.writer.close()


def test_the_past_before_the_base_is_refused(tmp_path: Path) -> None:
    log = Changelog(tmp_path / "log", 5)
    for _ in range(120):
        log.append()
    while log.writer.pack():
        pass
    reader = LogReader.open(log.location)
    assert reader.base is not None
    table, first = ChangingTable(log.location, reader), reader.base.watermark - 1
    answer = Counter((one["k"], one["n"]) for one in rows_of(table, first))
    assert answer == answer_at(log.all, first)
    with pytest.raises(InputError, match="no longer kept"):
        table.read(TableUse("Q", first - 1, frozenset(("k", "n"))))
    log.writer.close()


def rows_of(table: ChangingTable, instant: int) -> list[dict[str, Any]]:
    answer = table.read(TableUse("Q", instant, frozenset(("k", "n"))))
    rows: list[dict[str, Any]] = (
        answer.read_all() if isinstance(answer, pa.RecordBatchReader) else answer
    ).to_pylist()
    return rows
