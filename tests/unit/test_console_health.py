"""The page of health: figures, what needs somebody, and what is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nilometer.alerts.definition import AlertDefinition
from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus, GroupStatus
from nilometer.database.query_status import QueryPhase, Stall, StallReason
from nilometer.database.spread import Spread
from nilometer.deliveries.status import DeliveryState
from nilometer.server.console.drawing import Shape
from nilometer.server.console.health_page import health_figures, health_troubles, storage_table
from tests.drawn_shapes import shapes, texts
from tests.unit.test_console_drawings import network, query

DISK: dict[str, Any] = {
    "name": "(disk)",
    "kind": None,
    "bytes": 3 << 20,
    "limit_bytes": 10 << 30,
    "history": None,
    "bytes_per_day": 1 << 20,
    "full_in": None,
}
LOG: dict[str, Any] = {
    "name": "S",
    "kind": "stream",
    "bytes": 1 << 20,
    "limit_bytes": 4 << 20,
    "history": "1 day",
    "bytes_per_day": None,
    "full_in": "5 hours",
}


def words(drawn: Shape) -> str:
    return " ".join(texts(drawn))


def test_figures() -> None:
    text = words(health_figures(network(3), DISK))
    assert "2 of 2 queries running" in text
    assert "3 sensors" in text
    assert "not foreseen until it is full" in text
    assert "10.0 GB free on the disk" in text
    assert "— free" in words(health_figures(network(3), {**DISK, "limit_bytes": None}))


def test_nothing_needs_anybody() -> None:
    assert words(health_troubles(network(1), DISK)) == "No problems."
    assert words(health_troubles(network(1), {**DISK, "full_in": "12 days"})) == "No problems."


def test_what_needs_somebody_is_named_and_linked() -> None:
    held = Stall(StallReason.HELD, "Rooms", "roof", 0)
    view = replace(
        network(1),
        queries=(
            replace(query("a"), phase=QueryPhase.FAILED, error="it divides by zero"),
            replace(query("b"), phase=QueryPhase.STALLED, stalled=held),
            replace(query("c"), phase=QueryPhase.STOPPED),
        ),
        deliveries=(
            replace(network(1).deliveries[0], state=DeliveryState.RETRYING, last_error="no route"),
        ),
    )
    drawn = health_troubles(view, {**DISK, "full_in": "5 hours"})
    text = words(drawn)
    assert "The disk is full in 5 hours" in text
    assert "failed   a  it divides by zero" in text
    assert "the watermark waits for the sensor roof of Rooms" in text
    assert "no route" in text
    assert len([one for one in shapes(drawn) if one.tag == "li"]) == 4
    links = [one.attributes["href"] for one in shapes(drawn) if one.tag == "a"]
    assert links == ["/console/queries/a", "/console/queries/b", "/console/deliveries"]


def test_a_bucket_with_most_of_much_work_is_shown() -> None:
    hot = Spread(("S",), (83_000, *[2000] * 7), "sensor_id = 'a17'", 80_000, 60.0)
    view = replace(network(1), queries=(replace(query("a"), spreads=(hot,)),))
    text = words(health_troubles(view, DISK))
    assert "uneven   a  one key, sensor_id = 'a17', has 82 % of the rows: one bucket of 8" in text
    idle = replace(hot, seconds=6000.0)
    view = replace(network(1), queries=(replace(query("a"), spreads=(idle,)),))
    assert words(health_troubles(view, DISK)) == "No problems."


def test_many_troubles_are_counted() -> None:
    many = tuple(replace(query(f"q{n}"), phase=QueryPhase.RESTARTING) for n in range(500))
    drawn = health_troubles(replace(network(1), queries=many), DISK)
    assert "and 450 more" in words(drawn)


def test_logs() -> None:
    text = words(storage_table([LOG, {**LOG, "name": "q", "kind": "query", "limit_bytes": None}]))
    assert "4.0 MB (25% used)" in text
    assert "5 hours" in text
    links = [one.attributes["href"] for one in shapes(storage_table([LOG])) if one.tag == "a"]
    assert links == ["/console/streams/S"]
    assert "and 10 smaller ones" in words(storage_table([LOG] * 60))
    assert "Nothing is stored yet." in words(storage_table([]))


def test_alerts_that_fire_need_somebody() -> None:
    def alert(name: str, *states: str, error: str | None = None) -> AlertStatus:
        groups = tuple(
            GroupStatus(f'{{"k":{n}}}', AlertState(s), 0, None) for n, s in enumerate(states)
        )
        return AlertStatus(
            AlertDefinition(name, "q", "v > 5", per=("k",)), 0, groups, None, None, error
        )

    alerts = [
        alert("a", "firing", "firing", "ok"),
        alert("b", "no data"),
        alert("c", "ok", "pending"),
    ]
    drawn = health_troubles(network(1), DISK, [*alerts, alert("d", error="it takes too long")])
    text = words(drawn)
    assert "firing   a  2 groups" in text
    assert "no data   b" in text
    assert "it takes too long" in text
    assert len([one for one in shapes(drawn) if one.tag == "li"]) == 3
