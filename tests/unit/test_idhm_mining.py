"""What PERIODS, PATTERNS and MATCHES find in boxes: by counts, with fixed seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nilometer_papers.experiments.experiment import Profile, Row, Setting
from nilometer_papers.experiments.idhm.material_names import (
    CLASSIFY,
    NET,
    NOTHING,
    RAW,
    Namers,
    Point,
    make_namers,
    name_all,
)
from nilometer_papers.experiments.idhm.mining import CLAIMS
from nilometer_papers.experiments.idhm.pulses import (
    NEAR,
    OFF,
    PULSED,
    STEADY,
    Series,
    draw_series,
    judge_patterns,
    judge_periods,
)
from nilometer_papers.idhm.boxes import Box
from nilometer_papers.idhm.materials import MATERIALS, Family

SMOKE = Setting(Profile.SMOKE)


@pytest.fixture(scope="module")
def namers() -> Namers:
    return make_namers("NaI", 60)


def drawn(source: str) -> list[Series]:
    return draw_series(SMOKE, "NaI", "distance", NEAR, 800, source)


def test_a_pulsed_source_is_found_with_its_period_and_its_pulse() -> None:
    pulsed = drawn(PULSED)
    assert len({one.period for one in pulsed}) > 1
    assert [judge_periods(one) for one in pulsed] == [(True, True)] * 8
    assert [judge_patterns(one) for one in pulsed] == [(True, True)] * 8


@pytest.mark.parametrize("source", [STEADY, OFF])
def test_nothing_is_found_where_there_are_no_pulses(source: str) -> None:
    for one in drawn(source):
        assert judge_periods(one) == judge_patterns(one) == (False, False)


def test_a_pulse_elsewhere_in_the_period_is_not_right() -> None:
    (one, *_) = drawn(PULSED)
    moved = tuple(sorted((step + 1) % one.period for step in one.on))
    assert judge_patterns(Series(one.counts, one.period, moved)) == (False, True)


def test_a_pulsed_source_gives_as_many_counts_as_a_steady_one() -> None:
    pulsed, steady, off = (
        sum(int(s.counts.sum()) for s in drawn(x)) for x in (PULSED, STEADY, OFF)
    )
    assert pulsed == pytest.approx(steady, rel=0.02)
    assert off < steady / 1.5


def test_every_template_names_itself(namers: Namers) -> None:
    expected = [
        one if MATERIALS[one].family is not Family.NONE else NOTHING for one in namers.names
    ]
    nothing = np.zeros(namers.templates.shape[1])
    assert namers.by_similarity(namers.templates, nothing) == expected


def test_what_is_farther_away_has_the_same_shape(namers: Namers) -> None:
    names = ("TNT", "cocaine", "mustard")
    boxes = [Box(number, ((name, 1.0),)) for number, name in enumerate(names)]
    for distance in (30, 60):
        assert name_all(namers, boxes, Point(distance=distance), 1)[NET] == list(names)


def test_a_box_is_named_in_every_way_and_again_the_same(namers: Namers) -> None:
    boxes = [Box(0, (("TNT", 2.0), ("water", 0.1))), Box(1, (("water", 0.3),))]
    named = name_all(namers, boxes, Point(), 1)
    assert list(named) == [CLASSIFY, NET, RAW]
    assert {way: len(names) for way, names in named.items()} == {CLASSIFY: 2, NET: 2, RAW: 2}
    assert named == name_all(namers, boxes, Point(), 1)
    assert named[CLASSIFY][1] == named[NET][1] == NOTHING


def named(at: int, **right: float) -> list[Row]:
    ways = {"classify": CLASSIFY, "net": NET, "raw": RAW}
    return [
        {"part": "names", "way": ways[way], "curve": "exposure", "at": at, "right": share}
        for way, share in right.items()
    ]


@pytest.mark.parametrize(("late", "expected"), [(0.51, True), (0.5, False)])
def test_one_way_has_to_name_more_at_every_point(late: float, expected: bool) -> None:
    (claim,) = (one for one in CLAIMS if one.text.startswith("ours: CLASSIFY names"))
    rows: Sequence[Row] = [
        *named(8, classify=0.7, net=0.5, raw=0.1),
        *named(120, classify=late, net=0.1, raw=0.5),
    ]
    assert claim.check(rows).holds == expected
