"""A predicate over candidate rows, as the join asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Bools
from nilometer.kernels.evaluate import is_true
from nilometer.model.expressions import Expression


@dataclass(frozen=True)
class SqlTest:
    """A compiled condition."""

    sql: str
    expression: Expression

    def __call__(self, columns: Sequence[pa.Array]) -> Bools:
        try:
            return is_true(self.expression, columns, len(columns[0]))
        except PredicateError as error:
            detail = "; ".join(part for part in (error.detail, f"in: {self.sql}") if part)
            raise PredicateError(error.message, detail=detail, hint=error.hint) from None
