"""Functions that answer periodically in a windowed plan.

Answers are for instants that are multiples of a length of time since 1970-01-01. At such an instant
T the answer covers the rows of the closed period [T - w, T], or all rows up to T if there is no
window; its differences from the last answer are emitted as changes at T. Rows wait for their
instant, so that between two instants nothing else is read or written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, cast

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.canonical import canonical
from nilometer.kernels.row_ids import RowIds, join_ids
from nilometer.mining.hosted import FunctionCall, KeyRows, StaticTables, only, rows_by_key
from nilometer.mining.registry import find_function
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import AnswerFunction, Columns, Miner, Saved
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import (
    EmitsWithoutInput,
    StoredChunks,
    make_changes,
    no_changes,
    row_columns,
)
from nilometer.operators.chunk_store import ChunkRef, ChunkStore
from nilometer.operators.group_table import Groups, GroupTable
from nilometer.operators.pending import Pending
from nilometer.operators.watermarks import NEVER

_DUE: Final = "due"
"""When rows of a key next leave its window; never 0, which marks a removed key."""


@dataclass(frozen=True)
class AnswersSpec(EmitsWithoutInput):
    """A function that answers; results are the columns of the key, then its own."""

    function: FunctionCall
    every: int
    types: tuple[pa.DataType, ...]
    passed: ClassVar[int] = 0
    """No columns of its rows pass."""

    def start(self, store: ChunkStore) -> HostedAnswers:
        return HostedAnswers(self, store)


@dataclass
class _Key:
    """A key and its state."""

    values: list[pa.Array]
    """The columns of the key, with one row."""
    miner: Miner
    held: Int64s
    """The times of the rows in its window."""
    last: pa.RecordBatch
    """The last answer."""
    due: int
    changes: list[pa.RecordBatch] = field(default_factory=list)


class HostedAnswers:
    """A running function with an answer for each key."""

    def __init__(self, spec: AnswersSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._function = cast(AnswerFunction, find_function(spec.function.name))
        kinds = [spec.function.input_types[place] for place in spec.function.keys]
        self._names = [one.name for one in self._function.results(spec.function.call)]
        self._own = spec.types[len(kinds) :]
        self._tables = StaticTables(spec.function, store)
        self._pending = Pending(spec.function.input_types, store)
        self._states = GroupTable([pa.large_binary(), *kinds], store)
        self._answered = NEVER
        """The last instant that was answered."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """Everything that it keeps in the store."""
        return (*self._tables.buffers, self._pending.buffer, self._states)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given new rows."""
        self._tables.take(inputs[1:])
        instant = (frontier - 1) // self._spec.every * self._spec.every
        ready = self._pending.take(inputs[:1], max(instant, self._answered) + 1)
        if instant <= self._answered:
            return no_changes(self._spec.types)
        self._answered = instant
        changes = list(self._answer(ready, instant))
        return pa.concat_batches(changes) if changes else no_changes(self._spec.types)

    def _answer(self, ready: pa.RecordBatch, instant: int) -> Iterator[pa.RecordBatch]:
        """The changes of all keys that rows enter or leave."""
        function = self._spec.function
        groups, rows = rows_by_key(ready, function.keys)
        columns = row_columns(ready)
        arguments = function.columns(columns)
        held = self._held(groups.ids, instant)
        touched: list[tuple[RowIds, _Key]] = []
        for number, key_rows in enumerate(rows):
            ids = groups.ids.only(np.array([number]))
            key = held.pop(_name(ids), None)
            if key is None:
                first = groups.firsts[number : number + 1]
                key = self._new_key([canonical(columns[i].take(first)) for i in function.keys])
            self._advance(key, key_rows, arguments, instant)
            touched.append((ids, key))
        nothing = KeyRows(0, np.zeros(0, np.int64), np.zeros(0, np.int64))
        for (h1, h2), key in held.items():
            self._advance(key, nothing, arguments, instant)
            touched.append((RowIds(np.array([h1]), np.array([h2])), key))
        self._save(touched)
        for _, key in touched:
            yield from key.changes

    def _held(self, ids: RowIds, instant: int) -> dict[tuple[int, int], _Key]:
        """The known keys that have new rows or are due."""
        if self._spec.function.call.window is None:
            groups = self._states.find(ids)
        else:
            known = self._states.contents()
            wanted = set(zip(ids.h1.tolist(), ids.h2.tolist(), strict=True))
            names = zip(known.ids.h1.tolist(), known.ids.h2.tolist(), strict=True)
            has_rows = np.array([name in wanted for name in names], np.bool_)
            groups = known.only(np.flatnonzero(has_rows | (known.value(_DUE) <= instant)))
        keys = {}
        for number in range(len(groups)):
            values = [column.slice(number, 1) for column in groups.keys[1:]]
            saved = decode(groups.keys[0][number].as_py())
            name = (int(groups.ids.h1[number]), int(groups.ids.h2[number]))
            keys[name] = self._old_key(values, saved)
        return keys

    def _new_key(self, values: list[pa.Array]) -> _Key:
        return _Key(values, self._miner(None), np.zeros(0, np.int64), self._no_answer(), FOREVER)

    def _old_key(self, values: list[pa.Array], saved: Saved) -> _Key:
        held, due = saved.pop("_held"), saved.pop("_due")
        stored = saved.pop("_last")
        with pa.ipc.open_stream(pa.py_buffer(stored.tobytes())) as reader:
            last = reader.read_next_batch()
        return _Key(values, self._miner(saved), held, last, due)

    def _miner(self, saved: Saved | None) -> Miner:
        return self._function.miner(self._spec.function.call, self._tables.read(), saved)

    def _no_answer(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([], k) for k in self._own], self._names)

    def _advance(self, key: _Key, rows: KeyRows, arguments: Columns, until: int) -> None:
        """Advance through the instants at which rows enter or leave."""
        begin = 0
        while True:
            coming = self._round_up(int(rows.times[begin])) if begin < len(rows.times) else FOREVER
            instant = min(coming, key.due)
            if instant > until:
                return
            end = int(np.searchsorted(rows.times, instant, "right"))
            part = slice(begin, end)
            begin = end
            self._move(key, rows.times[part], only(arguments, rows.places[part]), instant)

    def _move(self, key: _Key, times: Int64s, columns: Columns, instant: int) -> None:
        """Add and retract rows, and record how the answer changes."""
        window = self._spec.function.call.window
        if window is None:
            key.miner.add(times, columns)
        else:
            inside = np.flatnonzero(times >= instant - window)
            if not len(inside) and not (key.held >= instant - window).any():
                self._empty(key, instant)
                return
            if len(inside):
                key.miner.add(times[inside], only(columns, inside))
            key.miner.forget(instant - window)
            held = np.concatenate([key.held, times])
            key.held = held[held >= instant - window]
            key.due = self._round_up(int(key.held[0]) + window + 1)
        self._add_changes(key, self._typed(key.miner.answer()), instant)

    def _empty(self, key: _Key, instant: int) -> None:
        """Retract the answer of an empty window; later rows start afresh."""
        key.held, key.due = np.zeros(0, np.int64), FOREVER
        key.miner = self._miner(None)
        self._add_changes(key, self._no_answer(), instant)

    def _typed(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        columns = [c.cast(kind) for c, kind in zip(answer.columns, self._own, strict=True)]
        return pa.RecordBatch.from_arrays(columns, self._names)

    def _add_changes(self, key: _Key, answer: pa.RecordBatch, instant: int) -> None:
        going, coming = _differences(key.last, answer)
        key.last = answer
        for rows, diff in ((going, -1), (coming, 1)):
            if not len(rows):
                continue
            own = [_repeat(value, len(rows)) for value in key.values]
            times = np.full(len(rows), instant, np.int64)
            key.changes.append(
                make_changes([*own, *rows.columns], times, np.full(len(rows), diff, np.int64))
            )

    def _round_up(self, time: int) -> int:
        return -(-time // self._spec.every) * self._spec.every

    def _save(self, touched: Sequence[tuple[RowIds, _Key]]) -> None:
        if not touched:
            return
        window = self._spec.function.call.window
        alive = [window is None or len(key.held) > 0 for _, key in touched]
        states = [_encode(key) if a else b"" for a, (_, key) in zip(alive, touched, strict=True)]
        dues = [(key.due or 1) if a else 0 for a, (_, key) in zip(alive, touched, strict=True)]
        values = zip(*(key.values for _, key in touched), strict=True)
        columns = [pa.array(states, pa.large_binary()), *map(pa.concat_arrays, values)]
        ids = join_ids([ids for ids, _ in touched])
        self._states.update(Groups(ids, columns, {_DUE: np.array(dues, np.int64)}))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "tables": self._tables.snapshot(),
            "pending": self._pending.snapshot(),
            "states": [ref.to_json() for ref in self._states.refs],
            "answered": self._answered,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot, with the same store."""
        self._tables.restore(snapshot["tables"])
        self._pending.restore(snapshot["pending"])
        self._states.restore(ChunkRef(**ref) for ref in snapshot["states"])
        self._answered = snapshot["answered"]


def _encode(key: _Key) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, key.last.schema) as writer:
        writer.write_batch(key.last)
    last = np.frombuffer(sink.getvalue(), np.uint8)
    return encode({**key.miner.save(), "_held": key.held, "_due": key.due, "_last": last})


def _name(ids: RowIds) -> tuple[int, int]:
    return int(ids.h1[0]), int(ids.h2[0])


def _repeat(value: pa.Array, times: int) -> pa.Array:
    return value.take(pa.array(np.zeros(times, np.int64)))


def _differences(
    before: pa.RecordBatch, after: pa.RecordBatch
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows of each that the other does not have, or has fewer times."""
    old, new = _shown(before), _shown(after)
    return before.take(_beyond(old, Counter(new))), after.take(_beyond(new, Counter(old)))


def _shown(batch: pa.RecordBatch) -> list[str]:
    """Rows as texts, by which NaN is like NaN."""
    return [repr(row) for row in zip(*(one.to_pylist() for one in batch.columns), strict=True)]


def _beyond(rows: Sequence[str], others: Counter[str]) -> pa.Array:
    """The places of the rows that are left when each of the others has taken one like it."""
    places = []
    for place, row in enumerate(rows):
        if others[row]:
            others[row] -= 1
        else:
            places.append(place)
    return pa.array(places, pa.int64())
