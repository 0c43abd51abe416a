"""Two writers of a log in an object store, the one stopped before each step that the other takes.

Whatever is acknowledged is in the log, once, and readers never see rows that go away again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.errors import LogError
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from tests.file_systems import register_file_system
from tests.patience import LONG
from tests.unit.log_samples import LAYOUT, ObjectStore, _Upload, numbers_in, rows_from

LOG = "steps://things/log"
STEPS = 40
"""More than an open or an append takes."""


class SteppedStore(ObjectStore):
    """Stops the thread of one writer before its step of a number, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.stop_at: int | None = None
        self.steps = 0
        self.thread: threading.Thread | None = None
        self.stopped = threading.Event()
        self.go_on = threading.Event()

    def step(self) -> None:
        if threading.current_thread() is self.thread:
            if self.steps == self.stop_at:
                self.stopped.set()
                assert self.go_on.wait(LONG)
            self.steps += 1

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.step()
        return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.step()
        return super().open_input_file(path)

    def delete_file(self, path: str) -> None:
        self.step()
        super().delete_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_SteppedUpload(self, path.strip("/")), mode="w")


class _SteppedUpload(_Upload):
    def close(self) -> None:
        if not self.closed:
            assert isinstance(self._store, SteppedStore)
            self._store.step()
        super().close()


@pytest.fixture
def store() -> SteppedStore:
    store = SteppedStore()
    register_file_system("steps", fs.PyFileSystem(store))
    return store


def stored() -> list[int]:
    return numbers_in(LogReader.open(LOG).read(Position(0, 0)))


class Stepped:
    """Work of the first writer in a thread that is stopped before one of its steps."""

    def __init__(self, store: SteppedStore, work: Callable[[], object], stop_at: int) -> None:
        self._store = store
        self._work = work
        self.error: BaseException | None = None
        store.stop_at, store.steps = stop_at, 0
        store.stopped.clear()
        store.go_on.clear()
        store.thread = self._thread = threading.Thread(target=self._run)
        self._thread.start()
        while self._thread.is_alive() and not store.stopped.wait(0.001):
            pass

    @property
    def is_stopped(self) -> bool:
        return self._store.stopped.is_set()

    def finish(self) -> bool:
        """Let it go on to its end; whether it was acknowledged."""
        self._store.go_on.set()
        self._thread.join()
        if self.error is not None and not isinstance(self.error, LogError):
            raise self.error
        return self.error is None

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_writer_is_stopped_in_an_append_while_another_takes_over(
    store: SteppedStore, has_begun: bool
) -> None:
    tried = 0
    for step in range(STEPS):
        store.objects.clear()
        first = LogWriter.open(LOG, LAYOUT)
        acknowledged = set()
        if has_begun:
            first.append(rows_from(0, 5))
            acknowledged |= set(range(5))
        stepped = Stepped(store, lambda: first.append(rows_from(100, 5)), step)  # noqa: B023
        if not stepped.is_stopped:
            assert stepped.finish()
            break
        tried += 1
        seen = [stored()]
        with LogWriter.open(LOG, LAYOUT) as second:
            seen.append(stored())
            second.append(rows_from(200, 5))
            acknowledged |= set(range(200, 205))
            seen.append(stored())
            if stepped.finish():
                acknowledged |= set(range(100, 105))
            seen.append(stored())
            second.append(rows_from(300, 5))
            acknowledged |= set(range(300, 305))
            with pytest.raises(LogError):
                first.append(rows_from(400, 5))
            seen.append(stored())
        last = stored()
        assert acknowledged <= set(last)
        assert set(last) - acknowledged <= set(range(100, 105))
        assert len(last) == len(set(last))
        for one in seen:
            assert last[: len(one)] == one
    assert tried >= 3


def test_a_writer_is_stopped_while_it_takes_over_from_one_that_goes_on(
    store: SteppedStore,
) -> None:
    tried = 0
    for step in range(STEPS):
        store.objects.clear()
        first = LogWriter.open(LOG, LAYOUT)
        first.append(rows_from(0, 5))
        acknowledged = set(range(5))

        def take_over() -> None:
            with LogWriter.open(LOG, LAYOUT) as second:
                second.append(rows_from(200, 5))

        stepped = Stepped(store, take_over, step)
        was_stopped = stepped.is_stopped
        tried += was_stopped
        seen = [stored()]
        for number in (100, 110):
            try:
                first.append(rows_from(number, 5))
            except LogError:
                break
            acknowledged |= set(range(number, number + 5))
            seen.append(stored())
        if stepped.finish():
            acknowledged |= set(range(200, 205))
        last = stored()
        assert acknowledged <= set(last)
        assert len(last) == len(set(last))
        for one in seen:
            assert last[: len(one)] == one
        if not was_stopped:
            break
    assert tried >= 5


