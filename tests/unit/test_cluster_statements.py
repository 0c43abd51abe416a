"""SEQUENCES and CLUSTERS in statements: any split, what a window holds, refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.mining.online_clusters import OnlineClusters
from tests.mining_streams import START, check_any_split, times_of


def spectra(seed: int, rows: int = 80) -> pa.Table:
    """Items of two sensors around three centres, at times of their own; some are no items."""
    chance = np.random.default_rng(seed)
    centres = np.array([[9.0, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 9]])
    items = centres[chance.integers(0, 3, rows)] + chance.normal(size=(rows, 4))
    odd = chance.random(rows)
    listed = [
        None if one < 0.03 else item[:3] if one < 0.06 else item
        for one, item in zip(odd, items.tolist(), strict=True)
    ]
    return pa.table(
        {
            "ts": times_of(np.cumsum(chance.exponential(0.3, rows)).tolist()),
            "sensor": chance.choice(["x", "y"], rows),
            "room": chance.choice(["hall", "lab", None], rows, p=[0.5, 0.4, 0.1]),
            "spectrum": pa.array([items[0].tolist(), *listed[1:]]),
        }
    )


STATEMENTS = (
    "SELECT * FROM CLUSTERS(S, by => sensor, item => spectrum, clusters => 3, micro_clusters => 8, "
    "every => 3 SECONDS)",
    "SELECT * FROM CLUSTERS(S [RANGE 6 SECONDS], item => spectrum, clusters => 3, "
    "micro_clusters => 6, metric => 'cosine', every => 2 SECONDS)",
    "SELECT cluster, size, centre FROM CLUSTERS(S [RANGE 5 SECONDS], by => sensor, apart => 4.5, "
    "item => spectrum, dimensions => 2, every => 5 SECONDS) WHERE share > 0.2",
    "SELECT * FROM SEQUENCES(S, stream => sensor, value => room, gap => 1, longest => 4, "
    "counters => 20, every => 3 SECONDS)",
    "SELECT sequence, support FROM SEQUENCES(S [RANGE 8 SECONDS], stream => sensor, value => room, "
    "span => 2 SECONDS, shortest => 3, every => 2 SECONDS) WHERE streams = 2",
)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("lateness", [0, 3])
def test_answers_do_not_depend_on_how_rows_are_cut(statement: str, lateness: int) -> None:
    assert len(check_any_split(statement, spectra(lateness), seed=lateness, lateness=lateness))


def test_an_answer_is_that_of_the_items_in_the_window() -> None:
    stream = spectra(5)
    changes = check_any_split(STATEMENTS[1], stream, seed=5).to_pylist()
    times = stream["ts"].cast(pa.int64()).to_numpy()
    begin = -(-START // 2_000_000) * 2_000_000
    for instant in range(begin + 2_000_000, begin + 24_000_000, 2_000_000):
        held: dict[str, int] = {}
        for row in changes:
            key = repr([row[name] for name in ("cluster", "size", "share", "radius", "centre")])
            if row["_time"].timestamp() * 1e6 <= instant:
                held[key] = held.get(key, 0) + row["_diff"]
        clusters = OnlineClusters(3, micro_clusters=6, metric="cosine", window=6_000_000)
        items = stream["spectrum"].to_pylist()
        for time, item in zip(times, items, strict=True):
            if item is not None and len(item) == 4 and instant - 6_000_000 <= time <= instant:
                clusters.add(item, [time])
        expected = [
            repr([one.cluster, one.size, one.share, one.radius, one.centre.tolist()])
            for one in clusters.answer()
        ]
        assert sorted(key for key, copies in held.items() if copies) == sorted(expected)
        assert expected


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("CLUSTERS(S, item => spectrum, clusters => 200)", "at least twice as many"),
        ("CLUSTERS(S, item => spectrum, metric => 'taxi')", "metric"),
        ("CLUSTERS(S, item => sensor)", "item"),
        ("SEQUENCES(S, stream => sensor)", "value"),
        ("SEQUENCES(S, stream => sensor, value => room, longest => 1)", "shortest"),
        ("SEQUENCES(S, stream => sensor, value => room, gap => 20)", "too many sequences"),
        ("SEQUENCES(S, stream => sensor, value => room, across => 2)", "across"),
    ],
)
def test_what_does_not_fit_is_refused(call: str, said: str) -> None:
    database = LocalDatabase()
    database.create_stream("S", spectra(1), time="ts")
    with pytest.raises(NilometerError, match=said):
        database.sql(f"SELECT * FROM {call.removesuffix(')')}, every => 1 SECOND)")
