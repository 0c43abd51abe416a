"""DataFrames registered under names for statements; they last as long as the process."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pyspark.sql import DataFrame

from nilometer.errors import InputError, NameTakenError
from nilometer.model.names import nearest
from nilometer.sql.catalog import Relation


class NamedFrames:
    """Streams and tables that are DataFrames; names are case-insensitive."""

    def __init__(self) -> None:
        self._all: tuple[Mapping[str, Relation], Mapping[str, DataFrame]] = ({}, {})
        self._changing = threading.Lock()

    @property
    def all(self) -> tuple[Mapping[str, Relation], Mapping[str, DataFrame]]:
        """The relations and their DataFrames: a snapshot that does not change."""
        return self._all

    def __contains__(self, name: str) -> bool:
        return self._spelled(name) is not None

    def add(self, relation: Relation, frame: DataFrame) -> None:
        """Register a DataFrame under a name."""
        with self._changing:
            relations, frames = self._all
            self._all = ({**relations, relation.name: relation}, {**frames, relation.name: frame})

    def drop(self, name: str) -> None:
        """Unregister a name."""
        with self._changing:
            relations, frames = self._all
            known = self._spelled(name)
            if known is None:
                raise InputError(
                    f"there is no stream or table {name}", hint=nearest(name, relations)
                )
            self._all = (
                {one: relation for one, relation in relations.items() if one != known},
                {one: frame for one, frame in frames.items() if one != known},
            )

    def refuse(self, name: str) -> None:
        """Refuse the name of a DataFrame for anything else."""
        if name in self:
            raise NameTakenError(
                f"DataFrame {name} already exists",
                hint=f'choose another name, or db.drop("{name}") first',
            )

    def require_new(self, name: object, frame: object) -> None:
        """Refuse an invalid or taken name, or anything but a DataFrame."""
        if not isinstance(name, str) or not name:
            raise InputError("a stream or table needs a name", detail=f"got {name!r}")
        if not hasattr(frame, "isStreaming"):
            raise InputError(f"{name} is not a DataFrame", detail=f"got {type(frame).__name__}")
        if name in self:
            raise InputError(
                f"stream or table {name} already exists", hint=f'first db.drop("{name}")'
            )

    def _spelled(self, name: str) -> str | None:
        return next((known for known in self._all[0] if known.lower() == name.lower()), None)
