"""How many buckets queries get: a number of the database, or the cores that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from nilometer.database.bucket_options import idle_cores
from nilometer.database.compiler import Compiler
from nilometer.database.home import Home
from nilometer.database.known import Reading
from nilometer.errors import InputError
from nilometer.kernels.routing import MOST_BUCKETS
from nilometer.sensors.catalog.stored_queries import HOSTED, NamedQuery, QueryState
from nilometer.server.config import read_config
from nilometer.spark.default_buckets import cores_of, default_buckets
from nilometer.sql.statements import read_query
from nilometer.upkeep.check import check_database
from nilometer.upkeep.kept_buckets import BUCKETS_FILE

QUERY = "SELECT id FROM VALUES (1) AS T(id)"


class Cluster:
    """What a session tells of its cluster, as far as it is asked here."""

    _sc = True

    def __init__(
        self, executors: int, master: str = "spark://h:7077", settings: Any = None, **own: str
    ) -> None:
        self.executors = executors
        self.master = master
        self._settings = settings or {}
        self._own = {"spark.nilometer.bucketsAreCores": "true", **own}

    @property
    def conf(self) -> Cluster:
        return self

    @property
    def sparkContext(self) -> Cluster:
        return self

    @property
    def defaultParallelism(self) -> int:
        return max(2, 2 * self.executors)

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._own.get(name, default)

    def getConf(self) -> SparkConf:
        return SparkConf(loadDefaults=False).setAll(list(self._settings.items()))


def cluster(*given: Any, **own: Any) -> Any:
    return Cluster(*given, **own)


def test_executors_that_come_late_count_for_queries_that_are_created_later() -> None:
    session = cluster(1)
    assert default_buckets(session) == 2
    session.executors = 6
    assert default_buckets(session) == cores_of(session) == 12


def test_what_was_said_of_spark_counts_whatever_the_cores() -> None:
    said = {"spark.nilometer.bucketsAreCores": None, "spark.sql.shuffle.partitions": "5"}
    assert default_buckets(cluster(6, **said)) == 5


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_executors_that_were_asked_for_count_before_they_are_there(master: str) -> None:
    asked = {"spark.executor.instances": "4", "spark.executor.cores": "3"}
    assert default_buckets(cluster(1, master, asked)) == 12
    assert default_buckets(cluster(9, master, asked)) == 18
    assert default_buckets(cluster(1, "spark://h:7077", asked)) == 2
    dynamic = {**asked, "spark.dynamicAllocation.enabled": "true"}
    assert default_buckets(cluster(2, master, dynamic)) == 4


def test_there_is_a_most() -> None:
    assert default_buckets(cluster(5_000)) == MOST_BUCKETS


def test_a_database_remembers_its_number(tmp_path: Path) -> None:
    for given, kept in ((None, None), (6, 6), (None, 6), (8, 8), (None, 8)):
        home = Home(tmp_path, None, None, lambda *_: set(), buckets=given)
        assert home.buckets == kept
        home.close()
    assert not check_database(tmp_path).problems
    (tmp_path / BUCKETS_FILE).write_bytes(b"9\ncrc32 00000000\n")
    assert [one.where for one in check_database(tmp_path).problems] == [
        str(tmp_path / BUCKETS_FILE)
    ]
    with pytest.raises(InputError, match="is damaged"):
        Home(tmp_path, None, None, lambda *_: set())
    with pytest.raises(InputError, match="a database cannot have 1025 buckets"):
        Home(tmp_path, None, None, lambda *_: set(), buckets=1025)
    Home(tmp_path, None, None, lambda *_: set(), buckets=8).close()


def test_the_configuration_says_it(tmp_path: Path) -> None:
    file = tmp_path / "nilometer.toml"
    file.write_text("[queries]\nbuckets = 6\n")
    assert read_config(file).queries.buckets == 6
    file.write_text("[queries]\nbuckets = 0\n")
    with pytest.raises(InputError, match=r"queries\.buckets cannot be 0"):
        read_config(file)


@pytest.mark.parametrize(("asked", "kept", "got"), [(3, 6, 3), (None, 6, 6), (None, None, 4)])
def test_a_statement_comes_before_the_database_and_that_before_the_cluster(
    asked: int | None, kept: int | None, got: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.database.compiler.use_here", lambda _: None)
    session: SparkSession = cluster(2)
    compiler = Compiler(session, None, lambda: None, kept)
    assert compiler._to_compile(read_query(QUERY), Reading(), asked)[2] == got


def test_a_query_that_leaves_half_of_the_cores_idle_is_reported() -> None:
    def query(**options: Any) -> NamedQuery:
        return NamedQuery("q", QUERY, "append", QueryState.RUNNING, 0, None, options)

    assert idle_cores(query(buckets=2), 12) == (
        "Cores: 12 are there now, and at most 2 of them work for this query; "
        "ALTER QUERY q SET (buckets = 12) gives it more"
    )
    assert idle_cores(query(buckets=8), 12) is None
    assert idle_cores(query(buckets=1, **{HOSTED: "id"}), 12) is None
