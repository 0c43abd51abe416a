"""Which queries move to other buckets, by how long they have worked."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from nilometer.engine.balance import MOST_MOVES, REST, ROUND, Balance
from tests.examples import share_of


class Rounds:
    """A balance, and queries that work for the same share of every second."""

    def __init__(self, busy: dict[str, float], places: dict[str, int], buckets: int) -> None:
        self.now = 0.0
        self.busy = busy
        self.places = places
        self.buckets = buckets
        self.balance = Balance(lambda: self.now)

    def next(self, seconds: float = ROUND) -> dict[str, int]:
        """What moves after a round, and it moves."""
        self.now += seconds
        for query, share in self.busy.items():
            self.balance.take(query, share * seconds)
        assert self.balance.is_due
        moves = self.balance.moves(self.places, self.buckets)
        self.places |= moves
        return moves

    @property
    def loads(self) -> list[float]:
        loads = dict.fromkeys(range(self.buckets), 0.0)
        for query, bucket in self.places.items():
            loads[bucket] += self.busy[query]
        return list(loads.values())


def test_queries_of_a_full_bucket_move_to_those_that_have_less_to_do() -> None:
    rounds = Rounds(dict.fromkeys("abcd", 0.3), dict.fromkeys("abcd", 0), 4)
    assert sorted(rounds.next().values()) == [1, 2, 3]
    assert rounds.loads == [0.3] * 4
    assert rounds.next() == {}


def test_nothing_moves_that_would_not_help() -> None:
    assert Rounds({"a": 0.2, "b": 0.2}, {"a": 0, "b": 0}, 2).next() == {}  # nobody waits
    assert Rounds({"a": 0.9, "b": 0.0}, {"a": 0, "b": 0}, 2).next() == {}
    assert Rounds({"a": 0.9, "b": 0.9}, {"a": 0, "b": 0}, 1).next() == {}
    assert Rounds({"a": 0.9, "b": 0.8}, {"a": 0, "b": 1}, 2).next() == {}


def test_a_small_query_does_not_wait_for_a_large_one() -> None:
    assert Rounds({"a": 0.9, "b": 0.01}, {"a": 0, "b": 0}, 2).next() == {"b": 1}


def test_a_bucket_beyond_the_cores_gives_its_queries_away() -> None:
    """The database was on a larger cluster before."""
    rounds = Rounds(dict.fromkeys("abcdef", 0.2), dict.fromkeys("abcdef", 7), 2)
    for _ in range(3):
        rounds.next()
    assert Counter(rounds.places.values())[7] <= 2


def test_a_query_rests_where_it_has_moved_to() -> None:
    rounds = Rounds({"a": 0.4, "b": 0.5}, {"a": 0, "b": 0}, 2)
    assert rounds.next() == {"a": 1}
    rounds.busy["c"], rounds.places["c"] = 0.5, 1
    rounds.busy["b"] = 0.0
    assert rounds.next() == {"c": 0}
    rounds.busy |= {"a": 0.1, "b": 0.4, "c": 0.6}
    assert rounds.next() == {"b": 1}
    rounds.busy |= {"a": 0.6, "b": 0.0, "c": 0.6}
    rounds.places |= {"a": 0, "c": 0}
    assert rounds.next() == {}
    assert rounds.next(REST)


def test_a_round_is_not_over_before_its_time() -> None:
    rounds = Rounds({}, {}, 1)
    rounds.now = ROUND - 1
    assert not rounds.balance.is_due


@pytest.mark.generated
@pytest.mark.parametrize("seed", range(share_of(100)))
def test_the_fullest_bucket_never_gets_fuller_and_rounds_come_to_an_end(seed: int) -> None:
    chance = random.Random(seed)
    buckets, queries = chance.randrange(1, 20), [str(n) for n in range(chance.randrange(60))]
    busy = {one: chance.random() ** 3 for one in queries}
    rounds = Rounds(busy, {one: chance.randrange(buckets) for one in queries}, buckets)
    for _ in range(100):
        before = max(rounds.loads)
        moved = rounds.next(REST)
        assert len(moved) <= MOST_MOVES
        assert max(rounds.loads) <= before + 1e-9
        if not moved:
            break
    else:
        raise AssertionError("queries move for ever")
