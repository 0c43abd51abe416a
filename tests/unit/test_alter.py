"""ALTER STREAM and ALTER SENSOR TABLE: any sequence leaves what a plain model says."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.database.statements import run_statement
from nilometer.errors import NilometerError
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.log.static_rows import expand, read_static_rows
from nilometer.sensors.manager.log_store import LogStore
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.statements import read_one
from nilometer.upkeep.kept_catalog import read_catalog
from nilometer.upkeep.places import CATALOG_FILE
from tests.patience import LONG

KINDS = {"INT": pa.int32(), "STRING": pa.string(), "DOUBLE": pa.float64()}


def open_home(folder: Path) -> Home:
    return Home(folder, None, None, lambda rows, where: set())


def run(home: Home, sql: str) -> str:
    read = read_one(sql)
    assert not isinstance(read, Statement)
    return run_statement(read, home, RunningQueries(home, _no_plans, 1)).message


def _no_plans(*_: object) -> NoReturn:
    raise AssertionError("no query is planned here")


def store_of(home: Home, name: str) -> LogStore:
    return home.manager._watched[name].stream.store


def read_rows(home: Home, name: str) -> list[dict[str, Any]]:
    """What a new query would see of a stream or sensor table."""
    declared = home.catalog.require_declaration(name)
    log = LogReader.open(home.log_of(name), declared.layout)
    own = log.layout.sensors
    static = None if own is None else read_static_rows(home.log_of(name), own)
    records = []
    for frame in log.read(log.start):
        rows = frame.rows if static is None else expand(log.layout, frame.rows, static)
        records += rows.to_pylist()
    return [{k: v for k, v in one.items() if k != TIME} for one in records]


class Plant:
    """A sensor table that is altered while readings come, and a model of it in plain lists."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.home = open_home(folder)
        self.name, self.count = "t", 0
        run(
            self.home,
            "CREATE SENSOR TABLE t (id INT, room STRING, "
            "reading STREAM(v DOUBLE, HISTORY FOREVER) FROM http)",  # nobody reads it
        )
        self.static: dict[str, tuple[int, str]] = {"id": (0, "INT"), "room": (1, "STRING")}
        """Columns by name: a number that is its own, and its type."""
        self.fields: dict[str, tuple[int, str]] = {"v": (2, "DOUBLE")}
        self.sensors: list[dict[int, Any]] = []
        self.readings: list[tuple[dict[int, Any], dict[int, Any]]] = []

    def number(self) -> int:
        self.count += 1
        return 10 + self.count

    def value(self, kind: str) -> Any:
        number = self.number()
        return {"INT": number, "STRING": f"s{number}", "DOUBLE": number / 4}[kind]

    def insert(self) -> None:
        row = {column: self.value(kind) for column, kind in self.static.values()}
        literals = ", ".join(repr(row[column]) for column, _ in self.static.values())
        run(
            self.home,
            f"INSERT INTO {self.name} ({', '.join(self.static)}, reading) "
            f"VALUES ({literals}, 'http://x')",
        )
        self.sensors.append(row)

    def update(self) -> None:
        if not self.sensors:
            return
        name = self.chance.choice(list(self.static))
        column, kind = self.static[name]
        value = self.value(kind)
        run(self.home, f"UPDATE {self.name} SET {name} = {value!r}")
        self.sensors = [{**one, column: value} for one in self.sensors]

    def read(self) -> None:
        """A reading of every sensor, as its static values are now."""
        if not self.sensors:
            return
        store, sensors = store_of(self.home, self.name), self.home.catalog.sensors(self.name)
        store.static.want(sensors)
        store.static.store()
        readings = []
        for row in self.sensors:
            reading = {column: self.value(kind) for column, kind in self.fields.values()}
            readings.append(reading)
            self.readings.append((row, reading))
        size = len(sensors)
        arrays = [pa.array([one.version for one in sensors], pa.int32())]
        arrays.append(pa.array([self.count] * size, pa.int64()).cast(TIMESTAMP))
        for column, kind in self.fields.values():
            arrays.append(pa.array([one[column] for one in readings], KINDS[kind]))
        rows = pa.RecordBatch.from_arrays(arrays, names=[SENSOR, TIME, *self.fields])
        store.writer.append(rows)

    def alter(self) -> None:
        inside = self.chance.random() < 0.5
        columns, dot = (self.fields, "reading.") if inside else (self.static, "")
        statement = f"ALTER SENSOR TABLE {self.name}"
        match self.chance.choice(["add", "add", "drop", "rename", "table"]):
            case "add":
                free = next(one for one in "abcdefghijklmnop" if one not in columns)
                kind = self.chance.choice(list(KINDS))
                run(self.home, f"{statement} ADD COLUMN {dot}{free} {kind}")
                columns[free] = (self.number(), kind)
            case "drop":
                name = self.chance.choice(list(columns))
                if len(columns) == 1:
                    with pytest.raises(NilometerError, match="is the only column"):
                        run(self.home, f"{statement} DROP COLUMN {dot}{name}")
                else:
                    run(self.home, f"{statement} DROP COLUMN {dot}{name}")
                    del columns[name]
            case "rename":
                name, new = self.chance.choice(list(columns)), f"n{self.number()}"
                run(self.home, f"{statement} RENAME COLUMN {dot}{name} TO {new}")
                renamed = {new if one == name else one: of for one, of in columns.items()}
                columns.clear()
                columns.update(renamed)
            case "table":
                new = f"t{self.number()}"
                run(self.home, f"{statement} RENAME TO {new}")
                self.name = new

    def open_again(self) -> None:
        self.home.close()
        self.home = open_home(self.folder)

    def check(self) -> None:
        expected = [
            {
                **{name: row.get(column) for name, (column, _) in self.static.items()},
                "reading": {n: reading.get(c) for n, (c, _) in self.fields.items()},
            }
            for row, reading in self.readings
        ]
        assert read_rows(self.home, self.name) == expected
        stored = [dict(one.values) for one in self.home.catalog.sensors(self.name)]
        assert stored == [
            {name: row.get(column) for name, (column, _) in self.static.items()}
            for row in self.sensors
        ]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_alter_leaves_what_a_model_says(tmp_path: Path, seed: int) -> None:
    plant = Plant(tmp_path, seed)
    steps = [plant.insert, plant.read, plant.read, plant.alter, plant.alter, plant.alter]
    steps += [plant.update, plant.open_again]
    for _ in range(30):
        plant.chance.choice(steps)()
        plant.check()
    plant.home.close()


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("ALTER STREAM s SET (idle = '0s')", "option idle must be greater than zero"),
        ("ALTER STREAM s SET (history = soon)", "option history cannot be used"),
        ("ALTER STREAM s SET (rates = 5)", "stream type synthetic has no option 'rates'"),
        ("ALTER STREAM s SET (disk = none)", "s has no option disk"),
        ("ALTER STREAM s SET (disk = 'much')", "option disk cannot be used"),
        ("ALTER STREAM s SET (unit = 'celsius')", "there is no unit celsius"),
        ("ALTER STREAM s ADD COLUMN V INT", "s has a column v already"),
        ("ALTER STREAM s ADD COLUMN _time TIMESTAMP", "_time cannot be the name of a column"),
        ("ALTER STREAM s DROP COLUMN w", "s has no column w"),
        ("ALTER STREAM s DROP COLUMN ts", "ts holds the times of s"),
        ("ALTER STREAM s RENAME COLUMN v TO ts", "s has a column ts already"),
        ("ALTER STREAM x SET (idle = '5s')", "there is no stream x"),
        ("ALTER STREAM t SET (idle = '5s')", "t is a sensor table, not a stream"),
        ("ALTER STREAM s RENAME TO T", "sensor table t already exists"),
        ("ALTER SENSOR TABLE t ADD COLUMN other.c INT", "t has no stream column other"),
        ("ALTER SENSOR TABLE t ADD COLUMN r INT", "t has a column r already"),
        ("ALTER SENSOR TABLE t DROP COLUMN v", "t has no column v"),
        ("ALTER SENSOR TABLE t DROP COLUMN r", "r is where the readings of t are"),
        ("ALTER SENSOR TABLE t DROP COLUMN id", "id is the only column"),
        ("ALTER QUERY q RENAME TO r", "there is no query q"),
    ],
)
def test_what_cannot_be_altered_stays(tmp_path: Path, statement: str, refusal: str) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM s (ts TIMESTAMP, v INT, TIME ts) FROM synthetic")
    run(home, "CREATE SENSOR TABLE t (id INT, r STREAM(v INT) FROM http)")
    before = home.catalog.declarations()
    with pytest.raises(NilometerError) as refused:
        run(home, statement)
    assert refused.value.message == refusal
    assert home.catalog.declarations() == before
    home.close()


