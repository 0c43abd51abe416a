"""The streams of the experiments are what they say, and the same every time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from nilometer.errors import InputError
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import COLUMNAR, serve_columnar
from nilometer_papers.experiments.experiment import SkippedError
from nilometer_papers.experiments.service import WrongResultsError, check_same, serve
from nilometer_papers.experiments.workloads.captures import captures_folder, packets, room_events
from nilometer_papers.experiments.workloads.exponential import SECOND, Rate, exponential_streams
from nilometer_papers.experiments.workloads.transactions import DAY, HOUR, Stores, transactions


def test_stores_sell_at_their_hours_and_rate() -> None:
    sales = transactions(Stores(3), 100_000, seed=1)
    hours = [one.time % DAY / HOUR for one in sales]
    assert min(hours) >= 7.5
    assert max(hours) < 20
    whole_day = [one for one in sales if one.time < DAY]
    assert 4000 < len(whole_day) / 12.5 < 6000
    per_hour = Counter(one.time // HOUR for one in whole_day)
    assert per_hour[17] > 1.8 * per_hour[10]
    assert all(one.time % SECOND == 0 for one in sales)


def test_sales_come_in_bursts_of_unlike_items() -> None:
    sales = transactions(Stores(2), 20_000, seed=1)
    assert sum(a.time == b.time for a, b in pairwise(sales)) > 2000
    sold = Counter(one.key for one in sales).most_common()
    assert sold[0] == (0, sold[0][1])
    assert sold[0][1] > 20 * sold[len(sold) // 2][1]
    assert len(sold) > 5000


def test_streams_are_in_order_numbered_and_the_same_for_a_seed() -> None:
    sales = transactions(Stores(4, per_hour=500), 5000, seed=2)
    assert sales == transactions(Stores(4, per_hour=500), 5000, seed=2)
    assert sales != transactions(Stores(4, per_hour=500), 5000, seed=3)
    assert_in_order(sales, 4)


def assert_in_order(tuples: list[StreamTuple], streams: int) -> None:
    assert all(a.time <= b.time for a, b in pairwise(tuples))
    for stream in range(streams):
        numbers = [one.number for one in tuples if one.stream == stream]
        assert numbers == list(range(len(numbers)))
        assert numbers


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NILOMETER_DATA", str(tmp_path))
    head = "Date,Time AM/PM,Location,SensorID,Value\n"
    (tmp_path / "mavlab_2003_march.csv").write_text(
        head
        + "3/1/2003,12:0:5 AM,Living Room,H1,ON\n3/1/2003,12:0:5 AM,Living Room,H1,OFF\n"
        + "3/1/2003,1:0:0 PM,Dining Room,I1,ON\n3/1/2003,1:0:0 PM,,P1,ON\n"
    )
    (tmp_path / "mavlab_2003_april.csv").write_text(
        head + "4/1/2003,2:0:0 PM,Dining Room,I1,ON\n4/1/2003,2:0:0 PM,Studio A,A1,ON\n"
    )
    (tmp_path / "maccdc2012_00016.csv").write_text(
        '"No.","Time","Source","Destination","Protocol","Length","Info"\n'
        '"1","0.010000","192.168.202.7","192.168.27.1","TCP","66",""\n'
        '"2","0.020000","192.168.27.1","192.168.202.7","TCP","66",""\n'
        '"3","0.020000","192.168.27.1","192.168.27.2","TCP","66",""\n'
        '"4","0.020000","Cisco_9d:f2:8d","PVST+","STP","66",""\n'
    )
    return tmp_path


def test_captures_become_streams(lab: Path) -> None:
    folder = captures_folder()
    midnight, dinner = 1046476800 * SECOND, 1046476800 * SECOND + 13 * HOUR
    assert room_events(folder, 2) == [
        StreamTuple(midnight + 5 * SECOND, "3/1/2003", 1, 0),
        StreamTuple(dinner, "3/1/2003", 0, 0),
        StreamTuple(dinner + 31 * DAY + HOUR, "4/1/2003", 0, 1),
    ]
    pair = "192.168.202.7 192.168.27.1"
    assert packets(folder) == [StreamTuple(10_000, pair, 0, 0), StreamTuple(20_000, pair, 1, 0)]


def test_captures_that_are_not_there_are_skipped(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab / "maccdc2012_00016.csv").unlink()
    with pytest.raises(
        SkippedError, match=r"NILOMETER_DATA names .* without maccdc2012_00016.csv$"
    ):
        captures_folder()
    monkeypatch.delenv("NILOMETER_DATA")
    monkeypatch.chdir(lab)
    with pytest.raises(SkippedError, match="the captures are not here .* NILOMETER_DATA"):
        captures_folder()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no events"),
        ("No.,Time,Source\n1,2,3\n", "is damaged"),
        ("Time,Source,Destination\nsoon,1.2.3.4,1.2.3.4\n", "is damaged"),
        ("Time,Source,Destination\ninf,1.2.3.4,1.2.3.4\n", "is damaged"),
        ("Time,Source,Destination\n0.5\n", "has no events"),
    ],
)
def test_captures_that_are_damaged_are_skipped(lab: Path, content: str, message: str) -> None:
    (lab / "maccdc2012_00016.csv").write_text(content)
    with pytest.raises(SkippedError, match=f"maccdc2012_00016.csv {message}"):
        packets(captures_folder())


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_the_columnar_engine_gives_the_results_of_the_algorithms(streams: int) -> None:
    task = JoinTask.uniform(streams, SECOND // 2)
    rates = [Rate(1000 / streams, 100, delay=i * 100_000) for i in range(streams)]
    arrivals = exponential_streams(rates, 2500, seed=1)
    one, other = serve(ALGORITHMS["BEW"].start(task), arrivals), serve_columnar(task, arrivals)
    check_same({"BEW": one, COLUMNAR: other})
    assert one.results > 100
    assert [block.processed for block in other.blocks] == [1000, 2000, 2500]
    fewer = serve_columnar(task, arrivals[:-100])
    with pytest.raises(WrongResultsError, match="different results"):
        check_same({"BEW": one, COLUMNAR: fewer})


def test_the_columnar_engine_is_measured_on_one_key_and_time_windows() -> None:
    with pytest.raises(InputError, match="on one key under time windows"):
        serve_columnar(JoinTask.last_rows([1, 1]), [])
