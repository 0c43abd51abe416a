"""What panels show: thinned lines against all rows, computed naively; and what cannot be shown."""

from __future__ import annotations

import asyncio
import math
import random
import shutil
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.writer import LogWriter
from nilometer.model.dashboard import Panel
from nilometer.server.dashboards.freshness import mark_of
from nilometer.server.dashboards.panel_picture import MOST_ROWS, Picture, read_panel
from nilometer.server.dashboards.thinned import MOST_SERIES
from nilometer.server.dashboards.time_range import (
    DEFAULT,
    PRESETS,
    Interval,
    TimeRange,
    between,
    read_range,
    step_for,
)
from nilometer.server.scopes import Asker, Scope
from tests.examples import share_of
from tests.served import Served, served

BEGIN = 1_767_225_600_000_000
"""2026-01-01"""
SECOND = 1_000_000
HOUR = 3600 * SECOND
READER = Asker("reader", frozenset({Scope.READ}))
ROWS = pa.schema([(TIME, TIMESTAMP), ("k", pa.string()), ("v", pa.float64()), ("n", pa.int64())])
CHANGES = pa.schema([(TIME, TIMESTAMP), (DIFF, pa.int8()), ("k", pa.string()), ("v", pa.float64())])
Row = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("panels")) as server:
        yield server


def stored(server: Served, name: str, rows: list[Row], schema: pa.Schema = ROWS) -> None:
    """A stream or, with changes, a query of this name that holds rows."""
    is_changes = DIFF in schema.names
    folder = server.database.logs / name.lower()
    if (before := server.catalog.find(name)) is not None:
        server.catalog.drop(before.kind, name)
        shutil.rmtree(folder)
    if is_changes:
        server.catalog.create_query(name, "SELECT 1", "changelog")
    else:
        server.sql(f"CREATE STREAM {name} (k STRING, v DOUBLE, n BIGINT) FROM synthetic")
    layout = LogLayout(schema, TIME, changes=is_changes)
    writer = LogWriter.open(str(folder), layout, LogOptions(history=1 << 60))
    for start in range(0, len(rows), 1000):
        writer.append(pa.RecordBatch.from_pylist(rows[start : start + 1000], schema=schema))
    writer.close()


def picture(server: Served, at: Interval, **panel: Any) -> Picture:
    made = Panel.from_json({"title": "T", **panel})
    return asyncio.run(read_panel(server.service, made, at, READER))


def some_rows(chance: random.Random, count: int, keys: int = 3) -> list[Row]:
    times = sorted(chance.randrange(0, HOUR) for _ in range(count))
    strange = [None, math.nan, math.inf, -math.inf]
    return [
        {
            TIME: BEGIN + time,
            "k": chance.choice([None, *(f"k{i}" for i in range(keys))]),
            "v": chance.choice(strange) if chance.random() < 0.05 else chance.gauss(0, 9),
            "n": chance.randrange(100),
        }
        for time in times
    ]


def drawn(shown: Picture) -> dict[str, list[list[Any]]]:
    return {one["name"]: one["data"] for one in shown.values["lines"]}


