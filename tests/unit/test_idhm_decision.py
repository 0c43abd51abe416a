"""The decision on boxes: in SQL, over arrays, and with limits chosen in trials."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nilometer_papers.experiments.idhm.choose_limits import FALSE_ALARMS, choose_limits
from nilometer_papers.experiments.idhm.looks import Looks
from nilometer_papers.idhm.boxes import Box
from nilometer_papers.idhm.decision import SUSPICION, Limits, suspicions

duckdb = pytest.importorskip("duckdb")

CLASSES = [
    ("none", 1.0, None, 0.0),
    ("none", 0.7, "agent", 0.2),
    ("agent", 0.6, "none", 0.4),
    ("agent", 0.5, "narcotic", 0.3),
    ("explosive", 1.0, None, 0.0),
    (None, None, None, None),
]


def test_the_suspicion_in_sql_is_that_over_arrays() -> None:
    rows = CLASSES[:-1]
    first, confidence, second, second_confidence = zip(*rows, strict=True)
    over_arrays = suspicions(
        np.array(first, object),
        np.array(confidence),
        np.array(second, object),
        np.array(second_confidence),
    )
    assert over_arrays == pytest.approx([0.0, 0.3, 0.6, 0.8, 1.0])
    values = ", ".join("(" + ", ".join(_literal(one) for one in row) + ")" for row in rows)
    columns = "T(class, confidence, second, second_confidence)"
    in_sql = duckdb.sql(f"SELECT {SUSPICION} FROM (VALUES {values}) AS {columns}").fetchall()
    assert [float(one) for (one,) in in_sql] == pytest.approx(over_arrays)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_the_verdict_in_sql_is_that_over_arrays() -> None:
    limits = Limits(sure=0.9, clear=0.1, at_last=0.5, clear_exposure=30.0)
    grid = list(
        product(
            [0.0, 0.1, 0.11, 0.49, 0.5, 0.89, 0.9, 1.0, None],
            [4.0, 8.0, 60.0, 119.9, 120.0, 130.0],
            [4.9, 5.0, 80.0],
        )
    )
    suspicion = np.array([np.nan if one[0] is None else one[0] for one in grid])
    exposure, significance = (np.array([one[place] for one in grid]) for place in (1, 2))
    over_arrays = limits.verdicts(suspicion, exposure, significance)
    values = ", ".join("(" + ", ".join(_literal(one) for one in row) + ")" for row in grid)
    in_sql = duckdb.sql(
        f"SELECT {limits.sql()} FROM (VALUES {values}) AS T(suspicion, exposure, significance)"
    ).fetchall()
    assert [one for (one,) in in_sql] == over_arrays.tolist()
    assert set(over_arrays) == {"safe", "suspect", "more data"}


def seen(hazardous: list[bool], suspicion: np.ndarray) -> Looks:
    boxes = [Box(n, (("TNT" if bad else "water", 1.0),)) for n, bad in enumerate(hazardous)]
    return Looks(boxes, np.array([40.0, 80.0, 120.0]), suspicion, np.full_like(suspicion, 50.0))


def test_the_first_decision_counts() -> None:
    looks = seen(
        [True, False, True], np.array([[0.5, 0.0, 1.0], [0.95, 1.0, 0.0], [0.0, 1.0, 0.0]])
    )
    suspect, seconds = looks.decided(Limits(sure=0.9, clear=0.1, at_last=0.5))
    assert suspect.tolist() == [True, False, True]
    assert seconds.tolist() == [80.0, 40.0, 40.0]


def test_limits_keep_to_the_false_alarms_that_are_allowed() -> None:
    dice = np.random.default_rng(1)
    hazardous = [number % 2 == 0 for number in range(2000)]
    centre = np.where(hazardous, 0.85, 0.15)
    suspicion = np.clip(centre + dice.normal(0, 0.2, (3, 2000)), 0, 1)
    looks = seen(hazardous, suspicion)
    limits = choose_limits(looks)
    harmless = ~looks.hazardous
    at_last = looks.suspect_at(limits, -1)[harmless].mean()
    assert at_last == pytest.approx(FALSE_ALARMS, abs=0.002)
    suspect, seconds = looks.decided(limits)
    assert suspect[harmless].mean() <= FALSE_ALARMS + 0.005
    assert seconds.mean() < 120


def test_limits_where_boxes_cannot_be_told_apart() -> None:
    """Everything as suspicious as can be: no limit keeps to false alarms, so nothing is suspect."""
    looks = seen([True, False] * 50, np.ones((3, 100)))
    assert not looks.decided(choose_limits(looks))[0].any()
