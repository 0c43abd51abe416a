"""Whatever a statement says, what Spark is given calls safe functions and reads no tables or files.

The judge is Spark's own parser.
"""

from __future__ import annotations

import json
import random

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.sql.expressions import scalars
from nilometer.sql.expressions.spark_text import safe_functions
from tests.hostile_statements import hostile_statement
from tests.queries import RELATIONS, SCHEMA

KNOWN = {"similar"}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All texts that statements would have Spark read."""
    texts: list[str] = []
    require = scalars.require_safe_text

    def listen(text: str, called: tuple[str, ...] = ()) -> str:
        texts.append(require(text, called))
        return text

    monkeypatch.setattr(scalars, "require_safe_text", listen)
    return texts


def database(spark: SparkSession) -> nm.Database:
    db = nm.connect(spark)
    for name in RELATIONS:
        db.create_stream(name, spark.createDataFrame(SCHEMA.empty_table()), time="ts")
    return db


class Judge:
    """Reads expressions as Spark does, and says what they call."""

    def __init__(self, spark: SparkSession) -> None:
        self._parser = spark._jsparkSession.sessionState().sqlParser()
        self.judged = 0
        self._seen: set[str] = set()

    def judge(self, text: str) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        try:
            tree = json.loads(self._parser.parseExpression(text).toJSON())
        except Exception:  # what Spark cannot read it does not run
            return
        self.judged += 1
        for node in tree:
            kind = node["class"].rpartition(".")[2]
            assert "Subquery" not in kind, text
            assert "Relation" not in kind, text
            if kind == "UnresolvedFunction":
                names = [part.lower() for part in _parts(node["nameParts"])]
                assert len(names) == 1, text
                assert names[0] in safe_functions() | KNOWN | set("+-*/%&|^<>=!~"), text
            if kind == "UnresolvedAttribute":
                assert "_metadata" not in _parts(node["nameParts"])[:1], text


def _parts(value: object) -> list[str]:
    """Spark writes a list of names as text: [a, b]."""
    return value if isinstance(value, list) else str(value).strip("[]").split(", ")


def run(spark: SparkSession, said: list[str], cases: int, seed: int) -> tuple[int, int]:
    """How many statements were accepted, and how many texts of theirs Spark can read."""
    db, judge, chance, accepted = database(spark), Judge(spark), random.Random(seed), 0
    for _ in range(cases):
        said.clear()
        try:
            db.explain(hostile_statement(chance))
            accepted += 1
        except NilometerError:
            pass
        for text in said:
            judge.judge(text)
    return accepted, judge.judged


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_but_safe_functions_reaches_spark(
    spark: SparkSession, said: list[str], seed: int
) -> None:
    accepted, judged = run(spark, said, 1000, seed)
    assert accepted > 50
    assert judged > 25


HOLES = (
    "SELECT concat(extract('day FROM current_date()), "
    r"reflect(\'java.lang.System\',\'getProperty\',\'user.dir\'), "
    "extract(day' FROM current_date())) AS x FROM R0",
    "SELECT concat(extract('day FROM current_date()), "
    "(SELECT max(value) FROM text.`/etc/passwd`), "
    "extract(day' FROM current_date())) AS x FROM R0",
)
"""They were open once: a read token ran Java and read any file."""


@pytest.mark.parametrize("hole", HOLES, ids=["runs Java", "reads a file"])
def test_a_unit_of_time_is_no_way_in(spark: SparkSession, hole: str) -> None:
    with pytest.raises(NilometerError, match="this cannot be passed to Spark"):
        database(spark).sql(hole)


@pytest.mark.soak
@pytest.mark.limit(3600)
@pytest.mark.parametrize("part", range(20))
def test_nothing_but_safe_functions_reaches_spark_in_a_million(
    spark: SparkSession, said: list[str], part: int
) -> None:
    """Parts of 50 000 statements, each a test of its own: together they are a million."""
    run(spark, said, 50_000, seed=random.randrange(1 << 30))
