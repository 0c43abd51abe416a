"""Compile a statement to its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.bind.bind_join import bind
from nilometer.sql.bind.refuse import refuse_query
from nilometer.sql.bind.unite_plans import unite_plans
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.growth import bounded
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.over_calls import OverCall, TableOverCall, put_over
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.parse.window_call_parser import EndsCall
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan
from nilometer.sql.plan.join_plan import ChosenAlgorithm, JoinPlan
from nilometer.sql.rewrite.group_below import group_below
from nilometer.sql.rewrite.hints import refuse_algorithm, refuse_execution, take_hint
from nilometer.sql.rewrite.inline_queries import inline_queries
from nilometer.sql.rewrite.modes import Reasons, choose_mode, is_union_all, unwrap
from nilometer.sql.rewrite.put_aggregates import put_aggregates
from nilometer.sql.rewrite.put_ends import order_of_answers, put_ends
from nilometer.sql.rewrite.put_expansions import put_expansions
from nilometer.sql.rewrite.put_framed import put_framed
from nilometer.sql.rewrite.put_in_windows import is_static, is_static_entry, put_in_windows
from nilometer.sql.rewrite.put_named_windows import put_named_windows
from nilometer.sql.rewrite.put_pivots import put_pivots
from nilometer.sql.rewrite.put_samples import put_samples
from nilometer.sql.rewrite.put_unions import UnionCall, put_unions
from nilometer.sql.rewrite.refuse_foreign import refuse_foreign
from nilometer.sql.rewrite.subqueries import put_subqueries
from nilometer.sql.rules import apply_rules

_DERIVED: Final = (TableCall, OverCall, TableOverCall, MatchCall, EndsCall, UnionCall)
"""What can stand in FROM other than a stream or a table."""


def compile_statement(statement: Statement, catalog: Catalog, buckets: int) -> Plan:
    """The plan that runs a statement in this many buckets."""
    try:
        with bounded():
            statement = inline_queries(statement, catalog)
            refuse_foreign(statement.tree, statement.sql, catalog.functions)
            tree, chosen, place = take_hint(statement.tree, statement.sql)
            tree = put_samples(tree, statement.sql, catalog)
            tree = put_named_windows(tree, statement.sql)
            tree = put_aggregates(tree, statement.sql, catalog.functions)
            tree = put_pivots(tree, statement.sql, catalog.functions)
            tree = put_expansions(tree, statement.sql)
            tree = put_subqueries(tree, statement.sql, catalog.functions)
            tree = put_unions(
                tree,
                statement.sql,
                Reasons(statement.sql, catalog.functions),
                lambda query, named: is_static(query, catalog, named),
            )
            tree = put_in_windows(tree, statement.sql, catalog)
            tree = put_framed(tree, statement.sql)
            tree = group_below(tree, statement.sql, catalog.functions)
            reasons = Reasons(statement.sql, catalog.functions)
            tree = put_over(
                tree,
                statement.sql,
                reasons.of_rows_of,
                lambda entry: is_static_entry(entry, catalog),
                lambda entry: order_of_answers(entry, statement.sql, reasons),
                lambda entry: order_of_answers(entry, statement.sql, reasons, whole=True),
            )
            tree = put_ends(tree, statement.sql, reasons)
            if isinstance(chosen, ChosenAlgorithm):
                return _compile(tree, statement.sql, catalog, buckets, chosen)
            plan = _compile(tree, statement.sql, catalog, buckets)
            if chosen is None:
                return plan
            if not isinstance(plan, ChangesPlan):
                raise refuse_execution(place)
            return replace(plan, execution=chosen)
    except RecursionError:
        raise SqlSyntaxError(
            "the statement is nested too deeply",
            place=Place(statement.sql, 0, 1),
            hint="move parts of it into subqueries or separate columns",
        ) from None


def _compile(
    tree: exp.Expr,
    sql: str,
    catalog: Catalog,
    buckets: int,
    algorithm: ChosenAlgorithm | None = None,
) -> Plan:
    mode = choose_mode(tree, sql, catalog.functions)
    if mode.changes or mode.at_ends or tree.find(*_DERIVED) is not None:
        if algorithm is not None:
            raise refuse_algorithm(algorithm)
        from nilometer.sql.bind.windowed.bind_changes import bind_changes  # noqa: PLC0415  joins do without

        return bind_changes(tree, sql, catalog, buckets, mode)
    inner = unwrap(tree)
    if not is_union_all(inner):
        plan = bind(tree, sql, catalog)
        return apply_rules(replace(plan, buckets=buckets, algorithm=algorithm))
    return _union(inner, sql, catalog, buckets, algorithm)


def _union(
    tree: exp.Expr, sql: str, catalog: Catalog, buckets: int, algorithm: ChosenAlgorithm | None
) -> UnionPlan:
    """UNION ALL of append queries; the algorithm applies to all their joins."""
    plans: list[JoinPlan] = []
    operators = []
    for operator, query, named in _sides(tree, sql, {}):
        plan = bind(query, sql, catalog, named)
        plans.append(apply_rules(replace(plan, buckets=buckets, algorithm=algorithm)))
        operators.append(operator)
    return unite_plans(plans, operators, sql)


def _sides(
    tree: exp.Expr, sql: str, named: Mapping[str, exp.CTE]
) -> Iterator[tuple[exp.SetOperation | None, exp.Expr, Mapping[str, exp.CTE]]]:
    """The queries that UNION ALL combines, each with the operator before it."""
    tree = unwrap(tree)
    if not isinstance(tree, exp.SetOperation):
        yield None, tree, named
        return
    refuse_query(tree, sql)
    named = {**named, **named_queries(tree, sql)}
    yield from _sides(tree.this, sql, named)
    first, *others = _sides(tree.expression, sql, named)
    yield tree, *first[1:]
    yield from others
