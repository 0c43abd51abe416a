"""The sensors of a database as a table, from any source."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nilometer.commands.tables import clean
from nilometer.log.clock import now_micros
from nilometer.model.names import count
from nilometer.model.time import format_duration, format_instant

_EVERY: Final = 0.5
_MOST_ROWS: Final = 40
_COLUMNS: Final = (
    ("stream", False, 8),
    ("sensor", False, 6),
    ("state", False, 10),
    ("readings", True, 8),
    ("per s", True, 5),
    ("last reading", False, 12),
    ("at (UTC)", False, 12),
    ("errors", True, 6),
    ("refused", True, 7),
    ("address, or last error", False, 12),
)
"""Titles, whether the column holds numbers, and the minimum width."""
_STYLES: Final = {
    "connected": "green",
    "silent": "yellow",
    "waiting": "yellow",
    "failed": "red",
    "opening": "cyan",
}


@dataclass(frozen=True)
class SeenSensor:
    """A sensor and its state; None: no reader needs it."""

    stream: str
    number: int
    name: str
    address: str
    doing: Mapping[str, Any] | None


class SensorSource(Protocol):
    """A source that knows the sensors without being the process that reads them."""

    def sensors(self) -> list[SeenSensor]:
        """All sensors in their current state."""

    def summary(self) -> str:
        """Who reads the sensors, and the watermark of each stream."""


@dataclass(frozen=True)
class Overview:
    """What is known of the sensors at present."""

    source: SensorSource

    def table(self, *, full: bool = False) -> Table:
        """All sensors; those being read first, and at most one screen unless full."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for title, is_number, width in _COLUMNS:
            table.add_column(
                title,
                justify="right" if is_number else "left",
                no_wrap=True,
                min_width=width,
                overflow="ellipsis",
            )
        rows = sorted(
            self.source.sensors(), key=lambda one: (one.doing is None, one.stream, one.number)
        )
        shown = rows if full else rows[:_MOST_ROWS]
        for one in shown:
            cells = _cells(one.doing, one.address)
            table.add_row(_safe(one.stream), _safe(one.name), *cells)
        if len(shown) < len(rows):
            table.caption = f"and {len(rows) - len(shown)} more, which `nilometer sensors list` has"
        return table

    def watch(self, console: Console, seconds: float | None) -> None:
        """Show it repeatedly; if the console is not a terminal, only the final state."""
        until = None if seconds is None else time.monotonic() + seconds
        with Live(console=console, auto_refresh=False) as live:
            while until is None or time.monotonic() < until:
                shown = Table.grid()
                shown.add_row(self.table())
                shown.add_row(Text(self.source.summary(), style="dim"))
                live.update(shown, refresh=True)
                time.sleep(_EVERY)


def _cells(doing: Mapping[str, Any] | None, address: str) -> list[Text]:
    if doing is None:
        return [Text("not needed", style="dim"), *(Text("") for _ in range(6)), _safe(address)]
    state, error = doing["state"], doing["last_error"]
    last = doing["last_time"]
    return [
        Text(state, style=_STYLES.get(state, "")),
        Text(f"{doing['readings']:,}"),
        Text(f"{doing['rate']:.1f}"),
        _safe((doing["last_value"] or "")[:60]),
        Text("" if last is None else format_instant(last)[11:23]),
        Text(str(doing["errors"] or "")),
        Text(str(doing["dead_letters"] or "")),
        _safe(address if state == "connected" or not error else error[:120]),
    ]


def _safe(text: str) -> Text:
    return Text(clean(text))


def stream_line(one: Mapping[str, Any]) -> str:
    """The progress of a stream."""
    mark = one["watermark"]
    behind = ""
    if mark is not None:
        lag = round(max(0, now_micros() - mark), -5)  # to a tenth of a second
        behind = f", watermark {format_duration(lag)} behind"
    held = f", held back by sensor {one['held_by']}" if one["held_by"] else ""
    full = ", its log is FULL" if one["full"] else ""
    return (
        f"{one['name']}: {one['connected']} of {count(one['sensors'], 'sensor')} connected, "
        f"{count(one['readers'], 'reader')}, {one['rows']:,} rows ever, "
        f"{one['stored_bytes'] / 1e6:.1f} MB stored{behind}{held}{full}"
    )
