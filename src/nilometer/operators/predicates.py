"""A predicate over candidate rows, as the join tests it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nilometer.errors import PredicateError
from nilometer.kernels.arrays import Bools
from nilometer.kernels.row_errors import Rows, passing
from nilometer.model.expressions import Expression


@dataclass(frozen=True)
class SqlTest:
    """A compiled condition."""

    sql: str
    expression: Expression

    names: tuple[str, ...] = ()
    """The names of the columns."""

    def __call__(self, columns: Sequence[pa.Array], counted: Bools | None = None) -> Bools:
        rows = Rows(columns, len(columns[0]), self.names, counted=counted)
        try:
            return passing(self.expression, rows, self.sql)
        except PredicateError as error:
            detail = "; ".join(part for part in (error.detail, f"in: {self.sql}") if part)
            raise PredicateError(error.message, detail=detail, hint=error.hint) from None
