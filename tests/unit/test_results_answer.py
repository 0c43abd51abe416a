"""The current answer of a changelog, and the changes that follow it: together they are all."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError, LogError, TooLargeError
from nilometer.local.answer_fold import AnswerFold
from nilometer.log.layout import DIFF, TIME, TIMESTAMP
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.reader import LogReader
from nilometer.server.results.chunk import CurrentAnswer
from nilometer.server.results.offset import Offset
from nilometer.server.results.query_results import QueryResults
from nilometer.server.results.stored_results import KeptAnswers
from tests.results_server import CHANGES, StoredQueries, changes

Change = tuple[str | None, int, int, int]
SMALL = LogOptions(fsync=Fsync.NEVER, segment=2048)


@dataclass(frozen=True)
class Changelog:
    """Micro-batches of a query whose buckets are out of step."""

    batches: list[tuple[list[Change], int | None]]
    """Changes, and the watermark after them."""

    @property
    def changes(self) -> list[Change]:
        return [one for batch, _ in self.batches for one in batch]


def make_changelog(seed: int) -> Changelog:
    """Rows that come and go; every change is written before the watermark passes its time."""
    choose = random.Random(seed)
    events: list[Change] = []
    for _ in range(choose.randint(1, 15)):
        row = choose.choice(["a", "b", None]), choose.randint(0, 2)
        begin, copies = choose.randint(0, 8), choose.randint(1, 3)
        events.append((*row, begin, copies))
        events.append((*row, begin + choose.randint(1, 5), -copies))
    watermarks: list[int | None] = [None] * choose.randint(0, 1)
    for _ in range(choose.randint(1, 8)):
        before = watermarks[-1] if watermarks else 0
        watermarks.append((before or 0) + choose.randint(0, 3))
    batches: list[tuple[list[Change], int | None]] = [([], one) for one in watermarks]
    for event in events:
        passed = (i for i, w in enumerate(watermarks) if w is not None and w > event[2])
        latest = next(passed, len(batches) - 1)
        batches[choose.randint(max(0, latest - choose.randint(0, 3)), latest)][0].append(event)
    return Changelog(batches)


def fold(events: list[Change], before: float) -> Counter[tuple[str | None, int]]:
    copies: Counter[tuple[str | None, int]] = Counter()
    for key, number, time, diff in events:
        if time < before:
            copies[key, number] += diff
    return Counter({row: count for row, count in copies.items() if count})


def rows_in(table: pa.Table) -> list[tuple[Any, ...]]:
    plain = table
    if TIME in table.schema.names:
        place = table.schema.names.index(TIME)
        plain = table.set_column(place, TIME, table.column(TIME).cast(pa.int64()))
    return [tuple(row.values()) for row in plain.to_pylist()]


async def changes_from(results: QueryResults, offset: Offset, limit: int) -> list[Change]:
    changes: list[Any] = []
    while True:
        page = await results.page(Offset.read(str(offset)), limit)
        changes += rows_in(page.rows)
        offset = page.next
        if page.at_end:
            return changes


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1 << 32),
    asked=st.sets(st.integers(0, 7)),
    limit=st.integers(1, 9),
)
def test_an_answer_and_the_changes_that_follow_it_are_all_changes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, asked: set[int], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("answers")
    queries, log = StoredQueries(folder), make_changelog(seed)
    answers: list[tuple[CurrentAnswer, int | None]] = []
    with queries.create("q", CHANGES, SMALL) as writer:
        results = queries.results("q")
        for number, (batch, watermark) in enumerate(log.batches):
            writer.append(changes(*batch) if batch else None, watermark=watermark)
            if number in asked or number == len(log.batches) - 1:
                answers.append((asyncio.run(results.answer(1000)), watermark))
        for answer, watermark in answers:
            before = float("-inf") if watermark is None else watermark
            assert Counter(rows_in(answer.rows)) == fold(log.changes, before)
            assert answer.instant == (None if watermark is None else watermark - 1)
            followed = asyncio.run(changes_from(results, answer.offset, limit))
            later = [one for one in log.changes if one[2] >= before]
            assert Counter(followed) == Counter(later)
            both = Counter(rows_in(answer.rows))
            for key, n, _, diff in followed:
                both[key, n] += diff
            assert {row: c for row, c in both.items() if c} == fold(log.changes, float("inf"))
    queries.close()
    shutil.rmtree(folder)


def test_an_answer_is_brought_up_to_date_and_not_made_anew(queries: StoredQueries) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, 1), ("b", 2, 2, 1)), watermark=3)
        fold = AnswerFold(reader := _CountingReader.of(queries.log_of("q")), 1 << 20)
        assert rows_in(fold.now(10).rows) == [("a", 1), ("b", 2)]
        log.append(changes(("a", 1, 4, -1)), watermark=5)
        assert rows_in(fold.now(10).rows) == [("b", 2)]
        assert rows_in(fold.now(10).rows) == [("b", 2)]
        assert reader.rows_read == 3


class _CountingReader(LogReader):
    rows_read = 0

    @classmethod
    def of(cls, location: str) -> _CountingReader:
        reader = cls.open(location)
        assert isinstance(reader, cls)
        return reader

    def read(self, *args: Any, **named: Any) -> Iterator[Any]:
        for frame in super().read(*args, **named):
            self.rows_read += len(frame.rows)
            yield frame


def test_a_large_answer_is_cut_and_says_so(queries: StoredQueries) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, 5_000_000), ("b", 2, 1, 2)), watermark=3)
        results = queries.results("q")
        answer = asyncio.run(results.answer(3))
        assert (rows_in(answer.rows), answer.is_cut) == ([("a", 1)] * 3, True)
        log.append(changes(("a", 1, 4, -4_999_999)), watermark=5)
        answer = asyncio.run(results.answer(3))
        assert (rows_in(answer.rows), answer.is_cut) == ([("a", 1), ("b", 2), ("b", 2)], False)


def test_an_answer_of_structs_and_lists(queries: StoredQueries) -> None:
    nested = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])
    schema = pa.schema([("at", nested), (TIME, TIMESTAMP), (DIFF, pa.int64())])
    one, two = {"x": float("inf"), "tags": ["a", None]}, {"x": None, "tags": None}
    values = [pa.array([one, two, one], nested), pa.array([1, 2, 3]).cast(TIMESTAMP)]
    with queries.create("q", schema) as log:
        log.append(
            pa.RecordBatch.from_arrays([*values, pa.array([2, 1, -2])], schema=schema), watermark=9
        )
        answer = asyncio.run(queries.results("q").answer(10))
        assert answer.rows.to_pylist() == [{"at": two}]


def test_an_append_query_has_no_answer(queries: StoredQueries) -> None:
    with queries.create("q"), pytest.raises(InputError, match="q only adds rows"):
        asyncio.run(queries.results("q").answer(10))


def test_an_answer_whose_first_changes_became_a_base(queries: StoredQueries) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", CHANGES, options) as log:
        for number in range(20):
            log.append(changes(("a", number, number, 1)), watermark=number)
        assert log.trim() == 0
        answer = asyncio.run(queries.results("q").answer(100))
        assert len(answer.rows) == 19  # the last change lies at the watermark


def test_a_changelog_that_takes_back_what_it_never_gave(queries: StoredQueries) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, -1)), watermark=2)
        with pytest.raises(LogError, match="retracts a row that it never emitted"):
            asyncio.run(queries.results("q").answer(10))


def test_an_answer_that_does_not_fit_is_refused_until_the_log_has_changed_much(
    queries: StoredQueries,
) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(*[(f"key {n}", n, 1, 1) for n in range(500)]), watermark=2)
        fold = AnswerFold(reader := _CountingReader.of(queries.log_of("q")), 10_000)
        for _ in range(3):
            with pytest.raises(TooLargeError, match="more memory than the server allows"):
                fold.now(10)
        assert reader.rows_read == 500
        log.append(changes(*[(f"key {n}", n, 3, -1) for n in range(490)]), watermark=4)
        log.append(changes(*[("x", n, 5, 0) for n in range(100)]), watermark=9)
        with pytest.raises(TooLargeError):
            fold.now(10)


def test_only_the_answers_that_were_asked_for_last_are_kept(queries: StoredQueries) -> None:
    answers = KeptAnswers(limit=2)
    readers = []
    for name in ("p", "q", "r"):
        with queries.create(name, CHANGES) as log:
            log.append(changes(("a", 1, 1, 1)), watermark=2)
        readers.append(LogReader.open(queries.log_of(name)))
    folds = [answers.of(reader) for reader in readers]
    assert answers.of(readers[2]) is folds[2]
    assert answers.of(readers[1]) is folds[1]
    assert answers.of(readers[0]) is not folds[0]


def test_answers_that_take_too_much_together_are_not_kept(queries: StoredQueries) -> None:
    answers = KeptAnswers(all_bytes=1)
    for name in ("p", "q"):
        with queries.create(name, CHANGES) as log:
            log.append(changes(("a", 1, 1, 1)), watermark=2)
    first, second = (LogReader.open(queries.log_of(name)) for name in ("p", "q"))
    fold = answers.of(first)
    fold.now(10)
    answers.of(second)
    assert answers.of(first) is not fold


def test_rows_without_a_watermark_are_not_final(queries: StoredQueries) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, 1)))
        answer = asyncio.run(queries.results("q").answer(10))
        assert (answer.rows.num_rows, answer.instant, answer.offset.sent_before) == (0, None, None)