def test_what_a_writer_stores_too_late_is_never_seen(store: SteppedStore) -> None:
    """Another one has taken over, and has not written yet: readers still look at the first one."""
    tried = 0
    for step in range(STEPS):
        store.objects.clear()
        first = LogWriter.open(LOG, LAYOUT)
        first.append(rows_from(0, 5))
        stepped = Stepped(store, lambda: first.append(rows_from(100, 5)), step)  # noqa: B023
        if not stepped.is_stopped:
            assert stepped.finish()
            break
        tried += 1
        with LogWriter.open(LOG, LAYOUT) as second:
            is_acknowledged = stepped.finish()
            seen = stored()
            second.append(rows_from(200, 5))
        last = stored()
        assert last[: len(seen)] == seen
        assert not is_acknowledged or 100 in last
    assert tried >= 3


def test_two_that_take_over_at_the_same_time(store: SteppedStore) -> None:
    for step in range(STEPS):
        store.objects.clear()
        with LogWriter.open(LOG, LAYOUT) as first:
            first.append(rows_from(0, 5))
        acknowledged = set(range(5))

        def take_over() -> None:
            with LogWriter.open(LOG, LAYOUT) as second:
                second.append(rows_from(200, 5))

        stepped = Stepped(store, take_over, step)
        was_stopped = stepped.is_stopped
        try:
            with LogWriter.open(LOG, LAYOUT) as third:
                third.append(rows_from(300, 5))
                acknowledged |= set(range(300, 305))
        except LogError:
            pass
        if stepped.finish():
            acknowledged |= set(range(200, 205))
        last = stored()
        assert acknowledged <= set(last)
        assert len(last) == len(set(last))
        if not was_stopped:
            break


def test_a_log_of_the_first_release_goes_on(store: SteppedStore) -> None:
    """Its objects had no writers in their names."""
    with LogWriter.open(LOG, LAYOUT) as writer:
        writer.append(rows_from(0, 5))
        writer.append(rows_from(5, 5))
    for name in [one for one in store.objects if one.endswith(".seg")]:
        store.objects[f"{name[: name.index('-')]}.seg"] = store.objects.pop(name)
    for name in [one for one in store.objects if "/terms/" in one or "/heads/" in one]:
        del store.objects[name]
    assert stored() == list(range(10))
    with LogWriter.open(LOG, LAYOUT) as writer:
        writer.append(rows_from(10, 5))
        assert numbers_in(writer.read(Position(0, 0))) == list(range(15))
    assert stored() == list(range(15))


def test_writers_whose_segments_are_gone_are_forgotten(store: SteppedStore) -> None:
    options = LogOptions(disk=4000, compression=None)
    for one in range(12):
        with LogWriter.open(LOG, LAYOUT, options) as writer:
            writer.append(rows_from(one * 50, 50))
            writer.trim()
    reader = LogReader.open(LOG)
    assert numbers_in(reader.read(reader.start))[-1] == 599
    assert len([one for one in store.objects if "/terms/" in one]) <= 6


def test_what_was_written_too_late_stays_hidden_when_its_successors_are_gone(
    store: SteppedStore,
) -> None:
    options = LogOptions(disk=4000, compression=None)
    late = LogWriter.open(LOG, LAYOUT, options)
    late.append(rows_from(0, 50))
    with LogWriter.open(LOG, LAYOUT, options) as writer:
        writer.append(rows_from(50, 50))
        with pytest.raises(LogError):
            late.append(rows_from(900, 50))
        orphans = [one for one in store.objects if one.endswith(".seg")]
        for one in range(2, 12):
            writer.append(rows_from(one * 50, 50))
            writer.trim()
    for one in range(12, 30):
        with LogWriter.open(LOG, LAYOUT, options) as writer:
            writer.append(rows_from(one * 50, 50))
            writer.trim()
        reader = LogReader.open(LOG)
        assert all(n < (one + 1) * 50 for n in numbers_in(reader.read(reader.start)))
    assert set(orphans) & set(store.objects)  # one that nobody sees
