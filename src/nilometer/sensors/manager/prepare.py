"""Prepares received events for one append: typed, judged by time, refusals set apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nilometer.log.dead_letters import DeadLetter, payload_text
from nilometer.model.secrets import shown_text
from nilometer.sensors.manager.build_rows import NO_TIME, Columns, RowBuilder
from nilometer.sensors.manager.received import Event, Received
from nilometer.sensors.manager.sensor_clock import SensorClock


@dataclass(frozen=True)
class Prepared:
    """Rows for the log, in the order in which they were received."""

    rows: pa.RecordBatch | None
    owners: NDArray[np.int32]
    """For each row, the index of the event that it came from."""
    received: Sequence[Received]
    letters: Sequence[DeadLetter]

    def keep(self, wanted: Callable[[Received], bool]) -> Prepared:
        """Remove the rows whose event is not wanted."""
        chosen = np.array([wanted(one) for one in self.received], bool)
        mask = chosen[self.owners]
        rows = None if self.rows is None else self.rows.filter(pa.array(mask))
        return Prepared(rows, self.owners[mask], self.received, self.letters)

    def count(self) -> None:
        """Note in each event how many of its rows are here."""
        counts = np.bincount(self.owners, minlength=len(self.received)).tolist()
        for one, rows in zip(self.received, counts, strict=True):
            one.rows = rows


class Preparation:
    """Prepares what one log has received."""

    def __init__(self, rows: RowBuilder, clock: SensorClock) -> None:
        self._builder = rows
        self._clock = clock
        self._parts: list[pa.RecordBatch] = []
        self._owners: list[NDArray[np.int32]] = []
        self._letters: list[DeadLetter] = []

    def prepare(self, received: Sequence[Received]) -> Prepared:
        """Judge everything in order; afterwards the clock includes all of it."""
        self._parts, self._owners, self._letters = [], [], []
        run: list[int] = []
        for at, one in enumerate(received):
            if one.event is Event.READING and not isinstance(one.value, pa.RecordBatch):
                run.append(at)
                continue
            self._take_values(run, received)
            run = []
            self._take_other(at, one)
        self._take_values(run, received)
        rows = pa.concat_batches(self._parts) if self._parts else None
        owners = np.concatenate([np.empty(0, np.int32), *self._owners])
        return Prepared(rows, owners, received, self._letters)

    def refuse_all(self, received: Sequence[Received], reason: str) -> Prepared:
        """Refuse all readings; sensors that were opened or closed still are."""
        self._parts, self._owners, self._letters = [], [], []
        for at, one in enumerate(received):
            if one.event is Event.READING:
                self._refuse(one, reason, one.value)
            else:
                self._take_other(at, one)
        return Prepared(None, np.empty(0, np.int32), received, self._letters)

    def _take_other(self, at: int, one: Received) -> None:
        number = one.sensor.number
        if one.event is Event.READING:
            self._take_batch(at, one)
        elif one.event is Event.BAD_READING:
            self._refuse(one, one.reason or "no reading", one.value)
        elif one.event is Event.OPENED:
            self._clock.open(number, one.arrived, by_arrival=one.sensor.by_arrival)
        elif one.event is Event.ENDED:
            self._clock.end(number)
        else:
            self._clock.close(number)

    def _take_values(self, run: list[int], received: Sequence[Received]) -> None:
        """Take readings of one row each, from any sensors."""
        if not run:
            return
        items = [received[at] for at in run]
        columns = self._builder.from_values([one.value for one in items])
        times = np.zeros(len(items), np.int64)
        taken = np.ones(len(items), bool)
        stated = [None] * len(items) if columns.times is None else columns.times.tolist()
        for at, one in enumerate(items):
            reason = columns.refused.get(at)
            if reason is None:
                time = one.time if stated[at] is None or stated[at] == NO_TIME else stated[at]
                times[at], reason = self._time(one, time, columns.times is not None)
            if reason is not None:
                taken[at] = False
                self._refuse(one, reason, one.value)
            else:
                one.sensor.seen(one.value, int(times[at]), one.arrived)
        versions = np.array([one.version for one in items], np.int32)
        self._add(columns, times, versions, np.array(run, np.int32), taken)

    def _time(self, one: Received, time: int | None, declared: bool) -> tuple[int, str | None]:
        """A reading's time, or why it is refused."""
        if time is not None:
            return time, self._clock.admit(one.sensor.number, time, one.arrived)
        if declared:
            return 0, "has no time"
        one.sensor.backlog += one.queued
        return self._clock.arrive(one.sensor.number, one.arrived), None

    def _take_batch(self, place: int, one: Received) -> None:
        """Take a reading of many rows."""
        columns = self._builder.from_batch(one.value)
        size = len(one.value)
        if not size:
            return
        reasons = dict(columns.refused)
        times, judged = self._batch_times(one, columns, size)
        sound = np.ones(size, bool)
        sound[list(reasons)] = False
        if columns.times is not None:
            for at in np.flatnonzero(sound & (times == NO_TIME)).tolist():
                reasons[at] = "has no time"
                sound[at] = False
        if judged:
            places = np.flatnonzero(sound)
            admitted, refusals = self._clock.admit_many(
                one.sensor.number, times[places], one.arrived
            )
            reasons.update((int(places[at]), reason) for at, reason in refusals)
            sound[places[~admitted]] = False
        for at in sorted(reasons):
            self._refuse(one, reasons[at], one.value.slice(at, 1).to_pylist()[0])
        if sound.any():
            last = int(np.flatnonzero(sound)[-1])
            shown = one.value.slice(last, 1).to_pylist()[0]
            one.sensor.seen(shown, int(times[last]), one.arrived)
        versions = np.full(size, one.version, np.int32)
        self._add(columns, times, versions, np.full(size, place, np.int32), sound)

    def _batch_times(
        self, one: Received, columns: Columns, size: int
    ) -> tuple[NDArray[np.int64], bool]:
        """The times of the rows, and whether they must be judged."""
        if columns.times is None:
            if one.time is None:
                one.sensor.backlog += size * one.queued
                arrival = self._clock.arrive(one.sensor.number, one.arrived)
                return np.full(size, arrival, np.int64), False
            return np.full(size, one.time, np.int64), True
        if one.time is None:
            return columns.times, True
        return np.where(columns.times == NO_TIME, one.time, columns.times), True

    def _add(
        self,
        columns: Columns,
        times: NDArray[np.int64],
        versions: NDArray[np.int32],
        owners: NDArray[np.int32],
        taken: NDArray[np.bool_],
    ) -> None:
        if taken.any():
            self._parts.append(self._builder.stored(columns, times, versions, taken))
            self._owners.append(owners[taken])

    def _refuse(self, one: Received, reason: str, value: object) -> None:
        one.sensor.dead_letters += 1
        where = "" if one.origin is None else f" ({one.origin})"
        why, sent = shown_text(reason + where), shown_text(payload_text(value))
        letter = DeadLetter(one.sensor.name, one.arrived, why, sent)
        self._letters.append(letter)
