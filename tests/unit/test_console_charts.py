"""What the console draws of results, and the statements it offers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.sensors.declaration import Declaration
from nilometer.server.console.chart_points import MOST_LINES, Choice, Drawable, Lines, matches
from nilometer.server.console.examples import DEMO_STREAM, examples, first_query
from nilometer.sql.statements import read_one

_TIME = pa.timestamp("us", tz="UTC")


def rows(**columns: pa.Array) -> pa.Table:
    count = len(next(iter(columns.values())))
    times = pa.array([1_000_000 * (n + 1) for n in range(count)], pa.int64()).cast(_TIME)
    return pa.table({**columns, "_time": times})


def test_first_choice_is_a_measured_value_for_each_named_thing() -> None:
    table = rows(n=pa.array([1]), place=pa.array(["a"]), speed=pa.array([0.5]))
    assert Drawable.of(table.schema).first_choice(table.schema) == Choice(("speed",), "place")


def test_times_of_members_are_lanes_and_one_alone_is_none() -> None:
    times = pa.array([5_000_000], pa.int64()).cast(_TIME)
    assert Drawable.of(rows(a=times, b=times).schema).lanes == ("a", "b")
    assert Drawable.of(rows(a=times).schema).lanes == ()
    assert matches(rows(ts=times).append_column("ts", [times]), ["ts", "ts_2"]) == [[5000, 5000]]


def test_lines_are_bounded_and_the_others_share_one() -> None:
    keys = [f"k{n:02}" for n in range(MOST_LINES + 3)]
    table = rows(k=pa.array(keys), v=pa.array([float(n) for n in range(len(keys))]))
    lines = Lines(Choice(("v",), "k"))
    points = dict(lines.points(table))
    assert list(points) == [*keys[:MOST_LINES], "mean v of others"]
    assert points["mean v of others"] == [(11_000.0, 9.0)]
    assert len(lines.others) == 3


def test_points_are_thinned_and_nothing_but_numbers_is_drawn() -> None:
    values = [*map(float, range(500)), float("nan"), None, float("inf")]
    ((name, points),) = Lines(Choice(("v",), None)).points(rows(v=pa.array(values)))
    assert name == "v"
    assert len(points) == 40
    assert (points[0], points[-1]) == ((1000.0, 0.0), (500_000.0, 499.0))
    ((_, points),) = Lines(Choice(("v",), None)).points(rows(v=pa.array(values)), 400)
    assert len(points) == 400


def test_what_a_changelog_takes_back_is_not_drawn() -> None:
    table = rows(v=pa.array([1.0, 2.0])).append_column("_diff", [pa.array([1, -1])])
    assert Lines(Choice(("v",), None)).points(table) == [("v", [(1000.0, 1.0)])]


def camera(name: str) -> Declaration:
    columns = [("ts", _TIME), ("obj_id", pa.int32()), ("speed", pa.float64())]
    return Declaration(name, pa.schema(columns), "synthetic", time="ts")


def test_examples_are_statements_over_the_streams_that_are_there() -> None:
    suggested = examples([camera("North"), camera("2nd gate")])
    assert [one.title for one in suggested][-3:] == [
        "North and 2nd gate within 5 seconds",
        "In North, but not in 2nd gate",
        "Streams and how they are doing",
    ]
    for one in suggested:
        read_one(one.text)
    assert "WINDOW(A, B) = 5 SECONDS" in suggested[-3].text
    assert "`2nd gate` B" in suggested[-3].text


@pytest.mark.parametrize(
    ("columns", "select"),
    [
        ([("room", pa.string()), ("t", pa.float64())], "room, AVG(t) AS t, COUNT(*) AS readings"),
        ([("t", pa.float64())], "AVG(t) AS t, COUNT(*) AS readings"),
        ([("room", pa.string())], "room, COUNT(*) AS readings"),
    ],
)
def test_first_query_has_a_window(columns: list[tuple[str, pa.DataType]], select: str) -> None:
    text = first_query(Declaration("Rooms", pa.schema(columns), "synthetic"))
    assert text.splitlines()[0] == f"SELECT   {select}"
    assert "[RANGE 30 SECONDS]" in text
    read_one(text)


def test_sensor_tables_are_asked_for_their_readings() -> None:
    declared = Declaration(
        "Sensors",
        pa.schema([("t", pa.float64())]),
        "http",
        static=pa.schema([("id", pa.int32()), ("place", pa.string())]),
        column="Reading",
    )
    assert "place, AVG(Reading.t) AS t" in first_query(declared)


def test_the_sample_stream_is_a_statement() -> None:
    read_one(DEMO_STREAM)
