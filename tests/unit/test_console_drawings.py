"""Drawings of the console: nothing overlaps, nothing is left out, texts stay texts."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.database.query_status import QueryLimits, QueryPhase, QueryStatus
from nilometer.deliveries.status import DeliveryState, DeliveryStatus
from nilometer.server.console.constraint_graph import draw_graph, window_label, window_note
from nilometer.server.console.drawing import Shape
from nilometer.server.console.graph_layout import Box, lay_out, place_nodes
from nilometer.server.console.highlighted_sql import highlighted_sql
from nilometer.server.console.network_drawing import draw_network
from nilometer.server.console.network_layout import depths_of, place_columns
from nilometer.server.console.sensor_network import NetworkSensor, NetworkStream, SensorNetwork
from nilometer.sql.explain.picture_graph import (
    ConstraintGraph,
    PicturedBound,
    PicturedStream,
    PicturedWindow,
)
from tests.drawn_shapes import shapes, texts

_EVIL = "<script>alert('x')</script>"


def stream(name: str) -> PicturedStream:
    return PicturedStream(name, "S", None, ("k",), "5s: until B has passed t", (), None)


def window(first: str, second: str, after: int | None, before: int | None) -> PicturedWindow:
    ahead = None if after is None else PicturedBound(first, second, after, after, ())
    back = None if before is None else PicturedBound(second, first, before, None, ("because",))
    return PicturedWindow(first, second, ahead, back)


def classes(tree: Shape, name: str) -> list[Shape]:
    return [one for one in shapes(tree) if name in str(one.attributes.get("class", "")).split()]


@pytest.mark.parametrize("count", range(1, 13))
def test_nodes_never_overlap(count: int) -> None:
    boxes = place_nodes([(90 + 14 * place, 66) for place in range(count)])
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_labels_overlap_neither_nodes_nor_each_other(count: int) -> None:
    edges = list(combinations(range(count), 2))
    nodes, labels = lay_out([(110, 66)] * count, edges, [(84, 24)] * len(edges))
    assert not any(a.overlaps(b) for a, b in combinations([*nodes, *labels], 2))


@settings(deadline=None)
@given(st.floats(-500, 500), st.floats(-500, 500))
def test_lines_leave_a_box_at_its_edge(x: float, y: float) -> None:
    box = Box(10, 20, 100, 60)
    if abs(x - 10) <= 50 and abs(y - 20) <= 30:
        return
    at_x, at_y = box.edge_towards(x, y)
    assert max(abs(at_x - 10) / 50, abs(at_y - 20) / 30) == pytest.approx(1)


def test_a_graph_has_all_streams_and_windows_and_every_text_as_text() -> None:
    names = ["A", _EVIL, "C", "D"]
    edges = [window(a, b, 5_000_000, 5_000_000) for a, b in combinations(names, 2)]
    drawn = draw_graph(ConstraintGraph("", tuple(map(stream, names)), tuple(edges), ()))
    assert len(classes(drawn, "node")) == 4
    assert len(classes(drawn, "edge")) == 6
    assert texts(drawn).count("± 5s") == 6
    assert any(one.startswith("<script>") for one in texts(drawn))
    assert {one.tag for one in shapes(drawn)} <= {"svg", "g", "rect", "line", "text", "polygon"}
    assert all(one.attributes["aria-label"] for one in classes(drawn, "edge"))


@pytest.mark.parametrize(
    ("after", "before", "label"),
    [
        (5_000_000, 5_000_000, "± 5s"),
        (10_000_000, 0, "0s … 10s"),
        (15_000_000, 5_000_000, "−5s … 15s"),
        (-2_000_000, 8_000_000, "2s … 8s"),  # the second comes first: told from there
        (5_000_000, None, "≤ 5s"),
        (None, 5_000_000, "≥ −5s"),
        (0, 0, "± 0s"),
    ],
)
def test_windows_have_short_labels(after: int | None, before: int | None, label: str) -> None:
    assert window_label(window("A", "B", after, before)) == label


def test_a_window_says_what_it_follows_from() -> None:
    assert window_note(window("A", "B", 5_000_000, 2_000_000)).splitlines() == [
        "B at most 5s after A, A at most 2s after B (tightened)",
        "A at most 2s after B, which follows from because",
    ]


def test_a_statement_is_coloured_and_whole() -> None:
    text = f"SELECT 'it''s', 1.5 -- {_EVIL}\nFROM `a b`  x"
    drawn = highlighted_sql(text)
    assert "".join(texts(drawn)) == text
    assert [one.inside[0] for one in classes(drawn, "keyword")] == ["SELECT", "FROM"]
    assert [one.inside[0] for one in classes(drawn, "string")] == ["'it''s'"]
    assert texts(highlighted_sql("SELECT 'open")) == ["SELECT 'open"]


def sensor(name: str, state: str = "connected") -> NetworkSensor:
    return NetworkSensor("S", name, "at", state, 1.0, 5, _EVIL, 0, 1, "no route", 0)


def query(name: str) -> QueryStatus:
    return QueryStatus(
        name, "SELECT 1", "append", QueryPhase.RUNNING, 0, 0, None, 0, None, False,
        QueryLimits(), 10, 100, 0, 0,
    )  # fmt: skip


def network(sensors: int) -> SensorNetwork:
    many = tuple(sensor(f"s{i}", "waiting" if i == 0 else "connected") for i in range(sensors))
    delivery = DeliveryStatus("d", "r", "mqtt", DeliveryState.RUNNING, 1, 1, 0, 0, None, None)
    return SensorNetwork(
        (NetworkStream("S", "http", many, None), NetworkStream("U", "tcp", (), None)),
        (query("q/1"), query("r")),
        (delivery,),
        {"q/1": ("S",), "r": ("q/1", "U")},
    )


@pytest.mark.parametrize("sensors", [1, 4, 30, 5000])
def test_networks_are_drawn_whole_without_growing_without_end(sensors: int) -> None:
    drawn = draw_network(network(sensors))
    assert len(classes(drawn, "link")) == 2 + 3 + 1
    assert len(list(shapes(drawn))) < 250
    (link,) = [
        one for one in shapes(drawn) if one.attributes.get("href") == "/console/queries/q%2F1"
    ]
    assert link.tag == "a"
    assert len(classes(drawn, "warn")) >= 1
    if sensors <= 60:
        notes = [str(one.attributes.get("data-note", "")) for one in shapes(drawn)]
        assert sum(_EVIL in one for one in notes) == sensors
    else:
        assert "4 999 connected" in texts(drawn)


def test_columns_go_from_left_to_right_and_boxes_never_overlap() -> None:
    inputs = {"a": (), "b": (), "s": ("a",), "t": ("b",), "q": ("s", "t"), "r": ("q", "t")}
    depths = depths_of(inputs)
    assert depths == {"a": 0, "b": 0, "s": 1, "t": 1, "q": 2, "r": 3}
    boxes = place_columns(dict.fromkeys(inputs, (100.0, 50.0)), depths, inputs).boxes
    assert not any(x.overlaps(y) for x, y in combinations(boxes.values(), 2))
    assert all(boxes[one].x < boxes[key].x for key, below in inputs.items() for one in below)


def test_a_cycle_of_queries_does_not_hang() -> None:
    assert set(depths_of({"a": ("b",), "b": ("a",)})) == {"a", "b"}
