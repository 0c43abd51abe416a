"""Where names lead: of everything that is contacted, the address that is connected to is judged."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from nilometer.deliveries.find_units import read_unit_options, unit_class
from nilometer.deliveries.unit import Chunk, ReceiverError, UnitSetting
from nilometer.deliveries.units import webhook as webhook_unit
from nilometer.errors import InputError
from nilometer.model.reach import Reach, addresses_within, connect_within, reach_of
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.stream_type import SensorAddress
from tests.mosquitto import make_certificates, start_mosquitto

NAME = "sensors.example.com"
SOURCES = Path(__file__).parents[2] / "src" / "nilometer"


class Names:
    """Answers for names; whoever asks again may get another answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._find)

    def _find(self, host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in self.answers:
            ip_address(host)  # nothing but addresses is left
            return self._real(host, port, *args, **kwargs)
        self.asked.append(host)
        known = self.answers[host]
        addresses = known[0] if len(known) == 1 else known.pop(0)
        answers: list[Any] = []
        for one in addresses:
            family = socket.AF_INET6 if ":" in one else socket.AF_INET
            answers.append((family, socket.SOCK_STREAM, 6, "", (one, port)))
        return answers


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@contextmanager
def listening(address: str = "127.0.0.1") -> Iterator[tuple[int, list[bytes]]]:
    """A port, and the first bytes that each of its connections has sent."""
    heard: list[bytes] = []
    with socket.create_server((address, 0)) as server:
        server.settimeout(0.05)
        is_over = threading.Event()

        def take() -> None:
            while not is_over.is_set():
                try:
                    taken, _ = server.accept()
                except TimeoutError:
                    continue
                with taken:
                    taken.settimeout(3)
                    try:
                        heard.append(taken.recv(4096))
                    except TimeoutError:
                        heard.append(b"")

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            is_over.set()
            thread.join()


# How each of them is told to contact somebody; all fail, since nobody answers as they should.


def sense(kind: str, address: str, private: bool) -> str:
    """What a sensor of this type says when it cannot be read."""

    async def work() -> None:
        stream = stream_class(kind)()
        options = {"timeout": "30s"} | ({"private": "yes"} if private else {})
        options |= {"interval": "1ms"} if kind == "http" else {}
        columns = pa.schema([("v", pa.int64())])
        try:
            await stream.init_stream(SensorAddress("T", "s", address, options, columns, None, "i"))
            await stream.read_stream()
        finally:
            await stream.close_stream()
            await asyncio.sleep(0)

    with pytest.raises((OSError, InputError, TimeoutError)) as error:
        asyncio.run(work())
    return str(error.value)


def deliver(kind: str, url: str, private: bool, tmp_path: Path) -> str:
    """What a delivery says when its receiver cannot be reached."""
    given = {"url": url, "timeout": "30s"} | ({"private": "yes"} if private else {})
    given |= {"topic": "t"} if kind == "mqtt" else {"secret": "s"}
    with pytest.raises((ReceiverError, InputError)) as error:
        send(kind, given, tmp_path)
    return str(error.value)


def send(kind: str, given: dict[str, str], tmp_path: Path) -> None:
    """Deliver one chunk."""
    setting = UnitSetting("d", "q", read_unit_options(kind, given), [tmp_path], partial(getattr, 0))
    unit_class(kind).check(setting)
    unit = unit_class(kind)(setting)
    try:
        unit.deliver(Chunk("d", "q", "log", 0, pa.table({"v": [1, 2]})))
    finally:
        unit.close()


Contact = Callable[[str, bool], str]


@pytest.fixture(params=["http", "tcp", "mqtt", "webhook", "mqtt delivery"])
def contact(request: pytest.FixtureRequest, tmp_path: Path) -> Contact:
    """Contact a place (host and port) in one of all ways; returns why that failed."""
    match request.param:
        case "http":
            return lambda place, private: sense("http", f"http://{place}/", private)
        case "tcp":
            return lambda place, private: sense("tcp", f"tcp://{place}", private)
        case "mqtt":
            return lambda place, private: sense("mqtt", f"mqtt://{place}/t", private)
        case "webhook":
            return lambda place, private: deliver("webhook", f"http://{place}/", private, tmp_path)
    return lambda place, private: deliver("mqtt", f"mqtt://{place}", private, tmp_path)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("127.0.0.1", False),
        ("::ffff:127.0.0.1", False),
        ("10.0.0.7", False),
        ("169.254.169.254", True),
        ("fe80::1", True),
        ("0.0.0.0", True),
    ],
)
def test_a_name_leads_to_no_address_that_was_not_declared(
    contact: Contact, names: Names, address: str, private: bool
) -> None:
    names.answers[NAME] = [[address]]
    with listening() as (port, heard):
        assert f"{NAME} resolves to {address}" in contact(f"{NAME}:{port}", private)
    assert heard == []


