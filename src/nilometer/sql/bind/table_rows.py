"""Conditions and values over the rows of a table in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, PredicateError, SqlError, SqlTypeError
from nilometer.kernels.evaluate import evaluate, is_true
from nilometer.kernels.read_times import form_of
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.ddl.constants import with_zone
from nilometer.sql.ddl.store_values import store_values
from nilometer.sql.expressions.scalars import ColumnRef, Scalar, column
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.query_text import read_expression
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.row_expressions import RowExpressions

Mask = npt.NDArray[np.bool_]
_NAME = "the table"


@dataclass(frozen=True)
class _NoEngine:
    """No engine: only the dialect's own subset is evaluated."""

    time_zone: str

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        raise SqlError(f"{expressions[0]} cannot be evaluated here")


_CATALOG = Catalog({}, {}, _NoEngine("UTC"))
_ANYWHERE = Catalog({}, {}, _NoEngine(""))
"""A catalog without a time zone."""


def select_rows(
    condition: exp.Expr | None, sql: str, rows: pa.Table, table: str | None = None
) -> Mask:
    """Which rows a condition selects: those where it is true, all without a condition.

    Names are those of the columns, in any case, with or without the table's name.
    """
    if condition is None:
        return np.ones(len(rows), dtype=np.bool_)
    bound = _bind(condition, sql, rows.schema, table, "WHERE")
    test = _expressions(sql, rows.schema, table).test([bound])
    assert test is not None
    with _Failures(bound.place):
        return is_true(test, _columns(rows), len(rows))


def select_rows_text(where: str, rows: pa.Table, table: str | None = None) -> Mask:
    """The same for a condition that was kept as text; all rows if it is empty.

    >>> rooms = pa.table({"Location": ["hall", "roof", None]})
    >>> select_rows_text("location <> 'hall'", rooms).tolist()
    [False, True, False]
    """
    condition = read_expression(where) if where.strip() else None
    return select_rows(condition, where, rows, table)


def compute_values(
    expression: exp.Expr, sql: str, rows: pa.Table, target: pa.Field, table: str | None = None
) -> pa.Array:
    """The values of an expression in all rows, as that column stores them."""
    bound = _bind(expression, sql, rows.schema, table, "SET")
    compiled, _ = _expressions(sql, rows.schema, table).value(bound)
    with _Failures(bound.place):
        values = evaluate(compiled, _columns(rows), len(rows))
        return store_values(values, target.type, form_of(target))


class _Failures:
    """Adds the position to errors caused by the data."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PredicateError):
            raise SqlTypeError.at(self._place, error) from None


def is_evaluated_here(condition: Scalar, columns: Mapping[str, pa.DataType]) -> bool:
    """Whether `select_rows` supports a bound condition over these types in every time zone."""
    kinds = tuple(columns.values())
    names = {ref.stream for ref in condition.columns} or {_NAME}
    sources = tuple(
        Source(name, Relation(name, tuple(columns), kinds, is_table=True), condition.place)
        for name in names
    )
    try:
        RowExpressions(condition.place.sql, _ANYWHERE, sources[0]).test([condition])
    except SqlError:
        return False
    return len(sources) == 1


def _bind(tree: exp.Expr, sql: str, schema: pa.Schema, table: str | None, clause: str) -> Scalar:
    name = table or _NAME
    columns: dict[str, exp.Expr] = {one: column(ColumnRef(name, one)) for one in schema.names}
    unit = FromUnit(name, columns, (), {name: _relation(name, schema)}, table)
    bound = ExpressionBinder(Scope(sql, (unit,)), clause).bind(with_zone(tree, sql))
    return Scalar(bound.tree, place_of(tree, sql))


def _expressions(sql: str, schema: pa.Schema, table: str | None) -> RowExpressions:
    name = table or _NAME
    source = Source(name, _relation(name, schema), Place(sql, 0, 0))
    return RowExpressions(sql, _CATALOG, source)


def _relation(name: str, schema: pa.Schema) -> Relation:
    return Relation(name, tuple(schema.names), tuple(schema.types), is_table=True)


def _columns(rows: pa.Table) -> list[pa.Array]:
    return [_whole(one) for one in rows.columns]


def _whole(values: pa.ChunkedArray) -> Any:
    chunks = values.chunks
    return (
        chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], values.type)])
    )
