"""Time networks: what windows add, what follows from them, and which are refused."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import NilometerError, WindowError
from nilometer.model.network import TimeNetwork
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.model.windows import (
    Window,
    Windows,
    between,
    dwindow,
    range_window,
    read_windows,
    window,
)
from tests.cases import networks

S = 1_000_000


def network(names: str, windows: Windows) -> TimeNetwork:
    return TimeNetwork(tuple(names), read_windows(windows))


def test_a_uniform_window_bounds_all_pairs() -> None:
    assert network("ABC", "10s").closed == (
        (0, 10 * S, 10 * S),
        (10 * S, 0, 10 * S),
        (10 * S, 10 * S, 0),
    )


def test_forms_can_be_mixed_and_the_closure_tightens_them() -> None:
    mixed = network("ABC", ["60s", dwindow("A", "B", "5s"), between("B", "C", "1s", "2s")])
    assert mixed.closed == ((0, 5 * S, 7 * S), (0, 0, 2 * S), (-1 * S, -1 * S, 0))


def test_windows_by_pair() -> None:
    path = network("ABC", {("A", "B"): "5s", ("B", "C"): "3s"})
    assert path.closed[0] == (0, 5 * S, 8 * S)
    assert path.largest_window == 8 * S
    assert [path.local_window(i) for i in range(3)] == [8 * S, 5 * S, 8 * S]


def test_a_range_per_stream_bounds_how_much_later_the_others_are() -> None:
    golab = network("AB", [range_window("A", "10s"), range_window("B", "2s")])
    assert golab.closed == ((0, 10 * S), (2 * S, 0))


def test_the_horizon_is_what_the_slowest_stream_can_still_reach() -> None:
    path = network("ABC", [dwindow("A", "B", "5s"), dwindow("B", "C", "10s")])
    assert path.horizon(0, [100 * S, 50 * S, 80 * S]) == 45 * S  # B: 50 - 5; C: 80 - 15
    assert path.horizon(2, [100 * S, 50 * S, 80 * S]) == 50 * S  # D[C][B] = 0
    assert path.horizon(0, [0, FOREVER, 20 * S]) == 5 * S
    assert path.horizon(0, [0, FOREVER, FOREVER]) == FOREVER


@settings(max_examples=300)
@given(st.integers(2, 4).flatmap(lambda n: networks(n, longest=3)), st.data())
def test_the_closure_has_the_same_solutions_and_is_tight(
    net: TimeNetwork, data: st.DataObject
) -> None:
    n = len(net.streams)
    reach = max(abs(b) for row in net.closed for b in row)
    times = [data.draw(st.integers(-reach, reach)) for _ in range(n)]

    def holds(bounds: tuple[tuple[int, ...], ...]) -> bool:
        return all(times[j] - times[i] <= bounds[i][j] for i, j in product(range(n), repeat=2))

    assert holds(net.given) == holds(net.closed)
    # Tight: for any i the row closed[i] is itself a solution that reaches every bound of i.
    for i in range(n):
        times = list(net.closed[i])
        assert holds(net.given)


def refusal(names: str, windows: Windows) -> str:
    with pytest.raises(NilometerError) as caught:
        network(names, windows)
    return str(caught.value)


def test_unsatisfiable_windows_name_the_cycle() -> None:
    windows = [
        dwindow("A", "B", "5s"),
        dwindow("B", "C", "5s"),
        between("A", "C", "11s", "20s"),
    ]
    assert refusal("ABC", windows) == (
        "the windows contradict each other along A -> B -> C -> A\n"
        "  detail: time(B) - time(A) <= 5s; time(C) - time(B) <= 5s; "
        "time(A) - time(C) <= -11s; together 0 <= -1s\n"
        "  hint: widen or remove one of these windows"
    )


def test_two_contradicting_windows_of_one_pair() -> None:
    windows = [between("A", "B", "1s", "2s"), between("A", "B", "-5s", "0s")]
    assert refusal("AB", windows).splitlines()[0] == (
        "the windows contradict each other along A -> B -> A"
    )


def test_a_disconnected_stream() -> None:
    assert refusal("ABC", {("A", "B"): "5s"}) == (
        "tuples of A could never be dropped: nothing says how much later C may come\n"
        "  detail: no window bounds time(C) - time(A) from above\n"
        '  hint: add a window that connects them, such as nm.window("A", "C", "10s")'
    )


def test_a_one_sided_network() -> None:
    assert refusal("AB", range_window("A", "5s")) == (
        "tuples of B could never be dropped: nothing says how much later A may come\n"
        "  detail: no window bounds time(A) - time(B) from above\n"
        '  hint: bound the other direction too: nm.window("B", "A", "10s") or nm.range("B", "10s")'
    )


def test_a_window_that_names_no_stream() -> None:
    assert refusal("AB", {("A", "X"): "5s"}) == (
        "the window WINDOW(A, X) = 5s names no stream of this join: X\n"
        "  detail: the streams are A, B\n"
        "  hint: use the names under which the streams are joined"
    )


def test_a_range_that_names_no_stream() -> None:
    assert refusal("AB", ["10s", range_window("X", "5s")]).splitlines()[0] == (
        "the window X [RANGE 5s] names no stream of this join: X"
    )


def test_a_window_of_a_stream_with_itself() -> None:
    assert refusal("AB", {("A", "A"): "5s"}) == (
        "a window needs two different streams, got A twice\n"
        "  hint: to join a stream with itself give it two names"
    )


def test_an_empty_window() -> None:
    with pytest.raises(WindowError) as caught:
        between("A", "B", "3s", "2s")
    assert str(caught.value) == (
        "the window between A and B is empty\n"
        "  detail: 3s is more than 2s\n"
        "  hint: write the smaller bound first"
    )


def test_a_pair_needs_two_names() -> None:
    assert refusal("AB", {"A": "5s"}) == (  # type: ignore[dict-item]
        "a window between two streams needs their two names\n"
        "  detail: got 'A'\n"
        '  hint: write windows={("A", "B"): "10s"}'
    )


def test_negative_and_unreadable_lengths_are_refused_where_they_are_written() -> None:
    assert refusal("AB", "-5s").splitlines()[0] == "a window cannot have a negative length"
    assert refusal("AB", {("A", "B"): "soon"}).splitlines()[0] == "cannot read a duration"


def test_two_streams_of_one_name() -> None:
    assert refusal("AA", "5s") == "two streams have the same name\n  detail: A, A"


def test_windows_describe_themselves() -> None:
    shown = [
        str(w)
        for w in read_windows(["1m", window("A", "B", "1s"), between("A", "B", "-2s", "1ms")])
    ]
    assert shown == ["WINDOW = 60s", "WINDOW(A, B) = 1s", "WINDOW(A, B) BETWEEN -2s AND 1ms"]


def test_a_static_table_has_no_windows() -> None:
    network = TimeNetwork(
        ("A", "T", "B"), read_windows([range_window("A", "3s"), "5s"]), frozenset("T")
    )
    assert network.closed[0] == (0, FOREVER, 3_000_000)
    assert network.closed[1] == (FOREVER, 0, FOREVER)
    assert network.closed[2] == (5_000_000, FOREVER, 0)
    assert network.horizon(0, [7, FOREVER, 20_000_000]) == 17_000_000
    assert network.horizon(1, [7, FOREVER, 20]) < EARLIEST
    assert [network.local_window(i) for i in range(3)] == [5_000_000, 0, 5_000_000]


def test_a_join_of_tables_and_one_stream_needs_no_window() -> None:
    assert TimeNetwork(("A", "T"), (), frozenset("T")).horizon(0, [7, FOREVER]) == FOREVER
    assert TimeNetwork(("A",), ()).closed == ((0,),)


@pytest.mark.parametrize("w", [window("A", "T", "1s"), range_window("T", "1s")])
def test_a_window_that_names_a_static_table_is_refused(w: Window) -> None:
    with pytest.raises(WindowError, match="a window cannot include the static table T") as caught:
        TimeNetwork(("A", "T"), (w,), frozenset("T"))
    assert caught.value.hint == (
        "rows of static tables never expire; leave the table out of the window"
    )


def test_a_rows_window_needs_no_bound_but_others_need_one_to_it() -> None:
    network = TimeNetwork(("A", "R"), (range_window("A", "2s"),), rows=frozenset("R"))
    assert network.closed == ((0, 2_000_000), (FOREVER, 0))
    with pytest.raises(WindowError, match="tuples of A could never be dropped"):
        TimeNetwork(("A", "R"), (range_window("R", "2s"),), rows=frozenset("R"))
