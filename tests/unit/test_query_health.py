"""What is seen of queries out of reports about their micro-batches."""

from __future__ import annotations

from typing import Any

from nilometer.database.health import HealthHistory
from nilometer.database.result_size import ResultSize

SECOND = 1_000_000


def report(batch: int, second: int) -> dict[str, Any]:
    return {
        "batchId": batch,
        "timestamp": f"1970-01-01T00:00:{second:02d}.000+00:00",
        "durationMs": {"addBatch": 1, "triggerExecution": 1},
        "observedMetrics": {},
    }


def test_results_count_that_are_there_before_their_micro_batch_is_reported() -> None:
    history = HealthHistory()
    history.begin(ResultSize(rows=1000))
    first = report(0, 10)
    [made] = history.add([first], ResultSize(rows=1000), 10 * SECOND, 500)
    assert made.output_rows_per_second == 0
    assert history.add([first], ResultSize(rows=1030), 11 * SECOND, 500) == []
    assert history.add([first], ResultSize(rows=1040), 12 * SECOND, 500) == []
    [made] = history.add([report(1, 14)], ResultSize(rows=1040), 15 * SECOND, 500)
    assert made.output_rows_per_second == 10  # 40 in four seconds
    [made] = history.add([report(2, 15)], ResultSize(rows=1045), 16 * SECOND, 500)
    assert made.output_rows_per_second == 5


def test_a_run_that_begins_anew_does_not_count_what_was_there() -> None:
    history = HealthHistory()
    history.begin(ResultSize(rows=5))
    history.add([report(0, 10)], ResultSize(rows=10), 10 * SECOND, 500)
    history.begin(ResultSize(rows=500))
    [made] = history.add([report(1, 20)], ResultSize(rows=520), 20 * SECOND, 500)
    assert made.output_rows_per_second == 2
