"""The demo's world: the same however it is cut into periods, and its truth is the naive join."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from nilometer.demo.cameras.changing_counts import Change, are_right, changes_in
from nilometer.demo.cameras.dashboard import ADDRESS, NAME, dashboard
from nilometer.demo.cameras.declare import HALL, YARD
from nilometer.demo.cameras.demo import compare
from nilometer.demo.cameras.display import show_checks
from nilometer.demo.cameras.questions import BUSY_WINDOW, busy, on_the_way, questions
from nilometer.demo.cameras.tally import Tally
from nilometer.demo.cameras.world import CAMERAS, LONGEST_DELAY, SECOND, World
from nilometer.local.database import LocalDatabase
from nilometer.model.dashboard import Dashboard, SourceKind
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import dwindow
from tests import naive

WORLD = World(started=1_000 * SECOND, rate=8)
END = 20 * SECOND


def seen(camera: int, cuts: list[int]) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    for first, end in pairwise(cuts):
        for part in WORLD.sightings(camera, first, end):
            rows += zip(part.objects.tolist(), part.times.tolist(), strict=True)
    return rows


@pytest.mark.parametrize("camera", range(len(CAMERAS)))
def test_the_world_does_not_depend_on_who_looks_when(camera: int) -> None:
    cuts = [0, *sorted(np.random.default_rng(camera).integers(0, END, 30).tolist()), END]
    whole = seen(camera, [0, END])
    assert len(whole) > 50
    assert sorted(seen(camera, cuts)) == sorted(whole)


def test_nothing_is_later_than_promised() -> None:
    for part in WORLD.sightings(0, 0, END):
        delay = part.arrivals + WORLD.started - part.times
        assert 0 <= delay.min() <= delay.max() < LONGEST_DELAY


def test_the_truth_is_the_naive_join() -> None:
    windows = tuple(dwindow(a, b, "3s") for a, b in pairwise(CAMERAS))
    streams = [
        [(time, key, 0, number) for number, (key, time) in enumerate(seen(camera, [0, END]))]
        for camera in range(len(CAMERAS))
    ]
    results = naive.window_join(streams, TimeNetwork(CAMERAS, windows))
    expected = {
        (streams[0][ids[0]][1], *(streams[c][i][0] for c, i in enumerate(ids))) for ids in results
    }
    assert WORLD.tracks(END, 3 * SECOND) == expected
    assert len(expected) > 10


def test_the_truth_of_what_is_on_the_way_is_counted_object_by_object() -> None:
    window = 4 * SECOND
    cameras = [seen(camera, [0, END]) for camera in range(len(CAMERAS))]
    known = min(max(time for _, time in camera) for camera in cameras) - LONGEST_DELAY
    by_instant = WORLD.on_the_way(END, window, SECOND)
    assert list(by_instant) == list(range(WORLD.started, known, SECOND))
    for instant, counts in by_instant.items():
        near = [
            {key for key, time in camera if instant - window <= time <= instant}
            for camera in cameras
        ]
        sizes = [len(here - there) for here, there in pairwise(near)]
        expected = {c: n for c, n in zip(CAMERAS[:-1], sizes, strict=True) if n}
        assert counts == expected
    assert World(0, 8).on_the_way(SECOND, window, SECOND) == {}


def table_of(cameras: tuple[int, int]) -> pa.Table:
    """What two cameras say, as rows of their sensor table."""
    parts = []
    for camera in cameras:
        said = WORLD.arrivals(camera - 1, 0, END)
        times = pa.array(said.times).view(pa.timestamp("us", tz="UTC"))
        sightings = pa.StructArray.from_arrays([pa.array(said.objects), times], ["obj_id", "ts"])
        numbers = pa.array([camera] * len(said), pa.int32())
        parts.append(pa.table({"camera": numbers, "seen": sightings, "_time": times}))
    return pa.concat_tables(parts)


def counted_changes(statement: str, last: int) -> list[Change]:
    """What a statement of the demo answers, up to an instant."""
    db = LocalDatabase()
    for name, cameras in ((HALL, (1, 2)), (YARD, (3, 4))):
        db.create_stream(name, table_of(cameras), time="_time", lateness="400ms")
    return [one for one in changes_in(db.sql(statement)) if one.time <= last]


def test_the_truth_of_how_busy_it_is_is_counted_one_by_one() -> None:
    by_instant = WORLD.busy(END, BUSY_WINDOW, SECOND, 2)
    assert len(by_instant) > 10
    for instant, counts in by_instant.items():
        for number, name in enumerate(CAMERAS[:2]):
            times = [time for _, time in seen(number, [0, END])]
            within = sum(instant - BUSY_WINDOW <= time <= instant for time in times)
            assert counts.get(name, 0) == within


@pytest.mark.parametrize(
    ("statement", "truth"),
    [
        (on_the_way(), WORLD.on_the_way(END, 4 * SECOND, SECOND)),
        (busy(), WORLD.busy(END, BUSY_WINDOW, SECOND, 2)),
    ],
)
def test_counts_are_checked_at_every_second(
    statement: str, truth: dict[int, dict[str, int]]
) -> None:
    changes = counted_changes(statement, max(truth))
    assert are_right(changes, truth)
    late = Change(max(truth) + SECOND, "Camera1", 1, 1)
    for wrong in (changes[1:], [*changes, late], [changes[0], *changes]):
        assert not are_right(wrong, truth)


def test_a_tally_counts_every_micro_batch_once() -> None:
    tally = Tally(["A"])
    samples = [
        {"time": f"2026-01-01T00:00:0{n}Z", "streams": {"A": {"rows": n}}} for n in (1, 2, 3)
    ]
    tally.take(samples[:2], 5)
    tally.take(samples, 7)
    assert (tally.rows_in, tally.batches, tally.results) == (6, 3, 7)


@pytest.mark.parametrize(
    ("received", "counts_right", "starts"),
    [
        (
            [(1, 5), (2, 7)],
            True,
            ["right: all 2 true tracks were found, each once", "right: all 9"],
        ),
        ([(1, 5)], False, ["missing: 1 of 2 true tracks", "missing: not all 9 counts"]),
        ([(1, 5), (1, 5), (2, 7)], True, ["wrong: 1 tracks were found", "right: all 9 counts"]),
        ([(1, 5), (2, 7)], False, ["right: all 2", "wrong: not all 9 counts"]),
    ],
)
def test_what_is_late_is_not_called_wrong(
    received: list[tuple[int, ...]], counts_right: bool, starts: list[str]
) -> None:
    checks = compare([(1, 5), (2, 7)], received, 9, counts_right)
    console = Console(file=io.StringIO(), width=200)
    show_checks(console, checks)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
    assert checks.all_right == (received == [(1, 5), (2, 7)] and counts_right)


def test_the_dashboard_of_the_demo_is_one() -> None:
    imported = Dashboard.from_json(dashboard(), NAME)
    assert ADDRESS.startswith(f"/console/dashboards/{imported.name}?")
    asked = {one.source.text for one in imported.panels if one.source.kind is SourceKind.QUERY}
    assert asked == set(questions())
