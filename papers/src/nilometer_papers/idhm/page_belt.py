"""The belt as a drawing: boxes that wait, are before the detectors, or have passed them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nilometer.server.console.drawing import Shape, shape, shortened, svg
from nilometer.server.console.wording import state_mark, state_words
from nilometer_papers.idhm.belt import Place
from nilometer_papers.idhm.page_news import BoxState
from nilometer_papers.idhm.page_state import BeltState, BoxView, DetectorView

KINDS: Final = {
    BoxState.WAITING: "idle",
    BoxState.EXPOSED: "busy",
    BoxState.MORE_DATA: "warn",
    BoxState.SAFE: "good",
    BoxState.SUSPECT: "bad",
}
"""The mark and the colour of each state."""
_WAITING: Final = 3
_LEFT: Final = 6
_STEP: Final = 86.0
_APART: Final = 152.0
"""The distance between two detectors."""
_EDGE: Final = 18.0
_HIGH: Final = 366.0
_LAMP: Final = 66.0
"""Where a detector ends, and its field of view begins."""
_BOX: Final = (66.0, 46.0)
_CLEARED: Final = 112.0
"""The top of a box that goes straight on,"""
_DIVERTED: Final = 254.0
"""and of one that is diverted."""


def draw_belt(state: BeltState) -> Shape:
    """The whole drawing; every box and detector says more when pointed at or focused."""
    detectors = state.in_order
    before = _EDGE + _WAITING * _STEP
    after = before + max(2, len(detectors)) * _APART
    width = after + _LEFT * _STEP + _EDGE
    middle = (before + after) / 2
    first = middle - (len(detectors) - 1) * _APART / 2
    lamps = [(one, first + i * _APART) for i, one in enumerate(detectors)]
    drawn = [
        *_headings(before, after),
        *(_beam(x, middle) for _, x in lamps if state.at(Place.EXPOSED)),
        *_belts(middle, after, width),
        *(_detector(one, x) for one, x in lamps),
        *_boxes(state, before, middle, after),
    ]
    return svg(width, _HIGH, "boxes on the belt", drawn)


def legend() -> Shape:
    """What the marks mean."""
    words = {BoxState.EXPOSED: "exposed to neutrons", BoxState.MORE_DATA: "more data needed"}
    states = (state_words(kind, words.get(one, str(one))) for one, kind in KINDS.items())
    return shape("p", *states, class_="nm-legend")


def box_note(box: BoxView) -> str:
    """A box in words."""
    description = f"Box {box.box}: {box.state}"
    if box.verdict is not None and box.verdict.family is not None:
        description += f", {box.verdict.content} ({percent(box.verdict.confidence)} sure)"
    if box.exposure:
        description += f"; exposed for {box.exposure:.1f} s"
    return description


def percent(share: float | None) -> str:
    """A confidence, without digits that say nothing.

    >>> percent(0.934), percent(None)
    ('93 %', '—')
    """
    return "—" if share is None else f"{100 * share:.0f} %"


def _headings(before: float, after: float) -> Iterator[Shape]:
    places = (
        ("Waiting", _EDGE, 18.0),
        ("Detectors", before + 4, 18.0),
        ("Cleared", after, 18.0),
        ("Diverted, to be opened", after, _DIVERTED - 22),
    )
    for name, x, y in places:
        yield shape("text", name, x=x, y=y, class_="heading")


def _belts(middle: float, after: float, width: float) -> Iterator[Shape]:
    """The belt, and the one that takes suspect boxes away."""
    upper, lower = _CLEARED + _BOX[1] + 13, _DIVERTED + _BOX[1] + 13
    turn = (
        f"M{middle:g},{upper:g} C{after - 40:g},{upper:g} {middle:g},{lower:g} {after:g},{lower:g}"
    )
    for part in ("turn edge", "turn"):
        yield shape("path", d=turn, class_=part, aria_hidden="true")
    yield _belt(6, width - 6, upper)
    yield _belt(after - 16, width - 6, lower)


def _belt(start: float, end: float, y: float) -> Shape:
    """A band over rollers."""
    rollers = (
        shape("circle", cx=x, cy=y, r=7, class_="roller")
        for x in range(int(start) + 22, int(end) - 14, 34)
    )
    band = shape("rect", x=start, y=y - 13, width=end - start, height=26, rx=13, class_="band")
    moving = shape("line", x1=start + 12, x2=end - 12, y1=y - 13, y2=y - 13, class_="moving")
    return shape("g", band, *rollers, moving, class_="strip", aria_hidden="true")


def _beam(x: float, middle: float) -> Shape:
    """The field of view of a detector."""
    half = _BOX[0] / 2
    above = f"{x - 13:g},{_LAMP:g} {x + 13:g},{_LAMP:g}"
    below = f"{middle + half:g},{_CLEARED:g} {middle - half:g},{_CLEARED:g}"
    return shape("polygon", points=f"{above} {below}", class_="beam", aria_hidden="true")


def _detector(detector: DetectorView, x: float) -> Shape:
    kind = f" · {detector.kind}" if detector.kind else ""
    spectrum = detector.spectrum
    note = f"Detector {detector.name}{kind}"
    if spectrum is not None:
        note += f": box {spectrum.box}, {spectrum.counts.sum():,.0f} counts".replace(",", " ")
        note += f" in {spectrum.exposure:.1f} s"
    return shape(
        "g",
        shape("rect", x=x - 66, y=28, width=132, height=_LAMP - 36, rx=8),
        shape("path", d=f"M{x - 13:g},{_LAMP - 8:g} h26 l-5,8 h-16 z", class_="nozzle"),
        shape("text", shortened(f"{detector.name}{kind}", 19), x=x, y=48, class_="title"),
        **_label_attributes(note, "item device"),
        key=f"detector {detector.name}",
    )


def _boxes(state: BeltState, before: float, middle: float, after: float) -> Iterator[Shape]:
    """Boxes by number, so that one that moves stays the same element."""
    where = [
        (box, before - (i + 0.5) * _STEP, _CLEARED)
        for i, box in enumerate(state.at(Place.WAITING)[:_WAITING])
    ]
    where += [(box, middle, _CLEARED) for box in state.at(Place.EXPOSED)]
    for place, top in ((Place.CLEARED, _CLEARED), (Place.DIVERTED, _DIVERTED)):
        left = enumerate(state.at(place)[:_LEFT])
        where += [(box, after + (i + 0.5) * _STEP, top) for i, box in left]
    for box, x, top in sorted(where, key=lambda one: one[0].box):
        yield _box(box, x, top)


def _box(box: BoxView, x: float, top: float) -> Shape:
    width, height = _BOX
    left, kind = -width / 2, KINDS[box.state]
    content = ""
    if box.verdict is not None and box.state is BoxState.SUSPECT:
        content = box.verdict.family or ""
    return shape(
        "g",
        shape("path", d="M-11,0 v-6 q0,-5 5,-5 h12 q5,0 5,5 v6", class_="handle"),
        shape("rect", x=left, y=0, width=width, height=height, rx=8),
        shape("line", x1=left, x2=-left, y1=13, y2=13, class_="lid"),
        shape("text", f"{box.box}", x=0, y=34, class_="number"),
        state_mark(kind, -left - 10, 6.5, 3.5),
        shape("text", str(box.state), x=0, y=height + 44, class_=f"word {kind}"),
        shape("text", shortened(content, 13), x=0, y=height + 61, class_="word"),
        style=f"transform:translate({x:.1f}px,{top:g}px)",
        key=f"box {box.box}",
        **_label_attributes(box_note(box), f"item parcel {kind}"),
    )


def _label_attributes(note: str, classes: str) -> dict[str, str | float]:
    """What an element says when pointed at, focused, or read out."""
    return {"tabindex": 0, "role": "img", "aria_label": note, "data_note": note, "class_": classes}
