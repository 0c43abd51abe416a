"""Logs whose columns change: every segment is read in whatever layout a reader wants."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.errors import LogError
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.sealed import unseal
from nilometer.log.static_rows import add_static_rows, read_static_rows
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.unit.log_samples import ObjectStore

KINDS = (pa.int64(), pa.string(), pa.float64(), pa.list_(pa.float64()))
_stores = (f"layouts{number}" for number in itertools.count())

Column = tuple[str, str, pa.DataType]
"""What it is called, its name in segments, and its type."""


@pytest.fixture(autouse=True)
def few_make_a_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nilometer.log.compaction.FEW", 2)


def layout_of(columns: list[Column]) -> LogLayout:
    fields = [pa.field(TIME, TIMESTAMP), *(pa.field(name, kind) for name, _, kind in columns)]
    names = tuple((name, stored) for name, stored, _ in columns if name != stored)
    return LogLayout(pa.schema(fields), TIME, names=names)


def value_for(kind: pa.DataType, number: int) -> object:
    if kind == pa.int64():
        return number
    if kind == pa.string():
        return f"text {number}"
    return number / 8 if kind == pa.float64() else [number / 8, None]


class Changing:
    """A log that is appended to and altered, and what a plain list says that it holds."""

    def __init__(self, location: str | Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.location = location
        self.options = LogOptions(
            segment=self.chance.choice([1, 700, 1 << 20]), memory=self.chance.choice([0, 1 << 20])
        )
        self.columns: list[Column] = [("a", "a", pa.int64())]
        self.rows: list[dict[str, object]] = []
        """By names in segments."""
        self.seen: list[tuple[list[Column], Position]] = []
        self.numbers = itertools.count()
        self.writer = LogWriter.open(location, layout_of(self.columns), self.options)
        self.log_id = LogReader.open(location).log_id

    def step(self) -> None:
        steps = [self.append, self.append, self.alter, self.alter, self.open_again, self.pack]
        self.chance.choice(steps)()
        self.check(self.columns)

    def append(self) -> None:
        made = []
        for _ in range(self.chance.choice([1, 2, 50])):
            number = next(self.numbers)
            row = {stored: value_for(kind, number) for _, stored, kind in self.columns}
            made.append({TIME: number, **row})
        arrays = [pa.array([one[TIME] for one in made], pa.int64()).cast(TIMESTAMP)]
        arrays += [pa.array([one[s] for one in made], kind) for _, s, kind in self.columns]
        rows = pa.RecordBatch.from_arrays(arrays, schema=layout_of(self.columns).stored)
        self.writer.append(rows, watermark=made[-1][TIME])
        self.rows += made

    def alter(self) -> None:
        """One of the changes that ALTER makes; those who read the old columns go on."""
        self.seen.append((list(self.columns), self.writer.end))
        change = self.chance.choice(["add", "drop", "rename"])
        number = next(self.numbers)
        if change == "add":
            free = next(one for one in "abcdefghijk" if one not in [c[0] for c in self.columns])
            kind = self.chance.choice(KINDS)
            place = self.chance.randint(0, len(self.columns))
            self.columns.insert(place, (free, f"{free}+{number}", kind))
        elif change == "drop" and len(self.columns) > 1:
            self.columns.pop(self.chance.randrange(len(self.columns)))
        elif change == "rename":
            at = self.chance.randrange(len(self.columns))
            self.columns[at] = (f"new{number}", *self.columns[at][1:])
        self.open_again()

    def pack(self) -> None:
        while self.writer.pack():
            pass

    def open_again(self) -> None:
        """As it is, or after a process ended that had not closed it."""
        if self.chance.random() < 0.5:
            self.writer.close()
        else:
            self.writer._closing.close()
        self.writer = LogWriter.open(
            self.location, layout_of(self.columns), self.options, may_change=True
        )

    def expected(self, columns: list[Column], first: int = 0) -> list[dict[str, object]]:
        return [{name: row.get(stored) for name, stored, _ in columns} for row in self.rows[first:]]

    def check(self, columns: list[Column], start: Position | None = None) -> None:
        reader = LogReader.open(self.location, layout_of(columns))
        place = reader.start if start is None else start
        expected = self.expected(columns, place.row)
        for frames in (reader.read(place), self.writer.read(place) if start is None else ()):
            rows = [row for frame in frames for row in frame.rows.to_pylist()]
            if frames:
                assert [{k: v for k, v in one.items() if k != TIME} for one in rows] == expected
        assert reader.log_id == self.log_id

    def finish(self) -> None:
        for columns, place in self.seen:
            self.check(columns, LogReader.open(self.location).start)
            self.check(columns, place)
        self.writer.close()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_changes_holds_what_a_list_does(tmp_path: Path, seed: int) -> None:
    log = Changing(tmp_path / "log", seed)
    for _ in range(25):
        log.step()
    log.finish()


@pytest.mark.parametrize("seed", range(5))
def test_a_log_of_objects_changes_too(seed: int) -> None:
    scheme = next(_stores)
    register_file_system(scheme, fs.PyFileSystem(ObjectStore()))
    log = Changing(f"{scheme}://bucket/log", seed)
    for _ in range(15):
        log.step()
    log.finish()


def test_a_name_that_is_used_again_does_not_bring_back_old_values(tmp_path: Path) -> None:
    before = [("a", "a", pa.int64()), ("b", "b", pa.int64())]
    with LogWriter.open(tmp_path / "log", layout_of(before)) as writer:
        times = pa.array([1], pa.int64()).cast(TIMESTAMP)
        writer.append(
            pa.record_batch([times, pa.array([1]), pa.array([2])], names=[TIME, "a", "b"])
        )
    after = layout_of([("a", "a", pa.int64()), ("b", "b+7", pa.string())])
    LogWriter.open(tmp_path / "log", after, may_change=True).close()
    frames = LogReader.open(tmp_path / "log").read(Position(0, 0))
    assert [row for one in frames for row in one.rows.select(["a", "b"]).to_pylist()] == [
        {"a": 1, "b": None}
    ]


def test_only_who_may_changes_the_columns(tmp_path: Path) -> None:
    before = layout_of([("a", "a", pa.int64())])
    LogWriter.open(tmp_path / "log", before).close()
    after = layout_of([("a", "a", pa.int64()), ("b", "b+1", pa.int64())])
    with pytest.raises(LogError, match="the log has other columns"):
        LogWriter.open(tmp_path / "log", after)
    others = [
        layout_of([("a", "a", pa.string())]),
        LogLayout(before.stored, TIME, changes=True),
        LogLayout(before.stored, None),
        LogLayout(before.stored, TIME, sensors(["x"])),
    ]
    for other in others:
        with pytest.raises(LogError, match="the log has other columns"):
            LogWriter.open(tmp_path / "log", other, may_change=True)
    assert json.loads(unseal((tmp_path / "log/layout.json").read_bytes()))["format"] == 1
    LogWriter.open(tmp_path / "log", after, may_change=True).close()
    assert json.loads(unseal((tmp_path / "log/layout.json").read_bytes()))["format"] == 2
    LogWriter.open(tmp_path / "log", after).close()


def sensors(names: list[str], stored: tuple[tuple[str, str], ...] = ()) -> SensorLayout:
    static = pa.schema([(name, pa.string()) for name in names])
    return SensorLayout(static, 0, "reading", pa.schema([("v", pa.float64())]), None, stored)


def table_layout(own: SensorLayout) -> LogLayout:
    stored = pa.schema([(SENSOR, pa.int32()), (TIME, TIMESTAMP), ("v", pa.float64())])
    return LogLayout(stored, TIME, own)


def test_static_values_are_read_in_any_layout(tmp_path: Path) -> None:
    """Also those of files that have become one meanwhile."""
    log = str(tmp_path / "log")
    first, second = sensors(["room"]), sensors(["floor", "hall"], (("hall", "room"),))
    LogWriter.open(log, table_layout(first)).close()
    for number in range(40):
        add_static_rows(log, pa.table({SENSOR: [number], "room": [f"r{number}"]}))
    LogWriter.open(log, table_layout(second), may_change=True).close()
    for number in range(40, 80):
        row = pa.table({SENSOR: [number], "floor": [f"f{number}"], "hall": [f"r{number}"]})
        add_static_rows(log, row)
    rooms = [f"r{number}" for number in range(80)]
    assert read_static_rows(log, first).to_pydict() == {SENSOR: [*range(80)], "room": rooms}
    floors = [None] * 40 + [f"f{number}" for number in range(40, 80)]
    assert read_static_rows(log).to_pydict() == {
        SENSOR: [*range(80)],
        "floor": floors,
        "hall": rooms,
    }
