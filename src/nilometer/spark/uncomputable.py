"""Finds, in Spark itself, rows that Spark cannot compute, so that they can be left out.

Spark has no expression that tests whether another one fails. But `try_add` of a date is NULL
wherever its second argument fails, whatever that argument is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from nilometer.errors import PredicateError
from nilometer.kernels.json_values import python_value
from nilometer.kernels.row_errors import LONGEST, RowError, RowErrors

FAILED: Final = "_nilometer_failed"
"""A column with the number of the first expression that fails in a row; NULL: none does."""
ROW: Final = "_nilometer_row"
"""A column with the row that fails, as JSON."""

# The condition always holds, but Spark does not know: otherwise it would compute common
# subexpressions before, and outside of, all of them.
_FAILS: Final = (
    "try_add(DATE'1970-01-01', CASE WHEN spark_partition_id() >= 0 THEN hash({}) & 1 END) IS NULL"
)


_DECODE: Final = (
    "make_valid_utf8(x) replaces what is not text, try_validate_utf8(x) returns NULL instead"
)


@dataclass(frozen=True)
class Check:
    """An expression that may fail."""

    sql: str
    is_nested: bool = False
    """Whether its type has no hash."""
    is_condition: bool = False
    """Whether the expressions after it are computed only where it holds."""

    @property
    def fails(self) -> str:
        """A condition that holds if it fails."""
        return _FAILS.format(f"CAST({self.sql} AS STRING)" if self.is_nested else self.sql)


def is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | MapType | StructType)


def mark_failed(rows: DataFrame, checks: Sequence[Check], shown: Sequence[str]) -> DataFrame:
    """The same rows, with FAILED and ROW as last columns; ROW shows these expressions."""
    cases = []
    for number, check in enumerate(checks):
        cases.append(f"WHEN {check.fails} THEN {number}")
        if check.is_condition:
            cases.append(f"WHEN NOT coalesce({check.sql}, false) THEN NULL")
    marked = rows.selectExpr("*", f"CAST(CASE {' '.join(cases)} END AS INT) AS {FAILED}")
    as_json = f"CASE WHEN {FAILED} IS NOT NULL THEN to_json(struct({', '.join(shown)})) END"
    return marked.selectExpr("*", f"{as_json} AS {ROW}")


def unless_failed(sql: str) -> str:
    """An expression that is computed only in rows in which nothing fails."""
    return f"CASE WHEN {FAILED} IS NULL THEN {sql} END"


def leave_out_failed(
    rows: pa.RecordBatch, texts: Sequence[str], errors: RowErrors, stream: str | None = None
) -> pa.RecordBatch:
    """The rows in which nothing fails, without the two columns; the others are recorded.

    Spark lets bytes that are no text pass as one, and nobody could read such a row.
    """
    if FAILED not in rows.schema.names:
        if unreadable := _unreadable(rows):
            raise PredicateError(unreadable[0][1], hint=_DECODE)
        return rows
    failed = rows.column(FAILED)
    own = rows.drop_columns([FAILED, ROW])
    if unreadable := _unreadable(own):
        for place, reason in unreadable:
            errors.note(RowError(stream, reason, _shown(own, place)))
        kept = np.ones(len(rows), np.bool_)
        kept[[place for place, _ in unreadable]] = False
        own, rows = own.filter(pa.array(kept)), rows.filter(pa.array(kept))
        failed = rows.column(FAILED)
    if failed.null_count == len(failed):
        return own
    bad = rows.filter(failed.is_valid())
    for number, row in zip(bad.column(FAILED).to_pylist(), bad.column(ROW), strict=True):
        reason = f"Spark cannot compute {texts[number]}"[:LONGEST]
        errors.note(RowError(stream, reason, (row.as_py() or "")[:LONGEST]))
    return own.filter(failed.is_null())


def _unreadable(rows: pa.RecordBatch) -> list[tuple[int, str]]:
    """The rows with texts that are not UTF-8, and where these are."""
    reasons: dict[int, str] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if pa.types.is_primitive(column.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for place in range(len(column)):
                if _is_no_text(column[place]):
                    reasons[place] = f"a text of {name} is not UTF-8"
    return sorted(reasons.items())


def _is_no_text(one: pa.Scalar) -> bool:
    try:
        one.as_py()
    except UnicodeDecodeError:
        return True
    except (OverflowError, ValueError):  # such as a date beyond the year 9999
        return False
    return False


def _shown(rows: pa.RecordBatch, place: int) -> str:
    """A row, as JSON."""
    names = rows.schema.names
    values = {n: python_value(c[place]) for n, c in zip(names, rows.columns, strict=True)}
    return json.dumps(values, default=str, ensure_ascii=False)[:LONGEST]
