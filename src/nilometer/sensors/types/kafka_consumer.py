"""A consumer of all partitions of some topics, with an explicit start offset for each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from nilometer.errors import InputError
from nilometer.model.kafka import (
    check_brokers,
    client_settings,
    reach_of_cluster,
    read_servers,
    uses_tls,
)
from nilometer.sensors.types.kafka_positions import HeldOffsets, Place

_LOG: Final = logging.getLogger("nilometer.kafka")
_SETTINGS: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "isolation.level": "read_committed",
    "queued.min.messages": 10_000,
    "queued.max.messages.kbytes": 16_384,
    "max.poll.interval.ms": 86_400_000,
    "fetch.error.backoff.ms": 100,
}
_ENDED: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._FATAL}
)
"""Errors of the whole client: it is abandoned, and another one is created."""
_COUNT_EVERY: Final = 1.0
_Reply = TypeVar("_Reply")


class TopicConsumer:
    """Commits nothing to the cluster: positions are kept by whoever stores the messages."""

    def __init__(self, chosen: Mapping[str, Any], group: str) -> None:
        """`chosen` are the options of the stream type; `group` is a name for the cluster's log."""
        servers = read_servers(chosen["servers"], tls=uses_tls(chosen))
        self._reach = reach_of_cluster(servers, private=chosen["private"])
        self._topics: tuple[str, ...] = chosen["topic"]
        self._timeout: float = chosen["timeout"]
        self._where = chosen["servers"]
        self._trouble: Exception | None = None
        """Why it cannot continue, raised once everything that arrived before has been taken."""
        self._count_after = 0.0
        self._behind: int | None = None
        settings = {**client_settings(servers, chosen), **_SETTINGS, "group.id": group}
        try:
            self._consumer = Consumer(settings | {"error_cb": self._note}, logger=_LOG)
        except KafkaException as error:
            raise InputError(
                "no Kafka client can be made from these options", detail=_words(error)
            ) from error

    def cluster(self) -> str | None:
        """The id of the cluster; raises if it cannot be reached, or redirects where it must not."""
        cluster: str | None = self._metadata(self._topics[0]).cluster_id
        return cluster

    def places(self) -> list[Place]:
        """All partitions that the topics have now."""
        places: list[Place] = []
        for topic in self._topics:
            metadata = self._metadata(topic).topics[topic]
            if metadata.error is not None:
                raise LookupError(
                    f"topic {topic} cannot be read at {self._where}: {metadata.error.str()}"
                )
            places += [Place(topic, number) for number in sorted(metadata.partitions)]
        return places

    def held(self, place: Place) -> HeldOffsets:
        """The offsets that a partition currently holds."""
        of = TopicPartition(place.topic, place.partition)
        return HeldOffsets(
            *self._ask(lambda: self._consumer.get_watermark_offsets(of, self._timeout))
        )

    def offset_at(self, place: Place, micros: int, held: HeldOffsets) -> int:
        """The offset of the first message at or after an instant; the end if there is none."""
        asked = [TopicPartition(place.topic, place.partition, -(-micros // 1000))]
        (answer,) = self._ask(lambda: self._consumer.offsets_for_times(asked, self._timeout))
        if answer.error is not None:
            raise KafkaException(answer.error)
        return held.high if answer.offset < 0 else int(answer.offset)

    def read(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on."""
        self._consumer.assign(
            [TopicPartition(*place, offset) for place, offset in positions.items()]
        )

    def take(self, limit: int, wait: float) -> list[Message]:
        """The available messages; waits for the first one."""
        if self._trouble is not None:
            raise self._trouble
        first = self._consumer.poll(wait)
        messages = [] if first is None else [first, *self._consumer.consume(limit - 1, 0)]
        for message in messages:
            if (error := message.error()) is not None:
                self._trouble = _explained(message, error)
        good = [one for one in messages if one.error() is None]
        if self._trouble is not None and not good:
            raise self._trouble
        return good

    def behind(self, positions: Mapping[Place, int]) -> int | None:
        """How many messages have not been read yet; None: the cluster has not said."""
        if time.monotonic() >= self._count_after:
            waiting = [self._wait_at(place, at) for place, at in positions.items()]
            known = [one for one in waiting if one is not None]
            if len(known) == len(waiting):
                self._count_after = time.monotonic() + _COUNT_EVERY
                self._behind = sum(known)
        return self._behind

    def close(self) -> None:
        self._consumer.close()

    def _metadata(self, topic: str) -> Any:
        """The cluster's metadata about itself and a topic."""
        metadata = self._ask(lambda: self._consumer.list_topics(topic, self._timeout))
        check_brokers(((one.host, one.port) for one in metadata.brokers.values()), self._reach)
        return metadata

    def _wait_at(self, place: Place, position: int) -> int | None:
        of = TopicPartition(place.topic, place.partition)
        marks = self._consumer.get_watermark_offsets(of, cached=True)
        return None if marks is None or marks[1] < 0 else max(0, int(marks[1]) - position)

    def _note(self, error: KafkaError) -> None:
        if error.code() in _ENDED or error.fatal():
            self._trouble = ConnectionError(f"{self._where}: {error.str()}")

    def _ask(self, question: Callable[[], _Reply]) -> _Reply:
        """The cluster's answer, or an error that says who did not answer."""
        try:
            return question()
        except KafkaException as error:
            self._consumer.poll(0)  # reports errors of the underlying connection, if any
            raise self._trouble or ConnectionError(f"{self._where}: {_words(error)}") from error


def _explained(message: Message, error: KafkaError) -> Exception:
    place = f"{message.topic()}/{message.partition()}"
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return LookupError(
            f"offset {message.offset()} of {place} no longer exists: the topic is looked at again"
        )
    return ConnectionError(f"{place}: {error.str()}")


def _words(error: KafkaException) -> str:
    cause = error.args[0]
    return str(cause.str()) if isinstance(cause, KafkaError) else str(cause)
