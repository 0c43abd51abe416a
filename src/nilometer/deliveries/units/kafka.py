"""kafka: results as messages of a topic, one per row or one per chunk.

The cluster has acknowledged every message, with all replicas that it requires, before the delivery
continues. Retries of the client never duplicate a message; a chunk that is sent again does, with
the same ids.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nilometer.deliveries.json_rows import chunk_text, dump, row_bytes, row_texts
from nilometer.deliveries.unit import Chunk, ReceiverError, UnitSetting
from nilometer.errors import NilometerError
from nilometer.kernels.json_values import rows_of
from nilometer.model.kafka import (
    CLIENT_OPTIONS,
    check_brokers,
    client_settings,
    reach_of_cluster,
    read_kafka_url,
    read_servers,
    read_topics,
    uses_tls,
)
from nilometer.model.options import Option, OptionError, one_of
from nilometer.model.reach import reach_of

_LOG: Final = logging.getLogger("nilometer.kafka")
_ID: Final = "nilometer-id"
_SETTINGS: Final = {
    "enable.idempotence": True,
    "linger.ms": 5,
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 1 << 20,
}


class KafkaUnit:
    """Sends to a topic."""

    row_bytes = staticmethod(row_bytes)
    options: ClassVar = (
        Option("url", "some brokers: kafka://[user:password@]host[:port][,…]", str, is_secret=True),
        Option("topic", "the topic of the messages", str),
        Option("key", "the column whose values are the keys of the messages", str),
        Option("per", "one message for each row, or for each chunk", one_of("row", "chunk"), "row"),
        *CLIENT_OPTIONS,
    )

    def __init__(self, setting: UnitSetting) -> None:
        options = _completed(setting)
        self._topic: str = options["topic"]
        self._key: str | None = options["key"]
        self._per_row = options["per"] == "row"
        self._timeout: float = options["timeout"]
        self._error: KafkaError | None = None
        servers = read_servers(options["servers"], tls=uses_tls(options))
        try:
            reach = reach_of_cluster(servers, private=options["private"])
            own = {**_SETTINGS, "delivery.timeout.ms": max(1000, round(self._timeout * 1000))}
            self._producer = Producer(client_settings(servers, options) | own, logger=_LOG)
            metadata = self._producer.list_topics(self._topic, self._timeout)
            check_brokers(((one.host, one.port) for one in metadata.brokers.values()), reach)
        except (KafkaException, OSError) as error:
            raise ReceiverError(f"the cluster cannot be reached: {_words(error)}") from error
        if (refusal := metadata.topics[self._topic].error) is not None:
            raise ReceiverError(f"topic {self._topic}: {refusal.str()}", after=30.0)

    @classmethod
    def check(cls, setting: UnitSetting) -> None:
        """Refuse an invalid cluster or topic."""
        try:
            options = _completed(setting)
            servers = read_servers(options["servers"], tls=uses_tls(options))
            client_settings(servers, options)
            for host, _ in servers:
                reach_of(host, may_be_private=options["private"])
            (_,) = read_topics(options["topic"] or "")
        except (NilometerError, ValueError) as error:
            raise OptionError(
                "kafka needs a cluster and a topic to send to",
                detail=error.message if isinstance(error, NilometerError) else None,
                hint="write WITH (url = 'kafka://broker:9092', topic = 'alarms', …)",
            ) from error

    def deliver(self, chunk: Chunk) -> None:
        """Send a chunk, and wait until the cluster has acknowledged all of it."""
        self._error = None
        if self._per_row:
            for at, (text, key) in enumerate(zip(row_texts(chunk), self._keys(chunk), strict=True)):
                self._send(text, key, chunk.row_id(at))
        else:
            self._send(chunk_text(chunk), None, chunk.id)
        left = self._producer.flush(self._timeout)
        if self._error is not None:
            raise ReceiverError(f"the cluster did not accept a message: {self._error.str()}")
        if left:
            raise ReceiverError("the cluster did not answer in time")

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(0)

    def _keys(self, chunk: Chunk) -> list[str | None]:
        if self._key is None:
            return [None] * len(chunk.rows)
        if self._key not in chunk.rows.column_names:
            raise ReceiverError(f"results have no column {self._key}, which is to be the key")
        values = [one[self._key] for one in rows_of(chunk.rows.select([self._key]))]
        return [one if one is None or isinstance(one, str) else dump(one) for one in values]

    def _send(self, text: str, key: str | None, identity: str) -> None:
        headers: list[tuple[str, str | bytes | None]] = [(_ID, identity)]
        while True:
            try:
                self._producer.produce(
                    self._topic, text.encode(), key, on_delivery=self._note_result, headers=headers
                )
                break
            except BufferError:
                self._producer.poll(0.1)  # there is room again once something was acknowledged
                if self._error is not None:
                    return
            except KafkaException as error:
                raise ReceiverError(f"the cluster did not accept it: {_words(error)}") from error
        self._producer.poll(0)

    def _note_result(self, error: KafkaError | None, _: Message) -> None:
        self._error = self._error or error


def _completed(setting: UnitSetting) -> dict[str, Any]:
    """The options, completed with servers and user from the URL."""
    options = {**setting.options, "servers": ""}
    from_url = read_kafka_url(options["url"] or "")
    from_url.pop("topic", None)
    for name, text in from_url.items():
        options[name] = options[name] or text
    return options


def _words(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return str(cause.str()) if isinstance(cause, KafkaError) else str(error)
