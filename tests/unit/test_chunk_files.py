"""Chunks in files and in a state store: what is torn, foreign or missing is not believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, keep_rows, make_chunk
from nilometer.kernels.indexes import NO_HASHES, Probes
from nilometer.operators import chunk_codec
from nilometer.operators.chunk_codec import (
    decode_rows,
    encode_rows,
    read_chunk_file,
    write_chunk_file,
)
from nilometer.spark.state import SparkChunkStore
from tests.cases import LAYOUT, to_batch
from tests.small_disk import small_disk


def a_chunk(kernel: Kernel = Kernel.HASH, size: int = 100) -> Chunk:
    return make_chunk(to_batch([(t * 7 % 103, t % 5, t, t) for t in range(size)]), LAYOUT, kernel)


def assert_same(decoded: Chunk | None, chunk: Chunk) -> None:
    assert decoded is not None
    assert decoded.rows.equals(chunk.rows)
    assert decoded.times.tolist() == chunk.times.tolist()
    assert {k: decoded.hashes[k].tolist() for k in decoded.hashes} == {
        k: chunk.hashes[k].tolist() for k in chunk.hashes
    }
    assert type(decoded.index) is type(chunk.index)
    assert (decoded.first, decoded.last) == (chunk.first, chunk.last)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a_chunk_comes_back_from_its_file(kernel: Kernel, tmp_path: Path) -> None:
    chunk = a_chunk(kernel)
    write_chunk_file(chunk, tmp_path / "c", 42)
    assert_same(read_chunk_file(tmp_path / "c", 42, LAYOUT, kernel), chunk)


MANY = RowLayout(0, ((1,), None, (2,), (2, 1)), until=3)


def candidates_by(chunk: Chunk, key: int | None) -> set[tuple[int, int]]:
    """(probe, number of the row) of every candidate when each row is looked up by a key."""
    hashes = NO_HASHES if key is None else chunk.hashes[key]
    access = chunk.access(key)
    which, places = access.index.find(Probes(hashes, chunk.times, chunk.times + 3)).expand()
    places = places if access.order is None else access.order[places]
    numbers = chunk.rows.column("id").to_numpy()
    return set(zip(numbers[which].tolist(), numbers[places].tolist(), strict=True))


def test_every_key_has_its_index_in_file_bytes_and_what_is_kept(tmp_path: Path) -> None:
    rows = to_batch([(t * 7 % 50, t % 5, t * 3 % 11, t) for t in range(100)])
    whole = make_chunk(rows, MANY, Kernel.HASH)
    chunk = keep_rows(whole, whole.times > 20)
    write_chunk_file(chunk, tmp_path / "c", 42)
    from_file = read_chunk_file(tmp_path / "c", 42, MANY, Kernel.HASH)
    from_bytes = decode_rows(encode_rows(chunk), MANY, Kernel.HASH)
    assert_same(from_file, chunk)
    table = list(zip(*(column.cast("int64").to_pylist() for column in chunk.rows), strict=True))
    for key, columns in enumerate((*MANY.keys, ())):
        if columns is None:
            continue
        matches = {
            (a[3], b[3])
            for a in table
            for b in table
            if 0 <= b[0] - a[0] <= 3 and all(a[c] == b[c] for c in columns)
        }
        for one in (chunk, from_file, from_bytes):
            assert one is not None
            assert matches <= candidates_by(one, key if columns else None)
            assert one.until is not None
            assert one.until.tolist() == one.rows.column("id").to_pylist()


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a_narrowed_chunk_comes_back_from_bytes(kernel: Kernel) -> None:
    chunk = a_chunk(kernel)
    narrowed = keep_rows(chunk, chunk.times > 20)
    decoded = decode_rows(encode_rows(narrowed), LAYOUT, kernel)
    assert sorted(decoded.rows.to_pylist(), key=str) == sorted(narrowed.rows.to_pylist(), key=str)


def test_a_missing_file_is_no_chunk(tmp_path: Path) -> None:
    assert read_chunk_file(tmp_path / "c", 42, LAYOUT, Kernel.HASH) is None


def test_another_chunks_file_is_no_chunk(tmp_path: Path) -> None:
    write_chunk_file(a_chunk(), tmp_path / "c", 42)
    assert read_chunk_file(tmp_path / "c", 43, LAYOUT, Kernel.HASH) is None


@pytest.mark.parametrize("length", [0, 5, 100, 1000, -1])
def test_a_torn_file_is_no_chunk(length: int, tmp_path: Path) -> None:
    file = tmp_path / "c"
    write_chunk_file(a_chunk(), file, 42)
    file.write_bytes(file.read_bytes()[:length])
    assert read_chunk_file(file, 42, LAYOUT, Kernel.HASH) is None


def test_a_flipped_bit_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_codec, "_verified", set())
    file = tmp_path / "c"
    write_chunk_file(a_chunk(), file, 42)
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    assert read_chunk_file(file, 42, LAYOUT, Kernel.HASH) is None


class FakeState:
    """Spark's MapState, counting how often it is read."""

    def __init__(self) -> None:
        self.values: dict[tuple[str], tuple[bytes]] = {}
        self.reads = 0

    def getValue(self, userKey: tuple[str]) -> tuple[bytes] | None:
        self.reads += 1
        return self.values.get(userKey)

    def updateValue(self, userKey: tuple[str], value: tuple[bytes]) -> None:
        self.values[userKey] = value

    def removeKey(self, userKey: tuple[str]) -> None:
        del self.values[userKey]


