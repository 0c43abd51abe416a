"""Offsets and pages: wherever one goes on, every row comes once."""

from __future__ import annotations

import asyncio
import shutil

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError, LogGapError, ResultsGoneError
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.server.results.chunk import Page
from nilometer.server.results.offset import Offset
from nilometer.server.results.query_results import QueryResults
from tests.results_server import StoredQueries, numbered

SMALL = LogOptions(fsync=Fsync.NEVER, segment=2048)
FORGETFUL = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)


def numbers(page: Page) -> list[int]:
    values: list[int] = page.rows.column("n").to_pylist()
    return values


async def pages_from(
    results: QueryResults, offset: Offset | None, limit: int
) -> tuple[list[int], list[Page]]:
    """All rows from an offset on, and the pages they came in."""
    values: list[int] = []
    pages = []
    while True:
        page = await results.page(offset, limit)
        assert page.rows.num_rows <= limit
        pages.append(page)
        values += numbers(page)
        if page.at_end:
            return values, pages
        offset = page.next


@settings(max_examples=15)
@given(
    appends=st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=12),
    limit=st.integers(1, 12),
)
def test_going_on_anywhere_gives_every_row_once(
    tmp_path_factory: pytest.TempPathFactory, appends: list[tuple[int, bool]], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("pages")
    queries, total = StoredQueries(folder), 0
    with queries.create("q", options=SMALL) as log:
        for count, tells in appends:
            log.append(
                numbered(total, count) if count else None, watermark=total if tells else None
            )
            total += count

        async def check() -> None:
            results = queries.results("q")
            everything, pages = await pages_from(results, None, limit)
            assert everything == list(range(total))
            assert all(page.watermark is None or page.watermark <= total for page in pages)
            for page in pages:
                for taken in range(page.rows.num_rows + 1):
                    offset = Offset.read(str(page.start.after(taken)))
                    rest, _ = await pages_from(results, offset, limit)
                    assert rest == list(range(page.start.position.row + taken, total))

        asyncio.run(check())
    queries.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("limit", [0, 1, 7, 40, 1000])
def test_the_latest_rows(queries: StoredQueries, limit: int) -> None:
    with queries.create("q", options=SMALL) as log:
        for first in range(0, 40, 4):
            log.append(numbered(first, 4))
        page = asyncio.run(queries.results("q").latest(limit))
        assert numbers(page) == list(range(max(0, 40 - limit), 40))


def test_the_place_of_every_row(queries: StoredQueries) -> None:
    with queries.create("q", options=SMALL) as log:
        for first in range(0, 60, 5):
            log.append(numbered(first, 5))
        reader = LogReader.open(queries.log_of("q"))
        for row in range(61):
            place = reader.place_of(row)
            assert place.row == row
            values = [n for frame in reader.read(place) for n in frame.rows.column("n").to_pylist()]
            assert values == list(range(row, 60))


def test_rows_that_are_deleted_while_a_place_is_looked_for_are_gone(
    queries: StoredQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    with queries.create("q", options=SMALL) as log:
        for first in range(0, 60, 5):
            log.append(numbered(first, 5))
        reader = LogReader.open(queries.log_of("q"))
        find = reader._first_place

        def find_late(number: int) -> Position:
            shutil.rmtree(queries.log_of("q"), ignore_errors=True)
            return find(number)

        monkeypatch.setattr(LogReader, "start", Position(0, 0))
        monkeypatch.setattr(reader, "_first_place", find_late)
        assert reader.place_of(30) == Position(0, 0)


@pytest.mark.parametrize("text", ["", "x", "1-2-3", "a" * 500, "00000000-0-0-0-0-zzzzzzzz"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="this is not an offset"):
        Offset.read(text)


def test_an_offset_is_read_as_it_was_written() -> None:
    offset = Offset.at("0123456789abcdef", Position(3, 1024, 7, 170), sent_before=-5, taken=9)
    assert Offset.read(str(offset)) == offset
    assert str(offset).startswith("01234567-3-1024-7-170-")
    assert str(offset).endswith("~-5.9")


def test_rows_are_counted_on_from_an_offset_between_rows() -> None:
    """A client that was cut off within a chunk, went on, and is cut off again."""
    start = Offset.at("3f2a9c1e00", Position(1, 2, 3, 4))
    assert str(start.after(2).after(3)) == f"{start}.5"
    assert Offset.read(str(start.after(2))).after(3) == start.after(5)


def test_a_place_that_the_server_never_gave_is_not_looked_for(queries: StoredQueries) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 5))
        page = asyncio.run(queries.results("q").page(None, 2))
        good = str(page.next).split("-")
        good[2] = "1000000"
        with pytest.raises(InputError, match="this is not an offset"):
            asyncio.run(queries.results("q").page(Offset.read("-".join(good)), 2))


def test_an_offset_of_a_query_of_the_same_name_that_was_dropped(queries: StoredQueries) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 5))
        old = asyncio.run(queries.results("q").page(None, 2)).next
    queries.drop("q")
    with queries.create("q") as log:
        log.append(numbered(0, 5))
        with pytest.raises(ResultsGoneError, match="belongs to another query"):
            asyncio.run(queries.results("q").page(old, 2))


def test_rows_that_are_gone_are_not_passed_over_in_silence(queries: StoredQueries) -> None:
    with queries.create("q", options=FORGETFUL) as log:
        log.append(numbered(0, 5))
        results = queries.results("q")
        begin = asyncio.run(results.page(None, 1)).start
        for first in range(5, 100, 5):
            log.append(numbered(first, 5))
        assert log.trim()
        with pytest.raises(LogGapError) as error:
            asyncio.run(results.page(begin, 10))
        oldest = asyncio.run(results.oldest())
        assert error.value.oldest == oldest.position
        rest, _ = asyncio.run(pages_from(results, oldest, 10))
        assert rest == list(range(oldest.position.row, 100))


def test_a_query_that_has_never_been_started_has_no_results(queries: StoredQueries) -> None:
    with pytest.raises(InputError, match="query q has no results yet"):
        queries.results("q")


def test_a_page_of_large_rows_ends_before_it_is_too_large(queries: StoredQueries) -> None:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string()), (TIME, TIMESTAMP)])
    with queries.create("q", schema) as log:
        for first in range(0, 60, 6):
            rows = numbered(first, 6)
            texts = pa.array(["x" * 1_000_000] * 6)
            columns = [rows.column("n"), texts, rows.column(TIME)]
            log.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        values, pages = asyncio.run(pages_from(queries.results("q"), None, 1000))
        assert values == list(range(60))
        assert max(page.rows.nbytes for page in pages) < 24_000_000


def test_results_in_use_are_shared(queries: StoredQueries) -> None:
    with queries.create("q"):
        first = queries.results("q")
        assert queries.results("q") is first
