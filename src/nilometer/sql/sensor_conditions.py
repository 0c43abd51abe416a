"""Which sensors a query needs: its conditions on static columns alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
from sqlglot import exp

from nilometer.sql.bind.table_rows import is_evaluated_here
from nilometer.sql.expressions.scalars import (
    ColumnRef,
    Ref,
    ResolvedColumn,
    Scalar,
    column,
    rebuild,
    show,
    spell_own,
)
from nilometer.sql.parse.places import conjuncts
from nilometer.sql.plan.join_plan import JoinPlan, Source

_COMPARISONS = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_DICE = (
    *("rand", "randn", "randstr", "shuffle", "uniform", "uuid"),
    *("java_method", "reflect", "try_reflect"),
)
"""Functions that may return something else when they are called again."""


def sensor_condition(plan: JoinPlan, source: Source) -> str | None:
    """The condition over static columns that a source's sensors satisfy; None: all sensors.

    It is written for Spark. The plan tests every row for the same, so sensors that do not satisfy
    it contribute nothing.
    """
    return _spelled(static_terms(plan, source))


def row_condition(plan: JoinPlan, source: Source) -> str | None:
    """The part of it that `select_rows_text` can test without Spark."""
    kinds = dict(zip(source.relation.columns, source.relation.types, strict=True))
    sensors = source.relation.sensors
    static = {} if sensors is None else {name: kinds[name] for name in sensors.static}
    terms = static_terms(plan, source)
    return _spelled([term for term in terms if is_evaluated_here(term, static)])


def describe_sensors(plan: JoinPlan, source: Source) -> str | None:
    """What EXPLAIN says about the sensors of a source; None if it is not a sensor table."""
    if source.is_held:  # described where its rows come from
        return None
    if source.relation.rows_of is not None:
        return f"{source.name} is static: answered from the catalog"
    if source.relation.sensors is None:
        return None
    terms = static_terms(plan, source)
    if not terms:
        return f"{source.name} contacts all sensors of {source.relation.name}"
    chosen = _joined([(show(term.tree, _bare), term) for term in terms])
    return f"{source.name} contacts the sensors with {chosen}"


def static_terms(plan: JoinPlan, source: Source) -> list[Scalar]:
    """What holds for the static columns of every row that a source contributes."""
    sensors = source.relation.sensors
    if sensors is None:
        return []
    conditions = (*source.below, *_above(source), *_implied(plan, source))
    terms = [Scalar(tree, one.place) for one in conditions for tree in conjuncts(one.tree)]
    by_text = {str(t): t for t in terms if _is_static(t, source, sensors.static)}
    return list(by_text.values())


def _above(source: Source) -> Iterator[Scalar]:
    """Selections over a ROWS window that keep a partition entirely or not at all."""
    if source.rows is None:
        return
    trees = [one.tree for one in source.rows.partition]
    partition = {tree.ref for tree in trees if isinstance(tree, ResolvedColumn)}
    for condition in source.above:
        if condition.columns and partition.issuperset(condition.columns):
            yield condition


def _implied(plan: JoinPlan, source: Source) -> Iterator[Scalar]:
    """Conditions on columns that are equal to columns of the source."""
    for other in plan.sources:
        if other.name == source.name:
            continue
        for condition in (*other.below, *other.above):
            if len(condition.columns) == 1 and _keeps_equality(condition.tree):
                for own in _equals(plan, condition.columns[0], source):
                    yield Scalar(_renamed(condition.tree, own), condition.place)


def _keeps_equality(tree: exp.Expr) -> bool:
    """Whether a condition gives the same for equal values: it compares a column itself.

    A function may distinguish 0.0 from -0.0.
    """
    parents = (node.parent for node in tree.find_all(ResolvedColumn))
    return isinstance(tree, _COMPARISONS) and all(parent is tree for parent in parents)


def _equals(plan: JoinPlan, ref: Ref, source: Source) -> Iterator[Ref]:
    """The source's columns that have the same value, in the same type, in every result."""
    kind = _kind(plan, ref)
    for key in plan.keys:
        for equal in key.classes:
            for own in equal.members if ref in equal.members else ():
                is_own = own.stream == source.name and isinstance(own, ColumnRef)
                if is_own and kind is not None and _kind(plan, own) == kind:
                    yield own


def _kind(plan: JoinPlan, ref: Ref) -> pa.DataType | None:
    relation = plan.by_name[ref.stream].relation
    if not isinstance(ref, ColumnRef) or ref.fields or ref.column not in relation.columns:
        return None
    return relation.types[relation.columns.index(ref.column)]


def _renamed(tree: exp.Expr, own: Ref) -> exp.Expr:
    if isinstance(tree, ResolvedColumn):
        return column(own)
    return rebuild(tree, lambda child: _renamed(child, own))


def _is_static(term: Scalar, source: Source, static: Collection[str]) -> bool:
    """Whether a condition has one value for each row of the sensor table."""
    return _says_the_same(term.tree) and all(
        isinstance(ref, ColumnRef) and ref.stream == source.name and ref.column in static
        for ref in term.columns
    )


def _says_the_same(tree: exp.Expr) -> bool:
    """Whether an expression is deterministic and reads no clock: clocks take no arguments."""
    return not any(
        (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower() in _DICE
        or next(node.iter_expressions(), None) is None
        for node in tree.find_all(exp.Func)
    )


def _bare(ref: Ref) -> str:
    return ref.column if isinstance(ref, ColumnRef) else str(ref)


def _spelled(terms: list[Scalar]) -> str | None:
    return _joined([(spell_own(term.tree), term) for term in terms]) or None


def _joined(terms: list[tuple[str, Scalar]]) -> str:
    """The text of conditions, joined by AND."""
    if len(terms) == 1:
        return terms[0][0]
    return " AND ".join(
        f"({text})" if isinstance(term.tree, exp.Or) else text for text, term in terms
    )
