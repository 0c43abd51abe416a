"""A query over stored data that many can answer together, each from a part of one table's rows.

    SELECT k, AVG(v) FROM A WHERE v > 0 GROUP BY k        the query
    SELECT k, SUM(v), COUNT(v) FROM A WHERE v > 0 GROUP BY 1    run on each part of A
    SELECT k, SUM(sums) / SUM(counts) FROM parts GROUP BY k     run on their answers

Both are DuckDB queries, built from the tree of the query and checked as it was. DuckDB itself says
which functions compute with one row alone. What cannot be split stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.past.guarded import AnySandbox
from nilometer.past.part_forms import AGGREGATES, NotInPartsError, PartForm, forms_of
from nilometer.past.part_trees import PART_COLUMN, PARTS
from nilometer.past.question import PastQuestion, duckdb_text, is_direct
from nilometer.past.sandbox import AnswerLimits

_UP: Final = (exp.CTE, exp.From, exp.Join, exp.Select, exp.SetOperation, exp.Subquery, exp.With)
_SAME_IN_ARROW: Final = frozenset(
    {
        *("BIGINT", "BLOB", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INTEGER", "INTERVAL"),
        *("SMALLINT", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TINYINT", "VARCHAR", "HUGEINT"),
        *("UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT"),
    }
)
"""Types that Arrow can return; a HUGEINT comes back as a decimal number."""


_NOTHING: Final = AnswerLimits(rows=0, seconds=20)


@dataclass(frozen=True)
class PartedQuestion:
    """A query split in two."""

    large: str
    """The table that is divided into parts."""
    part: str
    """The query that is run on a part."""
    schema: pa.Schema
    """The columns of its answer."""
    whole: str
    """The query that is run on all answers together, as the table PARTS."""
    part_tables: frozenset[str]
    """Other tables that each part's query reads, each as a whole."""
    whole_tables: frozenset[str]


def ask_in_parts(
    sandbox: AnySandbox,
    question: PastQuestion,
    large: str,
    empty: Mapping[str, pa.Table],
    most_rows: int | None = None,
) -> PartedQuestion:
    """How a query is run on parts of a table, when this many rows are wanted.

    `empty` are tables like those of the query, without rows. NotInPartsError says why not.
    """
    try:
        return _Splitting(sandbox, question, large, empty, most_rows).split()
    except SqlError as error:  # a query made from it is refused: then it is not split
        raise NotInPartsError(f"its parts could not be queried: {error.message}") from None


