"""PEAKS against spectra made of known lines, and against least squares channel by channel."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import find_peaks
from scipy.stats import norm

from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.known_lines import KnownLines
from nilometer.mining.peaks import FUNCTION
from nilometer.mining.registry import find_function
from nilometer.mining.spectrum_peaks import MeasuredPeaks, SpectrumPeaks
from nilometer.mining.table_function import CheckedCall, MiningError, RowWorker

LISTS = pa.list_(pa.float64())
SCALE = EnergyScale(first_energy=0.0, channel_width=12 / 1024, fwhm=0.05, fwhm_at=0.662)
ENERGY = SCALE.energy(np.arange(1024.0))


def line(
    energy: float, area: float, scale: EnergyScale = SCALE, channels: int = 1024
) -> np.ndarray:
    """The expected counts of a line."""
    edges = scale.first_energy + scale.channel_width * np.arange(channels + 1)
    deviation = float(scale.width(np.array(energy))) / 2.3548200450309493
    return area * np.diff(norm.cdf(edges, energy, deviation))


def drawn(expected: np.ndarray, spectra: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).poisson(expected, (spectra, len(expected))).astype(float)


def near(peaks: MeasuredPeaks, energy: float) -> np.ndarray:
    return np.abs(peaks.energy - energy) < SCALE.width(np.array(energy)) / 2


CONTINUUM = 2000 * np.exp(-ENERGY / 2) + 5
LINES = {2.223: 4000.0, 3.93: 900.0, 4.44: 1500.0, 7.63: 800.0}


def test_lines_on_a_continuum_are_found_where_they_are_with_their_areas_and_errors() -> None:
    expected = CONTINUUM + sum(line(energy, area) for energy, area in LINES.items())
    peaks = SpectrumPeaks(SCALE).find(drawn(expected, 400, 1))
    for energy, area in LINES.items():
        mine = near(peaks, energy)
        assert np.unique(peaks.spectrum[mine]).tolist() == peaks.spectrum[mine].tolist()
        assert mine.sum() >= 398
        assert abs(peaks.energy[mine].mean() - energy) < 0.1 * SCALE.channel_width
        assert abs(peaks.area[mine].mean() / area - 1) < 0.03
        pulls = (peaks.area[mine] - area) / peaks.sigma[mine]
        assert 0.9 < pulls.std() < 1.15
    others = ~np.any([near(peaks, energy) for energy in LINES], axis=0)
    assert others.sum() <= 400 * 0.05


@pytest.mark.parametrize(("level", "least_share"), [(3.0, 0.3), (50.0, 0.65), (5000.0, 0.8)])
def test_noise_has_no_more_false_peaks_than_its_significance_says(
    level: float, least_share: float
) -> None:
    spectra = drawn(np.full(1024, level), 3000, 2)
    scale = EnergyScale(fwhm=12.0)
    for least in (2.5, 3.5):
        peaks = SpectrumPeaks(scale, least, most=1000).find(spectra)
        # Rice: how often a Gaussian process of this filter rises above a level.
        rate = _risings(scale) * np.exp(-(least**2) / 2) * 1024
        assert least_share * rate < len(peaks.area) / 3000 < 1.1 * rate
    peaks = SpectrumPeaks(scale, 5.0).find(spectra)
    assert len(peaks.area) <= 3


def _risings(scale: EnergyScale) -> float:
    """Rises through 0 for each channel, from the correlation of the filter with itself."""
    weights = _weights(scale, 500, 1024)
    apart = np.dot(weights[1:], weights[:-1]) / np.dot(weights, weights)
    return float(np.arccos(apart)) / (2 * np.pi)


def _weights(scale: EnergyScale, channel: int, channels: int) -> np.ndarray:
    """The weights of the area in least squares with a line and a straight continuum."""
    width = float(scale.width(scale.energy(np.array(float(channel))))) / scale.channel_width
    side = max(3, int(np.ceil(1.5 * width)))
    inside = np.arange(max(0, channel - side), min(channels, channel + side + 1))
    shape = line(channel + 0.5, 1.0, EnergyScale(fwhm=width), channels)
    design = np.column_stack([shape[inside], np.ones(len(inside)), inside])
    weights = np.zeros(channels)
    weights[inside] = np.linalg.pinv(design)[0]
    return weights


def test_one_spectrum_is_least_squares_at_each_channel_and_scipys_peaks() -> None:
    scale = EnergyScale(first_energy=1.0, channel_width=0.5, fwhm=3.0, fwhm_at=40.0, fwhm_floor=1.0)
    expected = 200 - np.arange(160) + sum(line(e, 900, scale, 160) for e in (20.0, 45.0, 70.0))
    (counts,) = drawn(expected, 1, 3)
    weights = np.array([_weights(scale, channel, 160) for channel in range(160)])
    ratio = weights @ counts / np.sqrt(weights**2 @ counts)
    ratio[:10] = ratio[-10:] = 0
    places, _ = find_peaks(ratio, height=6)
    peaks = SpectrumPeaks(scale, 6).find([counts])
    assert len(places) == 3
    assert (np.abs(peaks.channel - places) <= 0.5).all()
    np.testing.assert_allclose(peaks.area, (weights @ counts)[places], rtol=0.02)
    np.testing.assert_allclose(peaks.significance, ratio[places], rtol=0.02)


@pytest.mark.parametrize("apart", [16.0, 20.0, 24.0, 40.0])
def test_neighbours_do_not_take_from_each_other(apart: float) -> None:
    scale = EnergyScale(fwhm=10.0)
    pair = line(100.3, 5000, scale, 200) + line(100.3 + apart, 2000, scale, 200)
    peaks = SpectrumPeaks(scale).find(drawn(50 + pair, 200, 4))
    for energy, area in ((100.3, 5000), (100.3 + apart, 2000)):
        mine = np.abs(peaks.energy - energy) < 3
        assert mine.sum() == 200
        assert peaks.energy[mine].mean() == pytest.approx(energy, abs=0.1)
        assert peaks.area[mine].mean() == pytest.approx(area, rel=0.01)
        assert 0.85 < peaks.area[mine].std() / peaks.sigma[mine].mean() < 1.25


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("fwhm", [0.4, 1.0, 2.5])
def test_lines_as_narrow_as_a_channel_are_measured_between_channels_too(
    shift: float, fwhm: float
) -> None:
    scale = EnergyScale(fwhm=fwhm)
    counts = 20 + line(50.5 + shift, 3000, scale, 100)
    peaks = SpectrumPeaks(scale).find([counts])
    assert len(peaks.energy) == 1
    assert peaks.energy[0] == pytest.approx(50.5 + shift, abs=0.3)
    assert peaks.area[0] == pytest.approx(3000, rel=0.2)


def test_a_background_is_taken_away_with_its_variance() -> None:
    blank = 50 + line(5.0, 20_000)
    counts = drawn(0.25 * blank + line(8.0, 1500), 200, 5)
    measured = drawn(blank, 200, 6)
    finder = SpectrumPeaks(SCALE)
    assert near(finder.find(counts), 5.0).sum() == 200
    net = finder.find(counts, measured, 0.25)
    assert near(net, 5.0).sum() <= 2
    mine = near(net, 8.0)
    assert mine.sum() == 200
    assert 0.85 < ((net.area[mine] - 1500) / net.sigma[mine]).std() < 1.15


def test_the_variance_of_the_background_counts() -> None:
    blank = np.full(1024, 40.0)
    net = SpectrumPeaks(SCALE).find(drawn(blank + line(8.0, 1500), 200, 8), drawn(blank, 200, 9))
    mine = near(net, 8.0)
    assert mine.sum() == 200
    assert 0.88 < ((net.area[mine] - 1500) / net.sigma[mine]).std() < 1.12


def test_a_slope_is_no_part_of_a_peak_near_the_end() -> None:
    scale = EnergyScale(fwhm=10.0)
    counts = 3000.0 - 10 * np.arange(200) + line(8.5, 5000, scale, 200)
    peaks = SpectrumPeaks(scale).find([counts])
    assert peaks.area == pytest.approx([5000], rel=0.02)
    assert peaks.energy == pytest.approx([8.5], abs=0.5)


def test_of_two_within_a_width_the_higher_stays() -> None:
    scale = EnergyScale(fwhm=40.0)
    spectra = drawn(40 + line(150.5, 900, scale, 300), 400, 10)
    weights = np.array([_weights(scale, channel, 300) for channel in range(300)])
    ratios = spectra @ weights.T / np.sqrt(spectra @ (weights**2).T)
    peaks = SpectrumPeaks(scale).find(spectra)
    mine = np.abs(peaks.energy - 150.5) < 20
    highest = ratios[:, 130:171].argmax(axis=1) + 130
    doubled = [len(find_peaks(one[130:171], height=4)[0]) > 1 for one in ratios]
    assert sum(doubled) >= 5
    for row in np.flatnonzero(doubled):
        (middle,) = peaks.channel[mine & (peaks.spectrum == row)]
        assert abs(middle - highest[row]) <= 0.5


def test_the_most_significant_peaks_stay() -> None:
    spectra = drawn(CONTINUUM + sum(line(energy, area) for energy, area in LINES.items()), 50, 7)
    every, two = (SpectrumPeaks(SCALE, most=limit).find(spectra) for limit in (99, 2))
    expected = []
    for spectrum in range(50):
        mine = np.flatnonzero(every.spectrum == spectrum)
        expected += sorted(mine[np.argsort(-every.significance[mine])[:2]].tolist())
    np.testing.assert_array_equal(two.energy, every.energy[expected])
    assert two.spectrum.tolist() == sorted([*range(50), *range(50)])


def test_lines_are_matched_to_the_nearest_within_the_tolerance() -> None:
    scale = EnergyScale(fwhm=0.1)
    lines = KnownLines([5.0, 4.0, 4.0, 4.08], ["C", "B", "A", "D"], scale, tolerance=0.5)
    names, energies = lines.match(np.array([3.9499, 3.96, 4.03, 4.041, 4.2, 5.05, 99.0]))
    assert names == [None, "A", "A", "D", None, "C", None]
    np.testing.assert_array_equal(energies, [np.nan, 4, 4, 4.08, np.nan, 5, np.nan])
    assert KnownLines([], [], scale).match(np.array([1.0]))[0] == [None]


def call(given: tuple[str, ...] = (), tables: tuple[str, ...] = (), **options: Any) -> CheckedCall:
    defaults = {one.name: one.default for one in FUNCTION.options}
    kinds = dict.fromkeys(("counts", *given), LISTS)
    return CheckedCall(kinds, {**defaults, "fwhm": 6.0, **options}, None, dict.fromkeys(tables, ()))


def table(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])


def look(worker: RowWorker, **columns: pa.Array) -> list[tuple[Any, ...]]:
    result = worker.look(columns)
    assert (np.diff(result.rows) >= 0).all()
    values = [column.to_pylist() for column in result.columns]
    return list(zip(result.rows.tolist(), *values, strict=True))


PEAK = (10 + line(40.5, 900, EnergyScale(fwhm=6.0), 80)).round().tolist()


def test_rows_that_are_no_spectra_have_no_peaks_and_lengths_may_differ() -> None:
    worker = FUNCTION.row_worker(call(), {})
    bad = [
        None,
        [],
        [1.0],
        [*PEAK[:-1], None],
        [*PEAK[:-1], -1.0],
        [*PEAK[:-1], np.nan],
        [1e300] * 80,
    ]
    rows = [PEAK, *bad, PEAK[10:], [0.0] * 80, PEAK]
    peaks = look(worker, counts=pa.array(rows, LISTS))
    assert [row[0] for row in peaks] == [0, 8, 10]
    assert [row[1] for row in peaks] == pytest.approx([40.0, 30.0, 40.0], abs=0.01)
    assert [row[2] - row[1] for row in peaks] == [0.5] * 3
    assert peaks[0][3] == pytest.approx(900, rel=0.02)
    assert peaks[0][6:] == (None, None)
    assert look(worker, counts=pa.array([None, None], LISTS)) == []
    assert look(worker, counts=pa.array([], LISTS)) == []


def test_peaks_have_the_names_of_lines() -> None:
    lines = table(pa.array([41.0, 60.0, None, 40.0]), pa.array(["Fe", "Al", "Si", None]))
    (peak,) = look(
        FUNCTION.row_worker(call(tables=("lines",)), {"lines": lines}),
        counts=pa.array([PEAK], LISTS),
    )
    assert peak[6:] == ("Fe", 41.0)


def test_backgrounds_come_from_a_column_or_from_a_table() -> None:
    flat = [10.0] * 80
    counts = pa.array([PEAK, PEAK, PEAK, flat, PEAK[:60]], LISTS)
    background = pa.array([flat, PEAK, None, flat, flat], LISTS)
    by_column = FUNCTION.row_worker(call(("background", "scale")), {})
    scale = pa.array([1.0, 1.0, 1.0, None, 1.0])
    assert [row[0] for row in look(by_column, counts=counts, background=background)] == [0]
    peaks = look(by_column, counts=counts, background=background, scale=scale)
    assert [row[0] for row in peaks] == [0]
    blank = table(pa.array([PEAK, PEAK], LISTS), pa.array([5.0, 5.0]))
    by_table = FUNCTION.row_worker(call(("live",), ("blank",)), {"blank": blank})
    live = pa.array([5.0, 0.5, None, 0.01, 0.1])
    assert [row[0] for row in look(by_table, counts=counts, live=live)] == [1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 7.0, 900.0, 2.0**53, 0.5, 1e-300]), max_size=40),
        max_size=6,
    ),
    st.sampled_from([0.01, 1.0, 4.0, 1000.0]),
    st.integers(1, 5),
)
def test_any_counts_have_peaks_or_none_and_each_row_by_itself(
    rows: list[list[float]], fwhm: float, step: int
) -> None:
    worker = FUNCTION.row_worker(call(fwhm=fwhm, significance=1.0), {})
    at_once = look(worker, counts=pa.array(rows, LISTS))
    for _, channel, _, area, sigma, significance, *_ in at_once:
        assert sigma > 0
        assert np.isfinite([channel, area, sigma, significance]).all()
    parts: list[tuple[Any, ...]] = []
    for begin in range(0, len(rows), step):
        part = look(worker, counts=pa.array(rows[begin : begin + step], LISTS))
        parts += [(begin + row, *rest) for row, *rest in part]
    assert parts == at_once


@pytest.mark.parametrize(
    ("given", "tables", "options", "message"),
    [
        ((), (), {"fwhm": 0.0}, "fwhm must be more than 0, but is 0"),
        ((), (), {"channel_width": -1.0}, "channel_width must be more than 0, but is -1"),
        ((), (), {"fwhm_at": 0.0}, "fwhm_at must be more than 0, but is 0"),
        ((), (), {"fwhm_floor": 7.0}, "fwhm_floor must be from 0 to fwhm, but is 7"),
        (("background",), ("blank",), {}, "there is one background only"),
        ((), ("blank",), {}, "blank is given without live"),
        (("live",), (), {}, "live is given without blank"),
        (("scale",), (), {}, "scale is given without background"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    given: tuple[str, ...], tables: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(MiningError, match=message) as refusal:
        FUNCTION.results(call(given, tables, **options))
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


@pytest.mark.parametrize(
    ("counts", "live", "detail"),
    [
        ([], [], "no rows"),
        ([[1.0], [1.0, 2.0]], [1.0, 1.0], "one length"),
        ([[1.0]], [0.0], "above 0"),
    ],
)
def test_a_blank_that_cannot_be_used_is_refused(counts: Any, live: Any, detail: str) -> None:
    blank = table(pa.array(counts, LISTS), pa.array(live, pa.float64()))
    with pytest.raises(MiningError, match=f"(?s)the blank spectrum cannot be used.*{detail}"):
        FUNCTION.row_worker(call(("live",), ("blank",)), {"blank": blank})


def test_the_columns_are_those_that_were_announced() -> None:
    announced = find_function("PEAKS").results(call())
    for rows in ([], [PEAK], [None]):
        result = FUNCTION.row_worker(call(), {}).look({"counts": pa.array(rows, LISTS)})
        assert [column.type for column in result.columns] == [one.kind for one in announced]
