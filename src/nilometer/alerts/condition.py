"""The conditions of an alert, evaluated over rows in the sandbox for queries about the past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from nilometer.alerts.definition import AlertDefinition
from nilometer.errors import SqlError, SqlSyntaxError, SqlTypeError, TimeLimitError, TooLargeError
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.model.names import find_column
from nilometer.past.ask import prepare_question
from nilometer.past.guarded import AnySandbox
from nilometer.past.question import goes_on
from nilometer.past.sandbox import AnswerLimits
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.past.stored import FixedTable

_DIALECT: Final = "spark"
_PLACE: Final = "nilometer place"
"""A column with the positions of rows, so that answers can come in any order."""
_LIMITS: Final = AnswerLimits(seconds=2.0)
_REFUSED: Final = (exp.Query, exp.Subquery, exp.AggFunc, exp.Window, exp.Unnest, exp.Explode)
_EXAMPLE: Final = "write a condition on the columns of one row, such as v > 50"


@dataclass(frozen=True)
class Signs:
    """The signs of rows, by position; rows that cannot be evaluated have none."""

    places: Int64s
    fires: Bools
    clears: Bools
    failed: int = 0
    """How many rows could not be evaluated, and"""
    error: str | None = None
    """why the last of them could not."""


class Condition:
    """WHEN, and CLEAR WHEN, of one alert over rows of one schema."""

    def __init__(self, sandbox: AnySandbox, alert: AlertDefinition, schema: pa.Schema) -> None:
        """Raises if the conditions cannot be evaluated over such rows."""
        self._sandbox = sandbox
        self.schema = schema
        self.per = tuple(
            schema.names[find_column(alert.source, schema.names, one)] for one in alert.per
        )
        texts = [one for one in (alert.condition, alert.clear) if one is not None]
        trees = [read_condition(one) for one in texts]
        self.columns = _columns(trees, schema)
        """The columns that the conditions name."""
        self._sql = self._prepared(trees, texts) if trees else None
        """None: there is no condition, so a row only shows that it arrived."""

    def _prepared(self, trees: list[exp.Expr], texts: list[str]) -> str:
        """The query that evaluates conditions over rows."""
        sandbox, schema = self._sandbox, self.schema
        chosen = [exp.alias_(exp.Paren(this=one), f"sign{at}") for at, one in enumerate(trees)]
        place = exp.column(exp.to_identifier(_PLACE, quoted=True))
        tree = exp.select(place, *chosen).from_(exp.to_table(exp.to_identifier("rows").sql()))
        empty = self._placed(schema.empty_table())
        try:
            question = prepare_question(sandbox, tree, texts[0], {"rows": FixedTable(empty)})
        except SqlError as error:  # its position would be one in this query's text
            raise type(error)(error.message, detail=error.detail, hint=error.hint) from None
        nulls = pa.table([pa.nulls(1, one.type) for one in schema], schema=schema)
        answer = sandbox.run(question.sql, {"rows": self._placed(nulls)}, _LIMITS).schema
        for text, kind in zip(texts, answer.types[1:], strict=True):
            if not pa.types.is_boolean(kind):
                raise SqlTypeError(
                    "the condition of an alert must be true or false",
                    detail=f"{text} is a {kind}",
                    hint=_EXAMPLE,
                )
        return question.sql

    def evaluate(self, rows: pa.Table) -> Signs:
        """The signs of rows; those that fail are left out, and counted."""
        if self._sql is None:
            none = np.zeros(len(rows), np.bool_)
            return Signs(np.arange(len(rows)), none, ~none)
        parts: list[pa.Table] = []
        failed, error = 0, None
        for part in self._parts(self._sql, self._placed(rows)):
            if isinstance(part, pa.Table):
                parts.append(part)
            else:
                failed += part[0]
                error = part[1]
        if not parts:
            none = np.zeros(0, np.bool_)
            return Signs(np.zeros(0, np.int64), none, none, failed, error)
        signs = pa.concat_tables(parts).sort_by(_PLACE)
        fires = _true(signs.column(1))
        clears = _true(signs.column(2)) & ~fires if signs.num_columns > 2 else ~fires
        return Signs(signs.column(0).to_numpy(), fires, clears, failed, error)

    def _parts(self, sql: str, rows: pa.Table) -> Iterator[pa.Table | tuple[int, str]]:
        """The answers for rows; if some cannot be evaluated, for halves of them."""
        if not len(rows):
            return
        try:
            yield self._sandbox.run(sql, {"rows": rows}, _LIMITS)
        except (TimeLimitError, TooLargeError) as error:
            yield len(rows), error.message
        except SqlError as error:
            if len(rows) == 1:
                yield 1, error.message
                return
            half = len(rows) // 2
            yield from self._parts(sql, rows.slice(0, half))
            yield from self._parts(sql, rows.slice(half))

    @staticmethod
    def _placed(rows: pa.Table) -> pa.Table:
        return rows.append_column(_PLACE, pa.array(np.arange(len(rows))))


def read_condition(text: str) -> exp.Expr:
    """Parse a condition, which must be about a single row."""
    with sqlglot_errors("cannot read the condition", SqlSyntaxError, _EXAMPLE):
        tree: Any = sqlglot.parse_one(f"SELECT {text}", read=_DIALECT)
    is_plain = isinstance(tree, exp.Select) and len(tree.expressions) == 1
    others = [key for key, one in tree.args.items() if one and key != "expressions"]
    if not is_plain or others or isinstance(tree.expressions[0], exp.Alias | exp.Star):
        raise SqlSyntaxError("expected a condition", detail=f"got {text}", hint=_EXAMPLE)
    condition: exp.Expr = tree.expressions[0]
    if any(isinstance(one, _REFUSED) for one in condition.walk()) or goes_on(condition):
        raise SqlError(
            "the condition of an alert must be an expression over one row",
            detail=f"got {text}",
            hint="compute aggregates in a query, and alert on its results",
        )
    return condition


def _columns(trees: list[exp.Expr], schema: pa.Schema) -> tuple[str, ...]:
    names = {one.name.lower() for tree in trees for one in tree.find_all(exp.Identifier)}
    return tuple(one for one in schema.names if one.lower() in names)


def _true(column: pa.ChunkedArray) -> Bools:
    return np.asarray(column.fill_null(False).to_numpy(), np.bool_)
