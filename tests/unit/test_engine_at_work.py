"""A query of which worker processes die is found out; others are not blamed."""

from __future__ import annotations

from pathlib import Path

from nilometer.engine.at_work import MOST_DEATHS, AtWork


def test_a_query_of_which_processes_die_in_a_row_is_named(tmp_path: Path) -> None:
    for death in range(1, MOST_DEATHS + 1):
        AtWork(tmp_path).begin("bad")  # and the process is gone
        name = AtWork(tmp_path).died()
        assert name == ("bad" if death == MOST_DEATHS else None)
    assert AtWork(tmp_path).died() is None


def test_a_death_counts_no_more_once_all_has_gone_well(tmp_path: Path) -> None:
    for _ in range(2 * MOST_DEATHS):
        AtWork(tmp_path).begin("good")
        worker = AtWork(tmp_path)
        assert worker.died() is None
        worker.begin("good")
        worker.end()
        worker.all_is_well()


def test_deaths_of_different_queries_are_not_added_up(tmp_path: Path) -> None:
    for number in range(2 * MOST_DEATHS):
        AtWork(tmp_path).begin(f"query {number % 2}")
        assert AtWork(tmp_path).died() is None
