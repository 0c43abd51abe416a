"""What the demo shows in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nilometer.apps.cameras.on_the_way import WINDOW, OnTheWay
from nilometer.apps.cameras.tally import Tally
from nilometer.apps.cameras.world import SECOND
from nilometer.model.time import format_instant

_LINE_EVERY: Final = 5.0
_HINT: Final = "objects that pass Camera1 → 2 → 3 → 4, at most 3 s for each leg"

_ON_THE_WAY: Final = f"on the way: seen in the last {WINDOW // SECOND} s, not by the next camera"


@dataclass(frozen=True)
class Checks:
    """How many tracks and counts are true, and whether exactly these were found."""

    tracks: int
    tracks_right: bool
    counts: int
    counts_right: bool

    @property
    def all_right(self) -> bool:
        return self.tracks_right and self.counts_right


class Screen:
    """A live table in a terminal; elsewhere a line every five seconds."""

    def __init__(self, console: Console, seconds: int, tally: Tally, on_the_way: OnTheWay) -> None:
        self._console = console
        self._seconds = seconds
        self._tally = tally
        self._on_the_way = on_the_way
        self._live = Live(console=console, transient=True) if console.is_terminal else None
        self._next_line = _LINE_EVERY

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, passed: float, reports: Sequence[Any]) -> None:
        """Show how things stand after so many seconds, given Spark's reports on the tracks."""
        self._tally.take(reports)
        self._on_the_way.look()
        if self._live is not None:
            bar = ProgressBar(total=self._seconds, completed=passed)
            table = _table(self._tally, self._on_the_way)
            self._live.update(Group(_title(self._tally), table, _legend(self._on_the_way), bar))
        elif passed >= self._next_line:
            self._next_line += _LINE_EVERY
            self._console.print(f"{passed:4.0f} s  {_progress(self._tally, self._on_the_way)}")


def show_summary(
    console: Console, tally: Tally, seconds: int, on_the_way: OnTheWay, checks: Checks
) -> None:
    """The figures of the whole run, and whether the answers were right."""
    console.print(_title(tally))
    console.print(_table(tally, on_the_way))
    console.print(_legend(on_the_way))
    figures = Table.grid(padding=(0, 2))
    last = tally.last
    rows = [
        ("rows in", f"{tally.rows_in:,}"),
        ("tracks out", f"{tally.results:,}"),
        ("rows per second", f"{tally.rows_in / seconds:,.0f}"),
        ("micro-batches", f"{tally.batches:,}"),
        ("state", "none" if last is None else f"{last.state_bytes / 1e6:.1f} MB"),
        ("watermark", _watermark(tally)),
    ]
    for name, value in rows:
        figures.add_row(name, Text(value, style="bold"))
    console.print(figures)
    true = f"{checks.tracks:,}"
    if checks.tracks_right:
        console.print(f"[green]right:[/] all {true} true tracks were found, each once")
    else:
        console.print(f"[red]wrong:[/] {tally.results:,} tracks were found, {true} are true")
    if checks.counts_right:
        told = f"[green]right:[/] all {checks.counts:,} counts of objects on the way, every second"
    else:
        told = f"[red]wrong:[/] the {checks.counts:,} counts of objects on the way are not all true"
    console.print(told)


def _progress(tally: Tally, on_the_way: OnTheWay) -> str:
    if not tally.batches:
        return "Spark prepares the first micro-batch"
    counted = sum(on_the_way.current().values())
    return (
        f"{tally.rows_in:,} rows in, {tally.results:,} tracks found, {counted:,} objects on the way"
    )


def _title(tally: Tally) -> Text:
    """What is looked for; at first, why nothing has been found yet."""
    waiting = "" if tally.batches else "  (Spark prepares the first micro-batch)"
    return Text(_HINT, style="bold").append(waiting, style="dim")


def _legend(on_the_way: OnTheWay) -> Text:
    """What the last column tells, and for which instant."""
    time = on_the_way.time
    return Text(_ON_THE_WAY + ("" if time is None else f"; at {_clock(time)}"), style="dim")


def _table(tally: Tally, on_the_way: OnTheWay) -> Table:
    table = Table()
    for title in ("", "rows in", "held", "late", "watermark", "on the way"):
        table.add_column(title, justify="left" if not title else "right", min_width=9)
    counts = on_the_way.current()
    for name, rows in tally.rows.items():
        stream = tally.last.streams[name] if tally.last is not None else None
        held, late = (f"{stream.buffered:,}", f"{stream.late:,}") if stream else ("", "")
        mark = stream.watermark if stream else None
        clock = "" if mark is None else _clock(mark)
        away = f"{counts[name]:,}" if name in counts else ""
        table.add_row(name, f"{rows:,}", held, late, clock, away)
    table.add_section()
    table.add_row("tracks", f"{tally.results:,}")
    return table


def _watermark(tally: Tally) -> str:
    streams = tally.last.streams.values() if tally.last is not None else ()
    marks = [stream.watermark for stream in streams if stream.watermark is not None]
    return format_instant(min(marks)) if marks else "none"


def _clock(instant: int) -> str:
    return format_instant(instant).split(" ")[1][:12]
