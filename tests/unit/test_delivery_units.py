"""Units of deliveries, each against a real receiver."""

from __future__ import annotations

import hmac
import importlib.util
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from nilometer.deliveries.delivery import Delivery
from nilometer.deliveries.find_units import (
    chunk_size,
    known_units,
    read_unit_options,
    shown_options,
    unit_class,
)
from nilometer.deliveries.reading import Reading
from nilometer.deliveries.status import DeliveryState
from nilometer.deliveries.unit import UnitSetting
from nilometer.deliveries.units import webhook as webhook_unit
from nilometer.errors import InputError
from nilometer.model.options import OptionError
from tests.delivery_receivers import Post, Receiver, Results, delivering, receiver
from tests.mosquitto import Mosquitto, make_certificates, start_mosquitto
from tests.patience import LONG, wait_for


@contextmanager
def delivered(
    results: Results, folder: Path, unit: str, functions: Any = None, /, **given: str
) -> Iterator[Delivery]:
    """A delivery as CREATE DELIVERY would make it."""
    options = read_unit_options(unit, given)
    setting = UnitSetting("d", "q", options, [folder / "deliveries"], functions or _no_function)
    unit_class(unit).check(setting)
    size = chunk_size(options)
    with delivering(results, lambda: unit_class(unit)(setting), size=size) as delivery:
        yield delivery


def _no_function(name: str) -> Any:
    raise InputError(f"there is no unit {name}")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path)


@pytest.fixture
def webhook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def test_a_webhook_gets_signed_chunks(tmp_path: Path, results: Results, webhook: Receiver) -> None:
    results.append(7)
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s3cret", rows="4"):
        wait_for(lambda: webhook.numbers == list(range(7)))
    post = webhook.posts[0]
    content = post.content
    assert (content["delivery"], content["query"]) == ("d", "q")
    assert content["id"] == post.headers["Nilometer-Id"]
    assert content["id"].endswith(".0-4")
    assert content["rows"][1] == {
        "_time": "1970-01-01T00:00:00.000001Z",
        "k": 1,
        "v": 1 / 7,
        "_id": content["id"].partition(".")[0] + ".1",
    }
    timestamp = post.headers["Nilometer-Timestamp"]
    assert abs(int(timestamp) - time.time()) < 60
    signed = hmac.new(b"s3cret", timestamp.encode() + b"." + post.body, sha256).hexdigest()
    assert post.headers["Nilometer-Signature"] == f"v1={signed}"
    assert post.headers["Content-Type"] == "application/json"


def test_a_webhook_gets_no_more_bytes_than_asked(
    tmp_path: Path, results: Results, webhook: Receiver
) -> None:
    results.append(50)
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s", bytes="1kb"):
        wait_for(lambda: webhook.numbers == list(range(50)))
    assert all(len(post.body) < 1024 + 200 for post in webhook.posts)
    assert len(webhook.posts) > 3


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (500, {}, "the receiver answered 500: out of order"),
        (301, {"Location": "http://127.0.0.1:1/"}, "the receiver answered 301: out of order"),
        (503, {"Retry-After": "0"}, "the receiver answered 503: out of order"),
    ],
)
def test_a_webhook_that_refuses_is_asked_again(
    tmp_path: Path,
    results: Results,
    webhook: Receiver,
    status: int,
    headers: dict[str, str],
    error: str,
) -> None:
    results.append(2)
    errors: list[str | None] = []

    def answer(_: Post) -> tuple[int, dict[str, str], bytes]:
        return (status, headers, b"out of\n order") if len(webhook.posts) < 4 else (200, {}, b"")

    webhook.answer = answer
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s") as delivery:
        wait_for(lambda: errors.append(delivery.last_error) or len(webhook.posts) == 4)
        wait_for(lambda: delivery.state is DeliveryState.RUNNING and not delivery.last_error)
    assert error in errors
    assert len({post.headers["Nilometer-Id"] for post in webhook.posts}) == 1
    assert len({post.body for post in webhook.posts}) == 1


