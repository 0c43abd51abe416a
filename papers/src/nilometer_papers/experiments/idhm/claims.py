"""The claims: targets of this reproduction, and the paper's statements on decisions and peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nilometer_papers.experiments.experiment import Claim, Outcome, Row
from nilometer_papers.experiments.idhm.looks import BURST, FULL
from nilometer_papers.experiments.measured import select

BEST: Final = "neighbours"
_DETECTED: Final = 0.95
_FALSE_ALARMS: Final = 0.02


def _at_full_exposure(rows: Sequence[Row]) -> Outcome:
    (row,) = select(rows, curve="exposure", at=f"{BURST * FULL:g} s", classifier=BEST)
    return _meets_targets(row)


def _as_decided(rows: Sequence[Row]) -> Outcome:
    (row,) = select(rows, curve="decisions", classifier=BEST)
    return _meets_targets(row)


def _meets_targets(row: Row) -> Outcome:
    detected, alarms = float(row["detected"]), float(row["false_alarms"])
    return Outcome(
        detected >= _DETECTED and alarms <= _FALSE_ALARMS,
        f"{detected:.1%} of {row['hazardous']} detected, {alarms:.1%} of {row['harmless']} "
        "false alarms",
    )


def _decisions_come_early(rows: Sequence[Row]) -> Outcome:
    times = {
        str(row["classifier"]): float(row["seconds"]) for row in select(rows, curve="decisions")
    }
    figures = "; ".join(f"{method} {seconds:.1f} s" for method, seconds in times.items())
    return Outcome(times[BEST] <= BURST * FULL / 2, figures)


def _some_peaks_come_at_once(rows: Sequence[Row]) -> Outcome:
    early = _share_detected(rows, "C 4.44", BURST)
    late = _share_detected(rows, "N 10.83", BURST), _share_detected(rows, "N 10.83", BURST * FULL)
    figures = (
        f"C 4.44 in {early:.0%} of boxes with carbon after the first burst; N 10.83 in "
        f"{late[0]:.0%} of those with nitrogen then, in {late[1]:.0%} at full exposure"
    )
    return Outcome(early >= 0.8 and late[0] <= late[1] / 2, figures)


def _share_detected(rows: Sequence[Row], line: str, seconds: float) -> float:
    (row,) = select(rows, curve="peaks", at=line, seconds=seconds)
    return float(row["detected"])


def _shields_hide(rows: Sequence[Row]) -> Outcome:
    bare, *shielded = select(rows, curve="shielding", classifier=BEST)
    # They are in order of thickness: the last one of each material is kept.
    thickest = {str(row["at"]).split(" ")[-1]: row for row in shielded}.values()
    figures = ", ".join(f"{row['at']} {float(row['detected']):.0%}" for row in (bare, *thickest))
    worst = min(float(row["detected"]) for row in thickest)
    return Outcome(worst < float(bare["detected"]), f"detected: {figures}")


CLAIMS: Final = (
    Claim(
        "target: at full exposure, without heavy shielding, 95 % of what is hazardous is detected, "
        "at no more than 2 % false alarms",
        "detected ≥ 0.95 and false alarms ≤ 0.02 after the last burst, nearest neighbours",
        _at_full_exposure,
    ),
    Claim(
        "target: the same for decisions as they fall, after each burst: safe, suspect, or more "
        "data",
        "detected ≥ 0.95 and false alarms ≤ 0.02 of first decisions, nearest neighbours",
        _as_decided,
    ),
    Claim(
        "target: more data is needed for some boxes only: the mean time to a decision is short",
        "mean time to decision ≤ half of the full exposure, nearest neighbours",
        _decisions_come_early,
    ),
    Claim(
        "certain peaks are detected in the first spectra, others need significantly more time",
        "C 4.44 in 80 % of boxes with carbon after the first burst; N 10.83 then in at most half "
        "of the boxes in which it is found at full exposure",
        _some_peaks_come_at_once,
    ),
    Claim(
        "material around it affects the spectrum: behind thick shields less is detected",
        "detected behind the worst of the thickest shields < detected without a shield",
        _shields_hide,
    ),
)
