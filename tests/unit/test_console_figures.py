"""Figures of the console: rates do not flicker, colours stay, words are explained."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.database.query_status import HealthSample, QueryLimits, QueryPhase, QueryStatus
from nilometer.errors import Place, SqlError
from nilometer.server.console.chart_points import COLOURS, SHARED, Choice, Lines
from nilometer.server.console.dead_letters import letters_as_table, newest_first
from nilometer.server.console.glossary import TERMS, term
from nilometer.server.console.health_charts import CHARTS
from nilometer.server.console.highlighted_sql import highlighted_sql, keywords
from nilometer.server.console.missing_page import missing_page
from nilometer.server.console.query_list import query_figures
from nilometer.server.console.recent_rate import LATELY, rate_out, recent_rate
from nilometer.server.console.statement_editor import is_unfinished
from nilometer.server.console.table_rows import in_order, table_columns, table_rows
from nilometer.server.console.wording import PHASES
from tests.drawn_shapes import shapes, texts

_SECOND = 1_000_000
_NOW = 1_800_000_000 * _SECOND
_SAMPLE = HealthSample(0, 10.0, 5.0, 1000, _SECOND, 0, 200.0, 500.0, {})
_STATUS = QueryStatus(
    *("q", "SELECT 1", "append", QueryPhase.RUNNING, 0, 0, None, 0, None, False),
    *(QueryLimits(), 1234, 2048, 3 << 20, _NOW - 2 * _SECOND),
)


def out(*rates: float, every: int = _SECOND, end: int = _NOW) -> list[HealthSample]:
    """Samples with these rates of results, the last one at `end`."""
    count = len(rates)
    return [
        replace(_SAMPLE, time=end - (count - 1 - n) * every, output_rows_per_second=rate)
        for n, rate in enumerate(rates)
    ]


def test_a_rate_is_the_mean_of_the_last_seconds() -> None:
    assert recent_rate([], rate_out, _NOW) is None
    assert recent_rate(out(7.0), rate_out, _NOW) == 7.0
    flickering = [0.0, 6.0] * 15
    for end in (_NOW, _NOW + _SECOND // 2):
        rate = recent_rate(out(*flickering, end=end), rate_out, end)
        assert rate == pytest.approx(3.0)
    assert recent_rate(out(5.0, 5.0, end=_NOW - LATELY), rate_out, _NOW) == 0.0


@given(
    st.lists(st.tuples(st.integers(1, 3 * _SECOND), st.integers(0, 500)), min_size=1, max_size=40),
    st.integers(0, 2 * LATELY),
)
def test_a_rate_counts_each_row_once(steps: list[tuple[int, int]], silence: int) -> None:
    """The rows that samples tell of, over the time that they tell of."""
    time, samples, rows = 0, [], []
    for wait, count in steps:
        time += wait
        samples.append(replace(_SAMPLE, time=time, output_rows_per_second=count * _SECOND / wait))
        rows.append((time - wait, time, count))
    now = time + silence
    rate = recent_rate(samples, rate_out, now)
    recent = [one for one in rows[1:] if one[1] > now - LATELY]
    if silence >= LATELY:
        assert rate == 0.0
    elif not recent:
        assert rate == samples[-1].output_rows_per_second
    else:
        expected = sum(count for *_, count in recent) * _SECOND / (recent[-1][1] - recent[0][0])
        assert rate == pytest.approx(expected)


def test_sizes_are_shown_in_units_and_a_watermark_that_has_not_begun_is_not() -> None:
    shown = texts(query_figures(_STATUS, out(1.0, 1.0), _NOW))
    assert {"2.0 kB", "3.0 MB", "2.0 s", "1 234"} <= set(shown)
    begun = replace(_STATUS, watermark=-8_520_336_000 * _SECOND)
    assert "—" in texts(query_figures(begun, out(1.0, 1.0), _NOW))
    lag = next(one for one in CHARTS if one.term == "watermark").lines[0]
    assert lag.value(replace(_SAMPLE, watermark_lag=10**16)) is None
    columns = {one["name"]: one for one in table_columns(pa.schema([("stored_bytes", pa.int64())]))}
    assert columns["stored_bytes"]["is_size"]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)), max_size=9))
def test_an_answer_stands_in_the_same_order_however_it_comes(rows: list[tuple[str, int]]) -> None:
    def table(rows: list[tuple[str, int]]) -> pa.Table:
        columns = [[one[place] for one in rows] for place in (0, 1)]
        return pa.Table.from_arrays(
            [pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int64())], ["k", "k"]
        )

    shown = table_rows(in_order(table(rows)))
    assert shown == table_rows(in_order(table(rows[::-1])))
    assert sorted(map(str, shown)) == sorted(str(list(one)) for one in rows)


def test_every_phase_has_a_mark() -> None:
    assert set(PHASES) == set(QueryPhase)


def _colours(names: list[str]) -> dict[str, int]:
    times = pa.array([_NOW] * len(names), pa.timestamp("us", tz="UTC"))
    rows = pa.table({"k": names, "v": [1.0] * len(names), "_time": times})
    lines = Lines(Choice(("v",), "k"))
    lines.points(rows)
    return lines.colours


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True))
def test_colours_belong_to_names_not_to_the_order_of_rows(names: list[str]) -> None:
    painted = _colours(names)
    assert painted == _colours(names[::-1])
    own = [colour for name, colour in painted.items() if not name.endswith(" of others")]
    assert len(set(own)) == len(own) <= COLOURS
    if len(names) > COLOURS:
        assert painted["mean v of others"] == SHARED


def test_a_line_that_comes_later_does_not_change_the_colours_of_others() -> None:
    first = _colours(["harbour", "hill"])
    later = _colours(["harbour"])
    assert later["harbour"] == first["harbour"]


def test_the_glossary_is_what_the_documentation_has() -> None:
    written = Path(__file__).parents[2] / "docs" / "glossary.md"
    assert written.read_text().splitlines() == [
        "# Glossary",
        "",
        "One word for each concept. The console shows these sentences beside the words.",
        "",
        "| word | meaning |",
        "|---|---|",
        *(f"| {name} | {meaning} |" for name, meaning in TERMS.items()),
    ]
    assert list(TERMS) == sorted(TERMS)
    for meaning in TERMS.values():
        assert meaning[0].isupper()
        assert meaning.endswith(".")


def test_a_term_is_explained_to_those_who_point_and_to_those_who_listen() -> None:
    mark = next(one for one in shapes(term("lag", "behind")) if "data-tip" in one.attributes)
    assert mark.attributes["data-tip"] == mark.attributes["aria-label"] == f"lag: {TERMS['lag']}"


def test_dead_letters_of_several_streams_are_in_the_order_of_time() -> None:
    def letter(stream: str, second: int) -> dict[str, object]:
        arrived = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
        return {"stream": stream, "arrived": arrived, "payload": "<b>"}

    given_ = [letter("A", 1), letter("A", 5), letter("B", 3)]
    assert [one["arrived"].second for one in newest_first(given_)] == [5, 3, 1]  # type: ignore[attr-defined]
    drawn = letters_as_table(given_)
    assert "arrived (UTC)" in texts(drawn)
    assert {one.attributes.get("data-name") for one in shapes(drawn) if one.tag == "td"} == {
        "stream",
        "arrived (UTC)",
        "payload",
    }
    assert texts(letters_as_table([])) == ["There are none."]


def test_the_editor_marks_the_words_that_pages_mark() -> None:
    text = (
        "SELECT station, AVG(wind) AS wind FROM Weather [RANGE 30 SECONDS] "
        "WHERE wind > 5 GROUP BY station EMIT CHANGES EVERY 1 SECOND"
    )
    marked = [one for one in shapes(highlighted_sql(text)) if one.attributes["class"] == "keyword"]
    words = {word for one in marked for word in str(one.inside[0]).upper().split()}
    known = set(keywords())
    assert words <= known
    plain = {"STATION", "AVG", "WIND", "WEATHER"}
    assert not plain & known
    assert "CLOSE" not in known


def test_what_ends_too_soon_may_still_be_being_typed() -> None:
    def error(text: str, start: int, end: int) -> SqlError:
        return SqlError("wrong", place=Place(text, start, end))

    assert is_unfinished(error("SELECT clo", 7, 10), "SELECT clo")
    assert not is_unfinished(error("SELECT clo FROM A", 7, 10), "SELECT clo FROM A")
    assert is_unfinished(error("SELECT clo, op", 7, 10), "SELECT clo, op")
    assert not is_unfinished(error("select clo, op\nfrom A", 7, 10), "select clo, op\nfrom A")
    assert not is_unfinished(SqlError("wrong"), "SELECT")


def test_an_unknown_address_is_reported_without_its_markup() -> None:
    answer = missing_page("/<script>alert(1)</script>" + "x" * 500)
    body = bytes(answer.body).decode()
    assert answer.status_code == 404
    assert "<script>" not in body
    assert "&lt;script&gt;" in body
    assert "x" * 200 not in body
