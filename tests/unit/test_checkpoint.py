"""A checkpoint after a power cut: its files cut at every length, or gone, in any combination."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path
from zipfile import ZipFile

import pytest

from nilometer.errors import CheckpointError
from nilometer.log.location import storage_at
from nilometer.log.storage import Storage
from nilometer.spark.checkpoint import Checkpoint

QUERY = "9f0c"
LAST = 3
"""The micro-batch that the log took in last; the next one is planned, too."""
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


def plan(number: int) -> str:
    settings = json.dumps({"batchTimestampMs": number, "conf": {"partitions": "2"}})
    return f'v1\n{settings}\n{{"row": {number * 10}}}\n{{"row": {number * 7}}}'


def write_changes(file: Path) -> None:
    """Changes of state, and their checksums."""
    file.write_bytes(b"x" * 1200)
    file.with_name(f".{file.name}.crc").write_bytes(b"c" * (8 + 3 * 4))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of some micro-batches, as Spark leaves it."""
    folder = tmp_path / "checkpoint"
    for name in ("offsets", "commits", "state/0/0", "state/0/1"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": QUERY}))
    for number in range(LAST + 2):
        (folder / "offsets" / str(number)).write_text(plan(number))
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
    for number in range(LAST + 1):
        (folder / "commits" / str(number)).write_text(COMMIT)
        with ZipFile(folder / "state/0/0" / f"{number + 1}.zip", "w") as archive:
            archive.writestr("metadata", "x" * 100)
        for bucket in (0, 1):
            write_changes(folder / f"state/0/{bucket}/{number + 1}.changelog")
    return folder


@pytest.fixture
def log(tmp_path: Path, checkpoint: Path) -> Storage:
    """The folder of a log that has kept what was planned, up to LAST."""
    storage = storage_at(tmp_path / "log")
    storage.make()
    for number in range(LAST + 1):
        Checkpoint(checkpoint).keep(storage, (QUERY, number), None)
    return storage


def planned(checkpoint: Path) -> dict[int, str]:
    files = [one for one in (checkpoint / "offsets").iterdir() if one.name.isdecimal()]
    return {int(one.name): one.read_text() for one in files}


def finished(checkpoint: Path) -> set[int]:
    return {int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdecimal()}


def mend(checkpoint: Path, log: Storage, last: int | None = LAST) -> None:
    Checkpoint(checkpoint).mend(log, None if last is None else (QUERY, last))


def is_as_before(checkpoint: Path, next_one: bool) -> None:
    """All that has results is planned as it was; the next one as it was, or not at all."""
    expected = {n: plan(n) for n in range(LAST + 1 + next_one)}
    entries = planned(checkpoint)
    assert {n: entries[n] for n in entries if n >= LAST - 1} == {
        n: expected[n] for n in expected if n >= LAST - 1
    }
    assert not list(checkpoint.glob("offsets/.[34].crc"))
    assert json.loads((checkpoint / "metadata").read_text()) == {"id": QUERY}


def test_what_is_whole_stays(checkpoint: Path, log: Storage) -> None:
    mend(checkpoint, log)
    assert planned(checkpoint) == {n: plan(n) for n in range(LAST + 2)}
    assert finished(checkpoint) == set(range(LAST + 1))
    assert len(list(checkpoint.rglob("*.zip"))) == LAST + 1


@pytest.mark.parametrize("number", [LAST - 1, LAST, LAST + 1])
def test_plans_cut_at_every_length(checkpoint: Path, log: Storage, number: int) -> None:
    file = checkpoint / "offsets" / str(number)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        (checkpoint / "offsets" / f".{number}.crc").write_bytes(b"")
        mend(checkpoint, log)
        is_as_before(checkpoint, next_one=number <= LAST)


@pytest.mark.parametrize("name", ["metadata", f"commits/{LAST}"])
def test_other_files_cut_at_every_length(checkpoint: Path, log: Storage, name: str) -> None:
    file = checkpoint / name
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        mend(checkpoint, log)
        is_as_before(checkpoint, next_one=True)
        assert finished(checkpoint) == set(range(LAST + (name == "metadata")))


def test_any_of_the_newest_files_are_gone(checkpoint: Path, log: Storage) -> None:
    names = ["metadata", *(f"offsets/{n}" for n in (2, 3, 4)), *(f"commits/{n}" for n in (2, 3))]
    copy = checkpoint.with_name("copy")
    shutil.copytree(checkpoint, copy)
    for count in range(1, len(names) + 1):
        for lost in combinations(names, count):
            shutil.rmtree(checkpoint)
            shutil.copytree(copy, checkpoint)
            for name in lost:
                (checkpoint / name).unlink()
            mend(checkpoint, log)
            is_as_before(checkpoint, next_one="offsets/4" not in lost)


def test_snapshots_of_state_that_are_cut_off_are_removed(checkpoint: Path, log: Storage) -> None:
    file = checkpoint / "state/0/0/4.zip"
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        mend(checkpoint, log)
        assert not file.exists()


@pytest.mark.parametrize("length", [None, 0, 1, 511, 512, 513, 1024])
def test_the_last_micro_batch_is_repeated_if_its_state_is_not_whole(
    checkpoint: Path, log: Storage, length: int | None
) -> None:
    file = checkpoint / f"state/0/1/{LAST + 1}.changelog"
    if length is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:length])
    mend(checkpoint, log)
    assert finished(checkpoint) == set(range(LAST))
    for bucket in (0, 1):
        write_changes(checkpoint / f"state/0/{bucket}/{LAST + 1}.changelog")
    (checkpoint / "commits" / str(LAST)).write_text(COMMIT)
    mend(checkpoint, log)
    assert finished(checkpoint) == set(range(LAST + 1))


