"""Figures of service time: the time per tuple above, the comparisons behind it below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.measured import distinct, select, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.ratio_claims import name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIME_AXIS: Final = Axis("service time per tuple (µs)", log=True)
COMPARISONS_AXIS: Final = Axis("comparisons per tuple", log=True)
_QUANTITIES: Final = (("microseconds", TIME_AXIS), ("comparisons", COMPARISONS_AXIS))


def draw_service_curves(figure: Figure, rows: Sequence[Row], by: str) -> None:
    """Curves over the tuples processed; a column of panels for each group."""
    _draw_grid(figure, rows, by, "processed", "tuples processed")


def draw_service_by_streams(figure: Figure, rows: Sequence[Row]) -> None:
    """Curves over the number of streams, time and comparisons side by side."""
    figure.set_size_inches(11, 5)
    axes = list(figure.subplots(1, 2))
    for one, (column, axis) in zip(axes, _QUANTITIES, strict=True):
        curves = _curves(rows, "streams", column)
        draw_curves(one, curves, Axis("number of streams"), axis, markers=True)
        one.set_xticks([int(streams) for streams in distinct(rows, "streams")])
    share_legend(figure, axes)


def _draw_grid(figure: Figure, rows: Sequence[Row], by: str, x: str, x_label: str) -> None:
    groups = distinct(rows, by)
    figure.set_size_inches(max(7, 4 * len(groups)), 7.5)
    grid = figure.subplots(2, len(groups), sharex="col", sharey="row", squeeze=False)
    for line, (column, axis) in zip(grid, _QUANTITIES, strict=True):
        for axes, value in zip(line, groups, strict=True):
            curves = _curves(select(rows, **{by: value}), x, column)
            title = name(by, value) if column == "microseconds" else ""
            draw_curves(axes, curves, Axis(x_label), axis, title)
    share_legend(figure, list(grid.flat))


def _curves(rows: Sequence[Row], x: str, y: str) -> list[Curve]:
    """A curve per algorithm; the engine has no comparisons to show."""
    return [
        Curve(
            str(one),
            values(rows, x, algorithm=one),
            values(rows, y, algorithm=one),
            style="--" if "," in str(one) else "-",
        )
        for one in distinct(rows, "algorithm")
        if not (one == COLUMNAR and y == "comparisons")
    ]
