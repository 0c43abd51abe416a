"""A spectrum as a drawing: counts over energy, what explains them, and the lines found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from nilometer.server.console.drawing import Shape, shape, shortened, svg
from nilometer.server.console.figures import count_text
from nilometer_papers.idhm.detector import TOP
from nilometer_papers.idhm.page_news import Counts, Peak, Spectrum

_WIDE, _HIGH = 540.0, 250.0
_LEFT, _RIGHT, _ROOF, _FLOOR = 58.0, 12.0, 64.0, 28.0
_POINTS: Final = 500
_UNIT: Final = 132.0
"""The words about the counts reach this far, in the first of three rows of labels."""
_LETTER: Final = 7.0
"""The approximate width of a letter of a label."""


class Scale(StrEnum):
    """How counts become heights; both leave small peaks visible beside large ones."""

    ROOT = "square root"
    LOG = "logarithm"

    def height(self, counts: Counts) -> Counts:
        return np.sqrt(counts) if self is Scale.ROOT else np.log1p(counts)

    def marks(self, highest: float) -> list[float]:
        """Easily readable numbers of counts, at heights that do not overlap.

        >>> Scale.ROOT.marks(900.0), Scale.LOG.marks(900.0)
        ([50.0, 200.0, 500.0], [1.0, 10.0, 100.0])
        """
        if self is Scale.LOG:
            return [10.0**power for power in range(int(np.log10(highest)) + 1)]
        return [
            _round(highest * share) for share in (1 / 16, 1 / 4, 9 / 16) if highest * share >= 1
        ]


def _round(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, … up to this value."""
    size = 10.0 ** int(np.log10(value))
    return size * max(one for one in (1, 2, 5) if one * size <= value)


@dataclass(frozen=True)
class _Axes:
    """The positions of energies and counts in the drawing."""

    scale: Scale
    highest: float
    width: float
    """The energy width of one point, in MeV."""

    def x(self, energies: Counts) -> Counts:
        return _LEFT + energies / TOP * (_WIDE - _LEFT - _RIGHT)

    def y(self, counts: Counts) -> Counts:
        shares = self.scale.height(counts) / self.scale.height(np.asarray(self.highest))
        return _HIGH - _FLOOR - shares * (_HIGH - _FLOOR - _ROOF)

    def path(self, counts: Counts) -> str:
        """The corners of a line through all counts."""
        xs = self.x((np.arange(len(counts), dtype=np.float64) + 0.5) * self.width)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, self.y(counts), strict=True))

    def at(self, energy: float, counts: float) -> tuple[float, float]:
        """The position of a point."""
        return float(self.x(np.asarray(energy))), float(self.y(np.asarray(counts)))


def draw_spectrum(
    spectrum: Spectrum, peaks: Sequence[Peak], scale: Scale, background: Counts | None = None
) -> Shape:
    """What was counted so far, what explains it, and its peaks.

    The background is what is expected without a box.
    """
    counts = thinned(spectrum.counts)
    spectra = {"background": background, "match": spectrum.matched}
    lines = {name: thinned(one) for name, one in spectra.items() if one is not None}
    highest = max(4.0, *(float(one.max()) for one in (counts, *lines.values())))
    axes = _Axes(scale, highest, _step(spectrum.counts) * TOP / len(spectrum.counts))
    floor = f"{_WIDE - _RIGHT:g},{_HIGH - _FLOOR:g} {_LEFT:g},{_HIGH - _FLOOR:g}"
    line = axes.path(counts)
    inside = [
        *_grid(axes),
        shape("polygon", points=f"{line} {floor}", class_="area"),
        shape("polyline", points=line, class_="counted"),
        *(shape("polyline", points=axes.path(one), class_=name) for name, one in lines.items()),
        *_markers(axes, counts, peaks),
    ]
    description = f"spectrum of box {spectrum.box}: {count_text(spectrum.counts.sum())} counts"
    drawn = svg(_WIDE, _HIGH, description, inside)
    return Shape(drawn.tag, {**drawn.attributes, "class": "nm-svg spectrum"}, drawn.inside)


def thinned(counts: Counts) -> Counts:
    """Neighbouring channels added up until the points are few enough.

    >>> thinned(np.ones(1024)).shape, thinned(np.ones(1024)).sum()
    ((342,), np.float64(1024.0))
    """
    return np.add.reduceat(counts, np.arange(0, len(counts), _step(counts)))


def _step(counts: Counts) -> int:
    """How many channels make up one point."""
    return -(-len(counts) // _POINTS)


def _grid(axes: _Axes) -> Iterator[Shape]:
    floor = _HIGH - _FLOOR
    for energy in range(0, int(TOP), 2):
        x, _ = axes.at(energy, 0)
        yield shape("line", x1=x, x2=x, y1=floor, y2=floor + 4, class_="tick")
        yield shape("text", str(energy), x=x, y=floor + 19, class_="axis")
    yield shape("text", f"{TOP:g} MeV", x=_WIDE - 4, y=floor + 19, class_="value")
    for value in axes.scale.marks(axes.highest):
        _, y = axes.at(0, value)
        yield shape("line", x1=_LEFT, x2=_WIDE - _RIGHT, y1=y, y2=y, class_="rule")
        yield shape("text", count_text(value), x=_LEFT - 8, y=y + 4, class_="value")
    yield shape("line", x1=_LEFT, x2=_WIDE - _RIGHT, y1=floor, y2=floor, class_="floor")
    yield shape("text", f"counts per {1000 * axes.width:.0f} keV", x=2, y=14, class_="soft")


def _markers(axes: _Axes, counts: Counts, peaks: Sequence[Peak]) -> Iterator[Shape]:
    """Peaks explained by a line are named, as far as there is room; others are only marked."""
    taken = [_UNIT, 0.0, 0.0]
    for peak in sorted(peaks, key=lambda one: one.energy):
        if not 0 <= peak.energy <= TOP:
            continue
        place = min(int(peak.energy / axes.width), len(counts) - 1)
        x, top = axes.at(peak.energy, float(counts[max(0, place - 1) : place + 2].max()))
        yield _marker(peak, x, top, _room(taken, x, peak.line))


def _room(taken: list[float], x: float, line: str | None) -> int | None:
    """The first row with room for a label, which it then occupies."""
    if line is None:
        return None
    half = len(shortened(line, 14)) * _LETTER / 2 + 4
    for row, until in enumerate(taken):
        if x - half >= until:
            taken[row] = x + half
            return row
    return None


def _marker(peak: Peak, x: float, top: float, row: int | None) -> Shape:
    name = peak.line or "no known line"
    note = (
        f"{name}: peak at {peak.energy:.2f} MeV, "
        f"{count_text(round(peak.area))} counts, {peak.significance:.1f} sigma"
    )
    attributes: dict[str, str | float] = {"aria_label": note, "data_note": note, "role": "img"}
    if peak.line is None:
        dot = shape("circle", cx=x, cy=top - 5, r=3)
        return shape("g", dot, tabindex=0, class_="item unmatched", **attributes)
    start = _ROOF - 6 if row is None else 26.0 + 16 * row
    inside = [shape("line", x1=x, x2=x, y1=start, y2=max(start, top - 2))]
    if row is not None:
        inside.append(shape("text", shortened(peak.line, 14), x=x, y=start - 4))
    return shape("g", *inside, tabindex=0, class_="item matched", **attributes)
