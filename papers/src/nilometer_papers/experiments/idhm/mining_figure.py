"""The figure: what PERIODS and PATTERNS find of a source, and what MATCHES and CLASSIFY name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.idhm.material_names import CLASSIFY, NET, RAW
from nilometer_papers.experiments.idhm.pulses import OFF, PULSED, STEADY
from nilometer_papers.experiments.measured import select, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROOMY: Final = (13.0, 8.0)
_NAMED: Final = {CLASSIFY: ("tab:blue", "o"), NET: ("tab:green", "s"), RAW: ("tab:orange", "^")}
_MINED: Final = {"PERIODS": ("tab:blue", "o"), "PATTERNS": ("tab:green", "s")}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Six panels."""
    figure.set_size_inches(*_ROOMY)
    (distance, bursts, alarms), (exposure, away, shields) = figure.subplots(2, 3)
    _pulses(distance, rows, "distance", "cm from box to detector, one burst")
    distance.legend(fontsize=7, handlelength=3.5)
    _pulses(bursts, rows, "bursts", "bursts of which only the rates are known")
    _named(alarms, rows, "exposure", "shown", "exposure in s")
    alarms.set_title("harmless boxes named as hazardous", fontsize=10)
    _named(exposure, rows, "exposure", "right", "exposure in s")
    _named(away, rows, "distance", "right", "cm from box to detector")
    _named(shields, rows, "shielding", "right", "")
    for axes in (distance, bursts, alarms, exposure, away, shields):
        axes.set_ylim(-0.02, 1.02)
        axes.grid(visible=True, alpha=0.3)
    for axes in (distance, exposure):
        axes.set_ylabel("share of boxes")


def _pulses(axes: Axes, rows: Sequence[Row], curve: str, label: str) -> None:
    """Lines: what is right of a pulsed source. Dashes: what is shown where there is none."""
    for way, (colour, marker) in _MINED.items():
        for source, style in ((PULSED, "-"), (STEADY, "--"), (OFF, ":")):
            mine = select(rows, way=way, curve=curve, source=source)
            column = "right" if source == PULSED else "shown"
            caption = f"{way}: {'right' if source == PULSED else 'anything'}, source {source}"
            axes.plot(
                values(mine, "at"),
                values(mine, column),
                style,
                color=colour,
                marker=marker,
                ms=4,
                label=caption,
            )
    axes.set_title("boxes in which a pulsed source is found", fontsize=10)
    axes.set_xlabel(label)


def _named(axes: Axes, rows: Sequence[Row], curve: str, column: str, label: str) -> None:
    for way, (colour, marker) in _NAMED.items():
        mine = select(rows, part="names", way=way, curve=curve)
        at = [row["at"] for row in mine]
        line = "none" if isinstance(at[0], str) else "-"
        axes.plot(
            at, values(mine, column), color=colour, linestyle=line, marker=marker, ms=5, label=way
        )
    axes.set_title("hazardous boxes named rightly", fontsize=10)
    axes.set_xlabel(label)
    axes.legend(fontsize=7)
