"""Rows of a client as lines: which columns, which series, in the order of time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot

from nilometer.client import Rows
from nilometer.errors import InputError, InstallationError

TIMES = pa.timestamp("us", "UTC")


@pytest.fixture(autouse=True)
def _drawn_in_memory() -> Iterator[None]:
    with mpl.rc_context():
        pyplot.switch_backend("Agg")
        yield
        pyplot.close("all")


def lines(axes: Any) -> dict[str, list[tuple[Any, float]]]:
    """The points of every line, by its label."""
    return {
        one.get_label(): list(zip(one.get_xdata(), one.get_ydata(), strict=True))
        for one in axes.get_lines()
    }


def at(micros: int) -> np.datetime64:
    return np.datetime64(micros, "us")


def test_a_line_per_column_of_numbers_in_the_order_of_time() -> None:
    table = pa.table(
        {
            "made": pa.array([9, 9, 9], TIMES),
            "n": [3, 1, 2],
            "d": [Decimal("3.5"), None, Decimal("2.5")],
            "b": [True, False, True],
            "_time": pa.array([30, 10, 20], TIMES),
            "_diff": [1, 1, 1],
        }
    )
    axes = Rows(table).plot()
    points = lines(axes)
    assert points["n"] == [(at(10), 1), (at(20), 2), (at(30), 3)]
    assert set(points) == {"n", "d"}
    assert np.isnan(points["d"][0][1])
    assert points["d"][1:] == [(at(20), 2.5), (at(30), 3.5)]
    assert axes.get_xlabel() == "_time (UTC)"
    axes.figure.canvas.draw()


def test_a_line_per_series() -> None:
    table = pa.table(
        {
            "room": ["a", None, "a", "b"],
            "day": [date(2026, 1, day) for day in (2, 1, 1, 5)],
            "v": [1.0, 2.0, 3.0, 4.0],
            "w": [0, 0, 0, 0],
        }
    )
    rows = Rows(table)
    axes = rows.plot(y="v")
    values = {label: [y for _, y in points] for label, points in lines(axes).items()}
    assert values == {"NULL": [2.0], "a": [3.0, 1.0], "b": [4.0]}
    assert (axes.get_ylabel(), axes.get_legend().get_title().get_text()) == ("v", "room")
    again = rows.plot("w", "v", per="room", ax=axes)
    assert again is axes
    assert len(axes.get_lines()) == 6
    assert set(lines(rows.plot())) == {f"{r}, {c}" for r in ("a", "b", "NULL") for c in "vw"}
    many = pa.table({"k": [str(n) for n in range(30)], "ts": pa.array(range(30), TIMES)})
    both = many.append_column("v", pa.array(range(30)))
    assert len(Rows(both).plot().get_lines()) == 1
    assert len(Rows(both).plot(per="k").get_lines()) == 30
    axes.figure.canvas.draw()


def test_what_cannot_be_drawn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(InputError, match="no column of times"):
        Rows(pa.table({"n": [1]})).plot()
    with pytest.raises(InputError, match="no column of numbers"):
        Rows(pa.table({"ts": [now]})).plot()
    for wrong in ({"x": "z"}, {"y": "z"}, {"per": "z"}):
        with pytest.raises(InputError, match="there is not exactly one column z"):
            Rows(pa.table({"ts": [now], "n": [1]})).plot(**wrong)
    with pytest.raises(InputError, match="column ts has no numbers"):
        Rows(pa.table({"ts": [now], "n": [1]})).plot(y=["n", "ts"])
    assert not pyplot.get_fignums()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        InstallationError, match=r"^plot\(\) needs matplotlib: pip install matplotlib$"
    ):
        Rows(pa.table({"ts": [now], "n": [1]})).plot()
