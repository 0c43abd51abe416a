"""What became of boxes, and how it is shown."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from nilometer_papers.idhm.boxes import Box
from nilometer_papers.idhm.display import show_outcome, show_score
from nilometer_papers.idhm.outcomes import Decided, Outcomes, Score

START = datetime(2026, 1, 1, tzinfo=UTC)
BOXES = {
    0: Box(0, (("water", 1.0),)),
    1: Box(1, (("cotton", 0.5), ("TNT", 1.5)), "thin lead"),
    2: Box(2, (("RDX", 2.0),)),
    3: Box(3, (("sugar", 2.0),)),
    4: Box(4, (("sugar", 2.0),)),
}


def move(box: int, place: str, seconds: float) -> dict[str, Any]:
    return {"box": box, "place": place, "at": START + timedelta(seconds=seconds)}


def verdict(box: int, said: str) -> dict[str, Any]:
    family = "explosive" if said == "suspect" else "none"
    return {"box": box, "verdict": said, "class": family, "confidence": 0.9}


def all_outcomes() -> Outcomes:
    outcomes = Outcomes()
    outcomes.take_moves([move(0, "exposed", 0), move(0, "cleared", 4), move(1, "waiting", 0)])
    outcomes.take_verdicts([verdict(0, "more data"), verdict(0, "safe")])
    outcomes.settle(BOXES.__getitem__)
    outcomes.take_moves([move(1, "exposed", 5), move(1, "diverted", 11)])
    outcomes.take_moves([move(2, "exposed", 12), move(2, "cleared", 14)])
    outcomes.take_moves([move(3, "exposed", 15), move(3, "diverted", 45), move(4, "exposed", 46)])
    outcomes.take_verdicts([verdict(0, "suspect"), verdict(1, "suspect"), verdict(1, "safe")])
    outcomes.take_verdicts([verdict(2, "safe"), verdict(3, "more data")])
    assert [one.box.number for one in outcomes.settle(BOXES.__getitem__)] == [1, 2, 3]
    assert outcomes.settle(BOXES.__getitem__) == []
    return outcomes


def test_boxes_are_judged_by_what_is_in_them() -> None:
    outcomes = all_outcomes().settled
    judged = [(one.decided, one.seconds, one.is_right) for one in outcomes]
    assert judged == [
        (Decided.SAFE, 4.0, True),
        (Decided.SUSPECT, 6.0, True),
        (Decided.SAFE, 2.0, False),
        (Decided.BY_HAND, 30.0, None),
    ]
    assert Score.of(outcomes) == Score(3, 2, 1, 0, 1, 4.0)
    assert Score.of([]).mean_seconds is None


def test_a_false_alarm_is_none_that_was_missed() -> None:
    outcomes = Outcomes()
    outcomes.take_moves([move(4, "exposed", 0), move(4, "diverted", 1)])
    outcomes.take_verdicts([verdict(4, "suspect")])
    score = Score.of(outcomes.settle(BOXES.__getitem__))
    assert (score.missed, score.false_alarms) == (0, 1)


def test_what_is_shown() -> None:
    console = Console(file=io.StringIO(), width=200)
    outcomes = all_outcomes().settled
    for outcome in outcomes:
        show_outcome(console, outcome)
    show_score(console, Score.of(outcomes))
    lines = [" ".join(one.split()) for one in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines == [
        "box 0 safe after 4.0 s right water",
        "box 1 suspect after 6.0 s explosive 90% right TNT 1.5 kg, cotton, in thin lead",
        "box 2 safe after 2.0 s wrong RDX 2.0 kg",
        "box 3 by hand after 30.0 s open sugar",
        "boxes decided 3",
        "right 2",
        "wrong 1 missed, 0 false alarms",
        "to be opened by hand 1",
        "mean time to decision 4.0 s",
    ]
