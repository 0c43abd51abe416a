"""`nilometer check`: damage of any kind, anywhere in a database or a backup, is found."""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.database.home import Home
from nilometer.engine.bucket_files import BucketFolder
from nilometer.engine.folder import LocalFolder
from nilometer.engine.publisher import Publisher
from nilometer.engine.stuck_results import WaitingResults, put_aside
from nilometer.errors import InputError, LogError
from nilometer.log.clock import now_micros
from nilometer.log.frame_format import encode_frame
from nilometer.log.layout import SENSOR, TIME, TIMESTAMP
from nilometer.log.local_storage import LocalStorage
from nilometer.log.location import storage_at
from nilometer.log.options import LogOptions
from nilometer.log.packed_segment import _indexes
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.log.sealed import unseal
from nilometer.log.segment_files import segment_files
from nilometer.log.static_rows import add_static_rows
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.declaration import Declaration
from nilometer.spark.checkpoint import Checkpoint
from nilometer.upkeep.backup import make_backup
from nilometer.upkeep.check import check, check_database
from nilometer.upkeep.check_log import check_log
from nilometer.upkeep.problem import Problems
from nilometer.upkeep.query_state import kept_queries
from tests.examples import share_of, some_of
from tests.unit.log_samples import LAYOUT, rows_from
from tests.unit.test_backups import FIRST, OPTIONS, SECOND, Plant
from tests.unit.test_engine import STATEMENTS
from tests.unit.test_log_base import Changelog

QUERY = "0b3f"
BATCHES = 4
NOT_KEPT = (
    "lock",
    "status.json",
    "rates.json",
    "plans",
    "shown-",
    ".at-work",
    ".why",
    "-wal",
    "-shm",
    ".sum",
)
"""What is of no use once nobody has the database open; and a checksum that is made anew."""


def add_checksum(file: Path) -> None:
    """What Hadoop's file system keeps beside a file."""
    content = file.read_bytes()
    sums = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
    head = b"crc\x00" + (512).to_bytes(4, "big")
    file.with_name(f".{file.name}.crc").write_bytes(
        head + b"".join(one.to_bytes(4, "big") for one in sums)
    )


def make_checkpoint(folder: Path) -> None:
    """A checkpoint of some micro-batches, as Spark leaves it."""
    files: dict[str, bytes] = {"metadata": json.dumps({"id": QUERY}).encode()}
    for number in range(BATCHES):
        plan = f'v1\n{{"batchTimestampMs":{number}}}\n{{"row": {number}}}'
        files[f"offsets/{number}"] = plan.encode()
        files[f"commits/{number}"] = b'v1\n{"nextBatchWatermarkMs":0}'
        for bucket in range(2):
            files[f"state/0/{bucket}/{number + 1}.changelog"] = bytes(range(256)) * 3
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with ZipFile(folder / "state/0/0/2.zip", "w") as archive:
        archive.writestr("metadata", "x" * 100)
    for file in list(folder.rglob("*")):
        if file.is_file():
            add_checksum(file)


def make_results(folder: Path, checkpoint: Path) -> None:
    """The results of a query that has an engine of its own."""
    with LogWriter.open(folder, LAYOUT, LogOptions(segment=1500)) as log:
        for number in range(BATCHES):
            Checkpoint(checkpoint).keep(storage_at(folder), (QUERY, number), log.last_key)
            rows = encode_frame(rows_from(10 * number, 10), TIME, None, batch=(QUERY, number))
            log.append_frames([rows], watermark=number, key=(QUERY, number))
    register(folder, "reader", log.end, {}, now=now_micros(), named=True)


