"""A server's session on a cluster that grows: python -m tests.processes.late_workers_process."""

from __future__ import annotations

import sys

from nilometer.spark.default_buckets import default_buckets
from nilometer.spark.session import start_in_background
from nilometer.spark.workers import require_workers
from tests.patience import wait_for

WORKERS = 3
SETTINGS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}


def main(url: str) -> None:
    """Tell how many buckets a query would get at first, and when all workers are there."""
    session = start_in_background(
        name="late", cores=None, config=SETTINGS, said=lambda _: None, master=url
    )()
    context = session.sparkContext
    require_workers(session)
    print(default_buckets(session), flush=True)  # noqa: T201
    wait_for(lambda: context.defaultParallelism >= WORKERS)
    print(default_buckets(session.newSession()), default_buckets(session), flush=True)  # noqa: T201
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
