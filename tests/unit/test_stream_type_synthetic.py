"""The stream type synthetic: the rate, the distributions and the bursts that were asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.sensors.stream_type import END, SensorAddress
from nilometer.sensors.types.synthetic import SyntheticStream

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([("n", pa.int64()), ("t", pa.float64()), ("k", pa.string()), ("at", TIMESTAMP)])


def rows(
    limit: int = 1_000_000,
    delivered: frozenset[bytes] = frozenset(),
    columns: pa.Schema = COLUMNS,
    **options: str,
) -> tuple[pa.Table, list[bytes]]:
    """What a stream yields, as fast as it can, and its keys."""

    async def work() -> tuple[list[Any], list[bytes]]:
        stream = SyntheticStream(lambda: 1_800_000_000.0)
        time = "at" if "at" in columns.names else None
        await stream.init_stream(
            SensorAddress("T", "s", "", {"rate": "max", **options}, columns, time, "i", delivered)
        )
        batches, keys = [], []
        while sum(map(len, batches)) < limit:
            reading = await stream.read_stream()
            if reading.status is END:
                break
            batches.append(reading.value)
            keys.append(reading.key or b"")
        return batches, keys

    batches, keys = asyncio.run(work())
    return pa.Table.from_batches(batches, columns), keys


def test_a_seed_makes_the_same_stream_and_no_seed_another() -> None:
    first, _ = rows(count="10000", seed="7")
    assert first.equals(rows(count="10000", seed="7")[0])
    assert not first.equals(rows(count="10000", seed="8")[0])
    assert not rows(count="10")[0].equals(rows(count="10")[0])
    assert len(first) == 10_000


@settings(max_examples=25, deadline=None)
@given(stop=st.integers(0, 12_000), seed=st.integers(0, 5))
def test_a_restart_goes_on_after_the_last_stored_reading(stop: int, seed: int) -> None:
    how = {"seed": str(seed), "count": "12000", "start": "0", "burst": "3 every 1ms"}
    whole, _ = rows(**how)
    rest, _ = rows(delivered=frozenset([b"%d" % stop, b"0"]), **how)
    assert rest.equals(whole.slice(stop))


def test_distributions() -> None:
    values = "t=normal(20,3), n=counter(5,2), k=choice(a,b)"
    made, _ = rows(count="20000", seed="1", values=values)
    t = made["t"].to_numpy()
    assert abs(t.mean() - 20) < 0.1
    assert abs(t.std() - 3) < 0.1
    assert made["n"].to_pylist() == list(range(5, 40_005, 2))
    assert 9_000 < made["k"].to_pylist().count("a") < 11_000
    t = rows(count="20000", seed="1", values="t=uniform(-1, 3)")[0]["t"].to_numpy()
    assert -1 <= t.min() < -0.9
    assert 2.9 < t.max() <= 3
    t = rows(count="20000", seed="1", values="t=walk(100, 0.5)")[0]["t"].to_numpy()
    assert abs(np.diff(t).std() - 0.5) < 0.02
    assert abs(t[0] - 100) < 3
    k = rows(count="10", values="k=constant(hall)")[0]["k"].to_pylist()
    assert k == ["hall"] * 10


def test_arrivals_are_exponential_and_bursts_come_in_between() -> None:
    made, _ = rows(20_000, seed="3", rate="max", start="1000")
    at = made["at"].cast(pa.int64()).to_numpy()
    assert at[0] >= 1_000_000_000
    assert (np.diff(at) >= 0).all()
    made, _ = rows(seed="3", count="5000", start="0", burst="10 every 1ms")
    at = made["at"].cast(pa.int64()).to_numpy()
    counts = np.bincount(at[at % 1000 == 0] // 1000)[1:]
    assert (counts >= 10).all()


def test_the_rate_is_kept() -> None:
    async def work() -> int:
        stream = SyntheticStream()
        columns = pa.schema([("t", pa.float64())])
        options = {"rate": "2000", "seed": "1"}
        await stream.init_stream(SensorAddress("T", "s", "", options, columns, None, "i"))
        loop = asyncio.get_running_loop()
        end, count = loop.time() + 0.5, 0
        while loop.time() < end:
            count += len((await stream.read_stream()).value)
        return count

    assert 800 < asyncio.run(work()) < 1300


def test_columns_of_every_kind_have_values() -> None:
    kinds = [pa.int8(), pa.int32(), pa.float32(), pa.bool_(), pa.decimal128(10, 2), pa.string()]
    columns = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    made, _ = rows(count="100", columns=columns)
    assert made.schema == columns
    assert all(made[name].null_count == 0 for name in columns.names)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"values": "t=gauss(1,2)"}, "option values of stream type synthetic cannot be"),
        ({"values": "t=normal(1)"}, "option values of stream type synthetic cannot be"),
        ({"values": "t=normal(a,b)"}, "option values of stream type synthetic cannot be"),
        ({"values": "t"}, "option values of stream type synthetic cannot be"),
        ({"values": "x=normal(1,2)"}, "option values names a column 'x'"),
        ({"burst": "often"}, "option burst of stream type synthetic cannot be 'often'"),
        ({"rate": "-1"}, "option rate of stream type synthetic cannot be '-1'"),
    ],
)
def test_refusals(options: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        rows(1, **options)
