"""Logs as envelopes, and what their readers see: without Spark."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import LogError, NilometerError
from nilometer.local.read_source import read_source
from nilometer.local.sensor_filter import read_sensor_filter
from nilometer.local.shown_rows import ShownRows
from nilometer.log import sealed
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout, SensorLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.registrations import registrations
from nilometer.log.static_rows import add_static_rows
from nilometer.log.stored_json import json_bytes
from nilometer.log.writer import LogWriter
from nilometer.operators.envelope import unseal
from nilometer.spark.exchange import Exchange
from nilometer.spark.inputs import describe_log
from nilometer.spark.log_cursor import EARLIEST, LogCursor, LogRange
from nilometer.spark.log_envelopes import LogFeed, LogFeeds
from nilometer.spark.log_parts import LogParts
from nilometer.spark.pack import WATERMARK, Pack
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.physical.join_places import build_stage
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.statements import read_query
from tests.cases import SCHEMA, to_batch

LAYOUT = LogLayout(SCHEMA, "ts")
QUICK = LogOptions(fsync=Fsync.NEVER, segment=3000)


@pytest.fixture(autouse=True, scope="module")
def frames_are_cut() -> Iterator[None]:
    """Let frames of three rows count as large ones, which several tasks share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nilometer.log.reader._LARGE", 3)
        yield


class NoEngine:
    """Nothing here needs Spark."""

    time_zone = "UTC"

    def types_of(self, relation: str, expressions: object) -> list[pa.DataType]:
        raise AssertionError(f"{relation}: {expressions}")


def feeds_of(location: str, buckets: int = 2) -> LogFeeds:
    """`SELECT id FROM A WHERE v > 0` over a log."""
    catalog = Catalog({"A": describe_log("A", LAYOUT)}, {}, NoEngine())
    plan = compile_statement(read_query("SELECT id FROM A WHERE v > 0"), catalog, buckets)
    assert isinstance(plan, JoinPlan)
    reader = read_source(plan, plan.sources[0])
    feed = LogFeed("A", 0, LogRange(location, LAYOUT, EARLIEST), reader)
    return LogFeeds(build_stage(plan), (feed,), Exchange("x", by_ticket=False))