def a_store(state: FakeState, folder: Path) -> SparkChunkStore:
    return SparkChunkStore(state, folder)


def test_what_this_machine_wrote_is_not_read_back_from_the_state(tmp_path: Path) -> None:
    state = FakeState()
    ref = a_store(state, tmp_path).add(a_chunk(), 0)
    assert_same(a_store(state, tmp_path).load(ref, LAYOUT, Kernel.HASH), a_chunk())
    assert state.reads == 0


def test_another_machine_reads_the_state_once(tmp_path: Path) -> None:
    state = FakeState()
    ref = a_store(state, tmp_path / "here").add(a_chunk(), 0)
    there = a_store(state, tmp_path / "there")
    for _ in range(2):
        assert there.load(ref, LAYOUT, Kernel.HASH).rows.num_rows == 100
    assert state.reads == 1


def test_a_damaged_state_is_an_error_not_an_answer(tmp_path: Path) -> None:
    state = FakeState()
    ref = a_store(state, tmp_path / "here").add(a_chunk(), 0)
    state.values[(ref.id,)] = (b"x" + state.values[(ref.id,)][0][1:],)
    with pytest.raises(RuntimeError, match="is damaged or missing in Spark's state store"):
        a_store(state, tmp_path / "there").load(ref, LAYOUT, Kernel.HASH)


def test_files_that_no_state_refers_to_are_swept(tmp_path: Path) -> None:
    store = a_store(FakeState(), tmp_path)
    kept, orphan = store.add(a_chunk(), 0), store.add(a_chunk(), 0)
    being_written, abandoned = tmp_path / "new.part", tmp_path / "old.part"
    for file in (being_written, abandoned):
        file.touch()
    os.utime(abandoned, (0, 0))
    store.sweep([kept])
    assert {file.name for file in tmp_path.iterdir()} == {f"{kept.id}.chunk", "new.part"}
    assert orphan.id != kept.id


def test_a_disk_without_room_for_copies_costs_time_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        state, folder = FakeState(), disk.folder / "chunks"
        disk.fill()
        refs = [a_store(state, folder).add(a_chunk(), 0) for _ in range(3)]
        store = a_store(state, folder)
        store.sweep(refs[:2])
        for ref in refs:
            assert_same(store.load(ref, LAYOUT, Kernel.HASH), a_chunk())
        assert state.reads == 3
        disk.empty()
        store = a_store(state, folder)
        for _ in range(2):
            assert_same(store.load(refs[0], LAYOUT, Kernel.HASH), a_chunk())
        assert state.reads == 4
        disk.fill()
        assert_same(store.load(refs[1], LAYOUT, Kernel.HASH), a_chunk())
        assert [file.suffix for file in folder.iterdir()] == [".chunk"]  # no half of one
