"""mqtt: results as messages on a topic, one per row or one per chunk.

With QoS 1 the broker has acknowledged every message before the delivery continues. With QoS 0
nothing is acknowledged: messages in flight when a connection breaks may be lost.
"""

from __future__ import annotations

import ssl
import threading
import time
from contextlib import suppress
from typing import Any, ClassVar, Final
from urllib.parse import SplitResult, unquote, urlsplit

from paho.mqtt.client import Client, MQTTMessageInfo
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.reasoncodes import ReasonCode

from nilometer.deliveries.json_rows import chunk_text, row_bytes, row_texts
from nilometer.deliveries.unit import Chunk, ReceiverError, UnitSetting
from nilometer.model.options import Option, OptionError, one_of, seconds, whole, yes_or_no
from nilometer.model.reach import Reach, addresses_within, reach_of

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_LONGEST_TOPIC: Final = 65_535


class MqttUnit:
    """Publishes to a broker."""

    row_bytes = staticmethod(row_bytes)
    options: ClassVar = (
        Option("url", "the broker: mqtt://host[:port], or mqtts:// with TLS", str, is_secret=True),
        Option("topic", "the topic of the messages", str),
        Option("qos", "0: sent, 1: acknowledged", whole(0, 1), 1),
        Option("per", "one message for each row, or for each chunk", one_of("row", "chunk"), "row"),
        Option("user", "the name to log in with", str),
        Option("password", "the password to log in with", str, is_secret=True),
        Option("ca_file", "a file with the authority that signed the broker's certificate", str),
        Option("private", "whether a name may resolve to a private address", yes_or_no, False),
        Option("timeout", "how long the broker may take for a chunk", seconds, 10.0),
    )

    def __init__(self, setting: UnitSetting) -> None:
        options = setting.options
        self._topic, self._qos = options["topic"], options["qos"]
        self._per_row = options["per"] == "row"
        self._timeout = options["timeout"]
        self._answer: ReasonCode | None = None
        self._answered = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        parts = _broker(options["url"])
        self._log_in(parts, options["user"], options["password"])
        if parts.scheme == "mqtts":
            self._client.tls_set_context(_NamedContext.of(parts, options["ca_file"]))
        self._connect(parts, _reach(parts, setting))

    @classmethod
    def check(cls, setting: UnitSetting) -> None:
        """Refuse an invalid broker or topic."""
        _reach(_broker(setting.options["url"]), setting)
        topic = setting.options["topic"]
        if not topic or any(one in topic for one in "+#\0") or len(topic) > _LONGEST_TOPIC:
            raise OptionError(
                "mqtt needs a topic to publish to",
                detail="a topic must not contain + or #",
                hint="write WITH (topic = 'plant/alarms', …)",
                option="topic",
            )

    def deliver(self, chunk: Chunk) -> None:
        """Publish a chunk, and wait until the broker has all of it."""
        payloads = list(row_texts(chunk)) if self._per_row else [chunk_text(chunk)]
        deadline = time.monotonic() + self._timeout
        sent = [self._client.publish(self._topic, one, self._qos) for one in payloads]
        for one in sent:
            self._wait(one, deadline)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _log_in(self, parts: SplitResult, user: str | None, password: str | None) -> None:
        name = user or (None if parts.username is None else unquote(parts.username))
        word = password or (None if parts.password is None else unquote(parts.password))
        if name is not None:
            self._client.username_pw_set(name, word)

    def _connect(self, parts: SplitResult, reach: Reach) -> None:
        self._client.connect_timeout = self._timeout
        try:
            self._open(parts.hostname or "", parts.port or _PORTS[parts.scheme], reach)
        except OSError as error:
            raise ReceiverError(f"the broker cannot be reached: {error}") from error
        self._client.loop_start()
        if not self._answered.wait(self._timeout) or self._answer is None:
            self.close()
            raise ReceiverError("the broker did not answer in time")
        if self._answer.is_failure:
            self.close()
            raise ReceiverError(f"the broker refuses: {self._answer}", after=30.0)

    def _open(self, host: str, port: int, reach: Reach) -> None:
        """Connect to the first allowed address of a host that answers."""
        *others, last = addresses_within(host, port, reach)
        for address in others:
            with suppress(OSError):
                self._client.connect(address, port)
                return
        self._client.connect(last, port)

    def _wait(self, message: MQTTMessageInfo, deadline: float) -> None:
        """Wait for one message; fail at once if the connection breaks."""
        while time.monotonic() < deadline:
            try:
                message.wait_for_publish(0.1)
                if message.is_published():
                    return
            except (RuntimeError, ValueError) as error:
                raise ReceiverError(f"the broker did not accept a message: {error}") from error
            if not self._client.is_connected():
                raise ReceiverError("the connection to the broker was lost")
        raise ReceiverError("the broker did not acknowledge in time")

    def _on_connect(self, _: Any, __: Any, ___: Any, answer: ReasonCode, ____: Any) -> None:
        self._answer = answer
        self._answered.set()

    def _on_disconnect(self, *_: Any) -> None:
        self._answered.set()


class _NamedContext(ssl.SSLContext):
    """TLS to an address where a broker of this name is required."""

    name: str

    @classmethod
    def of(cls, parts: SplitResult, authority: str | None) -> _NamedContext:
        context = cls(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and names
        context.name = parts.hostname or ""
        context.load_verify_locations(authority) if authority else context.load_default_certs()
        return context

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """Wrap the socket, verifying the broker's name, not its address; close it on failure."""
        arguments = {"server_hostname": self.name, "do_handshake_on_connect": True}
        return super().wrap_socket(*args, **{**kwargs, **arguments})


def _reach(parts: SplitResult, setting: UnitSetting) -> Reach:
    """The declared restrictions on the broker's host."""
    return reach_of(parts.hostname or "", may_be_private=setting.options["private"])


def _broker(url: str | None) -> SplitResult:
    """The parts of a broker's URL."""
    try:
        parts = urlsplit(url or "")
        is_usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise OptionError(
            "mqtt needs the url of a broker",
            hint="write WITH (url = 'mqtt://host:1883', topic = '…')",
            option="url",
        )
    return parts
