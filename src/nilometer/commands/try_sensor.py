"""`nilometer sensors test`: reads one sensor into a log that is discarded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from nilometer.commands.server_access import Server
from nilometer.database.try_sensor import Row, choose_sensor, read_aside
from nilometer.database.units import Units
from nilometer.model.names import count
from nilometer.model.secrets import shown_address
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.upkeep.catalog_place import settle_catalog


def try_sensor(
    folder: Path,
    catalog: str | None,
    name: str,
    sensor: str | None,
    seconds: float,
    limit: int,
    console: Console,
) -> bool:
    """Show what a sensor sends; return whether a reading arrived that can be stored."""
    with SensorCatalog.open(settle_catalog(folder, catalog)) as stored:
        declared = stored.require_declaration(name)
        sensors = stored.sensors(declared.name) if declared.is_sensor_table else []
        chosen = choose_sensor(declared, sensors, sensor)
    console.print(f"reading {shown_address(chosen.address) or declared.name} for {seconds:g} s")
    take = partial(_show, console=console)
    tried = read_aside(declared, chosen, Units().find, seconds=seconds, max_rows=limit, take=take)
    _sum_up(tried.letters, tried.refused, tried.errors, tried.last_error, tried.came, console)
    return tried.came > 0


def try_sensor_of_server(
    server: Server, name: str, sensor: str | None, seconds: float, limit: int, console: Console
) -> bool:
    """The same for a sensor of a running server."""
    console.print(f"the server reads {name} for {seconds:g} s at most")
    with server.open() as client:
        result = client.try_sensor(name, sensor, seconds=seconds, rows=limit)
    for row in result["readings"]:
        _show(row, console)
    letters, came = result["refused"], len(result["readings"])
    _sum_up(letters, len(letters), result["errors"], result["last_error"], came, console)
    return came > 0


def _show(row: Row, console: Console) -> None:
    console.print(json.dumps(row, default=str, ensure_ascii=False), soft_wrap=True)


def _sum_up(
    letters: Sequence[Row],
    refused: int,
    errors: int,
    last_error: str | None,
    came: int,
    console: Console,
) -> None:
    """Report what could not be stored, what went wrong, and how many readings arrived."""
    for row in letters:
        console.print(f"refused: {row['reason']}: {row['payload'][:200]}", soft_wrap=True)
    if refused:
        console.print(f"{count(refused, 'reading')} refused")
    if errors:
        console.print(f"{count(errors, 'error')}, the last: {last_error}", soft_wrap=True)
    console.print(f"{count(came, 'reading')} came")
