"""Sensors that publish over MQTT: each message is a reading, acknowledged once it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa

from nilometer.errors import InputError
from nilometer.model.options import Option, one_of, parse_size, seconds, whole
from nilometer.model.options import yes_or_no as truth
from nilometer.model.reach import reach_of
from nilometer.sensors.stream_type import NEW_VALUE, BadReadingError, Reading, SensorAddress
from nilometer.sensors.types.json_fields import check_columns, read_fields, read_names
from nilometer.sensors.types.mqtt_connection import MqttConnection, shared_connection
from nilometer.sensors.types.mqtt_packets import V3, V5
from nilometer.sensors.types.mqtt_properties import read_properties, user_properties
from nilometer.sensors.types.mqtt_session import Session, Tls
from nilometer.sensors.types.mqtt_subscription import Message, Subscription
from nilometer.sensors.types.mqtt_topics import check_filter, shape, wildcard_levels
from nilometer.sensors.types.options import read_options
from nilometer.sensors.types.payloads import FORMATS, by_column, payload_reader
from nilometer.sensors.types.text_cells import cell_reader

_AT_ONCE: Final = 2000
_VERSIONS: Final = {"3.1.1": V3, "5": V5}


class MqttStream:
    """The messages of a topic, or of all topics that match a filter with wildcards."""

    options: ClassVar = (
        Option("host", "the broker, if the address is a topic alone", str),
        Option("port", "its port; 1883, or 8883 with TLS", whole(1, 65_535)),
        Option("topic", "the topic, if the address names the broker alone", str),
        Option("qos", "0, 1 or 2", whole(0, 2), 1),
        Option("version", "the version of the protocol: 5 or 3.1.1", one_of(*_VERSIONS), "5"),
        Option("user", "who connects", str),
        Option("password", "the user's password", str),
        Option("tls", "whether to use TLS; mqtts:// does too", truth, False),
        Option("ca", "a file of certificates to trust, in place of the system's", Path),
        Option("cert", "a file with the certificate to present", Path),
        Option("key", "the file with its key", Path),
        Option("insecure", "whether to trust any certificate", truth, False),
        Option("private", "whether a name may resolve to a private address", truth, False),
        Option("client", "the name of the client, in place of one made from the table's", str),
        Option("keepalive", "how long a connection may be silent", seconds, 30.0),
        Option("timeout", "how long an answer of the broker may take", seconds, 10.0),
        Option("inflight", "how many messages may wait to be stored", whole(1, 65_535), 4000),
        Option("session", "how long the broker keeps messages for us (5)", seconds, 604_800.0),
        Option("retained", "whether a message that the broker has kept is a reading", truth, False),
        Option("format", "the format of a message: json, csv or text", one_of(*FORMATS), "json"),
        Option("fields", "JSON fields by column: 'temperature=t, humidity=data.h'", read_fields),
        Option("levels", "columns that take the levels under wildcards, in order", read_names, ()),
        Option("properties", "columns of user properties (5): 'ts=sent_at'", read_properties),
        Option("max_bytes", "the maximum size of a message", parse_size, 1 << 20),
    )

    def __init__(self) -> None:
        self.can_wait = True
        self._connection: MqttConnection | None = None
        self._subscription: Subscription | None = None
        self._value: Callable[[Message], Any] = lambda message: message.payload
        self._max_bytes = 0

    @property
    def duplicates(self) -> int:
        return self._subscription.duplicates if self._subscription is not None else 0

    @property
    def dropped(self) -> int:
        return self._subscription.dropped if self._subscription is not None else 0

    async def init_stream(self, sensor: SensorAddress) -> None:
        """Subscribe, over the connection that the table's sensors share."""
        place = _read_url(sensor.address)
        chosen = read_options("mqtt", self.options, sensor.options)
        chosen |= {name: value for name, value in place.items() if value is not None}
        if not chosen["host"]:
            raise InputError(
                f"sensor {sensor.sensor} names no broker",
                detail=f"got {sensor.address!r}",
                hint="write mqtt://host/topic, or give the option host",
            )
        topic = check_filter(chosen["topic"] or "")
        self._value = _value_reader(chosen, topic, sensor)
        self._max_bytes = chosen["max_bytes"]
        self.can_wait = chosen["qos"] > 0
        subscription = Subscription(topic, retained=chosen["retained"], delivered=sensor.delivered)
        connection = shared_connection(_session(chosen, topic, sensor))
        await connection.join(subscription)
        self._connection, self._subscription = connection, subscription

    async def read_stream(self) -> list[Reading | BadReadingError]:
        """All messages that have arrived; if there is none, waits for one."""
        connection, subscription = self._open()
        await subscription.wait()
        return [self._reading(one) for one in connection.read(subscription, _AT_ONCE)]

    async def close_stream(self) -> None:
        """Unsubscribe: later messages are not wanted."""
        await self._leave(keep=False)

    async def pause_stream(self) -> None:
        """Let the broker collect messages with QoS 1 and 2 until the sensor is opened again."""
        await self._leave(keep=True)

    async def _leave(self, *, keep: bool) -> None:
        if self._connection is not None and self._subscription is not None:
            await self._connection.leave(self._subscription, keep=keep)

    def _open(self) -> tuple[MqttConnection, Subscription]:
        if self._connection is None or self._subscription is None:
            raise RuntimeError("read_stream before init_stream")
        return self._connection, self._subscription

    def _reading(self, message: Message) -> Reading | BadReadingError:
        try:
            if message.cut or len(message.payload) > self._max_bytes:
                raise BadReadingError(
                    f"a message of more than {self._max_bytes} bytes", message.payload[:4096]
                )
            value, key = self._value(message), message.key
            return Reading(NEW_VALUE, value, None, key, message.stored, message.queued)
        except BadReadingError as error:
            error.stored = message.stored
            return error