def test_state_of_a_micro_batch_that_is_repeated_is_removed(checkpoint: Path, log: Storage) -> None:
    """A bucket had written its state, by its changes or as a snapshot, and others had not."""
    folder = checkpoint / "state/0"
    next_one = [folder / "0" / f"{LAST + 2}.zip", folder / "1" / f"{LAST + 2}.changelog"]
    shutil.copy(folder / "0" / f"{LAST + 1}.zip", next_one[0])
    write_changes(next_one[1])
    mend(checkpoint, log)  # LAST + 1 is planned, and not finished
    assert not any(one.exists() for one in next_one)
    assert not (folder / "1" / f".{LAST + 2}.changelog.crc").exists()
    assert len(list(checkpoint.rglob("*.changelog"))) == 2 * (LAST + 1)
    (folder / "1" / f"{LAST + 1}.changelog").unlink()
    mend(checkpoint, log)  # LAST is repeated
    kept = {one.name for one in folder.rglob("[0-9]*.*")}
    assert kept == {f"{n}.{kind}" for n in range(1, LAST + 1) for kind in ("zip", "changelog")}


def test_state_stays_though_notes_of_finished_micro_batches_are_gone(
    checkpoint: Path, log: Storage
) -> None:
    shutil.rmtree(checkpoint / "commits")
    (checkpoint / "commits").mkdir()
    mend(checkpoint, log)
    assert len(list(checkpoint.rglob("*.changelog"))) == 2 * (LAST + 1)


def test_a_query_without_results_begins_anew(checkpoint: Path, log: Storage) -> None:
    for name in ("metadata", "offsets/4"):
        (checkpoint / name).write_bytes(b"")
    mend(checkpoint, log, None)
    assert not (checkpoint / "metadata").exists()
    assert sorted(planned(checkpoint)) == [0, 1, 2, 3]


def test_results_of_an_earlier_release_kept_no_plans(checkpoint: Path, log: Storage) -> None:
    log.delete("planned.json")
    (checkpoint / "offsets" / str(LAST + 1)).write_bytes(b"v1\n{}")
    mend(checkpoint, log)
    assert sorted(planned(checkpoint)) == list(range(LAST + 1))
    (checkpoint / "offsets" / str(LAST)).write_bytes(b"v1\n{}")
    with pytest.raises(CheckpointError, match="is damaged"):
        mend(checkpoint, log)


def test_a_checkpoint_that_is_gone(checkpoint: Path, log: Storage) -> None:
    shutil.rmtree(checkpoint)
    with pytest.raises(CheckpointError, match="or the checkpoint of this one is gone"):
        mend(checkpoint, log)
    mend(checkpoint, log, None)


def test_a_checkpoint_and_a_log_of_different_times(checkpoint: Path, log: Storage) -> None:
    (checkpoint / "commits" / str(LAST + 1)).write_text(COMMIT)
    with pytest.raises(CheckpointError, match="results of this query are older"):
        mend(checkpoint, log)
    (checkpoint / "commits" / str(LAST + 1)).unlink()
    (checkpoint / "offsets" / str(LAST)).write_text(plan(17))
    with pytest.raises(CheckpointError, match="does not belong to its results"):
        mend(checkpoint, log)
    with pytest.raises(CheckpointError, match="does not belong to its results"):
        Checkpoint(checkpoint).keep(log, (QUERY, LAST), (QUERY, LAST))


@pytest.mark.parametrize(
    ("location", "is_local"),
    [
        ("/data/a:b/c", True),
        ("here/c", True),
        ("file:/data/c", True),
        ("file:///data/c%20d", True),
        ("hdfs://name/data", False),
        ("s3a://bucket/data", False),
    ],
)
def test_only_local_checkpoints_can_be_cut_off(location: str, is_local: bool) -> None:
    assert (Checkpoint.at(location) is not None) is is_local


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_last_micro_batch_is_finished_if_its_results_and_its_state_are_there(
    checkpoint: Path, log: Storage, is_whole: bool
) -> None:
    """The rows that it has read may be gone, so it cannot be repeated."""
    (checkpoint / "offsets" / str(LAST + 1)).unlink()
    (checkpoint / "commits" / str(LAST)).write_bytes(b"")
    if not is_whole:
        (checkpoint / f"state/0/1/{LAST + 1}.changelog").write_bytes(b"")
    mend(checkpoint, log)
    assert finished(checkpoint) == set(range(LAST + is_whole))


def test_a_checkpoint_of_an_earlier_time_is_refused(checkpoint: Path, log: Storage) -> None:
    with pytest.raises(CheckpointError, match="is older than its results"):
        Checkpoint(checkpoint).keep(log, (QUERY, LAST - 1), (QUERY, LAST))


def test_a_path_that_is_not_local_for_spark_is_left_alone(tmp_path: Path, log: Storage) -> None:
    log.delete("planned.json")
    elsewhere = Checkpoint(tmp_path / "elsewhere")
    elsewhere.keep(log, (QUERY, 7), (QUERY, 6))
    elsewhere.mend(log, (QUERY, 7))
    assert not (tmp_path / "elsewhere").exists()
