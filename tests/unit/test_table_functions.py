"""Table functions in statements: what they give, however rows are cut, and what they refuse."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.local.run_changes import LocalChanges
from nilometer.mining.hosted_answers import _differences
from nilometer.mining.registry import find_function
from nilometer.mining.table_function import CheckedCall
from tests.mining_streams import START, check_any_split, counted, times_of

SECOND = 1_000_000


def readings(seed: int, rows: int = 120, keys: int = 3, digits: int = 1) -> pa.Table:
    """Readings of several sensors: small vectors and symbols, equal times, silent stretches."""
    dice = random.Random(seed)
    seconds = sorted(
        round(dice.choice([2, 5, 20, 60]) * dice.random(), digits) for _ in range(rows)
    )
    return pa.table(
        {
            "ts": times_of(seconds),
            "sensor": pa.array([dice.choice([*range(keys), None]) for _ in range(rows)]),
            "value": pa.array([dice.randrange(3) for _ in range(rows)]),
            "counts": pa.array([[dice.randrange(9) for _ in range(8)] for _ in range(rows)]),
        }
    )


KNOWN = pa.table(
    {
        "pattern": pa.array([[0.0] * 7 + [9.0], [9.0] + [0.0] * 7, [1.0] * 7 + [9.0]]),
        "class": pa.array(["last", "first", "last"]),
    }
)
ACCUMULATED = "ACCUMULATE(S [RANGE 3 SECONDS], by => sensor, value => counts)"
APPENDED = (
    f"SELECT * FROM {ACCUMULATED}",
    f"SELECT sensor, total, _time FROM {ACCUMULATED} A WHERE A.rows > 1",
    f"SELECT sensor, class FROM CLASSIFY({ACCUMULATED}, pattern => total, method => 'neighbours', "
    "neighbours => 1, knowledge => (SELECT pattern, class FROM K))",
    f"SELECT sensor, rows FROM {ACCUMULATED} UNION ALL SELECT sensor, value FROM S",
    f"SELECT A.sensor, K.class FROM {ACCUMULATED} A, K WHERE A.rows > 1",
)
CHANGING = (
    "SELECT * FROM SEQUENCES(S [RANGE 4 SECONDS], stream => sensor, value => value, "
    "across => 0.5, every => 1500 MS)",
    "SELECT * FROM SEQUENCES(S, by => sensor, stream => value, value => value, across => 0.3, "
    "every => 2 SECONDS)",
    f"SELECT sensor, COUNT(*) AS n FROM {ACCUMULATED} A [RANGE 2 SECONDS] GROUP BY sensor",
    f"SELECT A.sensor, B.value FROM {ACCUMULATED} A [RANGE 2 SECONDS], S B [RANGE 1 SECOND] "
    "WHERE A.sensor = B.sensor EMIT CHANGES",
    f"SELECT sensor, rows FROM {ACCUMULATED} A [PARTITION BY sensor ROWS 2] EMIT CHANGES",
    f"SELECT x.sensor, COUNT(*) FROM (SELECT sensor FROM {ACCUMULATED} WHERE rows > 1) x "
    "[RANGE 5 SECONDS] GROUP BY x.sensor",
)


@pytest.mark.parametrize("statement", [*APPENDED, *CHANGING])
@pytest.mark.parametrize(("seed", "lateness"), [(1, 0), (2, 2), (3, 5)])
def test_results_do_not_depend_on_how_rows_are_cut(
    statement: str, seed: int, lateness: int
) -> None:
    whole = check_any_split(statement, readings(seed), {"K": KNOWN}, seed=seed, lateness=lateness)
    assert len(whole)


@pytest.mark.parametrize("seed", range(4))
def test_a_function_answers_to_the_rows_of_its_window(seed: int) -> None:
    stream = readings(seed, digits=6)  # of equal times, the order would count
    every, window = 1.5 * SECOND, 4 * SECOND
    changes = check_any_split(
        "SELECT * FROM SEQUENCES(S [RANGE 4 SECONDS], stream => sensor, value => value, "
        "across => 0.5, every => 1500 MS)",
        stream,
        seed=seed,
    )
    instants = {int(-(-t // every) * every) for t in _times(stream)}
    instants |= {one + int(every) for one in instants} | {int(START + 100 * SECOND)}
    for instant in sorted(instants):
        held = stream.filter(
            pa.array([instant - window <= time <= instant for time in _times(stream)])
        )
        assert _answer(changes, instant) == _mined(held), instant


def _times(stream: pa.Table) -> list[int]:
    times: list[int] = stream["ts"].cast(pa.int64()).to_pylist()
    return times


def _answer(changes: pa.Table, instant: int) -> Counter[str]:
    rows: Counter[str] = Counter()
    for row in changes.to_pylist():
        time, diff = row.pop("_time"), row.pop("_diff")
        if time.timestamp() * SECOND <= instant:
            rows[repr(row)] += diff
    return +rows


def _mined(held: pa.Table) -> Counter[str]:
    """The answer of a fresh miner to all rows at once."""
    if not len(held):
        return Counter()
    function: Any = find_function("SEQUENCES")
    options = {one.name: one.default for one in function.options} | {"across": 0.5}
    kinds = {"stream": pa.int64(), "value": pa.int64()}
    miner = function.miner(CheckedCall(kinds, options, 4 * SECOND), {}, None)
    database = LocalDatabase()
    database.create_stream("S", held, time="ts")
    miner.add(
        held["ts"].cast(pa.int64()).to_numpy(),
        {"stream": held["sensor"].combine_chunks(), "value": held["value"].combine_chunks()},
    )
    return counted(pa.Table.from_batches([miner.answer()]))


def counted_boxes(rows: int) -> pa.Table:
    """Five spectra of each of many boxes, one after the other."""
    return pa.table(
        {
            "ts": times_of([one / 10 for one in range(rows)]),
            "box": pa.array([one // 5 for one in range(rows)]),
            "counts": pa.array([[1, 2]] * rows),
        }
    )


def _rows_held(query: object) -> int:
    assert isinstance(query, LocalChanges)
    operators = [bucket.operator for stage in query.stages for bucket in stage.buckets]
    return sum(ref.rows for one in operators for stored in one.stored for ref in stored.refs)


def test_windows_are_closed_at_both_ends() -> None:
    database = LocalDatabase()
    rows = {"ts": times_of([1, 2]), "value": ["a", "b"], "counts": [[1], [1]]}
    database.create_stream("S", pa.table(rows), time="ts")
    answers = database.sql(
        "SELECT sequence FROM SEQUENCES(S [RANGE 4 SECONDS], stream => 1, value => value, "
        "every => 5 SECONDS)"
    )
    assert _when(answers, "sequence") == [
        (["a", "b"], 5 * SECOND, 1),
        (["a", "b"], 10 * SECOND, -1),
    ]
    lasting = database.sql(
        "SELECT rows FROM ACCUMULATE(S [RANGE 1 SECOND], value => counts) A [RANGE 3 SECONDS] "
        "EMIT CHANGES"
    )
    assert _when(lasting, "rows") == [
        (1, SECOND, 1),
        (2, 2 * SECOND, 1),
        (1, 4 * SECOND + 1, -1),
        (2, 5 * SECOND + 1, -1),
    ]


def _when(changes: pa.Table, column: str) -> list[tuple[Any, int, int]]:
    """Values, how long after the start they come or go, and which of the two."""
    times = [time - START for time in changes["_time"].cast(pa.int64()).to_pylist()]
    values, diffs = changes[column].to_pylist(), changes["_diff"].to_pylist()
    return sorted(zip(values, times, diffs, strict=True), key=lambda one: one[1])


def test_keys_that_are_over_are_forgotten() -> None:
    database = LocalDatabase(buckets=1)
    rows = 3000
    boxes = counted_boxes(rows)
    database.create_stream("S", boxes, time="ts")
    query = database.query(
        "SELECT box, rows FROM ACCUMULATE(S [RANGE 1 SECOND], by => box, value => counts)"
    )
    held = []
    for begin in range(0, rows, 50):
        query.feed({"S": boxes.slice(begin, 50).to_batches()[0]})
        held.append(_rows_held(query))
    assert max(held[30:]) <= max(held[:30])
    assert max(held) < 100


@pytest.mark.parametrize("condition", ["a.rows = K.n", "a.rows > K.n"])
def test_results_that_meet_static_tables_are_not_kept(condition: str) -> None:
    rows = 1000
    boxes = counted_boxes(rows)
    database = LocalDatabase()
    database.create_stream("S", boxes, time="ts")
    database.create_table("K", pa.table({"n": [1, 2, 3]}))
    query = database.query(
        "SELECT a.box, K.n FROM ACCUMULATE(S [RANGE 1 SECOND], by => box, value => counts) a, K "
        f"WHERE {condition}"
    )
    held = []
    for begin in range(0, rows, 50):
        query.feed({"S": boxes.slice(begin, 50).to_batches()[0]})
        held.append(_rows_held(query))
    assert max(held) < 30


def test_what_is_made_of_static_tables_is_made_once_for_all_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function: Any = type(find_function("CLASSIFY"))
    made = []
    row_worker = function.row_worker

    def counting(self: Any, call: CheckedCall, tables: Any) -> Any:
        made.append(call)
        return row_worker(self, call, tables)

    monkeypatch.setattr(function, "row_worker", counting)
    stream = readings(1)
    database = LocalDatabase(buckets=40)
    database.create_stream("S", stream, time="ts")
    known = {"pattern": [[float(i)] * 8 for i in range(5)], "class": list("abcab")}
    database.create_table("K", pa.table(known))
    query = database.query(
        "SELECT class FROM CLASSIFY(S, pattern => counts, method => 'neighbours', "
        "neighbours => 2, knowledge => (SELECT pattern, class FROM K))"
    )
    for begin in range(0, 120, 60):
        query.feed({"S": stream.slice(begin, 60).combine_chunks().to_batches()[0]})
        query.restart()
    assert len(made) == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM PEKAS(S, counts => counts)", "there is no table function PEKAS"),
        ("SELECT * FROM ACCUMULATE(S [RANGE 1 S])", "ACCUMULATE needs value"),
        ("SELECT * FROM ACCUMULATE(S, value => counts)", "the input of ACCUMULATE needs a window"),
        ("SELECT * FROM ACCUMULATE(S [ROWS 3], value => counts)", "cannot have a ROWS window"),
        (
            "SELECT * FROM ACCUMULATE(S [RANGE -1 S], value => counts)",
            "a window cannot have a negative length",
        ),
        (
            f"SELECT COUNT(*) FROM {ACCUMULATED} A [RANGE -1 S]",
            "a window cannot have a negative length",
        ),
        (
            "SELECT * FROM SEQUENCES(S [RANGE -1 S], stream => sensor, value => value)",
            "a window cannot have a negative length",
        ),
        ("SELECT * FROM ACCUMULATE(S [RANGE 1 S], valu => counts)", "has no argument valu"),
        (
            "SELECT * FROM ACCUMULATE(S [RANGE 1 S], value => value)",
            "value must be an array of numbers",
        ),
        ("SELECT * FROM ACCUMULATE(S [RANGE 1 S], counts)", "expected a named argument"),
        ("SELECT * FROM ACCUMULATE(value => counts)", "the first argument of ACCUMULATE is its"),
        ("SELECT * FROM ACCUMULATE()", "ACCUMULATE needs an input"),
        ("SELECT * FROM ACCUMULATE(K [RANGE 1 S], value => pattern)", "static tables have no time"),
        (
            "SELECT * FROM ACCUMULATE((SELECT COUNT(*) AS n FROM S [RANGE 1 S]) X [RANGE 1 S], "
            "value => n)",
            "must only append rows",
        ),
        (
            "SELECT * FROM CLASSIFY(S, pattern => counts, knowledge => (SELECT counts, sensor "
            "FROM S [RANGE 1 S]))",
            "knowledge is a query over static tables",
        ),
        (
            "SELECT * FROM CLASSIFY(S, pattern => counts, knowledge => (SELECT class FROM K))",
            "knowledge has the columns",
        ),
        (
            "SELECT * FROM CLASSIFY(S, pattern => counts, method => 'tee', "
            "knowledge => (SELECT pattern, class FROM K))",
            "method must be one of",
        ),
        (
            "SELECT * FROM SEQUENCES(S, stream => sensor, value => value)",
            "SEQUENCES needs the argument every: how often it emits results",
        ),
        (
            "SELECT * FROM SEQUENCES(S, stream => sensor, value => value, every => 5)",
            "every must be a positive length of time",
        ),
        (
            "SELECT * FROM SEQUENCES(S, stream => sensor, value => value, every => 1 S) "
            "EMIT APPEND",
            "EMIT APPEND is not possible",
        ),
        (
            f"SELECT COUNT(*) FROM {ACCUMULATED}",
            "accumulate has no window",
        ),
        (
            f"SELECT * FROM {ACCUMULATED} A, S B WINDOW(A, B) = 1 S WHERE A.sensor = B.sensor",
            "cannot be joined with other streams and appended",
        ),
        (f"SELECT * FROM (SELECT sensor AS rows, * FROM S) X, {ACCUMULATED} A", "cannot be joined"),
        (
            "SELECT * FROM ACCUMULATE((SELECT sensor AS rows, counts FROM S) X [RANGE 1 S], "
            "value => counts)",
            "ACCUMULATE returns a column rows, but its input already has one",
        ),
        ("SELECT /*+ MW */ * FROM ACCUMULATE(S [RANGE 1 S], value => counts)", "MW"),
        (
            "SELECT * FROM ACCUMULATE(S [RANGE 1 S], by => *, value => counts)",
            "by must be a column",
        ),
        ("SELECT * FROM ACCUMULATE(S [RANGE 1 S], value => S.*)", "value must be a column"),
        (
            "SELECT * FROM CLASSIFY(S, pattern => counts, knowledge => (SELECT pattern, pattern "
            "FROM K))",
            "column class of knowledge must be a text, a number, a time or a boolean",
        ),
        (
            "SELECT * FROM MATCHES(S, value => value, shape => (SELECT pattern, 1 FROM K))",
            "column position of shape must be a text, a number",
        ),
        ("SELECT * FROM PEAKS(S, counts => counts, fwhm => NULL)", "detail: got NULL"),
        (
            "SELECT * FROM SEQUENCES(S, stream => sensor, value => value, every => 1 S, "
            "counters => 1000000000)",
            "counters must be at most",
        ),
        (
            "SELECT * FROM MOTIFS(S, value => value, every => 1 S, length => 5, "
            "rows => 1000000000)",
            "rows must be at most",
        ),
        (
            "SELECT * FROM PERIODS(S, value => value, every => 1 S, levels => 0, "
            "symbols => 1000, longest => 1000000)",
            "1000 symbols and periods up to 1000000 are too many together",
        ),
        (
            "SELECT * FROM CLUSTERS(S, item => counts, every => 1 S, apart => 1e300)",
            "apart must be at most",
        ),
    ],
)
def test_refusals_are_kind(statement: str, message: str) -> None:
    database = LocalDatabase()
    database.create_stream("S", readings(1), time="ts")
    database.create_table("K", KNOWN)
    with pytest.raises(NilometerError) as caught:
        database.sql(statement)
    assert message in str(caught.value)
    assert "^" in str(caught.value)


def test_an_answer_may_have_a_row_several_times() -> None:
    """Changes say how many times a row comes and goes, NaN and NULL included."""

    def answer(*values: float | None) -> pa.RecordBatch:
        return pa.record_batch({"v": pa.array(values, pa.float64())})

    going, coming = _differences(answer(1, 1, 2, math.nan), answer(math.nan, 1, 3, 3, None))
    assert going.to_pydict() == {"v": [1, 2]}
    assert coming.to_pydict() == {"v": [3, 3, None]}
