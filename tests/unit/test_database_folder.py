"""A database folder: its format, its identity, and paths that follow it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from nilometer.database.home import Home
from nilometer.engine.control import EngineControl
from nilometer.engine.plan_set import PlanEntry, PlanFolder
from nilometer.errors import InputError
from nilometer.log.sealed import seal, unseal
from nilometer.spark.state_paths import point_state_here
from nilometer.upkeep.format import FORMAT, FORMAT_FILE, read_format
from nilometer.upkeep.identity import take_identity
from nilometer.upkeep.places import CATALOG_FILE
from nilometer.version import VERSION


def open_home(folder: Path) -> Home:
    return Home(folder, None, None, lambda rows, where: set())


def test_a_new_folder_says_its_format(tmp_path: Path) -> None:
    open_home(tmp_path / "db").close()
    said = json.loads(unseal((tmp_path / "db" / FORMAT_FILE).read_bytes()))
    assert said == {"format": FORMAT, "release": VERSION}


def test_a_folder_that_says_no_format_is_brought_up_to_date(tmp_path: Path) -> None:
    open_home(tmp_path).close()
    (tmp_path / FORMAT_FILE).unlink()
    (tmp_path / "place").unlink()
    known = (tmp_path / "identity").read_text()
    open_home(tmp_path).close()
    assert read_format(tmp_path) == FORMAT
    assert (tmp_path / "identity").read_text() == known


def test_a_newer_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    open_home(tmp_path).close()
    newer = json.dumps({"format": FORMAT + 1, "release": "99.1"})
    (tmp_path / FORMAT_FILE).write_text(newer)
    (tmp_path / CATALOG_FILE).unlink()
    with pytest.raises(InputError, match="written by a newer release") as refusal:
        open_home(tmp_path)
    assert refusal.value.detail is not None
    assert "99.1" in refusal.value.detail
    assert (tmp_path / FORMAT_FILE).read_text() == newer
    assert not (tmp_path / CATALOG_FILE).exists()


@pytest.mark.parametrize("said", ["", "{", "[1]", '{"format": "x", "release": "1"}', '{"a": 1}'])
def test_a_format_that_cannot_be_read_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / FORMAT_FILE).write_text(said)
    with pytest.raises(InputError, match="cannot be read"):
        read_format(tmp_path)


def test_a_folder_that_is_moved_keeps_its_identity_and_a_copy_gets_another(tmp_path: Path) -> None:
    first, second, copy = (tmp_path / name for name in ("first", "second", "copy"))
    first.mkdir()
    known = take_identity(first)
    first.rename(second)
    assert take_identity(second) == known
    second.rename(first)
    assert take_identity(first) == known
    shutil.copytree(first, copy)
    own = take_identity(copy)
    assert own != known
    assert take_identity(first) == known
    assert take_identity(copy) == own
    (tmp_path / "link").symlink_to(first)
    assert take_identity(tmp_path / "link") == known
    assert take_identity(first) == known


def test_of_two_folders_that_change_places_each_has_a_name_of_its_own(tmp_path: Path) -> None:
    first, old = tmp_path / "first", tmp_path / "old"
    first.mkdir()
    take_identity(first)
    first.rename(old)
    shutil.copytree(old, first)
    assert take_identity(first) != take_identity(old)


def test_a_folder_moved_to_another_disk_keeps_its_identity(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    known = take_identity(first)
    shutil.copytree(first, second)
    shutil.rmtree(first)
    assert take_identity(second) == known


@pytest.mark.parametrize("logs", ["/new/logs", "s3://plant/logs?region=eu"])
def test_queries_that_do_not_run_follow_their_logs(tmp_path: Path, logs: str) -> None:
    before = EngineControl(tmp_path, 2)
    before.open(set(), "/old/logs")
    entry = PlanEntry(
        "id",
        0,
        None,
        results="/old/logs/q%20r",
        dead_letters="/old/logs/q%20r.dead",
        logs=[("/old/logs/a", "q"), ("/old/logs/b", "q-2")],
    )
    before.run(b"a plan", entry)
    EngineControl(tmp_path, 2).open({"id"}, logs)
    planned = PlanFolder(tmp_path).read().entries["id"]
    place, mark, options = logs.partition("?")
    assert planned.results == f"{place}/q%20r{mark}{options}"
    assert planned.dead_letters == f"{place}/q%20r.dead{mark}{options}"
    ends = [(f"{place}/a{mark}{options}", "q"), (f"{place}/b{mark}{options}", "q-2")]
    assert [tuple(one) for one in planned.logs] == ends


def metadata(folder: Path, number: int = 0) -> Path:
    return folder / "state" / str(number) / "_metadata" / "v2" / "0"


def write_metadata(folder: Path, said: Path, number: int = 0) -> str:
    file = metadata(folder, number)
    file.parent.mkdir(parents=True)
    path = f"file:{said}/state/{number}/_stateSchema/default/0_abc"
    info = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [path]}
    content = {"operatorInfo": {"operatorId": number}, "stateStoreInfo": [info]}
    text = "v2\n" + json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    file.write_text(text)
    file.with_name(".0.crc").write_bytes(b"crc")
    return text


def test_state_metadata_names_files_where_the_checkpoint_is(tmp_path: Path) -> None:
    old, new = tmp_path / "a" / "state" / "ü %20 b", tmp_path / "c"
    texts = [write_metadata(old, old, number) for number in range(2)]
    assert point_state_here(old) == 0
    assert metadata(old).with_name(".0.crc").exists()
    shutil.copytree(old, new)
    assert point_state_here(new) == 2
    assert not metadata(new).with_name(".0.crc").exists()
    assert [metadata(new, n).read_text() for n in range(2)] == [
        text.replace(str(old), str(new)) for text in texts
    ]
    assert point_state_here(new) == 0
    assert [metadata(old, n).read_text() for n in range(2)] == texts


@pytest.mark.parametrize(
    "text", ["", "v2", "v2\n{", "v2\n{}", "v1\n[]", 'v2\n{"stateStoreInfo":3}']
)
def test_state_metadata_that_cannot_be_read_is_left_to_spark(tmp_path: Path, text: str) -> None:
    write_metadata(tmp_path, tmp_path)
    metadata(tmp_path).write_text(text)
    assert point_state_here(tmp_path) == 0
    assert metadata(tmp_path).read_text() == text


def test_whatever_is_flipped_in_a_sealed_file_is_found() -> None:
    chance = random.Random(1)
    for _ in range(30):
        content = chance.randbytes(chance.randrange(40))
        sealed = seal(content)
        assert unseal(sealed) == content
        for at in range(8 * len(sealed)):
            flipped = bytearray(sealed)
            flipped[at // 8] ^= 1 << at % 8
            with pytest.raises(ValueError, match="its checksum is"):
                unseal(bytes(flipped))
    assert unseal(b'{"of": "an earlier release"}\n') == b'{"of": "an earlier release"}\n'