@st.composite
def appended(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Numbers of rows, and by how much the watermark then rises."""
    return draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=8))


@settings(max_examples=60, deadline=None)
@given(appended(), st.integers(1, 7), st.integers(1, 3))
def test_every_row_comes_once_and_the_last_watermark_with_it(steps, limit: int, tasks: int) -> None:
    """However a log is cut into micro-batches and tasks, and whatever lies in its frames."""
    with tempfile.TemporaryDirectory() as folder:
        rows, watermark = 0, 0
        with LogWriter.open(folder, LAYOUT, QUICK) as log:
            for size, step in steps:
                watermark += step
                batch = to_batch([(rows + i, 0, (rows + i) % 3, rows + i) for i in range(size)])
                log.append(batch, watermark=watermark)
                rows += size
        logs = feeds_of(folder)
        cursor, values, marks = LogCursor(logs.feeds[0].log_range), [], [-1]
        place, end = cursor.initial(), cursor.available()
        while place < end:
            following = cursor.advance(place, end, limit)
            seen, mark = read(logs, cursor.log_id, cursor.split(place, following, tasks))
            assert len(seen) <= limit
            assert mark is None or mark >= marks[-1]
            values += seen
            marks += [] if mark is None else [mark]
            before = LogReader.open(folder).read(cursor.initial(), following)
            assert marks[-1] == max([-1, *(f.watermark for f in before if f.watermark is not None)])
            place = following
        assert sorted(values) == [n for n in range(rows) if n % 3]
        assert marks[-1] == (watermark if steps else -1)


def read(logs: LogFeeds, log_id: str, ranges) -> tuple[list[int], int | None]:
    """The numbers of rows in all envelopes of a micro-batch, and the watermark they tell."""
    numbers, marks = [], []
    for start, end in ranges:
        for batch in logs.read(logs.feeds[0], log_id, start, end):
            assert len(batch) == logs.stage.routing.buckets
            for body in batch.column("body"):
                header, parts = unseal(body.as_buffer())
                marks.append(header.punctuation.watermark)
                for part in parts:
                    place = next(i for i, f in enumerate(part.schema) if f.type == pa.int64())
                    numbers += part.column(place).to_pylist()
    return numbers, max((mark for mark in marks if mark is not None), default=None)


def test_rows_that_are_not_where_a_task_looks_are_missed(tmp_path: Path) -> None:
    """Executors that have an older copy of a log, or another log, in the folder of its name."""

    def append(name: str, first: int, end: int) -> None:
        with LogWriter.open(tmp_path / name, LAYOUT, QUICK) as log:
            log.append(to_batch([(n, 1, n, n) for n in range(first, end)]), watermark=end)

    append("log", 0, 5)
    append("other", 0, 5)
    shutil.copytree(tmp_path / "log", tmp_path / "older")
    append("log", 5, 13)
    append("other", 5, 13)
    reader = LogReader.open(tmp_path / "log")
    ranges = [(reader.start, reader.end)]
    assert len(read(feeds_of(str(tmp_path / "log")), reader.log_id, ranges)[0]) > 0
    with pytest.raises(LogError, match="there are 5 between two offsets instead of 13"):
        read(feeds_of(str(tmp_path / "older")), reader.log_id, ranges)
    with pytest.raises(LogError, match="there is another log here"):
        read(feeds_of(str(tmp_path / "other")), reader.log_id, ranges)


def test_rows_that_tell_a_watermark_are_no_rows_of_the_stream(tmp_path: Path) -> None:
    with LogWriter.open(tmp_path, LAYOUT, QUICK) as log:
        log.append(to_batch([]), watermark=1)
    logs = feeds_of(str(tmp_path), buckets=1)
    columns = logs.stage.operator.schemas[0]
    rows = pa.Table.from_pylist([{"c0": None}, {"c0": None}], columns)
    times = next(i for i, f in enumerate(columns) if f.type == TIMESTAMP)
    rows = rows.set_column(times, columns.field(times), pa.array([7, None], TIMESTAMP))
    with_marks = rows.append_column(WATERMARK, pa.array([None, 5], pa.int64())).combine_chunks()
    [batch] = Pack(logs.stage, 0, logs.exchange)(iter(with_marks.to_batches()))
    header, _ = unseal(batch.column("body")[0].as_buffer())
    punctuation = header.punctuation
    assert (punctuation.rows, punctuation.without_time, punctuation.watermark) == (1, 0, 5)


STATIC = pa.schema([("room", pa.string()), ("floor", pa.int32())])
SENSORS = LogLayout(
    pa.schema([(SENSOR, pa.int32()), (TIME, TIMESTAMP), ("c", pa.float64())]),
    TIME,
    SensorLayout(STATIC, 2, "reading", pa.schema([("c", pa.float64())]), None),
)


def static_rows(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    kinds = (pa.int32(), pa.string(), pa.int32())
    columns = [pa.array(v, k) for v, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(columns, names=[SENSOR, "room", "floor"])


@pytest.mark.parametrize(
    ("where", "versions"),
    [
        ("floor > 0", [5]),
        ("room = 'hall' OR floor IS NULL", [1, 3]),
        ("NOT room LIKE 'h%' AND sensors.floor < 9", [5]),
        ("true", [1, 3, 5]),
    ],
)
def test_sensors_are_chosen_by_their_static_values(where: str, versions: list[int]) -> None:
    table = static_rows((1, "hall", 0), (3, None, None), (5, "attic", 3))
    assert read_sensor_filter(where, SENSORS).versions(table).tolist() == versions


def test_conditions_that_choose_no_sensors() -> None:
    with pytest.raises(NilometerError, match="no column colour"):
        read_sensor_filter("colour = 'red'", SENSORS)
    with pytest.raises(NilometerError, match="only readers of a sensor table"):
        read_sensor_filter("k = 1", LAYOUT)


def test_new_sensors_are_picked_up(tmp_path: Path) -> None:
    def stored(*versions: int) -> pa.RecordBatch:
        columns = [versions, [0] * len(versions), [float(v) for v in versions]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SENSORS.stored, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=SENSORS.stored)

    with LogWriter.open(tmp_path, SENSORS, QUICK):
        add_static_rows(tmp_path, static_rows((1, "hall", 0), (4, "attic", 3)))
        shown = ShownRows(str(tmp_path), SENSORS, "floor > 0")
        assert shown.show(stored(1, 4, 1, 4)).column("room").to_pylist() == ["attic", "attic"]
        add_static_rows(tmp_path, static_rows((2, "loft", 4)))  # fills a hole among the known
        assert shown.show(stored(1, 2)).column("room").to_pylist() == ["loft"]
        add_static_rows(tmp_path, static_rows((9, "cellar", -1)))
        assert len(shown.show(stored(9))) == 0
        everything = ShownRows(str(tmp_path), SENSORS)
        assert everything.show(stored(9, 2)).column("reading").to_pylist() == [
            {"c": 9.0},
            {"c": 2.0},
        ]


def test_a_part_that_a_killed_task_was_writing_is_swept_away(tmp_path: Path) -> None:
    parts = LogParts(str(tmp_path / "log"), LAYOUT, QUICK)
    parts.create()
    folder = tmp_path / "log" / "parts"
    rows = to_batch([(1, 1, 1, 1)])

    def rows_until_killed() -> Iterator[pa.RecordBatch]:
        yield rows
        yield rows
        [piece] = folder.iterdir()
        shutil.copy(piece, tmp_path / piece.name)  # what lies there if the process ends here

    parts.write(3, rows_until_killed())
    [piece] = tmp_path.glob("*.part*")
    shutil.copy(piece, folder)
    whole = parts.write(4, [rows])
    assert whole is not None
    parts.append([whole], None, ("query", 4))
    assert list(folder.iterdir()) == []
    assert LogReader.open(tmp_path / "log").end.row == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_statement_that_is_started_twice_is_two_readers(tmp_path: Path, named: bool) -> None:
    """Process 1 lives for as long as anything does, and is not this one."""
    LogWriter.open(tmp_path / "log", LAYOUT).close()
    given = LogRange(str(tmp_path / "log"), LAYOUT, EARLIEST, reader="q", is_named=named)
    LogCursor(given).initial()
    file = tmp_path / "log" / "readers" / "q.json"
    file.write_bytes(json_bytes({**json.loads(sealed.unseal(file.read_bytes())), "pid": 1}))
    second = LogCursor(given)
    second.initial()
    names = {one.reader for one in registrations(given.location)}
    assert names == ({"q"} if named else {"q", f"q of process {os.getpid()}"})
    second.stop()
    active = {one.reader for one in registrations(given.location) if one.active}
    assert active == (set() if named else {"q"})