def test_a_name_that_may_be_private_is_connected_to(contact: Contact, names: Names) -> None:
    names.answers[NAME] = [["127.0.0.1"]]
    with listening() as (port, heard):
        contact(f"{NAME}:{port}", True)
    assert heard


def test_only_those_addresses_of_a_name_are_used_that_may_be(
    contact: Contact, names: Names
) -> None:
    names.answers[NAME] = [["169.254.169.254", "127.0.0.2"]]
    with listening("127.0.0.2") as (port, heard):
        contact(f"{NAME}:{port}", True)
    assert heard


def test_what_was_judged_is_what_is_connected_to(contact: Contact, names: Names) -> None:
    with listening("127.0.0.2") as (port, heard), socket.create_server(("127.0.0.3", port)) as bad:
        bad.setblocking(False)
        names.answers[NAME] = [["127.0.0.2"], ["127.0.0.3"]]  # whoever asks twice is led astray
        contact(f"{NAME}:{port}", True)
        assert heard
        with pytest.raises(BlockingIOError):
            bad.accept()
    assert names.asked == [NAME]


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "127.0.0.1.", "1.2.3.4.5", "0x"],
)
def test_numbers_that_only_some_take_for_an_address_are_refused(
    contact: Contact, host: str
) -> None:
    with listening() as (port, heard):
        problem = contact(f"{host}:{port}", True)
    assert (
        f"the host {host} is neither a name nor an address" in problem
        or "the url cannot" in problem
    )
    assert heard == []


@pytest.mark.parametrize("place", ["", "/var/run/docker.sock", "%2Fvar%2Frun%2Fdocker.sock"])
def test_no_place_of_the_file_system_is_connected_to(contact: Contact, place: str) -> None:
    assert contact(place, True)


# The guard itself


@pytest.mark.parametrize(
    ("host", "address", "private", "is_allowed"),
    [
        (NAME, "93.184.216.34", False, True),
        (NAME, "2606:2800:220:1::1", False, True),
        (NAME, "64:ff9b::5db8:d822", False, True),
        (NAME, "10.0.0.7", False, False),
        (NAME, "100.64.0.1", False, False),
        (NAME, "127.0.0.1", False, False),
        (NAME, "::1", False, False),
        (NAME, "::1", True, True),
        (NAME, "::127.0.0.1", True, False),
        (NAME, "::ffff:10.0.0.7", False, False),
        (NAME, "64:ff9b::7f00:1", False, False),
        (NAME, "2002:7f00:1::", False, False),
        (NAME, "10.0.0.7", True, True),
        (NAME, "169.254.169.254", True, False),
        (NAME, "::ffff:169.254.169.254", True, False),
        (NAME, "64:ff9b::a9fe:a9fe", True, False),
        (NAME, "100.100.100.200", True, False),
        (NAME, "168.63.129.16", False, False),
        (NAME, "fd00:ec2::254", True, False),
        (NAME, "fe80::1", True, False),
        (NAME, "fe80::1%eth0", True, False),
        (NAME, "0.0.0.0", True, False),
        (NAME, "255.255.255.255", True, False),
        (NAME, "224.0.0.1", True, False),
        ("boiler", "10.0.0.7", False, True),
        ("boiler.local", "fd00::7", False, True),
        ("boiler.local", "169.254.169.254", False, False),
        ("10.0.0.7", "10.0.0.7", False, True),
        ("169.254.169.254", "169.254.169.254", False, True),
    ],
)
def test_where_a_name_may_lead(
    names: Names, host: str, address: str, private: bool, is_allowed: bool
) -> None:
    names.answers[host] = [[address]]
    reach = reach_of(host, may_be_private=private)

    async def connect(given: str) -> str:
        return given

    if is_allowed:
        assert addresses_within(host, 80, reach) == [address]
        assert asyncio.run(connect_within(host, 80, reach, connect)) == address
        return
    with pytest.raises(OSError, match="declare that address itself"):
        addresses_within(host, 80, reach)
    with pytest.raises(OSError, match="declare that address itself"):
        asyncio.run(connect_within(host, 80, reach, connect))


