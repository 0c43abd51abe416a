"""One DuckDB for all tests of a process: to start one takes longer than most questions."""

from __future__ import annotations

from typing import Final

import duckdb

_DATABASE: Final = duckdb.connect()


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of its own; what it registers, sets or makes TEMP is its own, too."""
    return _DATABASE.cursor()
