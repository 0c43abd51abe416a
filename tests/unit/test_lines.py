"""LINES: against the conditions of the most likely answer, written apart, and over noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.mining.line_fit import LineFit
from nilometer.mining.lines import FUNCTION
from nilometer.mining.registry import find_function
from nilometer.mining.table_function import CheckedCall, MiningError, RowWorker

CHANNELS = 60
PLACES = np.arange(CHANNELS)


def peak(at: float, width: float = 2.0) -> np.ndarray:
    return np.exp(-(((PLACES - at) / width) ** 2)) + 0.05 * (at > PLACES)


TEMPLATES = np.stack([10 * peak(12), 20 * peak(30), 5 * peak(34) + 2 * peak(8)])
BACKGROUND = 3 * np.exp(-PLACES / 20)
NAMES = ("b", "c", "a")
BY_NAME = [2, 0, 1]
RESULTS = [column.name for column in FUNCTION.results(CheckedCall({}, {}))]
OPTIONS = {option.name: option.default for option in FUNCTION.options}


def arrays(rows: Any) -> pa.Array:
    return pa.array([None if row is None else list(row) for row in rows], pa.list_(pa.float64()))


def tables(order: Any = (0, 1, 2), weights: Any = None) -> dict[str, pa.RecordBatch]:
    columns = {
        "c0": pa.array([NAMES[one] for one in order]),
        "c1": arrays([TEMPLATES[one] for one in order]),
    }
    if weights is not None:
        columns["c2"] = pa.array([weights[one] for one in order], pa.float64())
    return {
        "templates": pa.RecordBatch.from_pydict(columns),
        "background": pa.RecordBatch.from_pydict({"c0": arrays([BACKGROUND])}),
    }


def worker(given: dict[str, pa.RecordBatch] | None = None, **options: Any) -> RowWorker:
    return FUNCTION.row_worker(CheckedCall({}, {**OPTIONS, **options}), given or tables())


def look(one: RowWorker, counts: Any, live: Any = None) -> list[dict[str, Any]]:
    columns = {"counts": arrays(counts)}
    if live is not None:
        columns["live"] = pa.array(live, pa.float64())
    result = one.look(columns)
    assert result.rows.tolist() == list(range(len(columns["counts"])))
    return pa.table(list(result.columns), RESULTS).to_pylist()


def likelihood_rises_by(counts: np.ndarray, shapes: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """The slopes of the likelihood of Poisson counts, to what a slope of chance would be."""
    slopes = np.zeros(len(shapes))
    for place, shape in enumerate(shapes):
        expected = sum(a * s for a, s in zip(amounts, shapes, strict=True))
        slopes[place] = sum(
            s * (n / m - 1) for s, n, m in zip(shape, counts, expected, strict=True)
        )
        slopes[place] /= np.sqrt(sum(s * s / m for s, m in zip(shape, expected, strict=True)))
    return slopes


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0.0, 0.3, 2.0, 40.0]), min_size=3, max_size=3),
    st.sampled_from([1.0, 30.0]),
    st.integers(0, 1000),
)
def test_the_answer_is_the_most_likely_one(amounts: list[float], live: float, seed: int) -> None:
    """At the maximum the likelihood rises for no amount, and falls for none that is there.

    Four rounds come near to it: within a quarter of a standard deviation.
    """
    shapes = np.concatenate([TEMPLATES, [BACKGROUND]])
    counts = np.random.default_rng(seed).poisson(live * (np.array([*amounts, 1.0]) @ shapes))
    fit = LineFit(TEMPLATES, BACKGROUND).fit([counts])
    fitted = np.append(fit.amounts[0], fit.background[0])
    assert (fitted >= 0).all()
    expected = fitted @ shapes
    if expected.min() < 0.1:
        return
    slopes = likelihood_rises_by(counts, shapes, fitted)
    assert (slopes <= 0.25).all()
    assert (slopes[fitted > 1e-9] >= -0.25).all()


def test_sigmas_are_what_amounts_vary_by() -> None:
    truth, live = np.array([4.0, 2.0, 6.0]), 10.0
    counts = np.random.default_rng(3).poisson(
        live * (truth @ TEMPLATES + BACKGROUND), (400, CHANNELS)
    )
    fit = LineFit(TEMPLATES, BACKGROUND).fit(counts, np.full(400, live))
    pulls = (fit.amounts - truth) / fit.sigmas
    assert np.abs(pulls.mean(axis=0)).max() < 0.2
    assert pulls.std(axis=0) == pytest.approx(np.ones(3), abs=0.12)
    assert fit.chi2.mean() == pytest.approx(1, abs=0.05)
    assert fit.background.mean() == pytest.approx(1, abs=0.05)
    amounts = np.concatenate([fit.amounts, fit.background[:, None]], axis=1)
    explained = live * (amounts @ np.concatenate([TEMPLATES, [BACKGROUND]]))
    assert fit.fitted == pytest.approx(explained)


def test_results_are_in_the_order_of_names_whatever_the_order_of_the_table() -> None:
    counts = [np.round(100 * (TEMPLATES[1] + BACKGROUND))]
    (one,), (other,) = look(worker(), counts), look(worker(tables((2, 0, 1))), counts)
    assert one == other
    assert np.argmax(one["intensities"]) == BY_NAME.index(1)
    assert one["lines"] == "c"
    assert one["significance"] == max(
        a / s for a, s in zip(one["intensities"], one["sigmas"], strict=True)
    )


def test_the_pattern_has_weights_and_a_floor() -> None:
    counts = [np.round(50 * (TEMPLATES[0] + BACKGROUND))]
    (one,) = look(worker(tables(weights=(2.0, 1.0, 0.0)), floor=3.0), counts)
    assert len(one["intensities"]) == len(one["sigmas"]) == len(one["shares"]) == 3
    amounts, sigmas = np.array(one["intensities"]), np.array(one["sigmas"])
    floored = np.log(amounts + 3 * sigmas)
    assert one["pattern"] == pytest.approx([2 * floored[1], floored[2]])
    assert sum(one["shares"]) == pytest.approx(1)


def test_amounts_are_for_a_unit_of_live_time() -> None:
    truth = 7 * TEMPLATES[0] + BACKGROUND
    short, long = look(worker(), [np.round(100 * truth), np.round(900 * truth)], [100.0, 900.0])
    assert short["intensities"] == pytest.approx(long["intensities"], abs=0.02)
    assert np.array(short["sigmas"]) == pytest.approx(3 * np.array(long["sigmas"]), rel=0.05)


def test_rows_that_cannot_be_used_have_nulls() -> None:
    good = np.round(20 * TEMPLATES[0])
    bad = [None, good[:-1], -good, [None, *good[1:]], [np.nan, *good[1:]]]
    rows = look(worker(), [good, *bad, good], [1.0] * 7)
    assert rows[0] == rows[6]
    assert rows[0]["chi2"] is not None
    assert all(value is None for row in rows[1:6] for value in row.values())
    lives = look(worker(), [good] * 4, [1.0, 0.0, None, -1.0])
    assert [row["chi2"] is None for row in lives] == [False, True, True, True]
    assert look(worker(), []) == []
    assert look(worker(), [np.zeros(CHANNELS)])[0]["lines"] == ""


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(0, 12))
def test_rows_are_looked_at_each_by_itself(count: int, cut: int) -> None:
    counts = np.random.default_rng(count).poisson(TEMPLATES[1] + BACKGROUND, (count, CHANNELS))
    one = worker()
    cut = min(cut, count)
    assert look(one, counts) == look(worker(), counts[:cut]) + look(one, counts[cut:])


def broken(**columns: Any) -> dict[str, pa.RecordBatch]:
    given = tables()["templates"].to_pydict() | columns
    types = {"c1": pa.list_(pa.float64()), "c2": pa.float64()}
    batch = {name: pa.array(values, types.get(name)) for name, values in given.items()}
    return {**tables(), "templates": pa.RecordBatch.from_pydict(batch)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**tables(), "templates": tables()["templates"].slice(0, 0)}, "there are no templates"),
        (broken(c0=["a", "a", "b"]), "each template needs a name of its own"),
        (broken(c0=["a", None, "b"]), "each template needs a name of its own"),
        (broken(c1=[[1.0, 2.0], [1.0, 0.0], [3.0]]), "the known spectra do not fit together"),
        (broken(c1=[[0.0] * CHANNELS] * 3), "a template has no counts"),
        (broken(c1=[BACKGROUND, *TEMPLATES[1:]]), "the templates cannot be distinguished"),
        (broken(c2=[1.0, None, 0.0]), "a template has a weight that cannot be used"),
        (broken(c2=[0.0, 0.0, 0.0]), "a template has a weight that cannot be used"),
        (
            {**tables(), "background": pa.RecordBatch.from_pydict({"c0": arrays([[1.0]])})},
            "the known spectra do not fit together",
        ),
    ],
)
def test_what_is_wrong_with_tables_is_said(given: Any, message: str) -> None:
    with pytest.raises(MiningError) as caught:
        worker(given)
    assert caught.value.message == message
    assert caught.value.argument in ("templates", "background")


def test_without_a_background_and_found_by_name() -> None:
    only = {"templates": tables()["templates"]}
    (one,) = look(worker(only), [100 * TEMPLATES[2]])
    assert one["background"] == 0
    assert one["intensities"] == pytest.approx([100, 0, 0], abs=0.01)
    assert find_function("LINES") is FUNCTION
