"""One DuckDB for all tests of a process: starting one takes longer than most queries."""

from __future__ import annotations

from typing import Final

import duckdb

_DATABASE: Final = duckdb.connect()


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of its own; what it registers, sets or creates as TEMP is its own, too."""
    return _DATABASE.cursor()
