"""The belt, the detectors around it, and how they are talked to."""

from __future__ import annotations

import hmac
import json
import time
from hashlib import sha256
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.demo.sensor_process import SensorProcess, sensors_at_work
from nilometer_papers.idhm.at_work import RECOMMENDATIONS
from nilometer_papers.idhm.belt import WAITING_BOXES, Belt, BeltSettings, Place
from nilometer_papers.idhm.signed import OLDEST, is_genuine
from nilometer_papers.idhm.site import BELT, SEED, Site, SiteSettings, box_of
from nilometer_papers.idhm.spectra import Spectra
from nilometer_papers.idhm.spectrum_model import burst_events
from tests.patience import wait_for

PACE = BeltSettings(burst=100, max_bursts=3, moving=50)
SECRET = "of the belt"


def history(instants: list[int], said: dict[int, tuple[int, Place]]) -> tuple[list[Any], list[Any]]:
    """All that happens if the belt is looked at at these instants, and told that at those."""
    belt = Belt(0, PACE)
    for instant in sorted({*instants, *said}):
        if instant in said:
            belt.recommend(*said[instant], instant)
        else:
            belt.advance(instant)
    return list(belt.moves), list(belt.bursts)


@given(st.lists(st.integers(0, 2000)), st.dictionaries(st.integers(0, 2000), st.integers(0, 5)))
def test_the_belt_does_not_depend_on_who_looks_when(
    instants: list[int], boxes: dict[int, int]
) -> None:
    said = {instant: (box, Place.CLEARED) for instant, box in boxes.items()}
    assert history([*instants, 2000], said) == history([2000], said)


def test_a_box_is_exposed_until_something_is_recommended_for_it() -> None:
    moves, bursts = history([1000], {150: (0, Place.CLEARED), 160: (0, Place.DIVERTED)})
    gone = [(one.box, one.place, one.at) for one in moves if one.place != Place.WAITING]
    assert gone[:4] == [
        (0, Place.EXPOSED, 0),
        (0, Place.CLEARED, 150),
        (1, Place.EXPOSED, 200),
        (1, Place.DIVERTED, 500),  # nobody said anything in three bursts
    ]
    numbered = [(one.box, one.number, one.at) for one in bursts]
    assert numbered[:4] == [(0, 1, 100), (1, 1, 300), (1, 2, 400), (1, 3, 500)]


def test_while_a_box_is_exposed_so_many_wait() -> None:
    moves, _ = history([5000], {})
    waiting: set[int] = set()
    counted = []
    for move in moves:
        if move.place == Place.WAITING:
            waiting.add(move.box)
        elif move.place == Place.EXPOSED:
            waiting.discard(move.box)
            counted.append(len(waiting))
    assert counted[1:] == [WAITING_BOXES] * (len(counted) - 1)
    assert len(counted) == 15


def test_a_box_that_is_not_there_is_not_moved() -> None:
    early = {10: (1, Place.CLEARED), 320: (1, Place.CLEARED)}  # at 320 it is still on its way
    assert history([1000], early) == history([1000], {})


def test_events_of_a_burst_become_counts_by_channel() -> None:
    burst = {"box": 3, "burst": 1, "live": 1.0, "channels": [0, 1023, 7, 7], "times": [1, 2, 3, 4]}
    unit = Spectra()
    made = unit(burst)
    assert made is not None
    counts = made.pop("counts")
    assert made == {"box": 3, "burst": 1, "live": 1.0}
    assert (len(counts), counts.sum(), counts[0], counts[7], counts[1023]) == (1024, 4, 1, 2, 1)
    assert unit(burst) is None
    empty = unit({**burst, "burst": 2, "channels": []})
    assert empty is not None
    assert empty["counts"].sum() == 0


@pytest.mark.parametrize("channel", [-1, 1024])
def test_a_channel_that_does_not_exist_is_refused(channel: int) -> None:
    with pytest.raises(ValueError, match="there are the channels 0 to 1023"):
        Spectra()({"box": 3, "burst": 1, "channels": [5, channel]})


