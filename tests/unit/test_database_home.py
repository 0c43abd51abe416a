"""A database's folder: opened wholly or not at all, and what a killed process left in it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NoReturn, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from nilometer.database.home import Home
from nilometer.database.known import Reading, everything_known
from nilometer.database.running import RunningQueries
from nilometer.database.statements import run_statement
from nilometer.errors import InputError, LogError, NilometerError
from nilometer.log.sealed import seal, unseal
from nilometer.log.writer import LogWriter
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.statements import read_one
from nilometer.upkeep.places import CATALOG_FILE
from tests.patience import wait_for


def open_home(folder: Path) -> Home:
    return Home(folder, None, None, lambda rows, where: set())


def run(home: Home, sql: str) -> str:
    read = read_one(sql)
    assert not isinstance(read, Statement)
    return run_statement(read, home, RunningQueries(home, _no_plans, 1)).message


def _no_plans(*_: object) -> NoReturn:
    raise AssertionError("no query is planned here")


def test_a_database_that_cannot_be_opened_holds_nothing(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM A (v INT) FROM synthetic")
    run(home, "CREATE STREAM B (v INT) FROM synthetic")
    home.close()
    catalog = home.folder / CATALOG_FILE
    whole = catalog.read_bytes()
    catalog.write_bytes(b"no catalog at all" * 100)
    threads = threading.active_count()
    for _ in range(2):
        with pytest.raises(NilometerError):
            open_home(tmp_path)
    wait_for(lambda: threading.active_count() <= threads)  # the last of them may be ending
    catalog.write_bytes(whole)
    open_home(tmp_path).close()


def test_a_broken_log_is_nobody_elses_trouble(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM A (v INT) FROM synthetic")
    run(home, "CREATE STREAM B (v INT) FROM synthetic")
    layout = Path(home.log_of("b"), "layout.json")
    home.close()
    content = unseal(layout.read_bytes()).replace(b'"format": 1', b'"format": 99')
    layout.write_bytes(seal(content))
    home = open_home(tmp_path)
    statement = read_one("SHOW STREAMS")
    assert not isinstance(statement, Statement)
    shown = run_statement(statement, home, RunningQueries(home, _no_plans, 1)).rows
    assert shown is not None
    errors = dict(zip(shown["name"].to_pylist(), shown["error"].to_pylist(), strict=True))
    assert errors["A"] is None
    assert errors["B"].startswith("a log of another version")
    logs = everything_known({}, {}, home, cast("SparkSession", None), Reading()).inputs.logs
    assert logs["A"].location == home.log_of("A")
    with pytest.raises(LogError, match="the log of B cannot be used"):
        logs["B"]
    assert run(home, "DROP STREAM B") == "dropped stream B"
    assert run(home, "CREATE STREAM B (v INT) FROM synthetic") == "created stream B"
    home.close()


def test_a_stream_begins_without_what_a_dropped_one_left(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM A (v INT) FROM synthetic")
    declared = home.catalog.require_declaration("A")
    home.manager.forget("A")
    with LogWriter.open(home.log_of("A"), declared.layout) as writer:
        schema = declared.layout.stored
        columns = [pa.nulls(3, one.type) for one in schema]
        writer.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    home.catalog.drop(ObjectKind.STREAM, "A")  # and here the process ends
    home.close()
    home = open_home(tmp_path)
    assert run(home, "CREATE STREAM a (v INT, w STRING) FROM synthetic") == "created stream a"
    assert home.manager.streams()[0].rows == 0
    run(home, "DROP STREAM a")
    assert not Path(home.log_of("a")).exists()
    home.close()


@pytest.mark.parametrize("damaged", ["layout.json", "readers/me.json"])
def test_a_damaged_file_is_named(tmp_path: Path, damaged: str) -> None:
    home = open_home(tmp_path)
    run(home, "CREATE STREAM A (v INT) FROM synthetic")
    file = Path(home.log_of("a"), damaged)
    home.close()
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    home = open_home(tmp_path)
    error = home.broken["A"]
    home.close()
    assert error.message == "the log is damaged"
    assert damaged in str(error.detail)


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    for place in (taken, taken / "below", Path("/proc/nothing")):
        with pytest.raises(InputError, match="cannot be opened"):
            open_home(place)


def test_a_sensor_that_cannot_be_reached_says_why_in_one_line() -> None:
    record = SensorRecord("A", 1, "one", "")
    record.note_error(InputError("no URL", detail="got 'x'", hint="write http://host"))
    assert record.last_error == "no URL; got 'x'; write http://host"
    record.note_error(OSError("two\n  lines"))
    assert record.last_error == "OSError: two lines"
