"""A copy of a query's state, with which it goes on in another number of buckets."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from nilometer.errors import CheckpointError
from nilometer.log.sealed import seal
from nilometer.spark.moved_state import damaged_files, is_settled, read_moved, settle
from nilometer.upkeep.check_state import check_checkpoint
from nilometer.upkeep.cut_log import LastBatch
from nilometer.upkeep.problem import Problems
from nilometer.upkeep.query_state import checkpoint_image


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint whose state after micro-batch 7 was copied."""
    for name in ("offsets", "commits", "state/0/0"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "commits" / "7").write_text("v1\n{}")
    (tmp_path / "metadata").write_text(json.dumps({"id": "old"}))
    for name in ("good", "given up"):
        (tmp_path / "moved" / name).mkdir(parents=True)
    (tmp_path / "moved" / "good" / "a.bucket").write_bytes(b"rows")
    stage = {"shares": [1], "places": [[[0]], [None]], "with nulls": True, "files": ["a.bucket"]}
    about = {
        "format": 1,
        "last": ["old", 7],
        "stages": {"0.0": stage},
        "crc": {"a.bucket": zlib.crc32(b"rows")},
    }
    (tmp_path / "moved" / "good" / "about.json").write_bytes(seal(json.dumps(about).encode()))
    return tmp_path


def test_what_came_before_is_deleted_once(checkpoint: Path) -> None:
    assert not is_settled(checkpoint, "good")
    settle(checkpoint, "good")
    assert is_settled(checkpoint, "good")
    assert sorted(one.name for one in checkpoint.iterdir()) == ["moved"]
    assert [one.name for one in (checkpoint / "moved").iterdir()] == ["good"]
    moved = read_moved(checkpoint, "good")
    assert moved.last == ("old", 7)
    assert moved.stages["0.0"].routing.buckets == 1
    assert moved.stages["0.0"].routing.places == (((0,),), (None,))


def test_a_backup_before_the_first_micro_batch_keeps_the_results(checkpoint: Path) -> None:
    assert checkpoint_image(checkpoint).last == LastBatch("old", 8)
    settle(checkpoint, "good")
    assert checkpoint_image(checkpoint).last == LastBatch("old", 7)
    names = {str(one) for one in checkpoint_image(checkpoint).files()}
    assert names == {f"moved/good/{one}" for one in ("a.bucket", "about.json", "settled")}


def test_damage_is_found(checkpoint: Path) -> None:
    settle(checkpoint, "good")
    copy = checkpoint / "moved" / "good"
    assert list(damaged_files(copy)) == []
    problems = Problems()
    check_checkpoint(checkpoint, None, problems)
    assert not problems
    (copy / "a.bucket").write_bytes(b"raws")
    check_checkpoint(checkpoint, None, problems)
    assert [one.where for one in problems] == [str(copy / "a.bucket")]
    (copy / "about.json").unlink()
    with pytest.raises(CheckpointError, match="copied state"):
        read_moved(checkpoint, "good")
