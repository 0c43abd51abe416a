"""A pytest plugin that writes events to a file, one JSON object a line, for `tests/__main__.py`.

It runs where tests are handed out, not where they run, so it outlives a test that ends its
process.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.processor_time import REPORTED

FILE: Final = "NILOMETER_TEST_PROGRESS"


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # the options are passed on to where tests run
        config.pluginmanager.unregister(name="tests.report_progress")


def pytest_xdist_node_collection_finished(node: object, ids: list[str]) -> None:
    _tell(event="collected", tests=len(ids))


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(event="began", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _tell(
        event="ran",
        test=report.nodeid,
        when=report.when,
        outcome=report.outcome,
        seconds=report.duration,
        processor=getattr(report, REPORTED, 0.0),
    )


def pytest_runtest_logfinish(nodeid: str) -> None:
    _tell(event="ended", test=nodeid)


def _tell(**fields: object) -> None:
    with Path(os.environ[FILE]).open("a") as file:
        file.write(json.dumps(fields) + "\n")
