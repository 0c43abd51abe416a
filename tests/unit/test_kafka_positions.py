"""Positions in topics: as keys of the log, and where reading goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.sensors.types.kafka_positions import (
    Begin,
    HeldOffsets,
    Place,
    begin,
    cluster_mark,
    read_positions,
    spell,
)

MARK = cluster_mark("abc")
A, B = Place("a", 0), Place("a", 1)
places = st.builds(Place, st.from_regex(r"[a-zA-Z0-9._-]{1,9}", fullmatch=True), st.integers(0, 99))


@given(st.lists(st.tuples(places, st.integers(0, 1 << 62)), min_size=1), st.randoms())
def test_the_greatest_position_of_each_partition_is_found_in_any_order(
    positions: list[tuple[Place, int]], chance: object
) -> None:
    keys = [spell(MARK, positions[: at + 1]) for at in range(len(positions))]
    keys += [spell(cluster_mark("other"), [(place, offset + 1)]) for place, offset in positions]
    chance.shuffle(keys)  # type: ignore[attr-defined]
    expected: dict[Place, int] = {}
    for place, offset in positions:
        expected[place] = max(expected.get(place, 0), offset)
    assert read_positions(MARK, frozenset(keys)) == expected


def test_keys_of_others_are_no_positions() -> None:
    odd = [b"", b"x", b"\xff\xfe", MARK.encode(), f"{MARK} a:1,/3:4,a/x:1,a/1:-4".encode()]
    assert read_positions(MARK, odd) == {}


def from_end(place: Place, held: HeldOffsets) -> int:
    return held.high


@pytest.mark.parametrize(
    ("held", "position", "offset", "gone"),
    [
        (HeldOffsets(0, 9), 4, 4, 0),
        (HeldOffsets(4, 9), 4, 4, 0),
        (HeldOffsets(5, 9), 4, 5, 1),
        (HeldOffsets(9, 9), 4, 9, 5),
        (HeldOffsets(0, 4), 4, 4, 0),
    ],
)
def test_reading_goes_on_where_it_was_and_counts_what_is_gone(
    held: HeldOffsets, position: int, offset: int, gone: int
) -> None:
    starts = begin({A: held}, {A: position}, from_end, "fail")
    assert starts == [Begin(A, offset, held.high, gone)]


def test_a_new_topic_begins_where_it_was_asked_to_and_a_new_partition_at_its_start() -> None:
    assert begin({A: HeldOffsets(2, 9)}, {}, from_end, "fail") == [Begin(A, 9, 9)]
    starts = begin({A: HeldOffsets(2, 9), B: HeldOffsets(0, 5)}, {A: 9}, from_end, "fail")
    assert starts == [Begin(A, 9, 9), Begin(B, 0, 5)]
    assert begin({B: HeldOffsets(3, 5)}, {A: 9}, from_end, "fail") == [Begin(B, 3, 5, 3)]
    assert "offsets 0 to 2 of a/1 were removed" in Begin(B, 3, 5, 3).reason


def test_a_topic_that_was_made_anew_is_not_skipped_in_silence() -> None:
    with pytest.raises(InputError, match="a/0 ends before offset 12") as refused:
        begin({A: HeldOffsets(2, 9)}, {A: 12}, from_end, "fail")
    assert "recreated" in str(refused.value.detail)
    assert begin({A: HeldOffsets(2, 9)}, {A: 12}, from_end, "start") == [Begin(A, 2, 9)]
    assert begin({A: HeldOffsets(2, 9)}, {A: 12}, from_end, "now") == [Begin(A, 9, 9)]
