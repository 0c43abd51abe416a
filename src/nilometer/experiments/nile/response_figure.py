"""Figures of response times: curves, or bars for each query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nilometer.experiments.experiment import Row
from nilometer.experiments.measured import distinct, values
from nilometer.experiments.nile.response_claims import AVERAGE, MAXIMUM
from nilometer.experiments.plots import Axis, Curve, colour_of, draw_curves, share_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLES = {AVERAGE: "average response time", MAXIMUM: "maximum response time"}


def curves_by(by: str, label: str) -> Callable[[Figure, Sequence[Row]], None]:
    """Average and maximum against a label of the rows, a panel each."""

    def draw(figure: Figure, rows: Sequence[Row]) -> None:
        panels = list(figure.subplots(1, 2, squeeze=False)[0])
        for axes, column in zip(panels, (AVERAGE, MAXIMUM), strict=True):
            curves = [
                Curve(
                    name,
                    values(rows, by, algorithm=name),
                    values(rows, column, algorithm=name),
                    "--" if name == "NTA" else "-",  # It often lies upon TPA.
                )
                for name in _shown(rows, column)
            ]
            y = Axis("milliseconds")
            draw_curves(axes, curves, Axis(label), y, _TITLES[column], markers=True)
            axes.set_ylabel("milliseconds")
            axes.tick_params(labelleft=True)
        share_legend(figure, panels)

    return draw


def bars_by_query(figure: Figure, rows: Sequence[Row]) -> None:
    """Average and maximum of each query, a bar for each approach."""
    panels = list(figure.subplots(1, 2, squeeze=False)[0])
    queries = distinct(rows, "query")
    for axes, column in zip(panels, (AVERAGE, MAXIMUM), strict=True):
        names = _shown(rows, column)
        width = 0.8 / len(names)
        for place, name in enumerate(names):
            xs = [i + (place - (len(names) - 1) / 2) * width for i in range(len(queries))]
            heights = values(rows, column, algorithm=name)
            axes.bar(xs, heights, width, color=colour_of(name), label=name)
        axes.set_xticks(range(len(queries)), [str(one) for one in queries])
        axes.set_yscale("log")
        axes.set_ylim(bottom=1)
        axes.set_ylabel("milliseconds")
        axes.set_title(_TITLES[column], fontsize=10)
        axes.grid(visible=True, which="major", axis="y", alpha=0.3)
    share_legend(figure, panels)


def _shown(rows: Sequence[Row], column: str) -> list[str]:
    """Whom a panel shows: maxima can be compared only over the same changes."""
    names = [str(name) for name in distinct(rows, "algorithm")]
    all_changes = values(rows, "changes", algorithm=names[0])
    return [
        name
        for name in names
        if column != MAXIMUM or values(rows, "changes", algorithm=name) == all_changes
    ]
