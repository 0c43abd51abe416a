"""What a running query tells about itself."""

from __future__ import annotations

import json

from nilometer.operators.stage import BucketRun


def bucket_metrics(bucket: int, run: BucketRun) -> str:
    """The state of one bucket after a micro-batch, as JSON."""
    buffers = run.operator.buffers
    return json.dumps(
        {
            "bucket": bucket,
            "rows_in": run.traffic.rows_in,
            "rows_out": run.traffic.rows_out,
            "late": run.operator.counters.late,
            "without_time": run.traffic.without_time,
            "buffered": [buffer.rows for buffer in buffers],
            "chunks": [len(buffer.refs) for buffer in buffers],
            "state_bytes": sum(buffer.size for buffer in buffers),
            "watermarks": run.watermarks.marks,
        },
        separators=(",", ":"),
    )
