"""Kafka topics as sensors: each message is a reading, its position is stored with it."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any, ClassVar, Final

import pyarrow as pa
from confluent_kafka import Message

from nilometer.errors import InputError
from nilometer.model.kafka import CLIENT_OPTIONS, read_kafka_url, read_topics
from nilometer.model.options import Option, one_of, parse_size, seconds
from nilometer.model.time_forms import micros_of
from nilometer.sensors.stream_type import (
    NEW_VALUE,
    NO_VALUE,
    BadReadingError,
    Reading,
    SensorAddress,
)
from nilometer.sensors.types.json_fields import read_fields
from nilometer.sensors.types.kafka_consumer import TopicConsumer
from nilometer.sensors.types.kafka_messages import MessageReader, read_parts
from nilometer.sensors.types.kafka_positions import (
    FAIL,
    FROM_NOW,
    FROM_START,
    Begin,
    HeldOffsets,
    Place,
    begin,
    cluster_mark,
    read_positions,
    spell,
)
from nilometer.sensors.types.options import read_options
from nilometer.sensors.types.payloads import FORMATS

_AT_ONCE: Final = 2000
_WAIT: Final = 0.25
_NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])
"""Stores a position without a row."""


def read_start(text: str) -> str | int:
    """`start`, `now`, or an instant as microseconds since 1970.

    >>> read_start("NOW"), read_start("1970-01-01 00:00:01")
    ('now', 1000000)
    """
    word = text.strip().lower()
    if word in (FROM_START, FROM_NOW):
        return word
    try:
        return micros_of(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise ValueError("write start, now, or a time such as '2026-01-31 12:00:00'") from None


class KafkaStream:
    """The messages of one or more topics, of all their partitions."""

    can_wait = True
    replays = True
    interval = 0.0
    options: ClassVar = (
        Option("servers", "some brokers of the cluster, if the address is a topic alone", str),
        Option("topic", "the topic, or several between commas", read_topics),
        Option("start", "where a new topic begins: start, now, or a time", read_start, FROM_NOW),
        Option(
            "when_reset",
            "what to do if a topic ends before the position stored: fail, start or now",
            one_of(FAIL, FROM_START, FROM_NOW),
            FAIL,
        ),
        Option("format", "the format of a message: json, csv or text", one_of(*FORMATS), "json"),
        Option("fields", "JSON fields by column: 'temperature=t, humidity=data.h'", read_fields),
        Option(
            "parts", "columns of a message beside its value: 'id=key, at=timestamp'", read_parts
        ),
        Option(
            "tombstones",
            "a message without a value: refuse or ignore",
            one_of("refuse", "ignore"),
            "refuse",
        ),
        Option("max_bytes", "the maximum size of a message", parse_size, 1 << 20),
        Option("refresh", "how often to look for partitions that were added", seconds, 30.0),
        *CLIENT_OPTIONS,
    )

    def __init__(self) -> None:
        self.dropped = 0
        """How many messages were removed by the retention of a topic before they were read."""
        self.behind: int | None = None
        """How many messages in the cluster have not been read yet."""
        self._consumer: TopicConsumer | None = None
        self._reader: MessageReader | None = None
        self._chosen: dict[str, Any] = {}
        self._mark = ""
        self._positions: dict[Place, int] = {}
        self._kept: dict[Place, int] = {}
        self._pending: list[Reading | BadReadingError] = []
        self._look_after = 0.0

    def init_stream(self, sensor: SensorAddress) -> None:
        """Connect, and find where to resume each partition."""
        self._chosen = chosen = _choose(sensor)
        self._reader = MessageReader(chosen, sensor.columns)
        consumer = TopicConsumer(chosen, f"nilometer-{sensor.identity}")
        try:
            self._mark = cluster_mark(consumer.cluster())
            self._positions = read_positions(self._mark, sensor.delivered)
            self._begin(consumer)
        except BaseException:
            consumer.close()
            raise
        self._consumer = consumer

    def read_stream(self) -> Any:
        """All messages that have arrived; if there is none, waits a little for one."""
        consumer = self._consumer
        if consumer is None:
            raise RuntimeError("read_stream before init_stream")
        if self._pending:
            pending, self._pending = self._pending, []
            return pending
        if time.monotonic() >= self._look_after:
            self._begin(consumer)
        messages = consumer.take(_AT_ONCE, _WAIT)
        readings = [one for message in messages if (one := self._reading(message)) is not None]
        if messages:
            self._keep_position(readings)
        self.behind = consumer.behind(self._positions)
        return readings or Reading(NO_VALUE)

    def close_stream(self) -> None:
        """Disconnect; what arrives from now on is read when the stream is opened again."""
        if self._consumer is not None:
            self._consumer.close()

    def _begin(self, consumer: TopicConsumer) -> None:
        """Start reading the partitions that are not read yet."""
        self._look_after = time.monotonic() + self._chosen["refresh"]
        new = [one for one in consumer.places() if one not in self._kept]
        if not new:
            return
        held = {place: consumer.held(place) for place in new}

        def start(place: Place, bounds: HeldOffsets) -> int:
            if isinstance(self._chosen["start"], int):
                return consumer.offset_at(place, self._chosen["start"], bounds)
            return bounds.low if self._chosen["start"] == FROM_START else bounds.high

        begun = begin(held, self._positions, start, self._chosen["when_reset"])
        self._positions |= {one.place: one.offset for one in begun}
        self._kept |= {one.place: one.kept for one in begun}
        consumer.read({place: self._positions[place] for place in self._kept})
        self._tell_gone([one for one in begun if one.gone])
        self._pending.append(Reading(NEW_VALUE, _NOTHING, None, self._key()))

    def _tell_gone(self, begun: list[Begin]) -> None:
        for one in begun:
            self.dropped += one.gone
            origin = f"{one.place} at offset {one.offset - one.gone}"
            self._pending.append(BadReadingError(one.reason, origin))

    def _reading(self, message: Message) -> Reading | BadReadingError | None:
        assert self._reader is not None
        place, offset = Place(message.topic() or "", message.partition() or 0), message.offset()
        assert offset is not None
        self._positions[place] = offset + 1
        origin = f"{place} at offset {offset}"
        try:
            value = self._reader.read(message)
        except BadReadingError as error:
            return BadReadingError(f"{error.reason} ({origin})", error.payload)
        if value is None:
            return None
        key = spell(self._mark, [(place, offset + 1)])
        queued = offset < self._kept[place]
        return Reading(NEW_VALUE, value, None, key, queued=queued, origin=origin)

    def _keep_position(self, readings: list[Reading | BadReadingError]) -> None:
        """Attach the positions of all partitions to the last reading."""
        if readings and isinstance(readings[-1], Reading):
            readings[-1] = readings[-1]._replace(key=self._key())
        else:
            readings.append(Reading(NEW_VALUE, _NOTHING, None, self._key()))

    def _key(self) -> bytes:
        return spell(self._mark, self._positions.items())


def _choose(sensor: SensorAddress) -> dict[str, Any]:
    """The options, completed by those of the address."""
    from_url = read_kafka_url(sensor.address)
    chosen = read_options("kafka", KafkaStream.options, {**sensor.options, **from_url})
    for option, example in (("servers", "kafka://host/topic"), ("topic", "kafka://host/topic")):
        if not chosen[option]:
            raise InputError(
                f"sensor {sensor.sensor} names no {option}",
                hint=f"write {example}, or give the option {option}",
            )
    return chosen