@dataclass(frozen=True)
class _Splitting:
    sandbox: AnySandbox
    question: PastQuestion
    large: str
    empty: Mapping[str, pa.Table]
    most_rows: int | None

    def split(self) -> PartedQuestion:
        if PARTS in self.empty:
            raise NotInPartsError(f"it reads a table called {PARTS}")
        tree = self.question.tree.copy()
        _put_common_tables_in(tree, self.large)
        entries = [one for one in tree.find_all(exp.Table) if one.name == self.large]
        if len(entries) != 1:
            raise NotInPartsError("it reads the same large table more than once")
        levels = list(_levels(entries[0]))
        refused: NotInPartsError | None = None
        for select, entry in reversed(levels):
            try:
                return self._split_at(tree, select, entry)
            except NotInPartsError as error:
                refused = refused or error
        raise refused or NotInPartsError("it reads its large table in a condition")

    def _split_at(self, tree: exp.Query, select: exp.Select, entry: exp.Expr) -> PartedQuestion:
        alone = duckdb_text(select)
        self.sandbox.require_safe(alone, self.empty)
        names = self._shape(alone).names
        known = {one.lower() for table in self.empty.values() for one in table.column_names}
        form = forms_of(select, entry, names, known, self._most_rows(tree, select))
        if not form.is_smaller and select is not tree:
            raise NotInPartsError("the subquery over its large table does not reduce it")
        part = duckdb_text(form.part)
        self.sandbox.require_safe(part, self.empty)
        if not self.sandbox.is_by_row(part, AGGREGATES if form.has_groups else ()):
            raise NotInPartsError("a function in it depends on other rows or on the clock")
        types = self.sandbox.types(part, self.empty)
        whole = self._whole(tree, select, form, types)
        named = [one.with_name(f"{PART_COLUMN}{n}") for n, one in enumerate(self._shape(part))]
        parted = PartedQuestion(
            self.large,
            part,
            pa.schema(named),
            duckdb_text(whole),
            _tables_in(form.part, self.empty) - {self.large},
            _tables_in(whole, self.empty),
        )
        self._require_same(parted)
        return parted

    def _most_rows(self, tree: exp.Query, select: exp.Select) -> int | None:
        return self.most_rows if select is tree else None

    def _whole(
        self, tree: exp.Query, select: exp.Select, form: PartForm, types: list[str]
    ) -> exp.Query:
        for one in types:
            base = one.removesuffix("[]")
            if base not in _SAME_IN_ARROW and not base.startswith("DECIMAL("):
                raise NotInPartsError(f"its parts would have columns of the type {one}")
        whole = form.whole(types)
        if not self.sandbox.is_by_row(duckdb_text(whole.outer)):
            raise NotInPartsError("a function in it depends on other rows or on the clock")
        if select is tree:
            return whole.query
        path = _path(tree, select)
        copied = tree.copy()
        _at(copied, path).replace(whole.query)
        return copied

    def _require_same(self, parted: PartedQuestion) -> None:
        """Refuse a split that would not answer with the columns and types of the query."""
        self.sandbox.require_safe(parted.whole, {*parted.whole_tables, PARTS})
        schema = self._shape(parted.whole, {PARTS: parted.schema.empty_table()})
        if not schema.equals(self._shape(self.question.sql)):
            raise NotInPartsError("its answer would have other types")

    def _shape(self, sql: str, more: Mapping[str, pa.Table] | None = None) -> pa.Schema:
        """The columns of a query's answer."""
        return self.sandbox.run(sql, {**self.empty, **(more or {})}, _NOTHING).schema


def _levels(entry: exp.Table) -> Iterator[tuple[exp.Select, exp.Expr]]:
    """The SELECTs that might be split, each with the entry in its FROM that is the large table."""
    at: exp.Expr = entry
    while True:
        select = at.find_ancestor(exp.Select)
        if select is None or not is_direct(at, select):
            return
        if any(not isinstance(one, _UP) for one in _ancestors(select)):
            return
        yield select, at
        above = select.parent
        plain = {"expressions", "from_", "joins", "where"}
        if not isinstance(above, exp.Subquery) or any(
            value for name, value in select.args.items() if name not in plain
        ):
            return
        if any(value for name, value in above.args.items() if name not in ("this", "alias")):
            return
        at = above


def _ancestors(tree: exp.Expr) -> Iterator[exp.Expr]:
    at = tree.parent
    while at is not None:
        yield at
        at = at.parent


def _path(tree: exp.Expr, inner: exp.Expr) -> int:
    """The position of a node among the nodes of a tree."""
    return next(n for n, one in enumerate(tree.walk()) if one is inner)


def _at(tree: exp.Expr, path: int) -> exp.Expr:
    return next(one for n, one in enumerate(tree.walk()) if n == path)


def _tables_in(tree: exp.Expr, known: Mapping[str, pa.Table]) -> frozenset[str]:
    return frozenset(one.name for one in tree.find_all(exp.Table) if one.name in known)


def _put_common_tables_in(tree: exp.Query, large: str) -> None:
    """Inline a common table that reads the large table, if it is used in just one place."""
    common = tree.args.get("with_")
    if common is None or common.args.get("recursive"):
        return
    for one in list(common.expressions):
        if not any(entry.name == large for entry in one.find_all(exp.Table)):
            continue
        named = [
            entry
            for entry in tree.find_all(exp.Table)
            if entry.name.lower() == one.alias.lower() and not entry.args.get("db")
        ]
        if len(named) != 1 or one.args["alias"].columns or not isinstance(one.this, exp.Select):
            return
        alias = exp.to_identifier(named[0].alias_or_name, quoted=True)
        inner = exp.Subquery(this=one.this.copy(), alias=exp.TableAlias(this=alias))
        one.pop()
        named[0].replace(inner)
    if not common.expressions:
        tree.set("with_", None)