def _read_url(address: str) -> dict[str, Any]:
    """Host, port, user, password, TLS and topic of an address, as far as it names them."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return {"topic": address or None}
    if scheme.lower() not in ("mqtt", "mqtts"):
        raise InputError(
            "an address that is not MQTT", detail=f"got {address!r}", hint="write mqtt://host/topic"
        )
    authority, _, topic = rest.partition("/")
    account, at, place = authority.rpartition("@")
    user, colon, password = account.partition(":")
    host, port = _host_and_port(place, address)
    return {
        "topic": topic or None,
        "host": host,
        "port": port,
        "user": unquote(user) if at else None,
        "password": unquote(password) if colon else None,
        "tls": True if scheme.lower() == "mqtts" else None,
    }


def _host_and_port(place: str, address: str) -> tuple[str, int | None]:
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, ""
    if port and not (port.isdecimal() and 0 < int(port) < 65_536):
        raise InputError("an invalid MQTT port", detail=f"got {address!r}")
    return host.strip("[]"), int(port) if port else None


def _session(chosen: Mapping[str, Any], topic: str, sensor: SensorAddress) -> Session:
    secure = chosen["tls"] or any(chosen[name] for name in ("ca", "cert", "insecure"))
    tls = Tls(chosen["ca"], chosen["cert"], chosen["key"], chosen["insecure"]) if secure else None
    own = chosen["client"] or sensor.owner or sensor.table
    # A session belongs to a shape of filters, a QoS and a user: each has its own client.
    # 3.1.1 guarantees 23 characters.
    parts = "\0".join([own, shape(topic), str(chosen["qos"]), chosen["user"] or ""])
    client = "nm" + blake2b(parts.encode(), digest_size=10).hexdigest()
    return Session(
        host=chosen["host"],
        reach=reach_of(chosen["host"], may_be_private=chosen["private"]),
        port=chosen["port"] or (8883 if secure else 1883),
        client=client,
        shape=shape(topic),
        qos=chosen["qos"],
        version=_VERSIONS[chosen["version"]],
        user=chosen["user"],
        password=chosen["password"],
        tls=tls,
        keep_alive=min(65_535, max(1, round(chosen["keepalive"]))),
        inflight=chosen["inflight"],
        expiry=min((1 << 32) - 2, round(chosen["session"])),
        timeout=chosen["timeout"],
        max_bytes=chosen["max_bytes"],
    )


def _value_reader(
    chosen: Mapping[str, Any], topic: str, sensor: SensorAddress
) -> Callable[[Message], Any]:
    """A function that converts a message to a reading's value."""
    columns, levels = sensor.columns, chosen["levels"]
    check_columns("fields", tuple(chosen["fields"] or ()), columns)
    check_columns("levels", levels, columns)
    others = pa.schema([one for one in columns if one.name not in levels])
    payload = payload_reader(chosen["format"], chosen["fields"], others)
    property_keys = chosen["properties"] or {}
    check_columns("properties", tuple(property_keys), columns)
    if property_keys:
        return _with_properties(chosen, topic, sensor, property_keys)
    if not levels:
        return lambda message: payload(message.payload)
    wildcards = len(wildcard_levels(topic, topic))
    if len(levels) > wildcards:
        raise InputError(
            f"option levels names {len(levels)} columns, but the topic has {wildcards} wildcards",
            detail=topic,
            hint="+ and # in the topic stand for the levels that are named",
        )
    cells = [(name, cell_reader(columns.field(name))) for name in levels]

    def read(message: Message) -> Any:
        value = by_column(payload(message.payload), others, message.payload)
        matched = wildcard_levels(message.topic, topic)
        return value | {
            name: cell(level) for (name, cell), level in zip(cells, matched, strict=False)
        }

    return read


def _with_properties(
    chosen: Mapping[str, Any], topic: str, sensor: SensorAddress, property_keys: Mapping[str, str]
) -> Callable[[Message], Any]:
    """Also fill columns from user properties; a property that a message lacks is NULL."""
    others = pa.schema([one for one in sensor.columns if one.name not in property_keys])
    below = replace(sensor, columns=others)
    read = _value_reader({**chosen, "properties": None}, topic, below)
    cells = [
        (name, key, cell_reader(sensor.columns.field(name))) for name, key in property_keys.items()
    ]

    def read_all(message: Message) -> Any:
        value = by_column(read(message), others, message.payload)
        properties = user_properties(message.properties)
        return value | {
            name: cell(properties[key]) for name, key, cell in cells if key in properties
        }

    return read_all
