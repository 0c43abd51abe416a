"""What the log of results says about how far its query has come."""

from typing import Any

import pytest

from nilometer.model.time import EARLIEST, FOREVER
from nilometer.spark.result_log import ResultLog


class _Parts:
    def append(self, _parts: list[str], watermark: int | None, _key: tuple[str, int]) -> None:
        self.watermark = watermark


@pytest.mark.parametrize(
    ("frontiers", "told"),
    [
        ({"a": 7, "b": 5}, 5),
        ({"a": 7}, None),  # one bucket has said nothing yet
        ({"a": 7, "b": -FOREVER}, None),
        ({"a": FOREVER, "b": FOREVER}, None),
        ({"a": 7, "b": EARLIEST}, None),  # nothing is older: that is no news, but looks like lag
    ],
)
def test_a_watermark_is_told_once_it_says_something(
    frontiers: dict[str, int], told: int | None
) -> None:
    parts: Any = _Parts()
    ResultLog(parts, queries=1, senders=2).append([], frontiers, ("q", 1))
    assert parts.watermark == told
