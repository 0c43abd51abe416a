"""Versions of packages that would give wrong answers, or none, are refused when they are met."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sqlglot

from nilometer.errors import InstallationError
from nilometer.sql.parse.check_sqlglot import check_sqlglot

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


def test_a_spark_that_is_too_old_is_refused_before_anything_of_it_is_used() -> None:
    script = "import pyspark.version as v; v.__version__ = '3.5.8'; import nilometer.spark"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "SessionError: Spark 3.5.8 is too old" in ended.stderr
    assert "nilometer/spark/versions.py" not in ended.stderr
