"""TABLESAMPLE (10 PERCENT) as a condition on a hash of the row: the same rows in every run.

A row is taken or left whatever else there is, and the same when it is retracted: an answer is
exactly that of the rows in the sample.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.kernels.function_types import cast_type
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.parse.find_names import find
from nilometer.sql.parse.places import place_of, put_at

_PARTS: Final = 1_000_000
"""A hash is one of so many numbers, of which a sample takes the first."""


def put_samples(tree: exp.Query, sql: str, catalog: Catalog) -> exp.Query:
    """The query with conditions in the place of samples of streams and tables in percent."""
    if tree.find(exp.TableSample) is None:
        return tree
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        _move_to_table(select)
    named = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        sample = table.args.get("sample")
        if sample is None or not isinstance(table.this, exp.Identifier):
            continue
        relation = find(table.this, list(catalog.relations.values()))
        percent = _percent(sample, sql)
        if relation is not None and percent is not None and table.name.lower() not in named:
            _put(table, relation, percent, sample, sql)
    return tree


def _move_to_table(select: exp.Select) -> None:
    """A sample behind the window or the name of the only entry of FROM belongs to that."""
    sample, begin = select.args.get("sample"), select.args.get("from_")
    if sample is None or begin is None or select.args.get("joins"):
        return
    if isinstance(begin.this, exp.Table) and begin.this.args.get("sample") is None:
        select.set("sample", None)
        begin.this.set("sample", sample)


def _percent(sample: exp.TableSample, sql: str) -> Decimal | None:
    """How many rows of a hundred are taken; None if it says something else."""
    percent, method = sample.args.get("percent"), sample.args.get("method")
    if percent is None and method is not None and method.name.upper() == "BERNOULLI":
        percent = sample.args.get("size")
    if percent is None:
        return None
    try:
        value = Decimal(percent.name)
    except InvalidOperation:
        value = Decimal(-1)
    if not 0 <= value <= 100:
        raise SqlError(
            "a sample has 0 to 100 percent of the rows",
            place=place_of(sample, sql),
            hint="write TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
        )
    return value


def _put(
    table: exp.Table, relation: Relation, percent: Decimal, sample: exp.TableSample, sql: str
) -> None:
    """Put a subquery of the rows that a sample takes in the place of a table."""
    values = [_value(*one) for one in zip(relation.columns, relation.types, strict=True)]
    known = [one for one in values if one is not None]
    if not known:
        return
    seed = sample.args.get("seed")
    texts = [exp.Literal.string("0" if seed is None else seed.name), *known]
    row = _call("concat_ws", _call("chr", exp.Literal.number(1)), *texts)
    number = _call("pmod", _call("crc32", _call("md5", row)), exp.Literal.number(_PARTS))
    limit = exp.Literal.number(int(percent * _PARTS / 100))
    inner = table.copy()
    inner.set("sample", None)
    inner.set("alias", None)
    query = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=inner),
        where=exp.Where(this=exp.LT(this=number, expression=limit)),
    )
    alias = table.args.get("alias") or exp.TableAlias()
    if alias.args.get("this") is None:
        alias.set("this", table.this.copy())
    place = place_of(table.this, sql)
    table.replace(put_at(exp.Subquery(this=query, alias=alias.copy()), place))


def _value(name: str, kind: pa.DataType | None) -> exp.Expr | None:
    """A column as a text, or what is one to concat_ws; None if it has none everywhere."""
    if kind is None or pat.is_nested(kind) or pat.is_binary(kind):
        return None
    column = exp.column(exp.to_identifier(name, quoted=True))
    if pat.is_timestamp(kind) and kind.tz:
        return _call("unix_micros", column)
    return column if cast_type(kind, pa.string()) is not None else None


def _call(name: str, *operands: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(operands))
