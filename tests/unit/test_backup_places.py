"""Where backups go, what they share, and what is refused; a backup that is killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from pyarrow import fs
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.errors import BackupError, InputError
from nilometer.log.location import storage_at
from nilometer.log.reader import LogReader
from nilometer.server.settings import ServerSettings
from nilometer.upkeep.backup import list_backups, make_backup
from nilometer.upkeep.check import check, check_database
from nilometer.upkeep.manifest import Manifest, read_manifest
from nilometer.upkeep.restore import restore_backup
from tests.file_systems import register_file_system
from tests.s3_server import S3_ENVIRONMENT, s3_server
from tests.served import served
from tests.unit.log_samples import ObjectStore
from tests.unit.test_backups import FIRST, Plant
from tests.unit.test_engine import STREAMS

SLOW = """
import sys
from pathlib import Path
from nilometer.log.local_storage import LocalStorage
from nilometer.upkeep.backup import make_backup
write, left = LocalStorage.write, int(sys.argv[3])
def slow(self, name, chunks, **how):
    global left
    if name.startswith("at-work/"):
        return write(self, name, chunks, **how)
    if not left:
        print("now", flush=True)
        sys.stdin.read()
    left -= 1
    write(self, name, chunks, **how)
LocalStorage.write = slow
make_backup(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    with closing(Plant(tmp_path / "db")) as made:
        now = made.add_rows(random.Random(1), 0)
        made.create("c", FIRST)
        for number in range(20):
            now = made.add_rows(random.Random(number), now)
        made.settle()
        yield made


def rows_of(folder: Path, log: str) -> list[dict[str, object]]:
    read = LogReader.open(folder / "logs" / log)
    return [row for one in read.read(read.start) for row in one.rows.to_pylist()]


def check_restored(plant: Plant, destination: str, folder: Path) -> None:
    restore_backup(destination, folder)
    assert check_database(folder).problems == ()
    for log in (*(one.lower() for one in STREAMS), "c"):
        assert rows_of(folder, log) == rows_of(plant.folder, log)


def test_backups_share_what_they_have_in_common(plant: Plant, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    first = make_backup(plant.folder, backups)
    again = make_backup(plant.folder, backups)
    assert first.written >= first.manifest.size * 0.9
    assert again.written < first.written
    assert again.manifest.name > first.manifest.name
    stamped = [one for one in first.manifest.files if one.stamp is not None]
    assert stamped
    after = {one.path: one for one in again.manifest.files}
    assert all(after[one.path] == one for one in stamped), "they are not copied again"
    assert [one.name for one in list_backups(backups) if isinstance(one, Manifest)] == [
        first.manifest.name,
        again.manifest.name,
    ]
    assert (tmp_path / "backups").stat().st_mode & 0o077 == 0
    check_restored(plant, backups, tmp_path / "restored")


def test_backups_in_a_store_of_objects(plant: Plant, tmp_path: Path) -> None:
    register_file_system("bucket", fs.PyFileSystem(ObjectStore()))
    make_backup(plant.folder, "bucket://things/backups")
    make_backup(plant.folder, "bucket://things/backups")
    assert check("bucket://things/backups").problems == ()
    check_restored(plant, "bucket://things/backups", tmp_path / "restored")


def test_backups_in_s3(plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3_server() as options:
        place = f"s3://plant/backups?{options}"
        make_backup(plant.folder, place)
        make_backup(plant.folder, place)
        assert len(list_backups(place)) == 2
        assert check(place).problems == ()
        check_restored(plant, place, tmp_path / "restored")


@pytest.mark.parametrize("writes", [0, 1])
def test_a_backup_that_is_killed_leaves_the_others(
    plant: Plant, tmp_path: Path, writes: int
) -> None:
    backups = str(tmp_path / "backups")
    good = make_backup(plant.folder, backups)
    plant.add_rows(random.Random(3), 1000)
    command = [sys.executable, "-c", SLOW, str(plant.folder), backups, str(writes)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        assert len(list(plant.folder.glob(".backup-*"))) == 1 - writes
        process.send_signal(signal.SIGKILL)
    assert [one.name for one in list_backups(backups) if isinstance(one, Manifest)] == [
        good.manifest.name
    ]
    assert check(backups).problems == ()
    make_backup(plant.folder, backups)
    assert not list(plant.folder.glob(".backup-*"))
    check_restored(plant, backups, tmp_path / "restored")


def test_what_is_refused(plant: Plant, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    with pytest.raises(BackupError, match="there are no backups"):
        restore_backup(backups, tmp_path / "new")
    for inside in (plant.folder, plant.folder / "backups"):
        with pytest.raises(BackupError, match="cannot be inside the database itself"):
            make_backup(plant.folder, str(inside))
    with pytest.raises(InputError, match="there is no catalog"):
        make_backup(tmp_path / "nothing", backups)
    made = make_backup(plant.folder, backups).manifest
    with pytest.raises(BackupError, match="there is no backup 2000"):
        restore_backup(backups, tmp_path / "new", "2000")
    with pytest.raises(BackupError, match="is not the name of a backup"):
        restore_backup(backups, tmp_path / "new", "../../x")
    with pytest.raises(InputError, match="is not empty"):
        restore_backup(backups, plant.folder)
    for damaged in (tmp_path / "backups" / "objects").iterdir():
        content = damaged.read_bytes()
        damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BackupError, match="the backup is damaged"):
        restore_backup(backups, tmp_path / "new", made.name)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backups", "db"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "logs/../../x", "", "a/./b"])
def test_a_manifest_cannot_name_files_elsewhere(plant: Plant, tmp_path: Path, path: str) -> None:
    backups = tmp_path / "backups"
    made = make_backup(plant.folder, str(backups)).manifest
    file = made.files[0]
    bad = Manifest(made.name, made.created, made.release, made.database, (file,))
    text = json.loads(bad.to_bytes())["manifest"].replace(f'"{file.path}"', json.dumps(path))
    content = json.dumps({"sha256": sha256(text.encode()).hexdigest(), "manifest": text})
    with pytest.raises(BackupError, match="is damaged") as refusal:
        Manifest.from_bytes(content.encode(), made.name)
    assert "not a path inside" in str(refusal.value.detail)


def test_a_manifest_cannot_name_another_backup(plant: Plant, tmp_path: Path) -> None:
    """The name is a path of what is removed with old backups."""
    made = make_backup(plant.folder, str(tmp_path / "backups")).manifest
    bad = replace(made, name="../../elsewhere")
    with pytest.raises(BackupError, match="is damaged") as refusal:
        Manifest.from_bytes(bad.to_bytes(), made.name)
    assert refusal.value.detail == "it is named '../../elsewhere'"


def test_the_commands(plant: Plant, tmp_path: Path) -> None:
    run, backups = CliRunner().invoke, str(tmp_path / "backups")
    made = run(app, ["backup", str(plant.folder), backups])
    assert made.exit_code == 0, made.output
    name = made.stdout.split(":")[0].removeprefix("made the backup ")
    assert read_manifest(storage_at(backups), name).database == str(plant.folder)
    listed = run(app, ["backup", "--list", backups])
    assert name in listed.stdout
    restored = run(app, ["restore", backups, str(tmp_path / "new"), "--name", name])
    assert restored.stdout.startswith(f"restored the backup {name} of {plant.folder} to ")
    assert check_database(tmp_path / "new").problems == ()
    assert isinstance(run(app, ["backup", str(plant.folder)]).exception, InputError)
    assert isinstance(run(app, ["backup"]).exception, InputError)
    assert "no backups" in run(app, ["backup", "--list", str(tmp_path / "other")]).stdout


def test_a_server_writes_only_where_its_configuration_says(tmp_path: Path) -> None:
    allowed, db = str(tmp_path / "backups"), tmp_path / "db"
    db.mkdir()
    with served(db, ServerSettings(backups=(allowed,))) as server:
        server.database.back_up = partial(make_backup, db)  # type: ignore[attr-defined]
        for scope in ("read", "write"):
            assert server.ask("POST", "/backups", scope, json={}).status_code == 403
            assert server.ask("GET", "/backups", scope).status_code == 403
        elsewhere = {"destination": str(tmp_path / "other")}
        refused = server.ask("POST", "/backups", "admin", json=elsewhere)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"].startswith("backups may not go to")
        assert not (tmp_path / "other").exists()
        made = server.ask("POST", "/backups", "admin", json={})
        assert made.status_code == 201, made.text
        listed = server.ask("GET", "/backups", "admin").json()
        assert [one["name"] for one in listed] == [made.json()["name"]]
    restore_backup(allowed, tmp_path / "restored")
    assert check_database(tmp_path / "restored").problems == ()
    with served(db) as server:
        refused = server.ask("POST", "/backups", "admin", json={})
        assert refused.status_code == 400
        assert "does not know where backups go" in refused.text
