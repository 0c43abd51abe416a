"""MATCH_RECOGNIZE: matches of a pattern in the rows of each partition, in the order of time.

Rows are append-only. A row at which a match may still begin is open, and kept with all after it. A
match is emitted at the instant at which nothing that may still arrive can change it: with its
last row, with the row that shows that a preferred one fails, or when the time of WITHIN is over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s, as_int64
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.match_automaton import FRESH, MOST_STATES, Automaton
from nilometer.kernels.match_search import Outcome
from nilometer.kernels.row_errors import Rows, compute
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
from nilometer.operators.match_attempts import Attempts, MatchStarts
from nilometer.operators.match_slots import MatchedRows, column_of
from nilometer.operators.match_spec import Matching, SkipTo
from nilometer.operators.ordered_rows import OrderedRows, in_order, keep_in_order
from nilometer.operators.stream_buffer import StreamBuffer

_COUNT: Final = "matches"


@dataclass
class _EmittedMatches:
    """Matches that are emitted."""

    starts: list[int]
    paths: list[tuple[int, ...]]
    known_at: list[int]


@dataclass(frozen=True)
class MatchSpec(EmitsWithoutInput):
    """Matches in rows whose first columns are the user's, and whose last is the time."""

    matching: Matching
    keys: tuple[int, ...]
    passed: int
    """The number of columns by which rows of one instant are ordered."""
    input_types: tuple[pa.DataType, ...]
    types: tuple[pa.DataType, ...]
    names: tuple[str, ...] = ()
    """The names of the arguments of the measures."""

    def start(self, store: ChunkStore) -> MatchRows:
        return MatchRows(self, store)


