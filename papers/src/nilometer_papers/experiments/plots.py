"""The look of figures: curves of algorithms, each in one colour wherever it appears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as MplAxis
    from matplotlib.container import Container
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter

_COLOURS: Final[Mapping[str, str]] = {
    "NLW": "tab:blue",
    "HW": "tab:orange",
    "MW": "tab:green",
    "RIPPLE": "tab:red",
    "XJOIN": "tab:purple",
    "BEW": "tab:cyan",
    "BEW_HASH": "tab:pink",
    "FEW": "tab:olive",
    "FEW_HASH": "tab:brown",
    "GCA": "crimson",
    "LCA": "darkgreen",
    "NLW_PATH": "navy",
    "HW_PATH": "tab:orange",
    "GRAPH_BEW": "tab:cyan",
    "columnar": "black",
    "blocking": "tab:red",
    "self-scheduled": "tab:blue",
    "copies": "tab:orange",
    "references": "tab:blue",
    "memory": "tab:green",
    "disk": "tab:brown",
    "limit": "black",
    "ITA": "tab:red",
    "TPA": "tab:blue",
    "NTA": "tab:green",
    "MULTI-WAY": "tab:blue",
    "NAIVE": "tab:red",
    "LAZY": "tab:blue",
    "GENERAL": "tab:green",
    "NLJ": "tab:red",
    "HASH2": "tab:orange",
    "HASH10": "tab:green",
    "HASH30": "tab:blue",
    "Equal": "tab:blue",
    "1": "tab:red",
    "5": "tab:green",
    "10": "tab:orange",
}

_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
"""So that curves can be distinguished without colour, too."""
_MOST_MARKERS: Final = 12
_LONG_LABEL: Final = 18
_LABELLED: Final[Mapping[float, tuple[float, ...]]] = {
    5: (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0),
    300: (1.0, 2.0, 5.0),
}
"""Multiples of powers of ten with labels on logarithmic axes that span less than a factor."""

_OTHERS: Final = ("slateblue", "teal", "goldenrod", "indianred", "tab:gray", "orchid", "peru")


@dataclass(frozen=True)
class Curve:
    """One line of a figure; its colour is that of the algorithm whose name begins the label."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    style: str = "-"


@dataclass(frozen=True)
class Axis:
    """The quantity along an axis, with its unit."""

    label: str
    log: bool = False


def colour_of(label: str) -> str:
    """The colour of the algorithm that a label begins with.

    >>> colour_of("MW, slow stream"), colour_of("MW") == colour_of("NLW")
    ('tab:green', False)
    """
    name = label.split(",", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    return _COLOURS.get(name) or _OTHERS[crc32(name.encode()) % len(_OTHERS)]


def panels(figure: Figure, count: int) -> list[Axes]:
    """This many axes in one row that show the same quantity on one scale."""
    return list(figure.subplots(1, count, sharey=True, squeeze=False)[0])


def draw_curves(
    axes: Axes, curves: Sequence[Curve], x: Axis, y: Axis, title: str = "", markers: bool = False
) -> None:
    """A family of curves; where an axis is logarithmic, zeros become gaps."""
    for place, curve in enumerate(curves):
        axes.plot(
            curve.xs,
            [value if value > 0 or not y.log else nan for value in curve.ys],
            curve.style,
            color=colour_of(curve.label),
            label=curve.label,
            linewidth=2.2 if curve.label.startswith("columnar") else 1.6,
            marker=_MARKERS[place % len(_MARKERS)],
            markevery=1 if markers else max(1, len(curve.xs) // _MOST_MARKERS),
            markersize=5,
        )
    for axis, scale in ((x, axes.set_xscale), (y, axes.set_yscale)):
        if axis.log:
            scale("log")
    _plain_ticks(axes, x, y)
    if not y.log:
        # Panels on one scale are drawn one after the other: the highest of all must fit.
        shared = axes.get_shared_y_axes().get_siblings(axes)
        axes.set_ylim(0, 1.05 * max(one.dataLim.y1 for one in shared))
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, which="major", alpha=0.3)


def plain_numbers() -> FuncFormatter:
    """Ticks with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415  an extra, which is slow to load

    return FuncFormatter(lambda value, _: f"{value:,.6g}")


def _plain_ticks(axes: Axes, x: Axis, y: Axis) -> None:
    """Plain numbers, even where an axis is logarithmic."""
    for axis, ticks in ((x, axes.xaxis), (y, axes.yaxis)):
        if axis.log:
            label_log_axis(ticks)


def label_log_axis(axis: MplAxis) -> None:
    """Label more than the powers of ten where an axis shows few of them."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415  slow to load

    low, high = axis.get_view_interval()
    labelled = next((subs for limit, subs in _LABELLED.items() if high / low < limit), (1.0,))
    axis.set_major_locator(LogLocator(subs=labelled))
    axis.set_major_formatter(plain_numbers())
    axis.set_minor_formatter(NullFormatter())


def draw_spread(figure: Figure, others: Sequence[Figure]) -> None:
    """Draw curves as their means over figures of the same panels, with a band around each.

    A band goes from the least to the most of all; bars get a line for it. Curves whose points are
    at other places in some of the figures stay as they are.
    """
    for axes, *same in zip(figure.axes, *(one.axes for one in others), strict=True):
        for line in axes.get_lines():
            lines = [drawn for one in same for drawn in one.get_lines()]
            label = line.get_label()
            _spread_line(axes, line, [one for one in lines if one.get_label() == label])
        for bars, *alike in zip(axes.containers, *(one.containers for one in same), strict=True):
            _spread_bars(axes, bars, alike)


def _spread_line(axes: Axes, line: Line2D, others: Sequence[Line2D]) -> None:
    xs = np.asarray(line.get_xdata())
    if not all(np.array_equal(xs, np.asarray(one.get_xdata())) for one in others):
        return
    ys = np.array([one.get_ydata() for one in (line, *others)], dtype=np.float64)
    if all(np.array_equal(one, ys[0], equal_nan=True) for one in ys):
        return  # this includes lines across, whose xs are not those of the axis
    low, high = np.fmin.reduce(ys), np.fmax.reduce(ys)
    line.set_ydata(np.ma.masked_invalid(ys).mean(axis=0).filled(nan))
    axes.fill_between(xs, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    if axes.get_yscale() == "linear":
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * float(np.nanmax(high))))


def _spread_bars(axes: Axes, bars: Container, others: Sequence[Container]) -> None:
    if getattr(bars, "orientation", None) != "vertical":
        return
    pieces = [list(one) for one in (bars, *others)]
    for piece in zip(*pieces, strict=True):
        heights = np.array([one.get_height() for one in piece])
        middle = piece[0].get_x() + piece[0].get_width() / 2
        piece[0].set_height(heights.mean())
        axes.vlines(middle, heights.min(), heights.max(), colors="black", linewidth=1)


def share_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, each label once; panels that share an axis share its label."""
    handles = {
        label: handle
        for one in axes
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    for one in axes:
        if one.get_shared_y_axes().get_siblings(one) != [one]:
            one.label_outer()
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(4 if max(map(len, handles)) > _LONG_LABEL else 6, len(handles)),
        frameon=False,
    )
