"""The demo's world: the same however it is cut into periods, and its truth is the naive join."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nilometer.apps.cameras.tally import Tally
from nilometer.apps.cameras.world import CAMERAS, LONGEST_DELAY, SECOND, World
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
    found = naive.window_join(streams, TimeNetwork(CAMERAS, windows))
    expected = {
        (streams[0][ids[0]][1], *(streams[c][i][0] for c, i in enumerate(ids))) for ids in found
    }
    assert WORLD.tracks(END, 3 * SECOND) == expected
    assert len(expected) > 10


def test_a_tally_counts_every_report_once() -> None:
    tally = Tally(["A"])
    report = {"batchId": 0, "observedMetrics": {}, "durationMs": {}}
    tally.take([report, report])
    assert (tally.rows_in, tally.batches) == (0, 0)
