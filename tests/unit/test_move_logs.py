"""A database knows where its logs are, and moves them as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.database.home import Home
from nilometer.database.statements import run_statement
from nilometer.errors import InputError, InUseError, LogError
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.local_storage import LocalStorage
from nilometer.log.reader import LogReader
from nilometer.sql.ddl.nodes import CreateStream
from nilometer.sql.statements import read_one
from nilometer.upkeep.logs_place import PLACE_OF_LOGS, logs_of, without_password
from nilometer.upkeep.move_logs import move_logs
from tests.running_queries import Starts, open_queries


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed database with two streams of rows."""
    folder = tmp_path / "plant"
    with open_queries(folder, Starts(), monkeypatch) as (home, queries):
        for name in ("A", "b c"):
            read = read_one(f"CREATE STREAM `{name}` (k BIGINT) FROM http")
            assert isinstance(read, CreateStream)
            run_statement(read, home, queries)
            rows = [pa.array([1, 2], pa.int64()), pa.array([1, 2], pa.int64()).cast(TIMESTAMP)]
            writer = home.manager._watched[name].stream.store.writer
            writer.append(pa.RecordBatch.from_arrays(rows, names=["k", TIME]))
    return folder


def opened(folder: Path, logs: str | None = None) -> Home:
    return Home(folder, None, logs, lambda rows, where: set())


def rows_of(home: Home) -> list[int]:
    try:
        return [LogReader.open(home.log_of(name)).end.row for name in ("A", "b c")]
    finally:
        home.close()


def test_moved_logs_are_found_without_being_named(plant: Path, tmp_path: Path) -> None:
    reported: list[str] = []
    moved = move_logs(plant, str(tmp_path / "new"), tell=lambda name, _: reported.append(name))
    assert (moved.logs, moved.before) == (2, str(plant / "logs"))
    assert sorted(reported) == ["a", "b%20c"]
    assert logs_of(plant) == str(tmp_path / "new")
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == ["a", "b%20c"]
    (plant / "logs").rename(tmp_path / "old")
    assert rows_of(opened(plant)) == [2, 2]
    assert rows_of(opened(plant, str(tmp_path / "new"))) == [2, 2]
    (tmp_path / "plant").rename(tmp_path / "moved")
    move_logs(tmp_path / "moved", str(tmp_path / "moved" / "logs"))
    assert not (tmp_path / "moved" / PLACE_OF_LOGS).exists()
    assert rows_of(opened(tmp_path / "moved")) == [2, 2]


def test_other_logs_than_its_own_are_refused(plant: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are elsewhere") as said:
        opened(plant, str(tmp_path / "empty"))
    assert f"they are in {plant}/logs" in str(said.value)
    assert not (tmp_path / "empty").exists()
    assert rows_of(opened(plant, f"{plant}/logs")) == [2, 2]
    new = tmp_path / "other"
    opened(new, "s3://key:secret@bucket/x?region=b").close()
    with pytest.raises(InputError, match="are elsewhere"):
        opened(new, str(tmp_path / "empty"))
    assert "secret" not in (new / PLACE_OF_LOGS).read_text()


def test_a_damaged_note_of_the_place_is_reported(plant: Path, tmp_path: Path) -> None:
    move_logs(plant, str(tmp_path / "new"))
    note = plant / PLACE_OF_LOGS
    note.write_bytes(note.read_bytes().replace(b"new", b"old"))
    with pytest.raises(InputError, match="logs-place is damaged"):
        opened(plant)


def test_a_move_that_was_broken_off_is_begun_again(
    plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LocalStorage.write

    def fail(self: LocalStorage, name: str, *given: object, **more: object) -> None:
        if "b%20c" in self.location:
            raise LogError("the line is dead")
        write(self, name, *given, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "write", fail)
        with pytest.raises(LogError, match="the line is dead"):
            move_logs(plant, str(tmp_path / "new"))
    assert rows_of(opened(plant)) == [2, 2]
    assert logs_of(plant) == str(plant / "logs")
    assert move_logs(plant, str(tmp_path / "new")).logs == 2


def test_nothing_that_is_there_is_replaced(plant: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    (full / "a").mkdir(parents=True)
    with pytest.raises(InputError, match="is not empty"):
        move_logs(plant, str(full))
    with pytest.raises(InputError, match="there already"):
        move_logs(plant, f"{plant}/logs/")
    with pytest.raises(InputError, match="there is no catalog"):
        move_logs(tmp_path / "nothing", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    home = opened(plant)
    with pytest.raises(InUseError, match="is open"):
        move_logs(plant, str(tmp_path / "new"))
    home.close()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://key:sec@ret@bucket/x?region=a", "s3://bucket/x?region=a"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("/a@b/c", "/a@b/c"),
    ],
)
def test_passwords_are_not_stored(given: str, stored: str) -> None:
    assert without_password(given) == stored
