"""Spectra in statements: accumulated, searched for peaks, classified; however rows are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.pattern_classifier import PatternClassifier
from nilometer.mining.ragged_vectors import matrices_of
from nilometer.mining.spectrum_peaks import SpectrumPeaks
from tests.mining_streams import check_any_split, times_of

CHANNELS = 64
BLANK = 3.0 + 60.0 * np.exp(-0.5 * ((np.arange(CHANNELS) - 15.0) / 2.0) ** 2)
PEAKS = {
    "iron": 12.0 * np.exp(-0.5 * ((np.arange(CHANNELS) - 30.0) / 2.0) ** 2),
    "salt": 12.0 * np.exp(-0.5 * ((np.arange(CHANNELS) - 48.0) / 2.0) ** 2),
}
ACCUMULATED = "ACCUMULATE(S [RANGE 8 SECONDS], by => box, value => counts, live => live)"
FWHM = 2.0 * 2.3548

TABLES = {
    "Blank": pa.table({"counts": pa.array([(100 * BLANK).round().tolist()]), "live": [100.0]}),
    "Lines": pa.table({"energy": [30.5, 48.5], "name": ["Fe", "Cl"]}),
    "Library": pa.table(
        {
            "pattern": [(BLANK + peak).tolist() for peak in PEAKS.values()],
            "class": list(PEAKS),
            "weight": [1.0, 1.1],
        }
    ),
}


def bursts(seed: int) -> pa.Table:
    """Bursts of five boxes, two at a time on the belt: iron and salt in turn."""
    dice = np.random.default_rng(seed)
    boxes = [2 * (second // 10) + (second % 2) for second in range(50)]
    counts = [dice.poisson(BLANK + PEAKS["salt" if box % 2 else "iron"]) for box in boxes]
    return pa.table(
        {
            "ts": times_of([float(second) for second in range(50)]),
            "box": pa.array(boxes),
            "live": pa.array([1.0] * 50),
            "counts": pa.array([one.tolist() for one in counts]),
        }
    )


def test_peaks_of_what_has_accumulated_are_the_lines_of_what_is_in_the_box() -> None:
    stream = bursts(1)
    rows = check_any_split(
        f"SELECT box, rows, total, live_total, energy, area, line FROM PEAKS({ACCUMULATED} A, "
        f"counts => total, live => live_total, fwhm => {FWHM}, "
        "blank => (SELECT counts, live FROM Blank), lines => (SELECT energy, name FROM Lines))",
        stream,
        TABLES,
        seed=1,
        lateness=2,
    ).to_pylist()
    lines = {row["box"]: row["line"] for row in rows if row["rows"] >= 4}
    assert lines == {box: "Cl" if box % 2 else "Fe" for box in range(10)}
    finder = SpectrumPeaks(EnergyScale(fwhm=FWHM))
    for row in rows:
        blank = np.round(100 * BLANK)
        alone = finder.find([row["total"]], blank, row["live_total"] / 100.0)
        assert row["energy"] in alone.energy.tolist()
        assert row["area"] in alone.area.tolist()


@pytest.mark.parametrize("columns", ["pattern, class", "pattern, class, weight"])
def test_boxes_are_of_the_class_of_what_is_in_them(columns: str) -> None:
    rows = check_any_split(
        f"SELECT box, total, class, confidence, second, nearest FROM CLASSIFY({ACCUMULATED} A, "
        "pattern => total, scale => 'shares', "
        f"knowledge => (SELECT {columns} FROM Library))",
        bursts(2),
        TABLES,
        seed=2,
    ).to_pylist()
    assert len(rows) == 50
    assert all(row["class"] == ("salt" if row["box"] % 2 else "iron") for row in rows)
    shares = [one / one.sum() for one in (BLANK + peak for peak in PEAKS.values())]
    weights = [1.0, 1.1] if "weight" in columns else None
    known = PatternClassifier(shares, list(PEAKS), weights)
    alone = known.classify([np.array(row["total"]) / sum(row["total"]) for row in rows])
    np.testing.assert_allclose([row["confidence"] for row in rows], alone.confidence, rtol=1e-9)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PEAKS(S, counts => counts)", "PEAKS needs fwhm"),
        ("PEAKS(S, counts => counts, fwhm => 0)", "fwhm must be more than 0"),
        ("PEAKS(S, counts => counts, fwhm => 5, significance => 0)", "significance"),
        (
            "PEAKS(S, counts => counts, fwhm => 5, blank => (SELECT counts, live FROM Blank))",
            "blank is given without live",
        ),
        (
            "CLASSIFY(S, pattern => counts, knowledge => "
            "(SELECT pattern, class FROM Library WHERE class = 'gold'))",
            "the knowledge base is empty",
        ),
        (
            "CLASSIFY(S, pattern => counts, knowledge => "
            "(SELECT pattern, class FROM Library WHERE class = 'iron'))",
            "the knowledge base has one class only, 'iron'",
        ),
        (
            "CLASSIFY(S, pattern => counts, method => 'tree', knowledge => "
            "(SELECT pattern, class FROM Library))",
            "too few for a tree",
        ),
    ],
)
def test_refusals_are_kind(statement: str, message: str) -> None:
    database = LocalDatabase()
    database.create_stream("S", bursts(3), time="ts")
    for name, rows in TABLES.items():
        database.create_table(name, rows)
    with pytest.raises(NilometerError) as caught:
        database.sql(f"SELECT * FROM {statement}")
    assert message in str(caught.value)


@pytest.mark.parametrize(("channels", "count"), [(1 << 15, 1), ((1 << 15) + 1, 0)])
def test_spectra_longer_than_any_detector_makes_are_left_out(channels: int, count: int) -> None:
    line = [100.0 if place in (50, 51) else 1.0 for place in range(channels)]
    times = pa.array([0], pa.timestamp("us", tz="UTC"))
    database = LocalDatabase()
    database.create_stream("S", pa.table({"ts": times, "counts": pa.array([line])}), time="ts")
    assert len(database.sql("SELECT energy FROM PEAKS(S, counts => counts, fwhm => 2)")) == count


def test_one_long_array_does_not_make_room_in_all_other_rows() -> None:
    rows = [[1.0, 2.0]] * 100_000 + [[1.0] * 1_000_000]
    pieces = [(places, matrix.shape) for places, matrix in matrices_of(pa.array(rows))]
    assert [(len(places), shape) for places, shape in pieces] == [
        (100_000, (100_000, 2)),
        (1, (1, 1_000_000)),
    ]
