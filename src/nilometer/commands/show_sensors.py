"""The sensors of a database as a table: from its catalog, and what its process tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nilometer.database.home import CATALOG_FILE, STATUS_FILE
from nilometer.log.clock import now_micros
from nilometer.model.names import count
from nilometer.model.secrets import shown_address
from nilometer.model.time import format_duration, format_instant
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.manager.status import read_status

_EVERY: Final = 0.5
_STALE: Final = 5_000_000
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
"""Titles, whether numbers stand below, and the least width."""
_STYLES: Final = {"connected": "green", "waiting": "yellow", "failed": "red", "opening": "cyan"}


class Overview:
    """What is known of the sensors at this moment, without being the process that reads them."""

    def __init__(self, folder: Path, catalog: str | None, name: str | None) -> None:
        self._folder = folder
        self._catalog = SensorCatalog.open(catalog or folder / CATALOG_FILE)
        self._name = None if name is None else self._catalog.require_declaration(name).name

    def __enter__(self) -> Overview:
        return self

    def __exit__(self, *_: object) -> None:
        self._catalog.close()

    def table(self, *, full: bool = False) -> Table:
        """All sensors; those that are read first, and not more than a screen holds unless full."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for title, is_number, width in _COLUMNS:
            table.add_column(
                title,
                justify="right" if is_number else "left",
                no_wrap=True,
                min_width=width,
                overflow="ellipsis",
            )
        rows = sorted(self._rows(), key=lambda row: row[0])
        shown = rows if full else rows[:_MOST_ROWS]
        for _, cells in shown:
            table.add_row(*cells)
        if len(shown) < len(rows):
            table.caption = f"and {len(rows) - len(shown)} more, which `nilometer sensors list` has"
        return table

    def summary(self) -> str:
        """Who reads the sensors, and how far each stream has come."""
        status = self._status()
        if status is None:
            return "no process has this database open: nothing is read"
        lines = [f"read by process {status['pid']}"]
        for one in status["streams"]:
            if self._name in (None, one["name"]) and one["sensors"]:
                lines.append(_stream_line(one))
        return "\n".join(lines)

    def watch(self, console: Console, seconds: float | None) -> None:
        """Show it again and again; where that is no terminal, how it is in the end."""
        until = None if seconds is None else time.monotonic() + seconds
        with Live(console=console, auto_refresh=False) as live:
            while until is None or time.monotonic() < until:
                shown = Table.grid()
                shown.add_row(self.table())
                shown.add_row(Text(self.summary(), style="dim"))
                live.update(shown, refresh=True)
                time.sleep(_EVERY)

    def _status(self) -> dict[str, Any] | None:
        status = read_status(self._folder / STATUS_FILE)
        if status is None or now_micros() - status["time"] > _STALE:
            return None
        return status

    def _rows(self) -> Iterator[tuple[tuple[object, ...], list[Text]]]:
        status = self._status()
        known = {(one["stream"], one["number"]): one for one in (status or {}).get("sensors", [])}
        for declared in self._catalog.declarations():
            if self._name not in (None, declared.name):
                continue
            if declared.is_sensor_table:
                found = [
                    (one.number, one.name, shown_address(one.address))
                    for one in self._catalog.sensors(declared.name)
                ]
            else:
                found = [(0, "", shown_address(declared.only_sensor.address))]
            for number, sensor, address in found:
                doing = known.get((declared.name, number))
                order = (doing is None, declared.name, number)
                yield order, [Text(declared.name), Text(sensor), *_cells(doing, address)]


def _cells(doing: dict[str, Any] | None, address: str) -> list[Text]:
    if doing is None:
        return [Text("not needed", style="dim"), *(Text("") for _ in range(6)), Text(address)]
    state, error = doing["state"], doing["last_error"]
    last = doing["last_time"]
    return [
        Text(state, style=_STYLES.get(state, "")),
        Text(f"{doing['readings']:,}"),
        Text(f"{doing['rate']:.1f}"),
        Text((doing["last_value"] or "")[:60]),
        Text("" if last is None else format_instant(last)[11:23]),
        Text(str(doing["errors"] or "")),
        Text(str(doing["dead_letters"] or "")),
        Text(address if state == "connected" or not error else error[:120]),
    ]


def _stream_line(one: dict[str, Any]) -> str:
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
