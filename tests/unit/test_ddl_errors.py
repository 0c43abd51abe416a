"""What is said to statements of the database that cannot be read: all of it, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.errors import NilometerError
from nilometer.sql.statements import read_query, read_statements

ERRORS = Path(__file__).parents[1] / "sql" / "database_statements.errors"
"""Statements, each with a line of dashes and what is said to it, an empty line between them."""
CASES = [tuple(case.strip().split("\n----\n")) for case in ERRORS.read_text().split("\n\n")]


@pytest.mark.parametrize(("sql", "text"), CASES, ids=[sql for sql, _ in CASES])
def test_errors(sql: str, text: str) -> None:
    with pytest.raises(NilometerError) as refused:
        read_statements(sql)
    assert str(refused.value) == text


def test_places_count_in_the_whole_text() -> None:
    with pytest.raises(NilometerError) as refused:
        read_statements("SHOW STREAMS;\nDROP QUERY q;\n  CREATE TABLE t (a PARSECS)")
    assert "line 3, column 21:" in str(refused.value)


def test_a_query_was_expected() -> None:
    with pytest.raises(NilometerError) as refused:
        read_query("; DROP QUERY q")
    assert str(refused.value) == (
        "this statement is not supported here: DROP\n"
        "  line 1, column 3:\n"
        "    ; DROP QUERY q\n"
        "      ^^^^\n"
        "  detail: expected a query\n"
        "  hint: a query starts with SELECT or WITH, optionally after EXPLAIN"
    )
