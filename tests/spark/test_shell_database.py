"""A shell over a database of its own process."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nilometer.commands import follow_results
from nilometer.commands.shell.database_place import DatabasePlace
from nilometer.commands.shell.display import Display, new_console
from nilometer.commands.shell.session import Shell
from nilometer.database import connect
from tests.patience import LONG, wait_for


def test_statements_live_results_and_large_answers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = io.StringIO(), io.StringIO()
    stops = [threading.Event(), threading.Event()]

    @contextmanager
    def signals() -> Iterator[list[threading.Event]]:
        yield stops

    monkeypatch.setattr(follow_results, "stop_signals", signals)
    with connect(spark, path=tmp_path / "plant") as db:
        place = DatabasePlace(db, "the database")
        shell = Shell(place, Display(new_console(out)), new_console(err), is_interactive=True)

        def run(text: str) -> str:
            begun = len(out.getvalue())
            assert shell.run(text.splitlines(keepends=True)), err.getvalue()
            return out.getvalue()[begun:]

        assert "created table T" in run("CREATE TABLE T (k INT); INSERT INTO T VALUES (1), (2);")
        assert "2 rows" in run("SELECT k FROM T;")
        assert "INT" in run("\\d T")
        run("SELECT explode(sequence(1, 20000)) AS n;")
        assert "there are more rows: a shell takes 10,000" in err.getvalue()
        values = "rate = 50, values = 'k=counter(0,1)'"
        run(f"CREATE STREAM A (k BIGINT) FROM synthetic WITH ({values});")
        assert "0" in run("SELECT COUNT(*) AS n FROM A;")  # what is stored: nobody has read it yet
        begun = len(out.getvalue())
        following = threading.Thread(target=run, args=("SELECT k FROM A [RANGE 1 SECOND];",))
        following.start()
        wait_for(lambda: out.getvalue().count("\n", begun) > 5, said=err.getvalue)
        stops[0].set()
        following.join(LONG)
        assert db.query_statuses() == []
        assert not shell.run(["SELECT nothing FROM T;\n"])
        assert "^^^^^^^" in err.getvalue()
