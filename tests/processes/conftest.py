"""What tests of other processes share with those of one session: that session."""

from __future__ import annotations

import pytest

from tests.spark.conftest import spark  # noqa: F401  a fixture


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/processes" in str(item.path):
            item.add_marker(pytest.mark.spark)