def naive(rows: list[Row], at: Interval, step: int, series: bool) -> dict[str, list[list[Any]]]:
    """First, last, least and greatest of each line and step, from a list of all rows."""
    assert at.start is not None
    good = [
        (str(row["k"]) if row["k"] else "NULL", row[TIME], row["v"])
        for row in rows
        if at.start <= row[TIME] <= at.end and row["v"] is not None and math.isfinite(row["v"])
    ]
    if not series:
        good = [("v", time, value) for _, time, value in good]
    lines: dict[str, list[list[Any]]] = {}
    good.sort(key=lambda one: (one[0], one[1] // step))
    for (name, _), bucket in groupby(good, key=lambda one: (one[0], one[1] // step)):
        points = [(time, value) for _, time, value in bucket]
        kept = {
            min(points, key=lambda one: one[0]),
            max(points, key=lambda one: one[0]),
            min(points, key=lambda one: one[1]),
            max(points, key=lambda one: one[1]),
        }
        lines.setdefault(name, []).extend([time / 1000, value] for time, value in sorted(kept))
    return lines


@pytest.mark.parametrize("seed", range(share_of(4)))
def test_lines_keep_their_shape(server: Served, seed: int) -> None:
    chance = random.Random(seed)
    rows = some_rows(chance, 6000)
    stored(server, "S", rows)
    for length in (10 * SECOND, 600 * SECOND, HOUR):
        start = BEGIN + chance.randrange(0, HOUR - length + 1)
        at = Interval(start, start + length)
        for by in ({"series": "k"}, {}):
            lines = drawn(picture(server, at, kind="line", stream="S", y=["v"], **by))
            assert lines == naive(rows, at, step_for(length, 249), bool(by))
            assert all(len(one) <= 1000 for one in lines.values())
    assert len(lines["v"]) > 900


@pytest.mark.parametrize("how", ["avg", "min", "max", "sum", "count", "last"])
def test_values_are_combined(server: Served, how: str) -> None:
    rows = [
        one for one in some_rows(random.Random(5), 3000)
        if one["v"] is not None and math.isfinite(one["v"])
    ]  # fmt: skip
    stored(server, "S", rows)
    at = Interval(BEGIN, BEGIN + HOUR)
    for kind, limit in (("line", 300), ("bar", 60)):
        lines = drawn(picture(server, at, kind=kind, stream="s", y=["v"], combine=how))
        step = step_for(HOUR, limit)
        expected: dict[float, list[float]] = {}
        for one in rows:
            expected.setdefault(one[TIME] // step * step / 1000, []).append(one["v"])
        naively = {
            "avg": lambda vs: sum(vs) / len(vs),
            "min": min,
            "max": max,
            "sum": sum,
            "count": len,
            "last": lambda vs: vs[-1],
        }[how]
        (line,) = lines.values()
        assert [one[0] for one in line] == sorted(expected)
        assert [one[1] for one in line] == pytest.approx(
            [naively(expected[one]) for one in sorted(expected)]
        )


def test_all_that_is_stored(server: Served) -> None:
    rows = some_rows(random.Random(3), 500)
    stored(server, "S", rows)
    shown = picture(server, TimeRange().at(BEGIN), kind="line", stream="S", y=["v"])
    assert shown.values["low"] == rows[0][TIME] / 1000
    assert shown.values["high"] == rows[-1][TIME] / 1000
    assert len(drawn(shown)["v"]) > 300


def test_too_many_lines_are_counted(server: Served) -> None:
    stored(server, "S", some_rows(random.Random(1), 2000, keys=40))
    at = Interval(BEGIN, BEGIN + HOUR)
    shown = picture(server, at, kind="line", stream="S", y=["v"], series="k")
    assert (len(drawn(shown)), shown.left_out) == (MOST_SERIES, 41 - MOST_SERIES)


def test_a_select_is_asked_with_the_range_of_the_page(server: Served) -> None:
    rows = some_rows(random.Random(2), 400)
    stored(server, "S", rows)
    at = Interval(BEGIN + 600 * SECOND, BEGIN + 1200 * SECOND)
    inside = [one for one in rows if at.start <= one[TIME] <= at.end]  # type: ignore[operator]
    text = "SELECT COUNT(*) AS c FROM S WHERE _time >= :start AND _time <= :end;"
    shown = picture(server, at, kind="stat", select=text, y=["c"])
    assert [one["value"] for one in shown.values["figures"]] == [len(inside)]
    text = "SELECT date_trunc('minute', _time) AS minute, n FROM S"
    shown = picture(server, at, kind="table", select=text, x="minute")
    assert shown.rows is not None
    assert shown.rows.num_rows == sum(
        at.start <= one[TIME] // (60 * SECOND) * 60 * SECOND <= at.end  # type: ignore[operator]
        for one in rows
    )
    line = picture(server, at, kind="line", select="SELECT n, v FROM S", x="n", y=["v"])
    assert (line.values["is_time"], line.values["low"], line.values["high"]) == (False, 0, 99)


def test_the_newest_rows_stand_in_a_table(server: Served) -> None:
    rows = some_rows(random.Random(4), 1000)
    stored(server, "S", rows)
    shown = picture(server, Interval(BEGIN, BEGIN + HOUR), kind="table", stream="S", y=["n"])
    assert shown.rows is not None
    assert shown.rows["n"].to_pylist()[:50] == [one["n"] for one in rows[::-1]][:50]
    assert shown.rows.num_rows == MOST_ROWS


def changes(*entries: tuple[int, int, str, float]) -> list[Row]:
    return [{TIME: BEGIN + t * SECOND, DIFF: d, "k": k, "v": v} for t, d, k, v in entries]


def test_lines_of_an_answer_hold_until_they_change(server: Served) -> None:
    stored(
        server,
        "q",
        changes(
            (0, 1, "a", 1), (0, 1, "b", 5), (0, 1, "c", 7),
            (10, -1, "a", 1), (10, 1, "a", 2),
            (20, -1, "b", 5),
            (30, -1, "a", 2), (30, 1, "a", 3),
        ),
        CHANGES,
    )  # fmt: skip
    at = Interval(BEGIN + 5 * SECOND, BEGIN + 40 * SECOND)
    shown = picture(server, at, kind="line", query="q", y=["v"], series="k")
    ms = BEGIN / 1000
    assert shown.values["steps"]
    assert {name: [[t - ms, v] for t, v in line] for name, line in drawn(shown).items()} == {
        "a": [[5000, 1], [10_000, 2], [30_000, 3], [40_000, 3]],
        "b": [[5000, 5], [20_000, 5], [20_000, None]],
        "c": [[5000, 7], [40_000, 7]],
    }


def test_answers_are_shown_as_they_were(server: Served) -> None:
    stored(
        server,
        "q",
        changes((0, 1, "a", 1), (0, 1, "b", 5), (10, -1, "a", 1), (10, 1, "a", 2)),
        CHANGES,
    )
    past = between(BEGIN - HOUR, BEGIN + 5 * SECOND).at(BEGIN + HOUR)
    for at, first in ((past, 1.0), (TimeRange(HOUR).at(BEGIN + 20 * SECOND), 2.0)):
        bars = picture(server, at, kind="bar", query="q", x="k", y=["v"])
        assert bars.values["names"] == ["a", "b"]
        assert bars.values["lines"] == [{"name": "v", "data": [first, 5.0]}]
        total = picture(server, at, kind="stat", query="q", y=["v"], combine="sum")
        assert [one["value"] for one in total.values["figures"]] == [first + 5.0]
        table = picture(server, at, kind="table", query="q")
        assert table.rows is not None
        assert sorted(table.rows["v"].to_pylist()) == [first, 5.0]


def test_heat_maps_and_maps(server: Served) -> None:
    rows = some_rows(random.Random(8), 800)
    stored(server, "S", rows)
    at = Interval(BEGIN, BEGIN + HOUR)
    heat = picture(server, at, kind="heat map", stream="S", series="k", combine="count")
    values = heat.values
    assert values["names"] == ["k0", "k1", "k2", "NULL"]
    assert sum(cell[2] for cell in values["cells"]) == len(rows)
    assert {b - a for a, b in pairwise(values["columns"])} == {30_000}
    text = "SELECT _time, k, n, n + 1 AS m, v FROM S WHERE k IS NOT NULL"
    places = picture(server, at, kind="map", select=text, x="n", y=["m"], series="k", value="n")
    newest = {one["k"]: one["n"] for one in rows if one["k"]}
    assert {one["name"]: one["at"] for one in places.values["places"]} == {
        name: [n, n + 1] for name, n in newest.items()
    }


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ({"stream": "T"}, "there is no stream, table or query T"),
        ({"stream": "S", "y": ["w"]}, "there is no column w"),
        ({"stream": "S", "y": ["k"]}, "k is not a column of numbers"),
        ({"stream": "S", "x": "k"}, "k is not a column of numbers"),
        ({"select": "SELECT v FROM S"}, "these rows have no time"),
        ({"select": "SELEKT v"}, "expected a query"),
        ({"select": "DROP STREAM S"}, "expected a query"),
        ({"select": "SELECT * FROM read_text('/etc/passwd')"}, "read_text cannot be read from"),
        ({"select": "SELECT v FROM S [RANGE 5 SECONDS]"}, "a panel shows what is stored, and"),
        ({"select": "SELECT v FROM S; SELECT 1"}, "expected a query"),
    ],
)
def test_what_cannot_be_shown_is_reported(
    server: Served, panel: dict[str, Any], message: str
) -> None:
    stored(server, "S", [])
    with pytest.raises(NilometerError) as caught:
        picture(server, Interval(BEGIN, BEGIN + HOUR), **{"kind": "line", "y": ["v"], **panel})
    assert caught.value.message.startswith(message)


def test_a_select_is_new_when_what_it_reads_is() -> None:
    text = "SELECT v FROM S JOIN q USING (k) WHERE S._time >= :start AND S._time < :end"
    source = Panel.from_json({"title": "T", "kind": "table", "select": text}).source
    assert mark_of(source, {"s": 3, "q": 4, "r": 5}) == (4, 3)
    assert mark_of(source, {"s": 3}) is None


def test_without_the_scope_read_nothing_is_shown(server: Served) -> None:
    stored(server, "S", [])
    made = Panel.from_json({"title": "T", "kind": "line", "stream": "S", "y": ["v"]})
    nobody = Asker("nobody", frozenset())
    with pytest.raises(NilometerError, match="this needs the scope read"):
        asyncio.run(read_panel(server.service, made, Interval(0, 1), nobody))


@pytest.mark.parametrize("name", PRESETS)
def test_addresses_say_ranges(name: str) -> None:
    span = read_range(name, "", "")
    assert span.address == {"range": name}
    assert span.at(HOUR).end == HOUR


def test_ranges_between_instants() -> None:
    span = between(BEGIN + 1500 * 1000, BEGIN)
    said = span.address
    assert read_range("5m", said["from"], said["to"]) == span
    assert not span.is_live
    assert read_range("", "yesterday", "now") == DEFAULT
    assert read_range("all", "", "") == TimeRange()
    assert read_range("90s", "", "").address == {"range": "90s"}
    assert read_range("-5s", "", "") == DEFAULT
    assert read_range("", "0001-01-01", "9999-12-31").at(0).start is not None


@pytest.mark.parametrize("seed", range(share_of(200)))
def test_ranges_are_widened_around_their_middle(seed: int) -> None:
    chance = random.Random(seed)
    start = BEGIN + chance.randrange(HOUR)
    span = between(start, start + chance.randrange(HOUR))
    now = span.end + chance.randrange(-HOUR, HOUR)  # type: ignore[operator]
    wide = span.widened(now)
    assert span.start is not None and span.end is not None  # noqa: PT018
    assert wide.start is not None and wide.end is not None  # noqa: PT018
    assert wide.end - wide.start == 2 * (span.end - span.start)
    assert wide.end <= max(now, span.end)
    assert wide.start <= span.start


@pytest.mark.parametrize("seed", range(share_of(200)))
def test_steps_are_few(seed: int) -> None:
    chance = random.Random(seed)
    length, limit = int(10 ** chance.uniform(0, 17)), chance.randrange(1, 400)
    step = step_for(length, limit)
    assert step * limit >= length
    assert step == 1 or step >= 86_400 * SECOND or step_for(length, limit + 1) <= step
