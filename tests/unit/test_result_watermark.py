"""What the log of results says about how far its query has come."""

import json
from typing import Any

import pytest

from nilometer.kernels.row_errors import RowErrors
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.spark.metrics import progress_metrics
from nilometer.spark.result_log import ResultLog


class _Parts:
    def append(self, _parts: list[str], watermark: int | None, _key: tuple[str, int]) -> None:
        self.watermark = watermark


@pytest.mark.parametrize(
    ("frontiers", "watermark"),
    [
        ({"a": 7, "b": 5}, 5),
        ({"a": 7}, None),  # one bucket has said nothing yet
        ({"a": 7, "b": -FOREVER}, None),
        ({"a": FOREVER, "b": FOREVER}, None),
        (
            {"a": 7, "b": EARLIEST},
            None,
        ),  # nothing is older: nothing new, but it looks like lag
    ],
)
def test_a_watermark_is_written_once_it_says_something(
    frontiers: dict[str, int], watermark: int | None
) -> None:
    parts: Any = _Parts()
    ResultLog(parts, queries=1, senders=2).append([], frontiers, RowErrors(), ("q", 1))
    assert parts.watermark == watermark


@pytest.mark.parametrize(("stated", "expected"), [(EARLIEST, None), (-FOREVER, None), (5, 5)])
def test_a_stream_without_rows_has_no_watermark(stated: int, expected: int | None) -> None:
    bucket = {
        **{name: [0] for name in ("rows", "late", "without_time", "shed", "buffered")},
        "names": ["A"],
        "internal": [False],
        "copies": [1],
        "watermarks": [stated],
        **dict.fromkeys(("results", "state_bytes", "chunks", "bucket"), 0),
        "buckets": 1,
        "look": [0, 0, []],
    }
    report = {"observedMetrics": {"nilometer-x": {"buckets": [json.dumps(bucket)]}}}
    [metrics] = progress_metrics(report)
    assert metrics.streams["A"].watermark == expected
