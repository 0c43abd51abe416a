"""The figure: detection and false alarms over exposure, shields and clutter; decisions; peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.idhm.claims import BEST
from nilometer_papers.experiments.measured import select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: Final = {"neighbours": "tab:blue", "tree": "tab:green", "clusters": "tab:orange"}
_STUFFS: Final = {"steel": "tab:gray", "lead": "black", "plastic": "tab:purple"}
_ROOMY: Final = (13.0, 8.0)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Six panels."""
    figure.set_size_inches(*_ROOMY)
    (exposure, decided, peaks), (shields, clutter, families) = figure.subplots(2, 3)
    _over_exposure(exposure, rows)
    _decided(decided, rows)
    _peaks(peaks, rows)
    _shields(shields, rows)
    _clutter(clutter, rows)
    _families(families, rows)
    for axes in (exposure, decided, peaks, shields, clutter):
        axes.set_ylim(-0.02, 1.02)
        axes.grid(visible=True, alpha=0.3)


def _column(rows: Sequence[Row], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


def _over_exposure(axes: Axes, rows: Sequence[Row]) -> None:
    for method, colour in _COLOURS.items():
        mine = select(rows, curve="exposure", classifier=method)
        seconds = _column(mine, "seconds")
        axes.plot(seconds, _column(mine, "detected"), color=colour, label=method)
        axes.plot(seconds, _column(mine, "false_alarms"), "--", color=colour)
    axes.axhline(0.95, color="black", linewidth=0.6)
    axes.axhline(0.02, color="black", linewidth=0.6)
    axes.set_title("detected (lines), false alarms (dashes)", fontsize=10)
    axes.set_xlabel("exposure in s")
    axes.set_ylabel("share of boxes")
    axes.legend(loc="center right", fontsize=8)


def _decided(axes: Axes, rows: Sequence[Row]) -> None:
    for method, colour in _COLOURS.items():
        mine = select(rows, curve="exposure", classifier=method)
        (all_of_them,) = select(rows, curve="decisions", classifier=method)
        label = f"{method}: {float(all_of_them['seconds']):.1f} s in the mean"
        axes.step(
            _column(mine, "seconds"),
            _column(mine, "decided"),
            where="post",
            color=colour,
            label=label,
        )
    axes.set_title("boxes that are decided", fontsize=10)
    axes.set_xlabel("exposure in s")
    axes.legend(loc="lower right", fontsize=8)


def _peaks(axes: Axes, rows: Sequence[Row]) -> None:
    mine = select(rows, curve="peaks")
    for line in dict.fromkeys(str(row["at"]) for row in mine):
        curve = select(mine, at=line)
        axes.plot(_column(curve, "seconds"), _column(curve, "detected"), "o-", ms=3, label=line)
    axes.set_title("boxes with the element where PEAKS finds its line", fontsize=10)
    axes.set_xlabel("exposure in s")
    axes.legend(fontsize=8)


def _shields(axes: Axes, rows: Sequence[Row]) -> None:
    bare, *shielded = select(rows, curve="shielding", classifier=BEST)
    for stuff, colour in _STUFFS.items():
        mine = [row for row in shielded if str(row["at"]).endswith(stuff)]
        thick = [0.0, *(float(str(row["at"]).split(" ")[0]) for row in mine)]
        for name, style in (("detected", "o-"), ("false_alarms", "o--")):
            axes.plot(
                thick,
                _column([bare, *mine], name),
                style,
                ms=3,
                color=colour,
                label=stuff if style == "o-" else None,
            )
    axes.set_title(f"behind shields, at full exposure ({BEST})", fontsize=10)
    axes.set_xlabel("thickness in mm")
    axes.set_ylabel("share of boxes")
    axes.legend(fontsize=8)


def _clutter(axes: Axes, rows: Sequence[Row]) -> None:
    for method, colour in _COLOURS.items():
        mine = select(rows, curve="clutter", classifier=method)
        heaviest = [float(str(row["at"]).split(" ")[0]) for row in mine]
        axes.plot(heaviest, _column(mine, "detected"), "o-", ms=3, color=colour, label=method)
        axes.plot(heaviest, _column(mine, "false_alarms"), "o--", ms=3, color=colour)
    axes.set_title("with heavier things beside it", fontsize=10)
    axes.set_xlabel("greatest mass of a harmless thing in kg")
    axes.legend(fontsize=8)


def _families(axes: Axes, rows: Sequence[Row]) -> None:
    mine = select(rows, curve="material", classifier=BEST)
    mine = sorted(mine, key=lambda row: -float(row["detected"]))
    names = [f"{row['at']} ({row['hazardous']})" for row in mine]
    axes.barh(names, _column(mine, "detected"), color="tab:blue")
    axes.axvline(0.95, color="black", linewidth=0.6)
    axes.set_xlim(0.5, 1.0)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title("detected, by new material (boxes)", fontsize=10)