def test_a_webhook_that_says_no_is_asked_slowly(
    tmp_path: Path, results: Results, webhook: Receiver
) -> None:
    results.append(1)
    webhook.answer = lambda _: (404, {}, b"")
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s") as delivery:
        wait_for(lambda: delivery.state is DeliveryState.RETRYING)
        assert delivery.next_try is not None
        assert delivery.next_try > time.time() * 1e6 + 20e6
        assert delivery.last_error == "the receiver answered 404"


def test_a_webhook_that_is_gone_is_left_alone(
    tmp_path: Path, results: Results, webhook: Receiver
) -> None:
    results.append(1)
    webhook.answer = lambda _: (410, {}, b"")
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s") as delivery:
        wait_for(lambda: delivery.state is DeliveryState.FAILED)
    assert len(webhook.posts) == 1


def test_a_webhook_that_says_nothing_is_not_waited_for(
    tmp_path: Path, results: Results, webhook: Receiver
) -> None:
    results.append(1)
    stuck = threading.Event()
    webhook.answer = lambda _: (200, {}, b"") if stuck.wait(LONG) else (500, {}, b"")
    given = {"url": webhook.url, "secret": "s", "timeout": "100ms"}
    with delivered(results, tmp_path, "webhook", **given) as delivery:
        wait_for(lambda: delivery.last_error == "the receiver did not answer in time")
        stuck.set()
        wait_for(lambda: delivery.progress and delivery.progress.delivered == 1)


def test_of_a_long_answer_only_the_beginning_is_read(
    tmp_path: Path, results: Results, webhook: Receiver
) -> None:
    results.append(1)
    webhook.answer = lambda _: (500, {}, b"x" * (64 << 20))
    with delivered(results, tmp_path, "webhook", url=webhook.url, secret="s") as delivery:
        wait_for(lambda: delivery.last_error)
        assert len(delivery.last_error or "") < 300
    assert "hidden" not in (delivery.last_error or "")


def test_an_answer_that_trickles_is_not_waited_for(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_unit, "_ANSWER_SECONDS", 0.1)
    results.append(1)
    over = threading.Event()

    def trickle() -> None:
        connection, _ = bound.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000000\r\n\r\n")
            while not over.wait(0.02):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=trickle)
        thread.start()
        given = {"url": f"http://127.0.0.1:{bound.getsockname()[1]}", "secret": "s"}
        with delivered(results, tmp_path, "webhook", **given) as delivery:
            error = wait_for(lambda: delivery.last_error)
            over.set()
        thread.join()
    assert error.startswith("the receiver answered 500: x")


def test_nobody_listens(tmp_path: Path, results: Results) -> None:
    results.append(1)
    given = {"url": "http://127.0.0.1:1/?key=hidden", "secret": "s"}
    with delivered(results, tmp_path, "webhook", **given) as delivery:
        error = wait_for(lambda: delivery.last_error)
    assert error.startswith("the receiver cannot be reached: ")
    assert "hidden" not in error


