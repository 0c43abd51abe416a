"""How the rows of queries are spread over buckets, against exact counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.database.spread import Spread, SpreadCounter
from nilometer.local.database import LocalDatabase
from nilometer.operators.key_counts import MOST_KEYS, KeyCount, Look
from nilometer.operators.metrics import JoinMetrics

SECOND = 1_000_000
TS = pa.timestamp("us", tz="UTC")


def metrics(*looks: Look) -> JoinMetrics:
    return JoinMetrics({}, 0, 0, 0, looks)


def look_at(values: list[int]) -> Look:
    """What a bucket reports of a micro-batch with these keys."""
    exact = Counter(values)
    looks = (
        KeyCount(0, key, n, f"k = {key}") for key, n in exact.items() if n > len(values) / MOST_KEYS
    )
    return Look(len(values), len(values), tuple(looks))


@settings(max_examples=1000)
@given(st.lists(st.lists(st.integers(0, 99), max_size=120), min_size=1, max_size=12))
def test_the_counts_of_many_micro_batches_keep_their_bound(batches: list[list[int]]) -> None:
    counter = SpreadCounter()
    for number, values in enumerate(batches):
        counter.add([metrics(look_at(values))], number * SECOND, number * SECOND)
    exact = Counter(value for values in batches for value in values)
    spreads = counter.spreads(len(batches) * SECOND)
    if not exact:
        assert spreads == []
        return
    [spread] = spreads
    assert spread.rows == exact.total()
    [(_, highest)] = exact.most_common(1)
    assert spread.key_rows <= highest
    assert spread.key_rows >= highest - exact.total() / 16
    if spread.key is not None:
        assert spread.key_rows <= exact[int(spread.key.removeprefix("k = "))]


def test_a_hot_key_is_found_among_many() -> None:
    random = np.random.default_rng(0)
    counter = SpreadCounter()
    exact: Counter[int] = Counter()
    for number in range(50):
        values = np.where(random.random(200) < 0.3, 7, random.integers(0, 10_000, 200)).tolist()
        exact.update(values)
        counter.add([metrics(look_at(values), Look())], number * SECOND, number * SECOND)
    [spread] = counter.spreads(50 * SECOND)
    assert spread.key == "k = 7"
    assert exact[7] - 10_000 / 16 <= spread.key_rows <= exact[7]
    assert spread.bucket_rows == (10_000, 0)


def test_no_count_is_lost_beyond_the_bound_when_keys_are_left_out() -> None:
    """Each micro-batch has twenty other keys beside one that all have."""
    counter = SpreadCounter()
    exact: Counter[int] = Counter()
    for number in range(50):
        values = [7] * 24 + [1000 + (20 * number + n) % 200 for n in range(20)] * 16
        exact.update(values)
        counter.add([metrics(look_at(values))], number * SECOND, number * SECOND)
    [spread] = counter.spreads(50 * SECOND)
    hot = next(one for one in counter._now.stages[()].buckets[0].look.keys if one.hash == 7)
    assert exact[7] - exact.total() / 33 <= hot.rows < exact[7]
    assert len(counter._now.stages[()].buckets[0].look.keys) <= MOST_KEYS
    assert spread.key_rows <= exact.most_common(1)[0][1]


def test_what_is_old_is_forgotten() -> None:
    counter = SpreadCounter()
    counter.add([metrics(look_at([1] * 10), Look())], 0, 0)
    counter.add([metrics(Look(), look_at([2] * 20))], 70 * SECOND, 70 * SECOND)
    [spread] = counter.spreads(71 * SECOND)
    assert spread.bucket_rows == (10, 20)
    counter.add([metrics(Look(), look_at([2] * 30))], 140 * SECOND, 140 * SECOND)
    [spread] = counter.spreads(141 * SECOND)
    assert spread.bucket_rows == (0, 50)
    assert spread.key == "k = 2"
    assert counter.spreads(700 * SECOND)
    assert counter.spreads(740 * SECOND) == []


def test_a_micro_batch_of_minutes_is_reported() -> None:
    """A hot key makes micro-batches long: that is when it has to be seen."""
    counter = SpreadCounter()
    for number in range(3):
        look = look_at([number] * (900_000 // 3))
        began, now = 300 * number * SECOND, 300 * (number + 1) * SECOND
        counter.add([metrics(look, Look(), Look())], began, now)
        for later in (0, 299):
            [spread] = counter.spreads(now + later * SECOND)
            assert spread.bucket_rows == (300_000, 0, 0)
            assert spread.key == f"k = {number}"
            assert spread.seconds == 300 + later
        assert counter.spreads(now)[0].is_bottleneck


def test_micro_batches_that_report_nothing_change_nothing() -> None:
    counter = SpreadCounter()
    counter.add([metrics(Look(10), Look(5))], 0, 0)
    for second in (61, 62, 70):
        counter.add([], second * SECOND, second * SECOND)
    counter.add([metrics(Look(1), Look(1))], 80 * SECOND, 80 * SECOND)
    [spread] = counter.spreads(81 * SECOND)
    assert spread.bucket_rows == (11, 6)


def test_another_number_of_buckets_begins_anew() -> None:
    counter = SpreadCounter()
    counter.add([metrics(Look(5), Look(5))], 0, 0)
    counter.add([metrics(Look(1), Look(2), Look(3))], SECOND, SECOND)
    [spread] = counter.spreads(SECOND)
    assert spread.bucket_rows == (1, 2, 3)


def test_of_two_keys_of_a_grid_the_first_that_has_most_is_named() -> None:
    counter = SpreadCounter()
    keys = (
        KeyCount(1, 5, 100, "part = 1"),
        KeyCount(0, 5, 90, "k = 1"),
        KeyCount(0, 6, 9, "k = 2"),
    )
    counter.add([metrics(Look(100, 100, keys))], 0, 0)
    assert counter.spreads(SECOND)[0].key == "k = 1"
    few = (KeyCount(0, 5, 30, "k = 1"), KeyCount(1, 5, 40, "part = 1"))
    counter.add([metrics(Look(1000, 1000, few))], 0, 0)
    assert counter.spreads(SECOND)[0].key == "part = 1"


def test_few_looks_stand_for_many_micro_batches() -> None:
    counter = SpreadCounter()
    for number in range(8):
        counter.add([metrics(Look(100))], number * SECOND, number * SECOND)
    counter.add([metrics(Look(100, 900, (KeyCount(0, 1, 450, "k = 1"),)))], 9 * SECOND, 9 * SECOND)
    counter.add([metrics(Look(100))], 10 * SECOND, 10 * SECOND)
    [spread] = counter.spreads(10 * SECOND)
    assert (spread.rows, spread.key_rows) == (1000, 500)


@pytest.mark.parametrize(
    ("rows", "is_uneven"),
    [
        ((100,), False),
        ((60, 40), False),
        ((80, 20), True),
        ((49, 17, 17, 17), False),
        ((55, 15, 15, 15), True),
        ((12, *[8] * 11), False),
        ((17, *[8] * 10), False),
        ((25, *[8] * 10), True),
        ((9, *[1] * 99), False),
        ((15, *[1] * 99), True),
    ],
)
def test_one_bucket_with_much_more_than_its_share(rows: tuple[int, ...], is_uneven: bool) -> None:
    assert Spread(("A",), rows, None, 0, 60.0).is_uneven == is_uneven
    many = tuple(1000 * one for one in rows)
    assert Spread(("A",), many, None, 0, 60.0).is_bottleneck == (is_uneven and sum(rows) >= 60)
    assert not Spread(("A",), rows, None, 0, 60.0).is_bottleneck


def test_an_uneven_spread_in_words() -> None:
    hot = Spread(("A",), (830, *[24] * 7), "sensor_id = 'a17'", 830, 60.0)
    assert hot.cause == (
        "one key, sensor_id = 'a17', has 83 % of the rows: one bucket of 8 does most of the work, "
        "and more cores do not help"
    )
    less = Spread(("A",), (300, *[100] * 7), "k = 1", 200, 60.0)
    assert less.cause == (
        "one key, k = 1, has 20 % of the rows: one bucket of 8 does 30 % of the work, "
        "and more cores do not help"
    )
    none = Spread(("A",), (300, *[100] * 7), "k = 1", 100, 60.0)
    assert none.cause == "one bucket of 8 has 30 % of the rows, though no key has most of them"


def rows(keys: np.ndarray, text: bool = False) -> pa.RecordBatch:
    times = pa.array(np.arange(len(keys))).cast(TS)
    column = pa.array(keys.astype(str) if text else keys)
    return pa.RecordBatch.from_arrays([times, column, pa.array(keys % 3)], ["ts", "id", "v"])


@pytest.mark.parametrize(
    ("statement", "stage", "key"),
    [
        ("SELECT A.v FROM A, B WINDOW = 1 SECOND WHERE A.id = B.id", 0, "id = 7"),
        ("SELECT A.v FROM A, B WINDOW = 1 SECOND WHERE A.id + 1 = B.id + 1", 0, "A.id + 1 = 8"),
        ("SELECT id, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY id", 0, "id = 7"),
        ("SELECT id, v, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY id, v", 0, None),
        (
            "SELECT n, COUNT(*) AS m FROM (SELECT v, COUNT(*) AS n FROM A [RANGE 1 SECOND] "
            "GROUP BY v) q GROUP BY n",
            1,
            "q.n = ",
        ),
    ],
)
@pytest.mark.parametrize("buckets", [1, 4])
def test_keys_of_plans_have_names(
    statement: str, stage: int, key: str | None, buckets: int
) -> None:
    db = LocalDatabase(buckets=buckets)
    random = np.random.default_rng(1)
    keys = np.where(random.random(1500) < 0.6, 7, random.integers(0, 1000, 1500))
    for name in "AB":
        db.create_stream(name, pa.Table.from_batches([rows(keys[:0])]), time="ts")
    query = db.query(statement)
    query.feed({"A": rows(keys)})
    metrics = query.stages[stage].metrics()
    assert len(metrics.buckets) == buckets
    texts = {one.text: one.rows for look in metrics.buckets for one in look.keys}
    if key is None:
        assert max(texts, key=lambda one: texts[one]) == "id = 7 AND v = 1"
        assert sum(look.rows for look in metrics.buckets) == 1500
    elif stage:
        assert all(one.startswith(key) for one in texts)
    else:
        assert texts[key] == np.count_nonzero(keys == 7)
        full = max(metrics.buckets, key=lambda look: look.rows)
        assert key in {one.text for one in full.keys}


def test_small_micro_batches_are_looked_at_seldom() -> None:
    db = LocalDatabase(buckets=1)
    db.create_stream("A", pa.Table.from_batches([rows(np.zeros(0, np.int64))]), time="ts")
    query = db.query("SELECT id, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY id")
    [stage] = query.stages
    stands_for = []
    for _ in range(130):
        query.feed({"A": rows(np.array([1, 2]))})
        stands_for.append(stage.metrics().buckets[0].stands_for)
    assert sum(stands_for) == 2 * 129
    assert sum(1 for one in stands_for if one) == 3
    query.feed({})
    assert stage.metrics().buckets == (Look(),)


_SPREAD_JOIN = """
    SELECT A.id AS a, B.id AS b FROM A, B, Parts P WINDOW (A, B) = 5 MILLISECONDS
    WHERE  A.k = B.k AND pmod(A.id, 4) = P.part
