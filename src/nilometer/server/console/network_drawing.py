"""The sensor network as a drawing: sensors, streams, queries, deliveries, and what flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from nilometer.database.query_status import QueryPhase, QueryStatus
from nilometer.deliveries.status import DeliveryState, DeliveryStatus
from nilometer.sensors.manager.status import SensorState
from nilometer.server.console.address_state import address_with
from nilometer.server.console.drawing import Shape, shape, shortened, svg
from nilometer.server.console.figures import count_text
from nilometer.server.console.graph_layout import Box
from nilometer.server.console.network_layout import Placed, depths_of, place_columns
from nilometer.server.console.query_list import query_address
from nilometer.server.console.sensor_network import NetworkSensor, NetworkStream, SensorNetwork
from nilometer.server.console.wording import DELIVERIES, PHASES, SENSORS, rate_words, state_mark

PATH: Final = "/console/sensors"
_FEW: Final = 6
"""Up to this many sensors are named one by one,"""
_MANY: Final = 60
"""and up to this many are drawn one by one; beyond that, their states are counted."""
_IN_A_ROW: Final = 13
_WIDE: Final = 280.0
_STREAM: Final = 220.0
_LOW: Final = 62.0
"""The minimum height of a box: a stream stands beside its sensors."""


def draw_network(network: SensorNetwork) -> Shape:
    """The whole network; every box and every mark says more when pointed at or focused."""
    inputs = _inputs(network)
    placed = place_columns(_sizes(network), _columns(inputs), inputs)
    return svg(
        placed.width,
        placed.height,
        "sensor network",
        [*_headings(placed), *_links(network, inputs, placed), *_boxes(network, placed)],
    )


def _columns(inputs: dict[str, Sequence[str]]) -> dict[str, int]:
    """The column of each box: deliveries come last, queries never before the streams."""
    depths = {
        key: max(depth, 2) if key.startswith("query ") else depth
        for key, depth in depths_of(inputs).items()
    }
    last = max(depths.values(), default=0)
    return {
        key: last + 1 if key.startswith("delivery ") and depth < last else depth
        for key, depth in depths.items()
    }


def _inputs(network: SensorNetwork) -> dict[str, Sequence[str]]:
    """The keys of the boxes from which each box takes its rows."""
    streams = {one.name for one in network.streams}
    inputs: dict[str, Sequence[str]] = {f"sensors {one.name}": () for one in network.streams}
    inputs |= {f"stream {one.name}": (f"sensors {one.name}",) for one in network.streams}
    inputs |= {
        f"query {one.name}": [
            f"stream {name}" if name in streams else f"query {name}"
            for name in network.reads[one.name]
        ]
        for one in network.queries
    }
    known = {one.name for one in network.queries}
    return inputs | {
        f"delivery {one.name}": [f"query {one.query}"] if one.query in known else []
        for one in network.deliveries
    }


def _sizes(network: SensorNetwork) -> dict[str, tuple[float, float]]:
    sizes = {
        f"sensors {one.name}": (_WIDE, max(_LOW, _sensors_height(one))) for one in network.streams
    }
    sizes |= {f"stream {one.name}": (_STREAM, _LOW) for one in network.streams}
    sizes |= {f"query {one.name}": (_STREAM, _LOW) for one in network.queries}
    return sizes | {f"delivery {one.name}": (_STREAM, _LOW) for one in network.deliveries}


def _sensors_height(stream: NetworkStream) -> float:
    count = len(stream.sensors)
    if count <= 1:
        return _LOW
    if count <= _FEW:
        return 44.0 + 22 * count
    if count <= _MANY:
        return 36.0 + 20 * -(-count // _IN_A_ROW)
    return 36.0 + 20 * len(stream.states)


def _headings(placed: Placed) -> Iterator[Shape]:
    names = {
        "sensors": "Sensors",
        "stream": "Streams",
        "query": "Queries",
        "delivery": "Deliveries",
    }
    for key, box in placed.boxes.items():
        if (name := names.pop(key.split(" ")[0], None)) is not None:
            yield shape("text", name, x=box.x - box.width / 2, y=18, class_="heading")


def _links(
    network: SensorNetwork, inputs: dict[str, Sequence[str]], placed: Placed
) -> Iterator[Shape]:
    flowing = {f"query {q.name}" for q in network.queries if q.phase is QueryPhase.RUNNING}
    flowing |= {f"stream {s.name}" for s in network.streams if s.states[SensorState.CONNECTED]}
    flowing |= {
        f"delivery {d.name}" for d in network.deliveries if d.state is DeliveryState.RUNNING
    }
    for key, below in inputs.items():
        for one in below:
            yield _link(placed.boxes[one], placed.boxes[key], is_flowing=key in flowing)


def _link(source: Box, target: Box, *, is_flowing: bool) -> Shape:
    x1, x2 = source.x + source.width / 2, target.x - target.width / 2
    middle = max(30.0, (x2 - x1) / 2)
    path = (
        f"M{x1:g},{source.y:g} C{x1 + middle:g},{source.y:g} "
        f"{x2 - middle:g},{target.y:g} {x2:g},{target.y:g}"
    )
    return shape("path", d=path, class_="link flowing" if is_flowing else "link")


def _boxes(network: SensorNetwork, placed: Placed) -> Iterator[Shape]:
    for stream in network.streams:
        yield _sensors(stream, placed.boxes[f"sensors {stream.name}"])
        yield _stream(stream, placed.boxes[f"stream {stream.name}"])
    for query in network.queries:
        yield _query(query, placed.boxes[f"query {query.name}"])
    for delivery in network.deliveries:
        yield _delivery(delivery, placed.boxes[f"delivery {delivery.name}"])


def _outline(box: Box) -> Shape:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return shape("rect", x=left, y=top, width=box.width, height=box.height, rx=10)


def _sensors(stream: NetworkStream, box: Box) -> Shape:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    count = len(stream.sensors)
    if count == 0:
        empty = shape("text", "no sensors yet", x=left + 14, y=box.y + 4, class_="soft")
        return shape("g", _outline(box), empty, class_="box")
    if count == 1:
        return _only_sensor(stream.sensors[0], box)
    if count <= _FEW:
        inside = [
            _sensor_line(one, left, top + 44 + 22 * i) for i, one in enumerate(stream.sensors)
        ]
    elif count <= _MANY:
        inside = [*_grid(stream.sensors, left, top + 44)]
    else:
        inside = [*_counts(stream, left, top + 44)]
    return shape("g", _outline(box), _total(stream, left, top), *inside, class_="box")


def _only_sensor(sensor: NetworkSensor, box: Box) -> Shape:
    text = sensor.last_value or sensor.last_error or sensor.state
    note = sensor_note(sensor)
    to = sensor_address(sensor)
    return _titled(box, sensor.name, SENSORS[sensor.state], text, note, to)


def _total(stream: NetworkStream, left: float, top: float) -> Shape:
    by = f", by {stream.named_by}" if stream.named_by else ""
    label = f"{count_text(len(stream.sensors))} sensors of {shortened(stream.name, 16)}{by}"
    return shape("text", shortened(label, 40), x=left + 14, y=top + 22, class_="name")


def _sensor_line(sensor: NetworkSensor, left: float, y: float) -> Shape:
    """A sensor with its last reading."""
    text = sensor.last_value or sensor.state
    return shape(
        "a",
        state_mark(SENSORS[sensor.state], left + 16, y),
        shape("text", shortened(sensor.name, 17), x=left + 30, y=y + 4.5, class_="name"),
        shape("text", shortened(text, 20), x=left + _WIDE - 12, y=y + 4.5, class_="value"),
        **_leading(sensor_note(sensor), sensor_address(sensor)),
    )


def _grid(sensors: Sequence[NetworkSensor], left: float, top: float) -> Iterator[Shape]:
    for place, one in enumerate(sensors):
        row, column = divmod(place, _IN_A_ROW)
        mark = state_mark(SENSORS[one.state], left + 20 + 19 * column, top + 20 * row)
        yield shape("a", mark, **_leading(sensor_note(one), sensor_address(one)))


def _counts(stream: NetworkStream, left: float, top: float) -> Iterator[Shape]:
    for place, (state, count) in enumerate(sorted(stream.states.items())):
        y = top + 20 * place
        label = f"{count_text(count)} {state}"
        text = shape("text", label, x=left + 34, y=y + 4.5, class_="soft")
        to = address_with(PATH, {"stream": stream.name, "state": state}) + "#sensors"
        yield shape("a", state_mark(SENSORS[state], left + 20, y), text, **_leading(label, to))


def sensor_note(sensor: NetworkSensor) -> str:
    """A sensor in words."""
    parts = [f"Sensor {sensor.name} of {sensor.stream}: {sensor.state}"]
    if sensor.state == "idle":
        parts.append("no query reads it at present")
    if sensor.last_value is not None:
        parts.append(f"last reading {sensor.last_value}, {rate_words(sensor.rate)}")
    if sensor.last_error is not None:
        parts.append(f"{count_text(sensor.errors)} errors, the last one: {sensor.last_error}")
    return "; ".join(parts)


def sensor_address(sensor: NetworkSensor) -> str:
    """The address of one sensor in the table of all; of a stream's only sensor, the stream's."""
    if sensor.name == sensor.stream:
        return stream_address(sensor.stream)
    return address_with(PATH, {"stream": sensor.stream, "words": sensor.name}) + "#sensors"


def stream_address(name: str) -> str:
    """The page of a stream."""
    return f"/console/streams/{quote(name, safe='')}"


def _leading(note: str, to: str) -> dict[str, str | float]:
    """What an element says when pointed at, focused, or read out, and where it leads."""
    return {"href": to, "aria_label": note, "data_note": note, "class_": "item"}


def _stream(stream: NetworkStream, box: Box) -> Shape:
    status = stream.status
    kind = "idle"
    if status is not None and (status.error is not None or status.full):
        kind = "bad"
    elif any(one.is_troubled for one in stream.sensors):
        kind = "warn"
    elif stream.states[SensorState.CONNECTED]:
        kind = "good"
    rows = "" if status is None else f"{count_text(status.rows)} rows"
    note = f"Stream {stream.name} from {stream.stream_type}: {rows}, {rate_words(stream.rate)}"
    if status is not None and status.error is not None:
        note += f"; {status.error}"
    if status is not None and status.dead_letters:
        note += f"; {count_text(status.dead_letters)} dead letters"
    text = f"{rate_words(stream.rate)} · {rows}"
    return _titled(box, stream.name, kind, text, note, stream_address(stream.name))


def _query(query: QueryStatus, box: Box) -> Shape:
    note = f"Query {query.name}: {query.phase}"
    if query.error is not None:
        note += f"; {query.error}"
    text = f"{query.phase} · {count_text(query.result_rows)} rows"
    return _titled(box, query.name, PHASES[query.phase], text, note, query_address(query.name))


def _delivery(delivery: DeliveryStatus, box: Box) -> Shape:
    note = f"Delivery {delivery.name} to {delivery.unit}: {delivery.state}"
    if delivery.last_error is not None:
        note += f"; {delivery.last_error}"
    text = f"{delivery.unit} · {count_text(delivery.delivered)} rows"
    return _titled(
        box, delivery.name, DELIVERIES[delivery.state], text, note, "/console/deliveries"
    )


def _titled(box: Box, name: str, kind: str, text: str, note: str, to: str) -> Shape:
    left, letters = box.x - box.width / 2, int(box.width / 7)
    return shape(
        "a",
        _outline(box),
        state_mark(kind, left + 18, box.y - 11),
        shape("text", shortened(name, letters - 6), x=left + 32, y=box.y - 6, class_="name"),
        shape("text", shortened(text, letters), x=left + 14, y=box.y + 17, class_="soft"),
        **(_leading(note, to) | {"class_": "item box"}),
    )