def test_the_example_of_a_receiver(tmp_path: Path, results: Results) -> None:
    path = Path(__file__).parents[2] / "examples" / "webhook_receiver.py"
    spec = importlib.util.spec_from_file_location("webhook_receiver", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    taken: list[int] = []
    broken = [True]

    def take(chunk: dict[str, Any]) -> None:
        if broken.pop() if broken else False:
            raise ConnectionAbortedError
        taken.extend(row["k"] for row in chunk["rows"])

    server = ThreadingHTTPServer(("127.0.0.1", 0), example.make_handler("right", take))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    results.append(30)
    try:
        with delivered(results, tmp_path, "webhook", url=url, secret="wrong") as delivery:
            wait_for(lambda: delivery.last_error == "the receiver answered 401")
        assert not taken
        with delivered(results, tmp_path, "webhook", url=url, secret="right", rows="7"):
            wait_for(lambda: taken == list(range(30)))
    finally:
        server.shutdown()
        server.server_close()
    assert not example.is_genuine("right", "1", b"", "v1=é", 1.0)


@contextmanager
def subscribed(broker: Mosquitto, topic: str) -> Iterator[list[Any]]:
    """What comes on a topic."""
    got: list[Any] = []
    client = Client(CallbackAPIVersion.VERSION2)
    ready = threading.Event()

    def on_message(_: Any, __: Any, message: MQTTMessage) -> None:
        got.append(json.loads(message.payload))

    client.on_message = on_message
    client.on_subscribe = lambda *_: ready.set()
    client.connect(broker.host, broker.port)
    client.loop_start()
    client.subscribe(topic, 1)
    assert ready.wait(LONG)
    try:
        yield got
    finally:
        client.disconnect()
        client.loop_stop()


@pytest.mark.parametrize("qos", ["0", "1"])
def test_mqtt_gets_a_message_for_each_row(
    tmp_path: Path, results: Results, broker: Mosquitto, qos: str
) -> None:
    results.append(120)
    given = {"url": broker.url, "topic": f"plant/{qos}", "qos": qos, "rows": "50"}
    with subscribed(broker, given["topic"]) as got, delivered(results, tmp_path, "mqtt", **given):
        wait_for(lambda: len(got) >= 120)
    assert [one["k"] for one in got] == list(range(120))
    assert len({one["_id"] for one in got}) == 120


def test_mqtt_gets_a_message_for_each_chunk(
    tmp_path: Path, results: Results, broker: Mosquitto
) -> None:
    results.append(30)
    given = {"url": broker.url, "topic": "chunks", "per": "chunk", "rows": "20"}
    with subscribed(broker, "chunks") as got, delivered(results, tmp_path, "mqtt", **given):
        wait_for(lambda: len(got) >= 2)
    assert [len(one["rows"]) for one in got] == [20, 10]


def test_mqtt_goes_on_when_the_broker_comes_back(tmp_path: Path, results: Results) -> None:
    with start_mosquitto(tmp_path / "broker") as broker:
        given = {"url": broker.url, "topic": "t", "rows": "10"}
        results.append(10)
        with delivered(results, tmp_path, "mqtt", **given) as delivery:
            wait_for(lambda: delivery.progress and delivery.progress.delivered == 10)
            broker.kill()
            results.append(10)
            wait_for(lambda: delivery.last_error)
            broker.start()
            with subscribed(broker, "t") as got:
                results.append(10)
                wait_for(lambda: delivery.progress and delivery.progress.delivered == 30)
                wait_for(lambda: {one["k"] for one in got} >= set(range(20, 30)))


def test_mqtt_logs_in_over_tls(tmp_path: Path, results: Results) -> None:
    tls = make_certificates(tmp_path / "certificates")
    results.append(3)
    passwords = {"nile": "gauge"}
    with start_mosquitto(tmp_path / "broker", tls=tls, passwords=passwords) as broker:
        given = {"url": broker.url, "topic": "t", "ca_file": str(tls.authority), "user": "nile"}
        with delivered(results, tmp_path, "mqtt", **given, password="wrong") as delivery:
            error = wait_for(lambda: delivery.last_error)
            assert error == "the broker refuses: Not authorized"
        with delivered(results, tmp_path, "mqtt", **given, password="gauge") as delivery:
            wait_for(lambda: delivery.progress and delivery.progress.delivered == 3)


def parquet_rows(folder: Path) -> list[int]:
    keys: list[int] = pq.read_table(folder).column("k").to_pylist()
    return keys


def test_parquet_files_hold_every_row_once(tmp_path: Path, results: Results) -> None:
    results.append(25)
    with delivered(results, tmp_path, "parquet", rows="10", every="0s") as delivery:
        wait_for(lambda: delivery.progress and delivery.progress.delivered == 25)
        results.append(5)
        wait_for(lambda: delivery.progress and delivery.progress.delivered == 30)
    folder = tmp_path / "deliveries" / "d"
    assert parquet_rows(folder) == list(range(30))
    assert sorted(one.name for one in folder.iterdir()) == [
        f"{first:016d}.parquet" for first in (0, 10, 20, 25)
    ]


def test_parquet_waits_for_a_whole_file(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_chunk, chunks = Reading.next_chunk, []

    def look(*given: Any) -> Any:
        chunks.append(next_chunk(*given))
        return chunks[-1]

    monkeypatch.setattr(Reading, "next_chunk", look)
    results.append(5)
    with delivered(results, tmp_path, "parquet", rows="10", every="1h") as delivery:
        wait_for(lambda: len(chunks) >= 3)
        assert set(chunks) == {None}
        assert not list((tmp_path / "deliveries" / "d").iterdir())
        results.append(5)
        wait_for(lambda: delivery.progress and delivery.progress.delivered == 10)


@pytest.mark.parametrize(
    "folder", ["..", "../other", "a/../../b", "/etc/x", ".", "link/x", "a\0b", "x" * 300]
)
def test_parquet_files_stay_where_they_may(tmp_path: Path, results: Results, folder: str) -> None:
    (tmp_path / "deliveries").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "deliveries" / "link").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(OptionError) as refused,
        delivered(results, tmp_path, "parquet", folder=folder),
    ):
        pass
    assert refused.value.message == f"files may not be written to {folder!r}"


