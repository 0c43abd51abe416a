"""Figures of response times: curves, or bars for each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Final

from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.measured import distinct, values
from nilometer_papers.experiments.nile.response_claims import AVERAGE, CPU, EXPIRED, MAXIMUM
from nilometer_papers.experiments.plots import (
    Axis,
    Curve,
    colour_of,
    draw_curves,
    label_log_axis,
    share_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOTHING: Final[Mapping[str, float]] = {}
_STYLES: Final = {"NTA": "--", "TPA, no clock": "--", "NTA, no clock": ":"}
"""NTA often coincides with TPA."""
_HATCHES: Final = ("", "//", "..", "xx")
_TITLES: Final = {
    AVERAGE: "average response time",
    EXPIRED: "average over what expirations cause",
    MAXIMUM: "maximum response time",
    CPU: "CPU time per tuple, here",
}
_UNITS: Final = {
    AVERAGE: "milliseconds",
    EXPIRED: "milliseconds",
    MAXIMUM: "milliseconds",
    CPU: "microseconds",
}
_PANELS: Final = (AVERAGE, EXPIRED, MAXIMUM, CPU)
_WIDE: Final = (15.0, 5.0)


def curves_by(
    by: str, label: str, paper: Mapping[str, float] = _NOTHING
) -> Callable[[Figure, Sequence[Row]], None]:
    """Response times against a label of the rows, with the paper's values for ITA."""

    def draw(figure: Figure, rows: Sequence[Row]) -> None:
        panels = _panels(figure, rows)
        for axes, column in panels.items():
            curves = [
                Curve(
                    name,
                    values(rows, by, algorithm=name),
                    values(rows, column, algorithm=name),
                    _STYLES.get(name, "-"),
                )
                for name in _shown(rows, column)
            ]
            y = Axis(_UNITS[column])
            draw_curves(axes, curves, Axis(label), y, _TITLES[column], markers=True)
            axes.tick_params(labelleft=True)
            _draw_paper(axes, paper, column)
        share_legend(figure, list(panels))

    return draw


def _panels(figure: Figure, rows: Sequence[Row]) -> dict[Axes, str]:
    """A panel for each column in which anything is known."""
    figure.set_size_inches(*_WIDE)
    known = [one for one in _PANELS if not all(map(isnan, values(rows, one)))]
    return dict(zip(figure.subplots(1, len(known), squeeze=False)[0], known, strict=True))


def _draw_paper(axes: Axes, paper: Mapping[str, float], column: str) -> None:
    if column in paper:
        axes.axhline(paper[column], color=colour_of("ITA"), linestyle=":", label="ITA in the paper")
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * paper[column]))


def bars_by_query(figure: Figure, rows: Sequence[Row], paper: Mapping[str, float]) -> None:
    """Response times of each query, a bar per approach, with the paper's values for ITA."""
    panels = _panels(figure, rows)
    queries = distinct(rows, "query")
    for axes, column in panels.items():
        names = _shown(rows, column)
        width = 0.8 / len(names)
        for place, name in enumerate(names):
            xs = [i + (place - (len(names) - 1) / 2) * width for i in range(len(queries))]
            heights = values(rows, column, algorithm=name)
            hatch = _HATCHES[place % len(_HATCHES)]
            axes.bar(xs, heights, width, color=colour_of(name), label=name, hatch=hatch, alpha=0.85)
        _draw_paper(axes, paper, column)
        axes.set_xticks(range(len(queries)), [str(one) for one in queries])
        axes.set_yscale("log")
        axes.set_ylim(bottom=1)
        label_log_axis(axes.yaxis)
        axes.set_ylabel(_UNITS[column])
        axes.set_title(_TITLES[column], fontsize=10)
        axes.grid(visible=True, which="major", axis="y", alpha=0.3)
    share_legend(figure, list(panels))


def _shown(rows: Sequence[Row], column: str) -> list[str]:
    """The algorithms shown in a panel: maxima are comparable only over the same changes."""
    names = [str(name) for name in distinct(rows, "algorithm")]
    all_changes = values(rows, "changes", algorithm=names[0])
    return [
        name
        for name in names
        if column != MAXIMUM
        or name != COLUMNAR
        or values(rows, "changes", algorithm=name) == all_changes
    ]
