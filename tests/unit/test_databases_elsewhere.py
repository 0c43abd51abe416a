"""Databases whose catalog is in PostgreSQL, or whose logs are in an object store.

What backups refuse, what a check finds, and that nobody begins with an empty catalog by a slip.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyarrow import fs
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.database.home import Home
from nilometer.errors import BackupError, CatalogError, InputError, NilometerError
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.location import inside, storage_at
from nilometer.sensors.declaration import Declaration
from nilometer.upkeep.backup import make_backup
from nilometer.upkeep.catalog_place import catalog_elsewhere
from nilometer.upkeep.check import check_database
from nilometer.upkeep.places import PLACE_OF_CATALOG
from tests.postgres import Postgres
from tests.s3_server import S3_ENVIRONMENT, s3_server

_STREAM = Declaration("A", pa.schema([("k", pa.int64())]), "http")


def make(folder: Path, catalog: str | None = None, logs: str | None = None) -> Path:
    """A closed database with one stream of two rows."""
    home = opened(folder, catalog, logs)
    try:
        home.catalog.create(_STREAM)
        home.add_stream(_STREAM)
        rows = [pa.array([1, 2], pa.int64()), pa.array([1, 2], pa.int64()).cast(TIMESTAMP)]
        writer = home.manager._watched["A"].stream.store.writer
        writer.append(pa.RecordBatch.from_arrays(rows, names=["k", TIME]))
    finally:
        home.close()
    return folder


def opened(folder: Path, catalog: str | None = None, logs: str | None = None) -> Home:
    return Home(folder, catalog, logs, lambda rows, where: set())


def damage(log: str) -> None:
    """Change a bit of the last row of a log."""
    system, folder = fs.FileSystem.from_uri(log if "://" in log else f"file://{log}")
    files = system.get_file_info(fs.FileSelector(folder))
    path = next(one.path for one in files if one.base_name.startswith("0"))
    with system.open_input_stream(path) as file:
        content = file.readall().rstrip(b"\0")
    with system.open_output_stream(path) as file:
        file.write(content[:-1] + bytes([content[-1] ^ 1]))


def refusal(*words: str | Path) -> NilometerError:
    """With what a command is refused."""
    error = CliRunner().invoke(app, [*map(str, words)]).exception
    assert isinstance(error, NilometerError)
    return error


def test_a_catalog_in_postgresql_is_known_to_the_folder(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database().replace("postgres@", "postgres:secret@")
    folder = make(tmp_path / "plant", url)
    assert catalog_elsewhere(folder) == url.replace(":secret", "").replace(
        str(postgres.folder), quote(str(postgres.folder), safe="")
    )
    with pytest.raises(InputError, match="the catalog of the database .* is elsewhere") as said:
        opened(folder)
    assert "postgresql://postgres@/" in str(said.value.detail)
    assert refusal("tokens", "list", "--db", folder).message == said.value.message
    assert sorted(one.name for one in folder.iterdir() if "catalog" in one.name) == [
        PLACE_OF_CATALOG
    ]
    again = opened(folder, url)
    try:
        assert [one.name for one in again.catalog.declarations()] == ["A"]
        with pytest.raises(BackupError, match="entirely in files"):
            again.back_up(str(tmp_path / "backups"))
    finally:
        again.close()
    make(tmp_path / "plain", str(tmp_path / "plain" / "catalog.sqlite"))
    assert catalog_elsewhere(tmp_path / "plain") is None


def test_a_backup_says_what_to_do_about_a_catalog_in_postgresql(
    tmp_path: Path, postgres: Postgres
) -> None:
    folder = make(tmp_path / "plant", postgres.new_database())
    (folder / "catalog.sqlite").touch()  # as releases left it that opened it without its catalog
    said = refusal("backup", folder, tmp_path / "backups")
    assert said.message == "only a database that is entirely in files can be backed up"
    assert str(said.detail).startswith("its catalog is in postgresql://")
    assert "pg_dump" in str(said.hint)
    assert "objects" not in str(said.hint)
    assert not list((tmp_path / "backups").rglob("*.json"))


def test_a_check_reads_a_catalog_in_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database()
    folder = make(tmp_path / "plant", url)
    assert check_database(folder).problems == ()
    assert "everything is intact" in CliRunner().invoke(app, ["check", str(folder)]).output
    damage(str(folder / "logs" / "a"))
    assert check_database(folder, catalog=url).problems
    (folder / "logs" / "a").rename(tmp_path / "away")
    problems = check_database(folder).problems
    assert [one.what for one in problems] == ["the log of A is missing"]
    with pytest.raises(CatalogError, match="cannot be used"):
        check_database(folder, catalog="postgresql:///none?host=/nowhere")


def test_logs_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3_server() as options:
        logs = f"s3://somebody:secret@plant/logs?{options}"
        folder = make(tmp_path / "plant", logs=logs)
        said = refusal("backup", folder, tmp_path / "backups")
        assert str(said.detail).startswith("its logs are in s3://plant/logs?")
        assert "move-logs" in str(said.hint)
        assert "pg_dump" not in str(said.hint)
        with pytest.raises(BackupError, match="entirely in files"):
            make_backup(folder, str(tmp_path / "backups"), tmp_path / "others")
        assert check_database(folder).problems == ()
        damage(inside(logs, "a"))
        problems = check_database(folder, logs).problems
        assert problems
        assert all(one.where.startswith("s3://plant/logs/a") for one in problems)
        storage_at(inside(logs, "a")).remove()
        problems = check_database(folder, logs).problems
        assert [one.what for one in problems] == ["the log of A is missing"]
