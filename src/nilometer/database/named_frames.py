"""DataFrames under names, as statements read them; they go with the process."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pyspark.sql import DataFrame

from nilometer.errors import InputError, NameTakenError
from nilometer.model.names import nearest
from nilometer.sql.catalog import Relation


class NamedFrames:
    """Streams and tables that are DataFrames; names differ in more than their case."""

    def __init__(self) -> None:
        self._all: tuple[Mapping[str, Relation], Mapping[str, DataFrame]] = ({}, {})
        self._changing = threading.Lock()

    @property
    def all(self) -> tuple[Mapping[str, Relation], Mapping[str, DataFrame]]:
        """What they are, and the DataFrames; who has got these keeps them as they are."""
        return self._all

    def __contains__(self, name: str) -> bool:
        return self._spelled(name) is not None

    def add(self, relation: Relation, frame: DataFrame) -> None:
        """Give a DataFrame a name."""
        with self._changing:
            relations, frames = self._all
            self._all = ({**relations, relation.name: relation}, {**frames, relation.name: frame})

    def drop(self, name: str) -> None:
        """Forget a name."""
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
        """Refuse to call something else by the name of a DataFrame."""
        if name in self:
            raise NameTakenError(
                f"there is a DataFrame {name} already",
                hint=f'choose another name, or db.drop("{name}") first',
            )

    def require_new(self, name: object, frame: object) -> None:
        """Refuse a name that cannot be given, or what is no DataFrame."""
        if not isinstance(name, str) or not name:
            raise InputError("a stream or table needs a name", detail=f"got {name!r}")
        if not hasattr(frame, "isStreaming"):
            raise InputError(f"{name} is not a DataFrame", detail=f"got {type(frame).__name__}")
        if name in self:
            raise InputError(
                f"there is already a stream or table {name}", hint=f'first db.drop("{name}")'
            )

    def _spelled(self, name: str) -> str | None:
        return next((known for known in self._all[0] if known.lower() == name.lower()), None)
