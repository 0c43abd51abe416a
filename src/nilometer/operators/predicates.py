"""Predicates over candidate rows: SQL that is evaluated here, and functions of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Bools
from nilometer.kernels.evaluate import is_true
from nilometer.model.expressions import Expression


@dataclass(frozen=True)
class SqlTest:
    """A compiled SQL condition."""

    sql: str
    expression: Expression

    def __call__(self, columns: Sequence[pa.Array]) -> Bools:
        try:
            return is_true(self.expression, columns)
        except PredicateError as error:
            raise PredicateError(error.message, detail=f"in: {self.sql}", hint=error.hint) from None


@dataclass(frozen=True)
class PythonTest:
    """A user's function over pandas Series, one per column, that says which rows pass."""

    name: str
    function: Callable[..., Any]

    def __call__(self, columns: Sequence[pa.Array]) -> Bools:
        series = [column.to_pandas() for column in columns]
        try:
            answer = self.function(*series)
        except Exception as error:
            raise PredicateError(
                f"the predicate {self.name} raised {type(error).__name__}: {error}",
                detail=f"it was given {len(columns[0])} rows of {len(columns)} columns",
                hint="it gets one pandas Series per column, like a pandas UDF",
            ) from error
        return self._checked(answer, len(columns[0]))

    def _checked(self, answer: Any, rows: int) -> Bools:
        values = np.asarray(answer)
        if values.shape != (rows,):
            got = f"{len(values)} values" if values.ndim == 1 else f"a {type(answer).__name__}"
            raise PredicateError(
                f"the predicate {self.name} returned {got} for {rows} rows",
                hint="it must return one boolean per row, in the same order",
            )
        if values.dtype == np.object_:
            values = np.array([False if v is None else v for v in values])
        if values.dtype != np.bool_ and rows:
            raise PredicateError(
                f"the predicate {self.name} returned values of type {values.dtype}",
                hint="it must return booleans, such as (a - b).abs() < 3",
            )
        return values.astype(np.bool_)
