"""The terminal display of the demo: a line for each box that has left the belt, and the score."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nilometer_papers.idhm.boxes import Box
from nilometer_papers.idhm.outcomes import Decided, Outcome, Score

_COLOURS: Final = {Decided.SAFE: "green", Decided.SUSPECT: "red", Decided.BY_HAND: "yellow"}
_JUDGED: Final = {True: ("right", "green"), False: ("wrong", "red"), None: ("open", "yellow")}


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Show a line: the decision, its time, and the contents of the box."""
    judged, colour = _JUDGED[outcome.is_right]
    line = Text(f"box {outcome.box.number:<3} ")
    line.append(f"{outcome.decided.value:<8}", style=_COLOURS[outcome.decided])
    line.append(f" after {outcome.seconds:5.1f} s  {_suspicion(outcome):<17} ")
    line.append(f"{judged:<6}", style=colour)
    line.append(describe(outcome.box), style="dim")
    console.print(line, soft_wrap=True)


def _suspicion(outcome: Outcome) -> str:
    if outcome.decided is not Decided.SUSPECT or outcome.confidence is None:
        return ""
    return f"{outcome.material} {outcome.confidence:.0%}"


def describe(box: Box) -> str:
    """The contents of a box: the hazardous material first.

    >>> describe(Box(1, (("water", 0.5), ("TNT", 1.25)), "thin lead"))
    'TNT 1.2 kg, water, in thin lead'
    """
    hazard = None if box.hazard is None else box.hazard.name
    parts = [f"{name} {kilograms:.1f} kg" for name, kilograms in box.contents if name == hazard]
    parts += [name for name, _ in box.contents if name != hazard]
    return ", ".join(parts) + ("" if box.shield == "none" else f", in {box.shield}")


def show_score(console: Console, score: Score) -> None:
    """Show the figures of the whole run."""
    figures = Table.grid(padding=(0, 2))
    time = "none" if score.mean_seconds is None else f"{score.mean_seconds:.1f} s"
    rows = [
        ("boxes decided", f"{score.decided}"),
        ("right", f"{score.right}"),
        ("wrong", f"{score.missed} missed, {score.false_alarms} false alarms"),
        ("to be opened by hand", f"{score.by_hand}"),
        ("mean time to decision", time),
    ]
    for name, value in rows:
        figures.add_row(name, Text(value, style="bold"))
    console.print(figures)