def test_parquet_wants_a_folder_of_its_own(tmp_path: Path, results: Results) -> None:
    (tmp_path / "deliveries" / "d").mkdir(parents=True)
    (tmp_path / "deliveries" / "d" / "x").touch()
    with (
        pytest.raises(OptionError, match="is not empty"),
        delivered(results, tmp_path, "parquet"),
    ):
        pass


@pytest.mark.parametrize("form", ["dicts", "arrow"])
def test_a_function_gets_rows(tmp_path: Path, results: Results, form: str) -> None:
    results.append(12)
    got: list[Any] = []
    failures = [ValueError("not yet")]

    def take(rows: Any) -> None:
        if failures:
            raise failures.pop()
        got.append(rows)

    given = {"function": "f", "rows_as": form, "rows": "5"}
    with delivered(results, tmp_path, "python", {"f": take}.__getitem__, **given):
        wait_for(lambda: sum(len(one) for one in got) == 12)
    if form == "arrow":
        assert all(isinstance(one, pa.Table) for one in got)
        got = [one.to_pylist() for one in got]
    rows = [row for one in got for row in one]
    assert [row["k"] for row in rows] == list(range(12))
    assert len({row["_id"] for row in rows}) == 12


def test_units_by_name() -> None:
    assert list(known_units()) == ["kafka", "mqtt", "parquet", "python", "webhook"]
    with pytest.raises(InputError, match="there is no delivery unit 'webhok'") as refused:
        unit_class("webhok")
    assert refused.value.hint == "did you mean webhook?"
    shown = shown_options("webhook", {"url": "https://x/key", "secret": "s", "rows": "5"})
    assert shown == {"url": "…", "secret": "…", "rows": "5"}


@pytest.mark.parametrize("unit", known_units())
def test_every_option_is_documented(unit: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "units.md").read_text()
    section = text.partition(f"### {unit}\n")[2].partition("\n### ")[0]
    rows = "".join(line.partition("|")[2].partition("|")[0] for line in section.splitlines())
    assert [one.name for one in unit_class(unit).options if f"`{one.name}`" not in rows] == []
    shared = text.partition("Options of every unit:")[2].partition("### ")[0]
    own = {one.name for one in unit_class(unit).options}
    others = [name for name in read_unit_options(unit, {}) if name not in own]
    assert [name for name in others if f"\n| `{name}` |" not in shared] == []
