"""A Kafka cluster for tests: the one that librdkafka ships for its own tests.

Its brokers listen on loopback and speak the real protocol, so clients of any process connect to
it as to any other. It has no transaction isolation, no administration, and topics of four
partitions that are created on first use; a partition keeps at most 5 MB.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.patience import LONG

PARTITIONS = 4
_QUIET = logging.getLogger("tests.kafka")
_QUIET.setLevel(logging.CRITICAL)


class KafkaCluster:
    """Brokers, and a producer to send messages with."""

    def __init__(self, brokers: int = 1) -> None:
        settings = {"test.mock.num.brokers": brokers, "bootstrap.servers": "none", "log_level": 0}
        self._host = Producer(settings, logger=_QUIET)
        cluster = self._host.list_topics(timeout=LONG)
        self.servers = ",".join(f"{one.host}:{one.port}" for one in cluster.brokers.values())
        self.producer = Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 0, "log_level": 0}, logger=_QUIET
        )

    @property
    def url(self) -> str:
        return f"kafka://{self.servers}"

    def send(self, topic: str, *values: Any, partition: int = 0, **how: Any) -> None:
        """Send messages, JSON unless they are bytes, and wait until the cluster has them."""
        for value in values:
            sent = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            self.producer.produce(topic, sent, partition=partition, **how)
            self.producer.poll(0)
        assert self.producer.flush(LONG) == 0

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that a partition holds, and its end."""
        with self._consumer() as consumer:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), LONG)

    def messages(self, topic: str) -> list[Any]:
        """All messages of a topic that the cluster still holds."""
        messages = []
        with self._consumer() as consumer:
            for partition in range(PARTITIONS):
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), LONG)
                consumer.assign([TopicPartition(topic, partition, low)])
                while low < high:
                    for message in consumer.consume(high - low, 1):
                        assert message.error() is None, message.error()
                        messages.append(message)
                        low = message.offset() + 1
        return messages

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        consumer = Consumer(settings, logger=_QUIET)
        try:
            yield consumer
        finally:
            consumer.close()

    def close(self) -> None:
        """Drop the producer, and with it the cluster."""
        del self.producer, self._host
