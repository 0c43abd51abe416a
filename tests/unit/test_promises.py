"""What docs/security.md promises, each with the tests that fail without it.

The names are looked up, so that a test that is renamed or deleted is missed here.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

PROMISES = {
    "a statement reaches streams, tables and queries of the database, and nothing else": [
        "spark/test_hostile_statements.py::test_nothing_but_safe_functions_reaches_spark",
        "spark/test_hostile_statements.py::test_a_unit_of_time_is_no_way_in",
        "spark/test_statement_reach.py::test_somebody_has_looked_at_every_function_of_spark",
        "unit/test_hostile_questions.py::test_nothing_but_given_tables_is_asked_about",
    ],
    "a statement does not take the server, however it grows and whatever runs": [
        "unit/test_growth.py::test_what_doubles_at_every_level_is_refused_at_once",
        "unit/test_explosive_functions.py::test_what_explodes_is_refused",
        "unit/test_pattern_times.py::test_no_text_takes_more_steps_than_are_foreseen",
        "spark/test_patterns_of_data.py::test_a_pattern_of_the_data_has_a_bound",
        "processes/test_server_ends.py::test_a_server_ends_in_time_whatever_runs",
    ],
    "only admin decides whom the server contacts": [
        "unit/test_server_security.py::test_who_may_let_the_server_read_a_sensor",
        "unit/test_server_security.py::test_what_a_statement_needs",
    ],
    "a sensor cannot make the server ask another one": [
        "unit/test_stream_type_http.py::test_a_redirection_to_another_server_is_not_followed",
        "unit/test_reach.py::test_a_name_leads_to_no_address_that_was_not_declared",
        "unit/test_reach.py::test_what_was_judged_is_what_is_connected_to",
    ],
    "authority lasts as long as its token": [
        "unit/test_results_http.py::test_who_follows_is_told_that_the_token_has_ended",
        "unit/test_server_tokens.py::test_a_session_ends_with_its_token",
        "browser/test_shell.py::test_a_page_whose_token_is_revoked_gets_no_more_though_it_stays",
    ],
    "limits hold for everybody but admin, and each token has its share": [
        "unit/test_server_security.py::"
        "test_only_admin_may_go_beyond_the_limits_of_the_configuration",
        "unit/test_server_security.py::test_a_token_has_its_share_of_queries",
        "unit/test_server_security.py::test_a_token_has_its_share_of_statements_and_followers",
    ],
    "a database is its user's alone, and secrets are shown to nobody": [
        "unit/test_catalog.py::test_a_new_catalog_can_be_read_by_its_owner_alone",
        "unit/test_secrets.py::test_the_catalog_keeps_the_name_alone",
        "unit/test_secrets.py::test_lines_of_the_log_and_answers_have_no_secrets",
    ],
    "executors that see other files than the driver lose nothing": [
        "processes/test_cluster.py::"
        "test_executors_that_do_not_share_a_folder_are_refused_and_lose_nothing",
        "processes/test_served_cluster.py::"
        "test_a_folder_that_executors_do_not_see_is_refused_at_the_start",
        "unit/test_log_feeds.py::test_rows_that_are_not_where_a_task_looks_are_missed",
        "unit/test_engine.py::test_an_engine_that_does_not_find_its_plans_drops_nothing",
    ],
    "a query goes on after a change of cores, settings and versions": [
        "spark/test_query_buckets.py::test_a_query_goes_on_in_other_numbers_of_buckets",
        "spark/test_spread_joins.py::test_a_running_query_is_spread_and_put_together_again",
        "unit/test_manifest.py::test_another_release_of_the_parser_may_write_predicates_otherwise",
        "unit/test_manifest.py::test_what_is_refused",
        "unit/test_spark_settings.py::test_what_cannot_be_set_is_refused",
        "spark/test_poison_rows.py::"
        "test_a_session_in_which_spark_computes_something_else_is_refused",
        "unit/test_database_folder.py::test_a_newer_folder_is_refused_and_left_as_it_is",
    ],
    "a power cut neither loses nor doubles results": [
        "spark/test_power_cuts.py::test_every_result_is_there_once_or_the_query_says_what_is_wrong",
        "unit/test_checkpoint.py::test_plans_cut_at_every_length",
        "unit/test_checkpoint.py::test_any_of_the_newest_files_are_gone",
    ],
    "one process at a time has a database": [
        "unit/test_lease.py::test_a_second_database_does_not_open_the_same_catalog",
        "unit/test_lease.py::test_who_has_lost_it_changes_nothing",
    ],
    "a row that cannot be computed does not stop its query": [
        "spark/test_poison_rows.py::test_rows_that_cannot_be_computed_are_left_out_and_reported",
        "spark/test_poison_rows.py::test_a_named_query_goes_on_unless_it_is_told_to_stop",
        "unit/test_odd_values.py::test_a_row_with_such_values_that_cannot_be_computed_is_reported",
    ],
    "of two writers in an object store one is the last": [
        "unit/test_log_takeover.py::test_a_writer_is_stopped_in_an_append_while_another_takes_over",
        "unit/test_log_takeover.py::test_two_that_take_over_at_the_same_time",
    ],
    "a clock that jumps does not freeze the times of readings": [
        "unit/test_manager_clock_jumps.py::test_a_jump_that_is_taken_back_is_in_no_reading",
        "unit/test_steady_clock.py::test_a_jump_ahead_that_is_taken_back_holds_nothing",
    ],
    "a full disk loses nothing that was acknowledged": [
        "processes/test_full_disks.py::test_everything_is_on_a_disk_that_gets_full",
        "processes/test_full_disks.py::test_a_part_of_a_database_is_on_a_disk_that_gets_full",
    ],
}


@cache
def functions_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_has_its_tests(promise: str) -> None:
    for test in PROMISES[promise]:
        file, _, name = test.partition("::")
        assert name in functions_in(file), test