def make_sensors(catalog: SensorCatalog, folder: Path) -> None:
    declared = Declaration(
        "Rooms",
        pa.schema([("heat", pa.float64())]),
        "synthetic",
        static=pa.schema([("id", pa.int64())]),
        place=1,
        column="reading",
    )
    catalog.create(declared)
    with LogWriter.open(folder, declared.layout, OPTIONS) as log:
        for number in range(6):
            versions = pa.table({SENSOR: pa.array([number], pa.int32()), "id": [number]})
            add_static_rows(folder, versions)
            columns = {SENSOR: [number] * 5, TIME: [number] * 5, "heat": [0.5] * 5}
            stored = declared.layout.stored
            arrays = [
                pa.array(columns[one.name]).cast(pa.int64()).cast(one.type)
                if one.type == TIMESTAMP
                else pa.array(columns[one.name], one.type)
                for one in stored
            ]
            log.append(pa.RecordBatch.from_arrays(arrays, schema=stored), watermark=number)
        assert log.pack()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all kinds of files."""
    folder = tmp_path_factory.mktemp("check") / "db"
    Home(folder, None, None, lambda rows, where: set()).close()
    chance, now = random.Random(5), 0
    with pytest.MonkeyPatch.context() as patch, closing(Plant(folder)) as plant:
        patch.setattr("nilometer.engine.bucket._WHOLE_AFTER_FILES", 3)
        patch.setattr("nilometer.engine.bucket_files._LARGE", 300)
        patch.setattr("nilometer.log.compaction._PAYS_FROM", 0)
        plant.create("c", FIRST)
        plant.create("d", SECOND)
        for number, sql in enumerate(STATEMENTS[:4]):
            plant.create(f"q{number}", sql)
        for _ in range(60):
            now = plant.step(chance, now)
        plant.settle()
        plant.publisher.force()
        _put_aside(plant)
        plant.stored.create_query("own", "SELECT k FROM A", "append")
        make_checkpoint(folder / "checkpoints" / "own")
        make_results(folder / "logs" / "own", folder / "checkpoints" / "own")
        make_sensors(plant.stored, folder / "logs" / "rooms")
    return folder


def _put_aside(plant: Plant) -> None:
    """Some results wait, since their log has no room."""
    waiting = Publisher(plant.engine)
    waiting._read_set()
    known = waiting._set.entries["c"]
    frame = encode_frame(rows_from(0, 3), TIME, None, batch=("c", 900))
    report = {"key": 900, "watermark": 1, "errors": {}}
    content = b"".join(bytes(chunk) for chunk in frame.chunks)
    put_aside(plant.engine, WaitingResults(known, report, [content]))
    waiting._waits("c", LogError("the log is full"))


def files_of(database: Path) -> list[Path]:
    files = [one for one in sorted(database.rglob("*")) if one.is_file()]
    return [one for one in files if not any(part in str(one) for part in NOT_KEPT)]


@contextmanager
def changed(file: Path) -> Iterator[bytes]:
    """What a file holds; it is put back in the end."""
    content = file.read_bytes()
    try:
        yield content
    finally:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)


def problems(database: Path) -> str:
    _indexes.clear()  # what was read of a pack that was not damaged yet
    return "\n".join(map(str, check_database(database).problems))


def test_a_database_that_is_whole(database: Path) -> None:
    assert problems(database) == ""
    kinds = {one.suffix or one.name for one in files_of(database)}
    assert {".seg", ".pack", ".arrow", ".batch", ".chunk", ".changelog", ".zip", "head"} <= kinds
    shown = CliRunner().invoke(app, ["check", str(database)])
    assert shown.exit_code == 0
    assert shown.stdout.endswith("everything is intact\n")


def wanted_chunks(database: Path) -> set[Path]:
    """Chunks that the last state of some query needs; the others are about to be deleted."""
    chunks = set()
    for place in (database / "engine" / "buckets").iterdir():
        files = BucketFolder(LocalFolder(place))
        for kept in kept_queries(files).values():
            chunks |= {place / one.file for one in kept.extents if one.file.endswith(".chunk")}
    return chunks


def is_wanted(file: Path, wanted: set[Path]) -> bool:
    return file.suffix != ".chunk" or file in wanted


@pytest.mark.generated
def test_a_flipped_byte_is_found_wherever_it_is(database: Path) -> None:
    chance, wanted = random.Random(1), wanted_chunks(database)
    for file in some_of(files_of(database)):
        if not is_wanted(file, wanted):
            continue
        with changed(file) as content:
            for _ in range(share_of(8)):
                at = chance.randrange(len(content))
                if file.suffix == ".crc" and 4 <= at < 8:
                    continue  # for how many bytes there is a checksum: more than there are
                flipped = bytearray(content)
                flipped[at] ^= 1 << chance.randrange(8)
                file.write_bytes(flipped)
                assert problems(database), f"{file}, byte {at} of {len(content)}"
    assert problems(database) == ""


@pytest.mark.generated
def test_a_file_that_is_cut_off_is_found(database: Path) -> None:
    chance, wanted = random.Random(2), wanted_chunks(database)
    for file in some_of(files_of(database)):
        if not is_wanted(file, wanted) or file.name in ("identity", "place"):
            continue
        with changed(file) as content:
            whole = len(unseal(content))
            for _ in range(share_of(4)):
                file.write_bytes(content[: chance.randrange(1, whole)])
                assert problems(database), f"{file} of {whole}"


def test_a_file_that_is_gone_is_found(database: Path) -> None:
    wanted = wanted_chunks(database)
    for file in files_of(database):
        match file.suffix or file.name:
            case ".seg" | ".pack":  # the oldest one may have been deleted since it was old
                is_needed = file.name != segment_files(LocalStorage(file.parent))[0].name
            case ".batch":
                among = sorted(file.parent.glob("*.batch"))
                is_needed = among[0] < file < among[-1]
            case ".chunk":
                is_needed = file in wanted
            case ".changelog":
                is_needed = int(file.stem) > 2 or file.parent.name == "1"
            case "head":  # without rows, there is nothing to lose
                is_needed = LogReader.open(file.parent).end.row > 0
            case ".arrow" | ".sqlite" | "identity" | "metadata" | "3":
                is_needed = file.parent.name != "commits"
            case _:
                is_needed = file.name in ("layout.json", "plans.json")
        if is_needed:
            with changed(file):
                file.unlink()
                assert problems(database), file


def test_a_query_whose_state_is_older_than_its_results(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "db"
    shutil.copytree(database, copy)
    buckets = copy / "engine" / "buckets"
    shutil.rmtree(buckets)
    output = problems(copy)
    assert "older than its results" in output
    assert "what to do: " in output


def test_a_database_in_use_is_not_checked(tmp_path: Path) -> None:
    home = Home(tmp_path, None, None, lambda rows, where: set())
    try:
        with pytest.raises(InputError, match="is in use"):
            check_database(tmp_path)
    finally:
        home.close()
    assert check_database(tmp_path).problems == ()


def test_nothing_is_changed(database: Path) -> None:
    before = {one: (one.stat().st_mtime_ns, one.read_bytes()) for one in files_of(database)}
    every = sorted(database.rglob("*"))
    check_database(database)
    assert {one: (one.stat().st_mtime_ns, one.read_bytes()) for one in files_of(database)} == before
    assert sorted(database.rglob("*")) == every


@pytest.mark.generated
def test_damage_of_backups_is_found(database: Path, tmp_path: Path) -> None:
    backups, chance = tmp_path / "backups", random.Random(3)
    make_backup(database, str(backups))
    make_backup(database, str(backups))
    assert check(str(backups)).problems == ()
    for file in sorted(one for one in backups.rglob("*") if one.is_file()):
        with changed(file) as content:
            for _ in range(share_of(8)):
                flipped = bytearray(content)
                flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                file.write_bytes(flipped)
                assert check(str(backups)).problems, file
            file.write_bytes(content[: chance.randrange(len(content))])
            assert check(str(backups)).problems, file
            if file.parent.name == "objects":
                file.unlink()
                assert check(str(backups)).problems, file
    shown = CliRunner().invoke(app, ["check", str(backups)])
    assert shown.exit_code == 0
    next(iter(backups.glob("objects/*"))).write_bytes(b"")
    shown = CliRunner().invoke(app, ["check", str(backups)])
    assert shown.exit_code == 1
    assert "these files are damaged or missing" in shown.stdout


def test_there_is_nothing_to_check(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no database and no backup"):
        check(str(tmp_path))


def test_a_changelog_whose_oldest_changes_are_a_base(tmp_path: Path) -> None:
    folder, chance = tmp_path / "log", random.Random(3)
    log = Changelog(folder, 3)
    while not list(folder.glob("*.base")):
        log.append()
        log.writer.trim()
        log.writer.pack()
    log.writer.close()
    for file in sorted(one for one in folder.iterdir() if one.name != "lock"):
        with changed(file) as content:
            for _ in range(4):
                flipped = bytearray(content)
                flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                file.write_bytes(flipped)
                _indexes.clear()
                report = Problems()
                check_log(folder, report)
                assert report, file
    whole = Problems()
    check_log(folder, whole)
    assert whole == []
