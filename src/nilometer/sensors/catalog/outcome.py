"""What a statement did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from nilometer.errors import InputError, LimitError, Place, SqlError
from nilometer.sql.ddl.nodes import Kind


class Action(StrEnum):
    """What happened to something that has a name."""

    CREATED = "created"
    ROWS_CHANGED = "rows changed"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Change:
    """What others may have to be told."""

    kind: Kind
    name: str
    """As it was declared."""
    action: Action


@dataclass(frozen=True)
class Outcome:
    """A sentence for the user, and rows where the statement asks for some."""

    message: str
    rows: pa.Table | None = None
    change: Change | None = None
    """None: everything is as it was."""


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Give refusals that know no place this one."""
    try:
        yield
    except SqlError as error:
        if error.place is not None:
            raise
        raise _copy(type(error), error, place) from None
    except LimitError:
        raise  # nothing is wrong with the statement
    except InputError as error:
        raise _copy(SqlError, error, place) from None


def _copy(kind: type[SqlError], error: SqlError | InputError, place: Place) -> SqlError:
    return kind(error.message, place=place, detail=error.detail, hint=error.hint)
