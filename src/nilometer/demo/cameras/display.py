"""The terminal display of the demo."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nilometer.demo.cameras.changing_counts import Counts
from nilometer.demo.cameras.questions import BUSY_WINDOW, WINDOW
from nilometer.demo.cameras.tally import Tally
from nilometer.demo.cameras.world import SECOND

_LINE_EVERY: Final = 5.0
_TITLE: Final = "objects that pass Camera1 → 2 → 3 → 4, at most 3 s for each leg"
_BUSY: Final = f"last {BUSY_WINDOW // SECOND} s"
_LEGEND: Final = (
    f"{_BUSY}: sightings of the cameras in the hall; "
    f"on the way: seen in the last {WINDOW // SECOND} s, not by the next camera"
)
_BUSY_MACHINE: Final = "when nothing more was found; a machine with other work needs a lower --rate"


@dataclass
class Queries:
    """The results of the three queries so far."""

    tally: Tally
    """The tally of the tracks."""
    stored: int = 0
    """How many sightings of all cameras are stored."""
    busy: Counts = field(default_factory=dict)
    on_the_way: Counts = field(default_factory=dict)
    instant: datetime | None = None
    """When the objects on the way were counted."""


@dataclass(frozen=True)
class Checks:
    """How many tracks and counts are true, and which were found."""

    tracks: int
    missing: int
    """True tracks that were not found, at least not in time."""
    false: int
    """Tracks that were found but are not true, or were already found before."""
    counts: int
    counts_right: bool

    @property
    def tracks_right(self) -> bool:
        return self.missing == self.false == 0

    @property
    def all_right(self) -> bool:
        return self.tracks_right and self.counts_right


class Screen:
    """A live table in a terminal; elsewhere a line every five seconds."""

    def __init__(self, console: Console, seconds: int | None, queries: Queries) -> None:
        """`seconds` None: until somebody ends it."""
        self._console = console
        self._seconds = seconds
        self._queries = queries
        self._live = Live(console=console, transient=True) if console.is_terminal else None
        self._next_line = _LINE_EVERY

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, passed: float) -> None:
        """Show the state after this many seconds."""
        if self._live is not None:
            self._live.update(Group(*_picture(self._queries), self._end(passed)))
        elif passed >= self._next_line:
            self._next_line += _LINE_EVERY
            self._console.print(f"{passed:4.0f} s  {_progress(self._queries)}")

    def _end(self, passed: float) -> ProgressBar | Text:
        if self._seconds is None:
            return Text(f"{passed:.0f} s; Ctrl-C ends it", style="dim")
        return ProgressBar(total=self._seconds, completed=passed)


def show_summary(console: Console, queries: Queries, seconds: float) -> None:
    """The figures of the whole run."""
    for part in _picture(queries):
        console.print(part)
    figures = Table.grid(padding=(0, 2))
    tally = queries.tally
    last = tally.last
    rows = [
        ("rows in", f"{tally.rows_in:,}"),
        ("tracks out", f"{tally.results:,}"),
        ("rows per second", f"{tally.rows_in / seconds:,.0f}"),
        ("micro-batches", f"{tally.batches:,}"),
        ("state", "none" if last is None else f"{last['state_bytes'] / 1e6:.1f} MB"),
        ("watermark", _watermark(tally)),
    ]
    for name, value in rows:
        figures.add_row(name, Text(value, style="bold"))
    console.print(figures)


def show_checks(console: Console, checks: Checks) -> None:
    """Whether the answers were right."""
    true = f"{checks.tracks:,}"
    if checks.tracks_right:
        console.print(f"[green]right:[/] all {true} true tracks were found, each once")
    if checks.false:
        console.print(f"[red]wrong:[/] {checks.false:,} tracks were found that are not true")
    if checks.missing:
        console.print(f"[red]missing:[/] {checks.missing:,} of {true} true tracks, {_BUSY_MACHINE}")
    counts = f"{checks.counts:,} counts of sightings and of objects on the way"
    if checks.counts_right:
        console.print(f"[green]right:[/] all {counts}, every second")
    else:
        what = "missing" if checks.missing and not checks.false else "wrong"
        console.print(f"[red]{what}:[/] not all {counts} are there and true")


def _picture(queries: Queries) -> tuple[Text, Table, Text]:
    return _title(queries), _table(queries), _legend(queries.instant)


def _progress(queries: Queries) -> str:
    tally = queries.tally
    if not tally.batches:
        return _waiting(queries)
    seen, away = sum(queries.busy.values()), sum(queries.on_the_way.values())
    return (
        f"{tally.rows_in:,} rows in, {tally.results:,} tracks found, "
        f"{seen:,} sightings in the {_BUSY}, {away:,} objects on the way"
    )


def _waiting(queries: Queries) -> str:
    """Why nothing has been found yet."""
    return f"{queries.stored:,} sightings stored; Spark prepares the first micro-batch"


def _title(queries: Queries) -> Text:
    """What is being searched for; at first, why nothing has been found yet."""
    waiting = "" if queries.tally.batches else f"  ({_waiting(queries)})"
    return Text(_TITLE, style="bold").append(waiting, style="dim")


def _legend(instant: datetime | None) -> Text:
    """The meaning of the last columns, and their instant."""
    return Text(_LEGEND + ("" if instant is None else f"; at {instant:%H:%M:%S}"), style="dim")


def _table(queries: Queries) -> Table:
    table = Table()
    for title in ("", "rows in", "held", "late", "watermark", _BUSY, "on the way"):
        table.add_column(title, justify="left" if not title else "right", min_width=6)
    tally = queries.tally
    for name, rows in tally.rows.items():
        stream = {} if tally.last is None else tally.last["streams"].get(name, {})
        held, late = (f"{stream[one]:,}" if stream else "" for one in ("held", "late"))
        counts = (f"{c[name]:,}" if name in c else "" for c in (queries.busy, queries.on_the_way))
        table.add_row(name, f"{rows:,}", held, late, _clock(stream.get("watermark")), *counts)
    table.add_section()
    table.add_row("tracks", f"{tally.results:,}")
    return table


def _watermark(tally: Tally) -> str:
    streams = {} if tally.last is None else tally.last["streams"]
    marks = [stream["watermark"] for stream in streams.values() if stream["watermark"]]
    return min(marks, default="none")


def _clock(instant: str | None) -> str:
    """The time of day of an instant in ISO 8601."""
    return "" if instant is None else instant.partition("T")[2][:12]
