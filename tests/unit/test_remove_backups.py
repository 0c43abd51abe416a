"""Old backups go, and nothing that another backup needs."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.errors import BackupError, InputError
from nilometer.log.location import storage_at
from nilometer.server.settings import ServerSettings
from nilometer.upkeep.backup import list_backups, make_backup
from nilometer.upkeep.manifest import Manifest
from nilometer.upkeep.remove import BACKUP, REMOVAL, at_work, remove_backups
from nilometer.upkeep.restore import restore_backup
from tests.served import served
from tests.unit.test_backups import FIRST, Plant


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    with closing(Plant(tmp_path / "db")) as made:
        made.add_rows(random.Random(1), 0)
        made.create("c", FIRST)
        made.settle()
        yield made


def manifests(backups: str) -> list[Manifest]:
    return [one for one in list_backups(backups) if isinstance(one, Manifest)]


def objects(backups: str) -> set[str]:
    return {name for name, _ in storage_at(backups).files("objects")}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_can_be_restored_and_nothing_else_is_kept(
    plant: Plant, tmp_path: Path, seed: int
) -> None:
    chance, now = random.Random(seed), 1
    backups = str(tmp_path / "backups")
    for number in range(6):
        for _ in range(chance.randrange(4)):
            now = plant.step(chance, now)
        made = make_backup(plant.folder, backups)
        if chance.random() < 0.6:
            keep, before = chance.randrange(1, 4), manifests(backups)
            sizes = dict(storage_at(backups).files("objects"))
            removed = remove_backups(backups, made.manifest.database, keep)
            assert manifests(backups) == before[-keep:]
            assert removed.names == tuple(one.name for one in before[:-keep])
            gone = sizes.keys() - objects(backups)
            assert removed.freed == sum(sizes[one] for one in gone)
            needed = {file.object for one in before[-keep:] for file in one.files}
            assert objects(backups) == needed
        for left in manifests(backups):
            restore_backup(backups, tmp_path / f"{number} {left.name}", left.name)


def test_backups_of_another_database_stay(plant: Plant, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    make_backup(plant.folder, backups)
    with closing(Plant(tmp_path / "other")) as other:
        make_backup(other.folder, backups)
        second = make_backup(other.folder, backups)
    removed = remove_backups(backups, second.manifest.database, 1)
    assert len(removed.names) == 1
    assert {one.database for one in manifests(backups)} == {
        str(plant.folder),
        str(tmp_path / "other"),
    }
    restore_backup(backups, tmp_path / "restored", manifests(backups)[0].name)


def test_a_damaged_manifest_stops_it_before_anything_goes(plant: Plant, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    for _ in range(3):
        made = make_backup(plant.folder, str(backups))
    damaged = sorted((backups / "backups").iterdir())[1]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    before = objects(str(backups))
    with pytest.raises(BackupError, match="is damaged"):
        remove_backups(str(backups), made.manifest.database, 1)
    assert objects(str(backups)) == before
    assert len(list((backups / "backups").iterdir())) == 3


def test_removals_and_backups_keep_out_of_each_others_way(plant: Plant, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    database = make_backup(plant.folder, backups).manifest.database
    storage = storage_at(backups)
    with at_work(storage, BACKUP):
        make_backup(plant.folder, backups)  # two at a time do no harm
        with pytest.raises(BackupError, match="a backup is being made"):
            remove_backups(backups, database, 1)
    with at_work(storage, REMOVAL), pytest.raises(BackupError, match="old backups are being"):
        make_backup(plant.folder, backups)
    with at_work(storage, REMOVAL), pytest.raises(BackupError, match="old backups are being"):
        remove_backups(backups, database, 1)
    storage.write("at-work/backup-1", [b"{"])
    with pytest.raises(BackupError, match="a backup is being made") as refused:
        remove_backups(backups, database, 1)
    assert "delete at-work/backup-1" in str(refused.value.hint)
    old = {"at": time.time() - 100_000, "by": "process 1"}
    storage.write("at-work/backup-1", [json.dumps(old).encode()])
    assert len(remove_backups(backups, database, 1).names) == 1
    assert not list(storage.files("at-work"))
    with pytest.raises(InputError, match="at least one"):
        remove_backups(backups, database, 0)


def test_on_the_command_line(plant: Plant, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    for _ in range(3):
        done = CliRunner().invoke(app, ["backup", str(plant.folder), backups, "--keep", "2"])
        assert done.exit_code == 0, done.output
    assert "removed 1 old backup, " in done.output
    assert len(manifests(backups)) == 2


def test_on_a_server(tmp_path: Path) -> None:
    settings = ServerSettings(backups=(str(tmp_path / "backups"),), keep_backups=1)
    db = tmp_path / "db"
    db.mkdir()
    with served(db, settings) as server:
        server.database.back_up = partial(make_backup, db)  # type: ignore[attr-defined]
        assert server.ask("POST", "/backups", "admin", json={}).json()["removed"] == 0
        assert server.ask("POST", "/backups", "admin", json={}).json()["removed"] == 1
        assert len(server.ask("GET", "/backups", "admin").json()) == 1
