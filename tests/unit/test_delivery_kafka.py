"""The unit kafka, against the cluster of librdkafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nilometer.deliveries.delivery import Delivery
from nilometer.deliveries.find_units import (
    chunk_size,
    read_unit_options,
    shown_options,
    unit_class,
)
from nilometer.deliveries.status import DeliveryState
from nilometer.deliveries.unit import UnitSetting
from nilometer.model.options import OptionError
from tests.delivery_receivers import Results, delivering
from tests.kafka_cluster import KafkaCluster
from tests.patience import wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    made = KafkaCluster()
    yield made
    made.close()


def setting(**given: str) -> UnitSetting:
    return UnitSetting("d", "q", read_unit_options("kafka", given), [Path()], str)


@contextmanager
def delivered(results: Results, **given: str) -> Iterator[Delivery]:
    made = setting(**given)
    kind = unit_class("kafka")
    kind.check(made)
    with delivering(results, lambda: kind(made), size=chunk_size(made.options)) as delivery:
        yield delivery


def test_rows_are_messages_with_keys_and_ids(tmp_path: Path, cluster: KafkaCluster) -> None:
    results = Results(tmp_path)
    results.append(50)
    with delivered(results, url=cluster.url, topic="rows", key="k", rows="7") as delivery:
        wait_for(lambda: delivery.progress is not None and delivery.progress.position.row == 50)
    messages = cluster.messages("rows")
    rows = {json.loads(one.value())["k"]: one for one in messages}
    assert len(messages) == 50
    assert sorted(rows) == list(range(50))
    for number, one in rows.items():
        identity = json.loads(one.value())["_id"]
        assert identity.endswith(f".{number}")
        assert one.headers() == [("nilometer-id", identity.encode())]
        assert one.key() == str(number).encode()
    assert len({one.partition() for one in messages}) > 1


def test_a_chunk_may_be_one_message(tmp_path: Path, cluster: KafkaCluster) -> None:
    results = Results(tmp_path)
    results.append(9)
    with delivered(results, url=cluster.url, topic="chunks", per="chunk") as delivery:
        wait_for(lambda: delivery.progress is not None and delivery.progress.position.row == 9)
    (one,) = cluster.messages("chunks")
    sent = json.loads(one.value())
    assert [row["k"] for row in sent["rows"]] == list(range(9))
    assert one.headers() == [("nilometer-id", sent["id"].encode())]


def test_a_cluster_that_is_away_is_tried_again(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(3)
    with delivered(results, url="kafka://127.0.0.1:9", topic="t", timeout="1s") as delivery:
        wait_for(lambda: delivery.state is DeliveryState.RETRYING)
        assert "the cluster cannot be reached" in str(delivery.last_error)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "kafka://h"},
        {"url": "http://h", "topic": "t"},
        {"url": "kafka://h", "topic": "a b"},
        {"url": "kafka://h", "topic": "a,b"},
        {"url": "kafka://0x7f.1", "topic": "t"},
        {"url": "kafka://ann@h", "topic": "t"},
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, str]) -> None:
    made = setting(**given)
    with pytest.raises(OptionError, match="kafka needs a cluster and a topic"):
        unit_class("kafka").check(made)


def test_passwords_are_not_shown() -> None:
    given = {"url": "kafka://ann:x@h", "password": "y", "topic": "t"}
    assert shown_options("kafka", given) == {"url": "…", "password": "…", "topic": "t"}
