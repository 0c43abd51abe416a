"""Versions of packages that would give wrong answers, or none, are refused when they are met."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyspark.version
import pytest
import sqlglot

from nilometer.errors import InstallationError
from nilometer.spark.check_spark import check_spark
from nilometer.sql.check_sqlglot import check_sqlglot

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
MISREAD = sqlglot.parse_one("(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3")
"""As sqlglot before 30.26 read it without the brackets."""


def test_a_parser_that_misreads_set_operators_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_sqlglot()
    monkeypatch.setattr(sqlglot, "parse_one", lambda sql, read: MISREAD)
    with pytest.raises(InstallationError, match="it misreads A UNION B INTERSECT C") as caught:
        check_sqlglot()
    needed = next(one for one in PROJECT["dependencies"] if one.startswith("sqlglot"))
    assert caught.value.hint == f"pip install '{needed}'"


@pytest.mark.parametrize("version", ["4.0.0", "4.3.0.dev1", "10.1"])
def test_newer_sparks_are_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark.version, "__version__", version)
    check_spark()


def test_a_spark_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark.version, "__version__", "3.5.8")
    with pytest.raises(InstallationError, match="Spark 3.5.8 is too old"):
        check_spark()