"""


@settings(max_examples=200)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 8, 12]))
def test_a_join_spread_by_hand_has_the_same_results(seed: int, buckets: int) -> None:
    """A hot key's rows are parted by a table of numbers, which needs no option."""
    random = np.random.default_rng(seed)
    given = {name: _keyed(random) for name in "AB"}
    db = LocalDatabase(buckets=buckets)
    for name, batch in given.items():
        db.create_stream(name, pa.Table.from_batches([batch.slice(0, 0)]), time="ts")
    db.create_table("Parts", pa.table({"part": pa.array(range(4), pa.int64())}))
    query = db.query(_SPREAD_JOIN)
    answer = query.feed(given)
    left, right = (
        list(
            zip(
                b["ts"].cast("int64").to_pylist(),
                *(c.to_pylist() for c in b.columns[1:]),
                strict=True,
            )
        )
        for b in given.values()
    )
    expected = Counter(
        (a, b) for at, k, a in left for bt, j, b in right if k == j and abs(at - bt) <= 5000
    )
    pairs = zip(answer["a"].to_pylist(), answer["b"].to_pylist(), strict=True)
    assert Counter(pairs) == expected
    full = max(look.rows for look in query.stages[0].metrics().buckets)
    together = sum(k == 7 for _, k, _ in (*left, *right))
    assert buckets == 1 or full < together


def _keyed(random: np.random.Generator) -> pa.RecordBatch:
    times = pa.array(np.sort(random.integers(0, 100_000, 150))).cast(TS)
    keys = np.where(random.random(150) < 0.8, 7, random.integers(0, 50, 150))
    columns = [times, pa.array(keys), pa.array(np.arange(150))]
    return pa.RecordBatch.from_arrays(columns, ["ts", "k", "id"])