class MatchRows:
    """A running MATCH_RECOGNIZE."""

    def __init__(self, spec: MatchSpec, store: ChunkStore) -> None:
        self._spec = spec
        self._matching = spec.matching
        self._store = store
        layout = RowLayout(len(spec.input_types) + len(MatchStarts.NAMES), ())
        self._held = StreamBuffer(layout, Kernel.MERGE, store)
        self._counts = GroupTable((), store)
        self._automaton = Automaton(spec.matching.program)
        self._next = FOREVER
        """The instants at which something ends even if no row arrives."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """All state that it keeps in the store."""
        return (self._held, self._counts)

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The matches known strictly before a frontier, given the rows that have arrived."""
        (new,) = inputs
        ended = frontier >= FOREVER
        if not len(new) and not (self._held.refs and (ended or frontier > self._next)):
            return no_changes(self._spec.types)
        rows, begun = self._gather(new)
        attempts = Attempts(
            self._matching, rows, begun, self._automaton, frontier, ended, self._store
        )
        attempts.settle()
        chosen = self._choose(rows, begun, attempts)
        self._keep(rows, begun)
        return self._shown(rows, chosen)

    def _gather(self, new: pa.RecordBatch) -> tuple[OrderedRows, MatchStarts]:
        """All rows in order, and what is known about each as the first of a match."""
        at_first = [
            pa.repeat(pa.scalar(value, pa.int64()), len(new)) for value in MatchStarts.AT_FIRST
        ]
        columns = [*row_columns(new), *at_first]
        fresh = make_changes(columns, as_int64(new.column(-2)), as_int64(new.column(-1)))
        held = [chunk.rows for chunk in self._held.chunks()]
        both = pa.concat_batches([*held, fresh]) if held else fresh
        rows = in_order(both, self._spec.keys, self._spec.passed)
        own = [as_int64(column).copy() for column in rows.columns[-len(at_first) :]]
        del rows.columns[-len(at_first) :]
        return rows, MatchStarts(rows.is_open.copy(), *own)

    def _choose(self, rows: OrderedRows, begun: MatchStarts, attempts: Attempts) -> _EmittedMatches:
        """The matches known now; their rows, and rows that fail, are no longer open."""
        chosen = _EmittedMatches([], [], [])
        tried = np.flatnonzero(begun.is_open)
        outcomes = begun.outcomes[tried]
        if self._matching.is_free:
            for start in tried[outcomes == Outcome.MATCHED].tolist():
                self._take(chosen, start, attempts, int(begun.known_at[start]))
            begun.is_open[tried[outcomes != Outcome.OPEN]] = False
            return chosen
        numbers = rows.numbers[tried]
        edges = np.flatnonzero(np.diff(numbers)) + 1
        for part in np.split(np.arange(len(tried)), edges) if len(tried) else ():
            self._choose_one_by_one(tried[part], begun, attempts, chosen)
        return chosen

    def _choose_one_by_one(
        self, tried: Int64s, begun: MatchStarts, attempts: Attempts, chosen: _EmittedMatches
    ) -> None:
        """The matches of a partition, each after the one before it."""
        outcomes, known_at = begun.outcomes[tried], begun.known_at[tried].tolist()
        places, latest, first = tried.tolist(), -FOREVER, 0
        is_open = (outcomes == Outcome.OPEN).tolist()
        for place in np.flatnonzero(outcomes != Outcome.FAILED).tolist():
            if place < first:
                continue
            if is_open[place]:
                begun.is_open[tried[:place]] = False
                return
            latest = max(latest, *known_at[first : place + 1])
            path = self._take(chosen, places[place], attempts, latest)
            first = bisect_left(places, places[place] + self._next_start(path), place)
        begun.is_open[tried] = False

    def _take(
        self, chosen: _EmittedMatches, start: int, attempts: Attempts, known_at: int
    ) -> tuple[int, ...]:
        path = attempts.path_of(start)
        chosen.starts.append(start)
        chosen.paths.append(path)
        chosen.known_at.append(known_at)
        return path

    def _next_start(self, path: tuple[int, ...]) -> int:
        """How many rows after the start of a match the next may begin: at least one."""
        matching = self._matching
        if matching.skip is SkipTo.PAST:
            return len(path)
        if matching.skip is SkipTo.NEXT:
            return 1
        there = [place for place, one in enumerate(path) if one in matching.skip_to]
        wanted = (there[0] if matching.skip is SkipTo.FIRST else there[-1]) if there else 0
        return max(wanted, 1)

    def _keep(self, rows: OrderedRows, begun: MatchStarts) -> None:
        """Keep the rows that may be part of matches, and those looked back at."""
        places = rows.places
        firsts = np.full(len(rows.groups), len(rows))
        np.minimum.at(firsts, rows.numbers[begun.is_open], places[begun.is_open])
        first = np.minimum(firsts[rows.numbers], rows.lasts + 1)
        kept = np.flatnonzero(places >= first - self._matching.back)
        within = self._matching.within
        waits = begun.is_open
        self._next = FOREVER
        if within is not None and waits.any():
            self._next = int(rows.times[waits].min()) + within
        self._forget_states(begun)
        keep_in_order(self._held, rows, begun.columns, kept, begun.is_open)

    def _forget_states(self, begun: MatchStarts) -> None:
        """Restart the automaton where there are too many states to keep."""
        if len(self._automaton.keys) > MOST_STATES:
            again = begun.outcomes == Outcome.OPEN
            begun.states[again] = FRESH
            begun.seen[again] = 0
            self._automaton.restore([])

    def _shown(self, rows: OrderedRows, chosen: _EmittedMatches) -> pa.RecordBatch:
        """The output rows of matches."""
        spec, matching = self._spec, self._matching
        if not chosen.starts:
            return no_changes(spec.types)
        lengths = np.asarray([len(path) for path in chosen.paths], np.int64)
        path = np.concatenate([np.asarray(one, np.int64) for one in chosen.paths])
        starts = np.asarray(chosen.starts, np.int64)
        numbers = self._numbers(rows, starts)
        matches = MatchedRows(
            rows, starts, lengths, path, numbers, np.asarray(chosen.known_at, np.int64)
        )
        looks = matches.looks(matching.all_rows)
        arguments = [
            column_of(one, matches, looks, matching.variables, self._store)
            for one in matching.slots
        ]
        kinds = spec.types[len(matching.before) :]
        measures = list(zip(matching.measures, kinds, strict=False))
        values, computable = compute(measures, Rows(arguments, len(looks), spec.names))
        looks = looks if computable is None else looks[computable]
        places = pa.array(matches.places[looks])
        known_at = matches.known_at[matches.owners[looks]]
        columns = [
            *(rows.columns[place].take(places) for place in matching.before),
            *values,
            *(rows.columns[place].take(places) for place in matching.behind),
            pa.array(known_at).cast(spec.types[-1]),
        ]
        return make_changes(columns, known_at, np.ones(len(known_at), np.int64))

    def _numbers(self, rows: OrderedRows, starts: Int64s) -> Int64s:
        """The numbers of matches in their partitions, continued from before."""
        if not self._matching.counts:
            return np.zeros(len(starts), np.int64)
        before = self._counts.lookup(rows.groups.ids).get(
            _COUNT, np.zeros(len(rows.groups), np.int64)
        )
        mine = rows.numbers[starts]
        after = before + np.bincount(mine, minlength=len(rows.groups))
        self._counts.update(Groups(rows.groups.ids, [], {_COUNT: after}))
        firsts = np.searchsorted(mine, mine)
        numbers: Int64s = before[mine] + np.arange(len(mine)) - firsts + 1
        return numbers

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, apart from the chunks in the store."""
        return {
            "held": [ref.to_json() for ref in self._held.refs],
            "counts": [ref.to_json() for ref in self._counts.refs],
            "states": self._automaton.keys,
            "next": self._next,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken, with the same store."""
        self._held.restore(ChunkRef(**ref) for ref in snapshot["held"])
        self._counts.restore(ChunkRef(**ref) for ref in snapshot["counts"])
        self._automaton.restore((bool(m), tuple(steps)) for m, steps in snapshot["states"])
        self._next = snapshot["next"]
