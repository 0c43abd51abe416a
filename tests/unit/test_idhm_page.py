"""What the page of the belt keeps and draws: the last news, bounded, and texts as texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.server.console.drawing import Shape
from nilometer_papers.idhm.belt import Belt, BeltSettings, Place
from nilometer_papers.idhm.page_belt import draw_belt
from nilometer_papers.idhm.page_decisions import decisions_table, last_decision, summary_figures
from nilometer_papers.idhm.page_news import BoxState, Peak, Spectrum, read_spectrum
from nilometer_papers.idhm.page_replay import Replay
from nilometer_papers.idhm.page_spectrum import Scale, draw_spectrum, thinned
from nilometer_papers.idhm.page_state import (
    MOST_BOXES,
    MOST_DECISIONS,
    MOST_DETECTORS,
    BeltState,
    Summary,
)
from nilometer_papers.idhm.page_verdict import detector_head, draw_verdict
from tests.drawn_shapes import shapes, texts

_EVIL = "<script>alert('x')</script>"
_SECOND = 1_000_000


def moves(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"box": [box for box, _ in pairs], "place": [place for _, place in pairs]})


def rows(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def spectra(detector: str, box: int, burst: int, counts: list[float] | None = None) -> pa.Table:
    return rows(
        detector=[detector],
        kind=["NaI"],
        box=[box],
        burst=[burst],
        exposure=[float(burst)],
        counts=[counts or [1.0, 2.0, 3.0]],
    )


def said(box: int, verdict: str | None, **more: Any) -> pa.Table:
    row = {"class": "none", "confidence": 0.9, **more}
    return pa.Table.from_pylist([{"box": box, "verdict": verdict, **row}])


def boxes(state: BeltState, place: Place) -> list[int]:
    return [one.box for one in state.at(place)]


def test_a_box_goes_its_way() -> None:
    state = BeltState()
    state.take_belt(moves((0, "exposed"), (1, "waiting"), (2, "waiting")))
    assert (boxes(state, Place.WAITING), boxes(state, Place.EXPOSED)) == ([1, 2], [0])
    state.take_verdicts(spectra("a", 0, 3))
    assert state.at(Place.EXPOSED)[0].exposure == 3.0
    state.take_verdicts(
        pa.Table.from_pylist([{"detector": "a", **one} for one in said(0, "more data").to_pylist()])
    )
    assert state.at(Place.EXPOSED)[0].state is BoxState.MORE_DATA
    state.take_fused(said(0, "suspect", **{"class": "explosive"}))
    assert state.at(Place.EXPOSED)[0].state is BoxState.SUSPECT
    state.take_belt(moves((0, "diverted"), (1, "exposed")))
    assert (boxes(state, Place.DIVERTED), boxes(state, Place.EXPOSED)) == ([0], [1])
    state.take_verdicts(spectra("a", 0, 4))  # what was measured before it went comes late
    assert boxes(state, Place.EXPOSED) == [1]
    assert state.decisions[0].exposure == 3.0


def test_without_news_of_the_belt_spectra_tell_where_boxes_are() -> None:
    state = BeltState()
    for box in range(4):
        state.take_verdicts(spectra("a", box, 1))
        state.take_verdicts(spectra("b", box, 1))
        state.take_fused(said(box, "suspect" if box == 1 else "safe"))
    assert boxes(state, Place.EXPOSED) == [3]
    assert boxes(state, Place.CLEARED) == [2, 0]
    assert boxes(state, Place.DIVERTED) == [1]


def test_a_box_is_decided_once_and_by_all_detectors() -> None:
    state = BeltState()
    state.take_verdicts(
        pa.Table.from_pylist([{"detector": "a", "box": 1, "verdict": "safe", "exposure": 2.0}])
    )
    assert state.decisions == []
    state.take_fused(said(1, "more data"))
    assert state.decisions == []
    state.take_fused(said(1, "suspect", exposure=4.0))
    state.take_fused(said(1, "safe", exposure=9.0))
    assert [(one.state, one.exposure) for one in state.decisions] == [(BoxState.SUSPECT, 4.0)]
    assert state.decisions[0].lines is None
    late = {"detector": "a", "box": 1, "verdict": "suspect", "lines": "N 5.11"}
    state.take_verdicts(pa.Table.from_pylist([late]))
    assert state.decisions[0].lines == "N 5.11"


def test_boxes_that_left_without_a_verdict_are_recognised_by_their_place() -> None:
    state = BeltState()
    state.take_belt(moves((1, "cleared"), (2, "diverted"), (3, "on the moon")))
    assert state.at(Place.CLEARED)[0].state is BoxState.SAFE
    assert state.at(Place.DIVERTED)[0].state is BoxState.MORE_DATA
    assert boxes(state, Place.WAITING) == []


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=60), st.randoms())
def test_the_belt_is_shown_as_it_is(way: list[tuple[int, bool]], random: Any) -> None:
    belt, now, state = Belt(0, BeltSettings(burst=_SECOND)), 0, BeltState()
    for box, (bursts, is_suspect) in enumerate(way):
        now += bursts * _SECOND + _SECOND // 2
        belt.recommend(box, Place.DIVERTED if is_suspect else Place.CLEARED, now)
        now += _SECOND
    belt.advance(now)
    moved = [(one.box, one.place.value) for one in belt.moves]
    true = dict(moved)
    for start in range(0, len(moved), 7):
        state.take_belt(moves(*moved[start : start + 7]))
        gone = [box for box, place in moved[: start + 7] if place in ("cleared", "diverted")]
        if gone:  # what was measured before a box went comes late
            state.take_verdicts(spectra("a", random.choice(gone), 1))
    for place in Place:
        shown = boxes(state, place)
        assert shown == sorted(shown, reverse=place in (Place.CLEARED, Place.DIVERTED))
        assert all(true[one] == place for one in shown)
    assert boxes(state, Place.EXPOSED) == [one for one in true if true[one] == "exposed"]


def test_a_box_that_is_long_gone_does_not_come_back() -> None:
    state = BeltState()
    for box in range(2 * MOST_BOXES):
        state.take_belt(moves((box, "exposed"), (box, "cleared")))
    state.take_verdicts(spectra("a", 3, 1))  # its place is forgotten, and no box is exposed
    assert boxes(state, Place.EXPOSED) == []


def test_nothing_grows() -> None:
    state = BeltState()
    for box in range(3 * MOST_DECISIONS):
        state.take_belt(moves((box, "exposed"), (box + 1, "waiting")))
        state.take_verdicts(spectra(f"d{box}", box, 1))
        state.take_fused(said(box, "safe"))
        energies = pa.Table.from_pylist(
            [{"detector": "d0", "box": box, "burst": 1, "energy": 1.0}] * 100
        )
        state.take_peaks(energies)
    assert len(state.detectors) == MOST_DETECTORS
    assert len(state.decisions) == MOST_DECISIONS
    assert sum(len(boxes(state, place)) for place in Place) <= MOST_BOXES
    assert len(state.detectors["d0"].peaks) <= 100
    drawn = list(shapes(draw_belt(state)))
    assert len(drawn) < 1000


@pytest.mark.parametrize(
    "odd",
    [
        {"box": None},
        {"detector": None},
        {"counts": None},
        {"counts": []},
        {"kind": None, "burst": None, "exposure": None},
        {"counts": [None, float("nan"), float("inf"), -4.0, 7.0]},
        {"exposure": float("nan")},
    ],
)
def test_odd_rows_do_no_harm(odd: dict[str, Any]) -> None:
    state = BeltState()
    good = spectra("a", 1, 1).to_pylist()[0]
    state.take_verdicts(pa.Table.from_pylist([{**good, **odd}]))
    draw_belt(state)
    for one in state.in_order:
        if one.spectrum is not None:
            assert np.isfinite(one.spectrum.counts).all()
            points = [
                shape.attributes.get("points", "")
                for scale in Scale
                for shape in shapes(draw_spectrum(one.spectrum, (), scale))
            ]
            assert not any("nan" in str(one) or "inf" in str(one) for one in points)


def test_peaks_and_verdicts_of_another_box_are_not_shown() -> None:
    state = BeltState()
    peak = {"detector": "a", "box": 1, "burst": 1, "energy": 5.11, "area": 9.0, "line": "N 5.11"}
    state.take_verdicts(spectra("a", 1, 1))
    state.take_peaks(pa.Table.from_pylist([peak, {**peak, "energy": 6.13, "line": None}]))
    state.take_verdicts(pa.Table.from_pylist([{"detector": "a", "box": 1, "verdict": "safe"}]))
    detector = state.in_order[0]
    assert [one.line for one in detector.shown_peaks] == ["N 5.11", None]
    state.take_peaks(pa.Table.from_pylist([{**peak, "burst": 2}]))  # the next burst's replace them
    assert len(detector.shown_peaks) == 1
    assert detector.shown_verdict is not None
    state.take_verdicts(spectra("a", 2, 1))
    assert detector.shown_peaks == ()
    assert detector.shown_verdict is None


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=3000), st.sampled_from(Scale))
def test_spectra_have_few_points_within_their_frame(counts: list[float], scale: Scale) -> None:
    given_counts = np.array(counts)
    assert len(thinned(given_counts)) <= 500
    assert thinned(given_counts).sum() == pytest.approx(given_counts.sum())
    drawn = draw_spectrum(Spectrum("NaI", 1, 1, 1.0, given_counts), (), scale)
    _, _, width, height = map(float, str(drawn.attributes["viewBox"]).split())
    line = next(one for one in shapes(drawn) if one.attributes.get("class") == "counted")
    for corner in str(line.attributes["points"]).split():
        x, y = map(float, corner.split(","))
        assert 0 <= x <= width + 0.1
        assert 0 <= y <= height


def test_the_matched_spectrum_is_drawn_over_the_measured_one() -> None:
    row = {"box": 1, "kind": "NaI", "exposure": 4.0, "counts": [1.0] * 1024}
    matched, plain, other = (
        read_spectrum({**row, "matched": given}) for given in ([2.0] * 1024, None, [2.0] * 7)
    )
    assert matched is not None
    assert plain is not None
    assert other is not None
    drawn = draw_spectrum(matched, (), Scale.ROOT)
    assert [one.attributes.get("class") for one in shapes(drawn)].count("match") == 1
    assert plain.matched is other.matched is None
    assert draw_spectrum(plain, (), Scale.ROOT) == draw_spectrum(other, (), Scale.ROOT)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 13), max_size=40))
def test_names_of_lines_do_not_overlap(energies: list[float]) -> None:
    peaks = [Peak(one, 10.0, 5.0, f"Xx {one:.2f}") for one in energies]
    drawn = draw_spectrum(Spectrum("NaI", 1, 1, 1.0, np.ones(1024)), peaks, Scale.ROOT)
    labels = [
        (float(one.attributes["x"]), float(one.attributes["y"]), 7.0 * len(texts(one)[0]) / 2)
        for mark in shapes(drawn)
        if mark.attributes.get("class") == "item matched"
        for one in mark.inside
        if isinstance(one, Shape) and one.tag == "text"
    ]
    for i, (x, y, half) in enumerate(labels):
        for other_x, other_y, other_half in labels[:i]:
            assert y != other_y or abs(x - other_x) >= half + other_half


def test_names_that_try_to_be_more_than_text() -> None:
    state = BeltState()
    row = spectra(_EVIL, 1, 1).to_pylist()[0]
    state.take_verdicts(pa.Table.from_pylist([{**row, "kind": _EVIL}]))
    peak = {"detector": _EVIL, "box": 1, "burst": 1, "energy": 5.0, "line": _EVIL}
    state.take_peaks(pa.Table.from_pylist([peak]))
    rows = said(1, "suspect", **{"class": _EVIL, "lines": _EVIL})
    state.take_verdicts(pa.Table.from_pylist([{"detector": _EVIL, **rows.to_pylist()[0]}]))
    state.take_fused(rows)
    detector = state.in_order[0]
    assert detector.spectrum is not None
    trees = [
        draw_belt(state),
        draw_spectrum(detector.spectrum, detector.shown_peaks, Scale.LOG),
        detector_head(detector),
        draw_verdict(detector.shown_verdict),
        decisions_table(state.decisions),
        last_decision(state.decisions),
        summary_figures(state.decisions),
    ]
    allowed = {"svg", "g", "rect", "line", "path", "polygon", "polyline", "circle", "text"}
    allowed |= {"div", "span", "p", "b", "i", "h2", "table", "thead", "tbody", "tr", "th", "td"}
    for tree in trees:
        for one in shapes(tree):
            assert one.tag in allowed
            assert _EVIL not in str(one.attributes.get("class", ""))
            assert _EVIL not in str(one.attributes.get("style", ""))
    assert _EVIL in "".join(texts(decisions_table(state.decisions)))


def test_states_are_shown_by_words_and_marks_too() -> None:
    state = BeltState()
    state.take_belt(moves((0, "cleared"), (1, "diverted"), (2, "exposed"), (3, "waiting")))
    state.take_fused(said(1, "suspect", **{"class": "agent"}))
    drawn = draw_belt(state)
    parcels = [one for one in shapes(drawn) if "parcel" in str(one.attributes.get("class"))]
    labels = {str(one.attributes["aria-label"]).split(";")[0] for one in parcels}
    assert labels == {
        "Box 0: safe",
        "Box 1: suspect, agent (90 % sure)",
        "Box 2: exposed",
        "Box 3: waiting",
    }
    assert {"safe", "suspect", "exposed", "waiting", "agent"} <= set(texts(drawn))
    marks = {
        str(one.attributes["class"])
        for one in shapes(drawn)
        if "mark" in str(one.attributes.get("class"))
    }
    assert marks == {"mark good", "mark bad", "mark busy", "mark idle"}


def test_the_last_decisions_are_counted() -> None:
    state = BeltState()
    assert Summary.of(state.decisions) == Summary(0, 0, None)
    for box, (verdict, exposure) in enumerate([("safe", 2.0), ("suspect", 4.0), ("safe", None)]):
        state.take_fused(said(box, verdict, exposure=exposure))
    assert Summary.of(state.decisions) == Summary(3, 1, 3.0)


def test_a_box_is_shown_again_burst_by_burst() -> None:
    said = {"kind": "NaI", "verdict": "more data", "counts": [1.0] * 8}
    verdicts = pa.Table.from_pylist(
        [
            {"detector": name, "box": 7, "burst": burst, "exposure": 4.0 * burst, **said}
            for burst in (3, 1, 2)
            for name in ("north", "south")
        ]
    )
    peaks = pa.Table.from_pylist(
        [{"detector": "north", "box": 7, "burst": 2, "energy": 5.11, "area": 9.0, "line": "N"}]
    )
    replay = Replay(7, verdicts, peaks)
    seen = []
    while replay.step():
        north, south = replay.state.in_order
        assert north.spectrum is not None
        assert south.spectrum is not None
        seen.append((north.spectrum.burst, south.spectrum.burst, len(north.shown_peaks)))
    assert seen == [(1, 1, 0), (2, 2, 1), (3, 3, 1)]
    assert replay.progress == "Box 7 once more: burst 3 of 3."
    gone = Replay(8, verdicts.slice(0, 0), peaks.slice(0, 0))
    assert not gone.step()
    assert gone.progress == "Nothing is kept of box 8 any more."