def test_options_that_are_set_hold_at_once_and_none_takes_them_away(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM s (v INT, LATENESS 5 SECONDS) FROM synthetic WITH (rate = '1')")
    options = "idle = '30s', lateness = none, history = forever, disk = '1GB', rate = '100'"
    assert run(home, f"alter stream S set ({options})") == "stream s altered"
    stream = home.manager._watched["s"].stream
    assert (stream.declaration.idle, stream.declaration.lateness) == (30_000_000, 0)
    assert stream.store.writer._options.disk == 1 << 30
    assert stream.store.writer._options.keeps_everything
    assert stream._options.of_type == {"rate": "100"}
    assert home.catalog.require_declaration("s") == stream.declaration
    run(home, "ALTER STREAM s SET (idle = none, disk = none, rate = none, history = '1 hour')")
    after = home.catalog.require_declaration("s")
    assert (after.idle, after.options, after.history) == (None, {}, 3_600_000_000)
    home.close()


def test_a_name_that_is_free_again_has_files_of_its_own(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM a (v INT) FROM http")
    first = home.log_of("a")
    store_of(home, "a").writer.append(_reading(1))
    run(home, "ALTER STREAM a RENAME TO b")
    run(home, "CREATE STREAM A (v INT) FROM http")
    store_of(home, "A").writer.append(_reading(2))
    assert home.log_of("B") == first
    assert read_rows(home, "b") == [{"v": 1}]
    assert read_rows(home, "a") == [{"v": 2}]
    saved = read_catalog(tmp_path / CATALOG_FILE)
    assert sorted(saved.streams) == sorted(["a", home.catalog.key("A")])
    assert {Path(home.log_of(one)).name for one in "ab"} <= set(saved.logs)
    run(home, "DROP STREAM b")
    assert not Path(first).exists()
    assert read_rows(home, "A") == [{"v": 2}]
    run(home, "ALTER STREAM a RENAME TO A2")
    home.close()
    home = open_home(tmp_path)
    assert read_rows(home, "a2") == [{"v": 2}]
    home.close()


def _reading(value: int) -> pa.RecordBatch:
    arrays = [pa.array([value], pa.int32()), pa.array([value], pa.int64()).cast(TIMESTAMP)]
    return pa.RecordBatch.from_arrays(arrays, names=["v", TIME])


STEPS = (
    "nilometer.sensors.catalog.stored_streams.change_declaration",
    "nilometer.sensors.catalog.stored_names.mark_changed",
    "nilometer.sensors.manager.manager.StreamManager.forget",
    "nilometer.sensors.manager.manager.StreamManager.watch",
    "nilometer.log.published.change_layout",
    "nilometer.log.recovery.recover",
    "nilometer.log.local_storage.LocalStorage.write",
)
"""Before and behind each of these a process is killed."""
CHILD = """
import os, sys, importlib, signal
from pathlib import Path
from tests.unit.test_alter import STEPS, open_home, run

def dying(function, before):
    def call(*given, **more):
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call

def patch(path, before):
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        break
    for name in parts[cut:-1]:
        owner = getattr(owner, name)
    old = getattr(owner, parts[-1])
    made = dying(old, before)
    setattr(owner, parts[-1], made)
    for module in list(sys.modules.values()):  # where it was imported by name
        if getattr(module, "__name__", "").startswith("nilometer") and (
            getattr(module, parts[-1], None) is old
        ):
            setattr(module, parts[-1], made)

folder, statement = Path(sys.argv[1]), sys.argv[2]
for number, step in enumerate(STEPS):
    for before in (True, False):
        place = folder / f"{number}{before}"
        child = os.fork()
        if not child:
            home = open_home(place)
            patch(step, before)
            run(home, statement)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "statement", ["ALTER STREAM a ADD COLUMN w STRING", "ALTER STREAM a RENAME TO b"]
)
def test_a_kill_in_the_middle_leaves_the_old_or_the_new(tmp_path: Path, statement: str) -> None:
    places = [tmp_path / f"{n}{before}" for n in range(len(STEPS)) for before in (True, False)]
    home = open_home(tmp_path / "made")
    run(home, "CREATE STREAM a (v INT) FROM http")
    store_of(home, "a").writer.append(_reading(1))
    home.close()
    for place in places:
        shutil.copytree(tmp_path / "made", place)
    subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), statement],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        timeout=LONG,
        check=True,
    )
    seen = set()
    for place in places:
        home = open_home(place)
        assert home.broken == {}
        (declared,) = home.catalog.declarations()
        name, columns = declared.name, declared.readings.names
        rows = read_rows(home, name)
        assert rows == [{"v": 1}] if columns == ["v"] else rows == [{"v": 1, "w": None}]
        assert store_of(home, name).writer.layout == declared.layout
        store_of(home, name).writer.append(None, watermark=5)
        seen.add((name, len(columns)))
        home.close()
    assert seen == ({("a", 1), ("a", 2)} if "ADD" in statement else {("a", 1), ("b", 1)})
