"""Statements over complete data: ORDER BY, LIMIT and OFFSET of a complete answer.

Over streams that go on, an answer has no order, and ORDER BY … LIMIT is the answer of its first
rows, which changes. Over streams that have ended, it is an ordinary table: it is computed without
the clauses at the end of the statement, which are then applied to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from nilometer.errors import InputError, SqlError, SqlWindowError
from nilometer.operators.change_operator import TIME
from nilometer.operators.change_specs import SortKey
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.parse.dialect import Emit
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.query_text import LAST_CLAUSES, Statement, has_last_clauses
from nilometer.sql.plan.changes_plan import (
    ChangesPlan,
    Plan,
    UnionPlan,
    emits_changes,
    reads_tables_alone,
    sources_of,
)
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.rewrite.modes import unwrap
from nilometer.sql.rewrite.put_instant import has_ended, put_instant

_HIDDEN = "_order_"

_AS_TABLE: Final = "--table A=a.csv or create_table"
END = "end"
"""The instant after all changes."""


@dataclass(frozen=True)
class Finish:
    """How a complete answer is finished: its rows are ordered, and some of them shown."""

    keys: tuple[SortKey, ...] = ()
    """Columns of the answer; ties are ordered by all columns."""
    limit: int | None = None
    offset: int = 0
    hidden: tuple[int, ...] = ()
    """Columns that are only there to order by."""

    @property
    def is_needed(self) -> bool:
        return bool(self.keys or self.offset) or self.limit is not None


@dataclass(frozen=True)
class Question:
    """A plan, and how its answer is finished."""

    plan: Plan
    finish: Finish = Finish()

    @property
    def is_plain(self) -> bool:
        """Whether it reads static tables alone: its rows have no time, and never change."""
        return reads_tables_alone(self.plan)


def compile_question(
    statement: Statement, catalog: Catalog, buckets: int, *, at_instant: str | None = None
) -> Question:
    """How a statement is answered; `at_instant` is the option that asks not for the changes but
    for what holds at one instant, if there is one."""
    try:
        prepared = put_instant(statement, catalog, datetime.now(UTC))
        return _compile_question(prepared, catalog, buckets, at_instant)
    except SqlWindowError as error:
        if "kept forever" in error.message and has_ended(statement, catalog):
            error.hint = f"{error.hint}; or query all rows at once: make it a table, {_AS_TABLE}"
        raise


def _compile_question(
    statement: Statement, catalog: Catalog, buckets: int, at_instant: str | None
) -> Question:
    tree = unwrap(statement.tree)
    if not has_last_clauses(statement):
        question = Question(compile_statement(statement, catalog, buckets))
        if at_instant is not None:
            require_changing(question.is_plain or emits_changes(question.plan), at_instant)
        return question
    try:
        whole = compile_statement(statement, catalog, buckets)
    except SqlError as refused:
        if at_instant is None and not _may_be_finished(tree, refused):
            raise
        return _Finisher(statement, tree, catalog, buckets).question(at_instant, refused)
    if not reads_tables_alone(whole) and at_instant is None:
        return Question(whole)
    return _Finisher(statement, tree, catalog, buckets).question(at_instant, None)


def _may_be_finished(tree: exp.Expr, refused: SqlError) -> bool:
    """Whether a statement was refused for something harmless over complete data.

    That is ORDER BY without LIMIT, LIMIT without ORDER BY, and a stream without a window.
    """
    order, limit = tree.args.get("order"), tree.args.get("limit")
    return order is None or limit is None or isinstance(refused, SqlWindowError)


def require_changing(changes: bool, option: str) -> None:
    """Refuse an option that applies only to answers that change."""
    if not changes:
        raise InputError(
            f"{option} is for answers that change",
            detail="this query only appends rows and never retracts any",
            hint=f"leave {option} out; or give every stream a window and end the statement with "
            "EMIT CHANGES",
        )


@dataclass(frozen=True)
class _Finisher:
    """Removes the last clauses of a statement, and turns them into a `Finish`."""

    statement: Statement
    tree: exp.Expr
    catalog: Catalog
    buckets: int

    def question(self, at_instant: str | None, refused: SqlError | None) -> Question:
        """The question; otherwise raises an error, first of all what was `refused` before."""
        rest = self.tree.copy()
        for clause in LAST_CLAUSES:
            rest.set(clause, None)
        if at_instant and rest.args.get("emit") is None:
            rest.set("emit", Emit(kind="CHANGES"))
        try:
            plan = self._compile(rest)
        except SqlError as error:
            raise (refused if refused is not None and not at_instant else error) from None
        changes = emits_changes(plan) and not reads_tables_alone(plan)
        if not _has_ended(plan) or (changes and not at_instant):
            assert refused is not None
            raise _with_hint(refused) if _has_ended(plan) else refused
        return self._ordered(rest, plan)

    def _ordered(self, rest: exp.Expr, plan: Plan) -> Question:
        from nilometer.sql.bind.windowed.order_rows import count_of, own_column  # noqa: PLC0415

        sql, order = self.statement.sql, self.tree.args.get("order")
        terms = order.expressions if order is not None else []
        names = _columns(plan)
        places = [own_column(term.this, names, "ORDER BY", sql) for term in terms]
        others = [term for term, place in zip(terms, places, strict=True) if place is None]
        first = len(names)
        if others:
            plan = self._compile(self._wider(rest, others))
            first = _columns(plan).index(f"{_HIDDEN}0")
        hidden = iter(range(first, first + len(others)))
        keys = []
        for term, own in zip(terms, places, strict=True):
            shift = len(others) if own is not None and own >= first else 0  # the time comes last
            place = next(hidden) if own is None else own + shift
            keys.append(
                SortKey(place, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))
            )
        limit, offset = self.tree.args.get("limit"), self.tree.args.get("offset")
        return Question(
            plan,
            Finish(
                tuple(keys),
                None if limit is None else count_of(limit, "LIMIT", sql),
                0 if offset is None else count_of(offset, "OFFSET", sql),
                tuple(range(first, first + len(others))),
            ),
        )

    def _wider(self, rest: exp.Expr, terms: Sequence[exp.Ordered]) -> exp.Expr:
        """The query with its ORDER BY expressions added to the end of its list."""
        if not isinstance(rest, exp.Select) or rest.args.get("distinct"):
            raise SqlError(
                "ORDER BY must name columns of the SELECT list here",
                place=place_of(terms[0], self.statement.sql),
                detail=f"it has {', '.join(_columns(self._compile(rest)))}",
            )
        wider = rest.copy()
        added = [
            exp.alias_(term.this.copy(), f"{_HIDDEN}{number}") for number, term in enumerate(terms)
        ]
        wider.set("expressions", [*wider.expressions, *added])
        return wider

    def _compile(self, tree: exp.Expr) -> Plan:
        assert isinstance(tree, exp.Query)
        return compile_statement(replace(self.statement, tree=tree), self.catalog, self.buckets)


def _columns(plan: Plan) -> list[str]:
    """The columns that can be ordered by; for appended results also their time."""
    match plan:
        case ChangesPlan():
            names = [one.name for one in plan.root.columns]
            return [*names, TIME] if plan.appends else names
        case UnionPlan():
            return _columns(plan.plans[0])
        case JoinPlan():
            names = [item.name for item in plan.items]
            return names[:-1] if reads_tables_alone(plan) else names


def _has_ended(plan: Plan) -> bool:
    """Whether no more rows can arrive."""
    return all(source.relation.clock.ended for source in sources_of(plan))


def _with_hint(refused: SqlError) -> SqlError:
    """The refusal of an answer that changes, with what can be asked instead."""
    if "needs a" in refused.message:
        refused.hint = (
            "add LIMIT 10; or ask for the answer at one instant, which can be ordered: --at, or "
            "at= of nm.connect().sql; or sort the result of nm.snapshot"
        )
    return refused
