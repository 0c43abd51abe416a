"""`nilometer sensors`: what it shows, and what it says of what is not there or not readable."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.database.home import STATUS_FILE
from nilometer.errors import InputError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import CatalogStatement, execute
from nilometer.sql.statements import read_statements
from nilometer.upkeep.places import CATALOG_FILE

MADE = (
    "CREATE SENSOR TABLE Sensors (id INT, Reading STREAM(v INT) FROM synthetic); "
    "INSERT INTO Sensors VALUES (7, 'seven'), (NULL, 'nobody')"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with SensorCatalog.open(tmp_path / CATALOG_FILE) as catalog:
        for statement in read_statements(MADE):
            execute(catalog, cast(CatalogStatement, statement))
    return tmp_path


def shown(folder: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["sensors", *arguments, "--db", str(folder)])
    if isinstance(done.exception, InputError):
        raise done.exception
    assert done.exception is None, done.exception
    return done.output


def test_sensors_are_listed_though_nobody_reads_them(folder: Path) -> None:
    output = shown(folder, "list")
    assert re.search(r"Sensors +7 +not needed +seven", output)
    assert re.search(r"Sensors +NULL +not needed +nobody", output)
    assert "nothing is read" in output


@pytest.mark.parametrize("command", ["list", "watch"])
def test_looking_makes_no_database(tmp_path: Path, command: str) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="there is no database at"):
            shown(place, command)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "7", "{}", '{"time": 1}', "\udcff"])
def test_a_status_that_cannot_be_read_is_none(folder: Path, content: str) -> None:
    (folder / STATUS_FILE).write_bytes(content.encode(errors="surrogateescape"))
    assert "nothing is read" in shown(folder, "list")
    assert "nothing is read" in shown(folder, "watch", "--seconds", "0.1")


def test_a_status_is_shown_while_it_is_new(folder: Path) -> None:
    status = {"time": 1 << 60, "pid": 4711, "streams": [], "sensors": []}
    (folder / STATUS_FILE).write_text(json.dumps(status))
    assert "read by process 4711" in shown(folder, "list")
