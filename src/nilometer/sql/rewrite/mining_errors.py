"""Errors of table functions, with their position in the statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from nilometer.errors import InstallationError, SqlError
from nilometer.mining.table_function import MiningError
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.places import place_of


@contextmanager
def blamed(call: TableCall, sql: str) -> Iterator[None]:
    """Place the errors of a function at its call, or at the argument to blame."""
    try:
        yield
    except MiningError as error:
        guilty: exp.Expr = next(
            (one for one in call.expressions if one.this == error.argument), call
        )
        raise SqlError.at(place_of(guilty, sql), error) from None
    except InstallationError as error:
        raise SqlError(error.message, place=place_of(call, sql)) from None
