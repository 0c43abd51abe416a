"""The table of groups against a dictionary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.chunk import Chunk, Kernel, RowLayout
from nilometer.kernels.row_ids import RowIds
from nilometer.local.memory_store import MemoryStore
from nilometer.operators import group_table
from nilometer.operators.chunk_codec import (
    decode_rows,
    encode_rows,
    read_chunk_file,
    write_chunk_file,
)
from nilometer.operators.chunk_store import ChunkRef
from nilometer.operators.group_table import Groups, GroupTable

NAMES = ("s", "r", "n")
Ids = list[tuple[int, int]]
State = dict[tuple[int, int], dict[str, int]]

ids = st.tuples(st.sampled_from([-(2**63), -7, 0, 3, 4, 2**63 - 1]), st.integers(0, 3))
updates = st.lists(
    st.dictionaries(ids, st.dictionaries(st.sampled_from(NAMES), st.integers(-1, 2)), max_size=8),
    max_size=12,
)


def row_ids(wanted: Ids) -> RowIds:
    pairs = np.array(wanted, np.int64).reshape(-1, 2)
    return RowIds(pairs[:, 0].copy(), pairs[:, 1].copy())


def as_groups(update: State) -> Groups:
    names = {name for values in update.values() for name in values}
    columns = {
        name: np.array([values.get(name, 0) for values in update.values()], np.int64)
        for name in names
    }
    keys = [pa.array([f"{a}/{b}" for a, b in update], pa.string())]
    return Groups(row_ids(list(update)), keys, columns)


def looked_up(table: GroupTable, wanted: Ids) -> State:
    groups = Groups(row_ids(wanted), [], table.lookup(row_ids(wanted)))
    return {
        key: {name: int(groups.value(name)[i]) for name in NAMES} for i, key in enumerate(wanted)
    }


def contents(table: GroupTable) -> dict[str, dict[str, int]]:
    groups = table.contents()
    (keys,) = groups.keys
    return {
        key: {name: int(groups.value(name)[i]) for name in NAMES}
        for i, key in enumerate(keys.to_pylist())
    }


def restarted(table: GroupTable, store: MemoryStore) -> GroupTable:
    refs = json.loads(json.dumps([ref.to_json() for ref in table.refs]))
    fresh = GroupTable([pa.string()], store)
    fresh.restore(ChunkRef(**ref) for ref in refs)
    return fresh


@settings(max_examples=150, deadline=None)
@given(updates)
def test_the_newest_values_are_found(history: list[State]) -> None:
    store = MemoryStore()
    table = GroupTable([pa.string()], store)
    known: State = {}
    everything = [(a, b) for a in (-(2**63), -7, 0, 3, 4, 5, 2**63 - 1) for b in range(4)]
    for update in history:
        table.update(as_groups(update))
        table = restarted(table, store)
        known |= {k: {name: v.get(name, 0) for name in NAMES} for k, v in update.items()}
        zero = dict.fromkeys(NAMES, 0)
        assert looked_up(table, everything) == {k: known.get(k, zero) for k in everything}
        assert looked_up(table, [(3, 1), (3, 0), (3, 1)]).keys() == {(3, 1), (3, 0)}
        alive = {f"{a}/{b}": v for (a, b), v in known.items() if any(v.values())}
        assert contents(table) == alive
        assert sum(ref.rows for ref in table.refs) <= 2 * len(alive) + len(update)
        assert store.chunks.keys() == {ref.id for ref in table.refs}


@pytest.mark.parametrize("from_file", [True, False])
def test_tables_survive_as_bytes(tmp_path: Path, from_file: bool) -> None:
    class Coded(MemoryStore):
        def load(self, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
            chunk = self.chunks[ref.id]
            if not from_file:
                return decode_rows(encode_rows(chunk), layout, kernel)
            write_chunk_file(chunk, tmp_path / "a.chunk", 5)
            loaded = read_chunk_file(tmp_path / "a.chunk", 5, layout, kernel)
            assert loaded is not None
            return loaded

    store = Coded()
    table = GroupTable([pa.string()], store)
    for value in (1, 2):
        groups = {(h1, h2): {"s": value + h2} for h1 in (-5, 3, 9) for h2 in range(4 // value)}
        table.update(as_groups(groups))
        table = restarted(table, store)
    expected = {f"{h1}/{h2}": (2 if h2 < 2 else 1) + h2 for h1 in (-5, 3, 9) for h2 in range(4)}
    assert {key: values["s"] for key, values in contents(table).items()} == expected
    read_back = looked_up(table, [(3, 3), (9, 1), (9, 4)])
    assert [values["s"] for values in read_back.values()] == [4, 3, 0]


def random_update(rng: np.random.Generator, size: int, groups: int, value: int) -> Groups:
    chosen = np.unique(rng.integers(0, groups, size))
    hashes = RowIds(chosen * (2**40) - 5, np.zeros(len(chosen), np.int64))
    return Groups(hashes, [], {"s": np.full(len(chosen), value)})


def test_few_runs_and_few_rewrites_for_many_groups() -> None:
    class Counting(MemoryStore):
        written = 0

        def add(self, chunk, level):  # type: ignore[no-untyped-def]
            self.written += len(chunk)
            return super().add(chunk, level)

    store, rng = Counting(), np.random.default_rng(1)
    table = GroupTable([], store)
    brought, largest = 0, 0
    for _ in range(400):
        update = random_update(rng, 100, 1_000_000, 1)
        table.update(update)
        brought += len(update)
        largest = max(largest, len(table.refs))
    assert largest <= 6
    assert store.written <= 20 * brought
    assert len(table.contents()) > 39_000


def test_groups_that_are_gone_take_no_room() -> None:
    store, rng = MemoryStore(), np.random.default_rng(2)
    table = GroupTable([], store)
    for _ in range(100):
        update = random_update(rng, 1000, 10**6, 1)
        table.update(update)
        table.update(Groups(update.ids, [], {"s": np.zeros(len(update), np.int64)}))
    assert sum(ref.rows for ref in table.refs) <= 1000


def test_a_large_run_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_table, "_MOST_BYTES", 2000)
    store, rng = MemoryStore(), np.random.default_rng(3)
    table = GroupTable([], store)
    known: dict[int, int] = {}
    for value in range(1, 30):
        update = random_update(rng, 100, 2000, value)
        table.update(update)
        known |= dict.fromkeys(update.ids.h1.tolist(), value)
    assert max(ref.size for ref in table.refs) <= 4000
    assert len(table.refs) > 10
    groups = table.contents()
    assert dict(zip(groups.ids.h1.tolist(), groups.value("s").tolist(), strict=True)) == known
    assert table.lookup(groups.ids)["s"].tolist() == groups.value("s").tolist()