def test_the_next_address_is_tried_if_one_does_not_answer(names: Names) -> None:
    names.answers["boiler"] = [["127.0.0.1", "127.0.0.2"]]

    async def connect(address: str) -> str:
        if address == "127.0.0.1":
            raise ConnectionRefusedError
        return address

    reached = asyncio.run(connect_within("boiler", 80, Reach.PRIVATE, connect))
    assert reached == "127.0.0.2"


# Who is at an address proves by its certificate that it has the name, and not the address.


@pytest.mark.parametrize(("host", "is_right"), [(NAME, True), ("other.example.com", False)])
def test_a_broker_proves_its_name(tmp_path: Path, names: Names, host: str, is_right: bool) -> None:
    names.answers[NAME] = [["127.0.0.1"]]
    tls = make_certificates(tmp_path / "certificates", host)
    given = {"topic": "t", "ca_file": str(tls.authority), "private": "yes"}
    with start_mosquitto(tmp_path / "broker", tls=tls) as broker:
        given["url"] = f"mqtts://{NAME}:{broker.port}"
        if is_right:
            send("mqtt", given, tmp_path)
            return
        with pytest.raises(ReceiverError, match=f"not valid for '{NAME}'"):
            send("mqtt", given, tmp_path)


@pytest.mark.parametrize(("host", "is_right"), [(NAME, True), ("other.example.com", False)])
def test_a_webhook_proves_its_name(
    tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch, host: str, is_right: bool
) -> None:
    names.answers[NAME] = [["127.0.0.1"]]
    tls = make_certificates(tmp_path, host)
    trust = ssl.create_default_context(cafile=tls.authority)
    monkeypatch.setattr(webhook_unit.httpx, "Client", partial(httpx.Client, verify=trust))
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(tls.certificate, tls.key)
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async def work() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=shown) as server:
            port = server.sockets[0].getsockname()[1]
            given = {"url": f"https://{NAME}:{port}/in", "secret": "s", "private": "yes"}
            await asyncio.to_thread(send, "webhook", given, tmp_path)
            assert f"Host: {NAME}:{port}\r\n".encode() in heard[0]

    if is_right:
        asyncio.run(work())
        return
    with pytest.raises(ReceiverError, match=f"not valid for '{NAME}'"):
        asyncio.run(work())
    assert heard == []


def test_nothing_else_opens_connections() -> None:
    """Whoever adds a connection that statements can ask for lets it pass the guard."""
    opens = re.compile(
        r"create_connection\(|open_connection\(|httpx\.(Async)?Client|urlopen\(|_client\.connect\("
        r"|http\.client|create_datagram_endpoint|open_unix_connection|\.connect_ex\("
    )
    openers = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if opens.search(path.read_text())
    }
    guarded = {
        "sensors/types/http_client.py",
        "sensors/types/mqtt_wire.py",
        "sensors/types/tcp.py",
        "deliveries/units/mqtt.py",
        "deliveries/units/webhook.py",
    }
    for path in guarded:
        assert "nilometer.model.reach" in (SOURCES / path).read_text()
    # Clients of a server that a person names, the demonstration's own broker, and workers of a
    # cluster, which connect to their driver.
    ours = {"client/client.py", "client/async_client.py", "demo/broker.py", "engine/channel.py"}
    ours |= {"spark/served_files.py"}
    assert openers - guarded == ours
