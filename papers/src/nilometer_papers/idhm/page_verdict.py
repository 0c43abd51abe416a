"""The verdict of one detector on the box before it."""

from __future__ import annotations

from nilometer.server.console.drawing import Shape, shape
from nilometer.server.console.wording import state_words
from nilometer_papers.idhm.page_belt import KINDS, percent
from nilometer_papers.idhm.page_news import BoxState, Verdict
from nilometer_papers.idhm.page_state import DetectorView


def detector_head(detector: DetectorView) -> Shape:
    """Which detector it is, which box is before it, and for how long."""
    name = shape("h2", f"Detector {detector.name}", class_="nm-title")
    chips = [shape("span", detector.kind, class_="nm-chip")] if detector.kind else []
    spectrum = detector.spectrum
    if spectrum is None:
        status = "waiting for its first burst"
    else:
        status = f"box {spectrum.box} · burst {spectrum.burst} · {spectrum.exposure:.1f} s exposed"
    return shape("div", name, *chips, shape("span", status, class_="nm-soft"), class_="nm-row")


def draw_verdict(verdict: Verdict | None) -> Shape:
    """The verdict with its class, its confidence, and the lines that support it."""
    if verdict is None:
        return shape("p", "No verdict on this box yet.", class_="nm-soft idhm-verdict")
    word = "more data needed" if verdict.state is BoxState.MORE_DATA else str(verdict.state)
    parts = [
        state_words(KINDS[verdict.state], word),
        shape("b", verdict.content),
        *([] if verdict.confidence is None else [_bar(verdict.confidence)]),
    ]
    if verdict.exposure is not None:
        parts.append(shape("span", f"after {verdict.exposure:.1f} s", class_="nm-soft"))
    if verdict.lines is not None:
        parts.append(shape("span", f"lines: {verdict.lines}", class_="nm-soft idhm-lines"))
    return shape("div", *parts, class_=f"nm-row idhm-verdict {KINDS[verdict.state]}")


def _bar(confidence: float) -> Shape:
    """A confidence, as a length and as a number."""
    share = min(max(confidence, 0.0), 1.0)
    full = shape("i", style=f"width:{100 * share:.0f}%")
    label = f"{percent(confidence)} sure"
    return shape("span", shape("span", full, class_="idhm-bar-of"), label, class_="idhm-sure")