def test_every_detector_tells_of_every_burst_once() -> None:
    site = Site(SiteSettings({"1": "NaI", "2": "HPGe"}, PACE, live=2.0))
    assert site.news("1", 0) == []
    site.begin(0)
    assert site.news("3", 250) is None
    for name, kind in (("1", "NaI"), ("2", "HPGe")):
        news = [json.loads(one) for one in site.news(name, 250) or []]
        assert [(one["box"], one["burst"], one["live"]) for one in news] == [
            (0, 1, 2.0),
            (0, 2, 2.0),
        ]
        assert news[1]["at"] == "1970-01-01T00:00:00.000200Z"
        expected = burst_events(box_of(0), kind, 2, 2.0, SEED + int(name))
        assert news[1]["channels"] == expected.channels.tolist()
        assert news[1]["times"] == expected.times.tolist()
        assert site.news(name, 299) == []


def test_what_is_recommended_moves_boxes() -> None:
    site = Site(SiteSettings({"1": "NaI"}, PACE))
    site.begin(0)
    site.recommend([{"box": 0, "verdict": "more data"}, {"box": 0, "verdict": "suspect"}], 120)
    moves = [json.loads(one) for one in site.news(BELT, 130) or []]
    assert [(one["box"], one["place"]) for one in moves[-2:]] == [(0, "diverted"), (4, "waiting")]


def signed(body: bytes, at: int, secret: str = SECRET) -> dict[str, str]:
    stamp = str(at)
    signature = hmac.new(secret.encode(), stamp.encode() + b"." + body, sha256).hexdigest()
    return {"Nilometer-Timestamp": stamp, "Nilometer-Signature": f"v1={signature}"}


def test_only_who_knows_the_secret_is_heard() -> None:
    assert is_genuine(SECRET, signed(b"x", 1000), b"x", 1000 + OLDEST)
    assert not is_genuine(SECRET, signed(b"x", 1000), b"x", 1001 + OLDEST)
    assert not is_genuine(SECRET, signed(b"x", 1000), b"y", 1000)
    assert not is_genuine(SECRET, signed(b"x", 1000, "another"), b"x", 1000)
    assert not is_genuine(SECRET, {}, b"x", 1000)


def settings_of(**given: Any) -> str:
    usual = {"detectors": {"1": "NaI"}, "burst": 0.1, "live": 1.0, "max_bursts": 1000}
    return json.dumps({**usual, "secret": SECRET, "broker": None, "by_mqtt": [], **given})


def read_some(process: SensorProcess, name: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{process.port}/{name}"
    rows: list[dict[str, Any]] = wait_for(lambda: httpx.get(url).json())
    return rows


def test_a_process_of_its_own_is_asked_and_told_over_http() -> None:
    with sensors_at_work("nilometer_papers.idhm.at_work", [settings_of()]) as process:
        assert abs(process.begin() - time.time_ns() // 1000) < 20_000_000
        first = read_some(process, "1")[0]
        assert (first["box"], first["burst"]) == (0, 1)
        expected = np.bincount(burst_events(box_of(0), "NaI", 1, 1.0, SEED + 1).channels)
        assert np.array_equal(np.bincount(first["channels"]), expected)
        assert read_some(process, BELT)[0]["place"] == "exposed"
        url = f"http://127.0.0.1:{process.port}"
        body = b'{"rows": [{"box": 0, "verdict": "safe"}]}'
        refused = httpx.post(f"{url}/{RECOMMENDATIONS}", content=body)
        headers = signed(body, int(time.time()))
        taken = httpx.post(f"{url}/{RECOMMENDATIONS}", content=body, headers=headers)
        elsewhere = httpx.post(f"{url}/elsewhere", content=body, headers=headers)
        codes = (refused.status_code, taken.status_code, elsewhere.status_code)
        assert codes == (401, 200, 404)
        assert httpx.get(f"{url}/9").status_code == 404
        assert ("cleared", 0) in {(one["place"], one["box"]) for one in read_some(process, BELT)}
