"""What a statement did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from nilometer.errors import InputError, LimitError, Place, SqlError
from nilometer.sql.ddl.nodes import ObjectKind


class Action(StrEnum):
    """What happened to a named thing."""

    CREATED = "created"
    ROWS_CHANGED = "rows changed"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Change:
    """A change that others may have to be notified of."""

    kind: ObjectKind
    name: str
    """The name as declared."""
    action: Action


@dataclass(frozen=True)
class Outcome:
    """A sentence for the user, and rows if the statement returns some."""

    message: str
    rows: pa.Table | None = None
    change: Change | None = None
    """None: nothing has changed."""


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Add this place to refusals that have none."""
    try:
        yield
    except SqlError as error:
        if error.place is not None:
            raise
        raise type(error).at(place, error) from None
    except LimitError:
        raise  # nothing is wrong with the statement
    except InputError as error:
        raise SqlError.at(place, error) from None
