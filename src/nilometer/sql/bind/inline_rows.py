"""Rows that a statement contains, VALUES, as a static table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import PredicateError, SqlError, SqlTypeError
from nilometer.kernels.arrays import as_type
from nilometer.kernels.evaluate import evaluate
from nilometer.kernels.expression_types import common_of_all
from nilometer.kernels.type_of import type_of
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.ddl.constants import no_column
from nilometer.sql.expressions.compile_scalar import NotInSubsetError, SubsetCompiler
from nilometer.sql.parse.places import place_of


def values_relation(values: exp.Values, sql: str, catalog: Catalog) -> Relation:
    """The static table of VALUES; its columns are named as Spark names them."""
    rows = [_cells(row) for row in values.expressions]
    for tree, row in zip(values.expressions, rows, strict=True):
        if len(row) != len(rows[0]):
            raise SqlError(
                "the rows of VALUES have different lengths",
                place=place_of(tree, sql),
                detail=f"this one has {len(row)}, the first has {len(rows[0])}",
            )
    if not rows[0]:
        raise SqlError(
            "a row of VALUES must have at least one value",
            place=place_of(values, sql),
            hint="write VALUES (1, 'a'), (2, 'b')",
        )
    subset = SubsetCompiler(sql, no_column, catalog.functions, catalog.zone)
    columns = [
        _column(number, [row[number] for row in rows], subset, sql)
        for number in range(len(rows[0]))
    ]
    names = [f"col{number}" for number in range(1, len(columns) + 1)]
    return Relation(
        f"VALUES in column {place_of(values, sql).start + 1}",
        tuple(names),
        tuple(one.type for one in columns),
        clock=StreamClock(ended=True),
        is_table=True,
        rows=pa.RecordBatch.from_arrays(columns, names),
    )


def _cells(row: exp.Expr) -> Sequence[exp.Expr]:
    return row.expressions if isinstance(row, exp.Tuple) else [row]


def _column(number: int, cells: Sequence[exp.Expr], subset: SubsetCompiler, sql: str) -> pa.Array:
    """The values of one column, in a type that can hold all of them."""
    arrays = []
    for cell in cells:
        for node in cell.find_all(exp.Column, exp.Query):
            raise SqlError(
                "VALUES may only contain constants",
                place=place_of(node, sql),
                hint="enclose text in quotes" if isinstance(node, exp.Column) else None,
            )
        try:
            expression = subset.compile(cell)
            type_of(expression, [])
            arrays.append(evaluate(expression, [], 1))
        except NotInSubsetError as error:
            raise SqlError(
                error.message, place=error.place or place_of(cell, sql), hint="write its value"
            ) from None
        except PredicateError as error:
            raise SqlTypeError.at(place_of(cell, sql), error) from None
    try:
        kind = common_of_all([one.type for one in arrays], f"the values in column {number + 1}")
    except PredicateError as error:
        raise SqlTypeError.at(place_of(cells[0], sql), error) from None
    if pat.is_null(kind):
        raise SqlTypeError(
            f"the type of column {number + 1} of VALUES is unknown: it is NULL in every row",
            place=place_of(cells[0], sql),
            hint="give the type once: CAST(NULL AS INT)",
        )
    return pa.concat_arrays([as_type(one, kind) for one in arrays])
