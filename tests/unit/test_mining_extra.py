"""Without the extra `mining`: what needs none of it works, the rest says what is missing."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from nilometer import mining
from nilometer.errors import InstallationError, NilometerError
from nilometer.local.database import LocalDatabase
from nilometer.mining.registry import MODULES, find_function
from tests.mining_streams import times_of

EXTRA = ("scipy", "sklearn", "threadpoolctl")
ALONE = {"ACCUMULATE", "PATTERNS", "SEQUENCES"}
CURE = "pip install 'nilometer[mining]'"


@pytest.fixture(autouse=True)
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in EXTRA:
        monkeypatch.setitem(sys.modules, package, None)
    find_function.cache_clear()


@pytest.fixture
def database() -> LocalDatabase:
    made = LocalDatabase()
    rows = {"ts": times_of([1, 2, 3, 4]), "v": list("abab"), "counts": [[1.0, 2.0]] * 4}
    made.create_stream("S", pa.table(rows), time="ts")
    return made


@pytest.mark.parametrize("name", sorted(set(MODULES) - ALONE))
def test_functions_say_what_is_missing(name: str) -> None:
    with pytest.raises(InstallationError, match=f"^{name} needs .*: ") as caught:
        find_function(name)
    assert caught.value.message.endswith(CURE)


def test_statements_say_where(database: LocalDatabase) -> None:
    with pytest.raises(NilometerError, match="^PERIODS needs scipy: ") as caught:
        database.sql("SELECT * FROM PERIODS(S [RANGE 1 DAY], value => v, step => 1 MINUTE)")
    assert CURE in str(caught.value)
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM ACCUMULATE(S [RANGE 1 S], value => counts)",
        "SELECT * FROM PATTERNS(S, value => v, period => 2, every => 1 S)",
        "SELECT * FROM SEQUENCES(S, stream => 1, value => v, every => 1 S)",
    ],
)
def test_others_work(statement: str, database: LocalDatabase) -> None:
    assert len(database.sql(statement))


@pytest.mark.parametrize("name", mining.__all__)
def test_operators_say_what_is_missing(name: str) -> None:
    if name in ("FrequentSequences", "PartialPatterns", "RunningTotal"):
        assert getattr(mining, name).__name__ == name
    else:
        with pytest.raises(InstallationError, match="nilometer.mining"):
            getattr(mining, name)
