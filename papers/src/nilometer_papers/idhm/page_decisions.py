"""The last boxes that were decided, and how long that took."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from nilometer.server.console.drawing import Shape, shape, shortened, table
from nilometer.server.console.wording import state_words
from nilometer_papers.idhm.page_belt import KINDS, percent
from nilometer_papers.idhm.page_news import Verdict
from nilometer_papers.idhm.page_state import Summary

_ROWS: Final = 12
_HEADINGS: Final = ("Box", "Verdict", "Content", "Confidence", "Time to decision", "Lines")


def summary_figures(decisions: Sequence[Verdict]) -> Shape:
    """The last boxes, counted."""
    summary = Summary.of(decisions)
    mean = "—" if summary.mean_exposure is None else f"{summary.mean_exposure:.1f} s"
    figures = (
        ("decided", str(summary.decided)),
        ("safe", str(summary.decided - summary.suspect)),
        ("suspect", str(summary.suspect)),
        ("mean time to decision", mean),
    )
    parts = (shape("div", shape("b", value), shape("span", name)) for name, value in figures)
    return shape("div", *parts, class_="nm-figures")


def last_decision(decisions: Sequence[Verdict]) -> Shape:
    """The last decision as a sentence, read out when it changes."""
    if not decisions:
        return shape("p", class_="idhm-said", role="status")
    verdict = decisions[-1]
    sentence = f"Box {verdict.box} is {verdict.state}"
    if verdict.family is not None:
        sentence += f": {verdict.content}, {percent(verdict.confidence)} sure"
    if verdict.exposure is not None:
        sentence += f", after {verdict.exposure:.1f} s"
    return shape("p", sentence, class_=f"idhm-said {KINDS[verdict.state]}", role="status")


def decisions_table(decisions: Sequence[Verdict]) -> Shape:
    """The last decisions, newest first."""
    title = shape("h2", "Decisions", class_="nm-title")
    if not decisions:
        waiting = "No box is decided yet: that takes some bursts."
        return shape("div", title, shape("p", waiting, class_="nm-soft"))
    rows = (_row(one) for one in islice(reversed(decisions), _ROWS))
    return shape("div", title, table(_HEADINGS, rows))


def _row(verdict: Verdict) -> tuple[Shape | str, ...]:
    return (
        str(verdict.box),
        state_words(KINDS[verdict.state], str(verdict.state)),
        verdict.content,
        percent(verdict.confidence),
        "—" if verdict.exposure is None else f"{verdict.exposure:.1f} s",
        shortened(verdict.lines or "—", 60),
    )
