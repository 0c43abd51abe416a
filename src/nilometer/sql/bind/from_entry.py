"""Queries in FROM, bound: flattened into their sources, or run as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.bind.scope import FromUnit
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.over_calls import OverCall, TableOverCall, TopCall
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Mined, Node
from nilometer.sql.plan.join_plan import WindowsClause
from nilometer.sql.rewrite.put_unions import UnionCall


@dataclass(frozen=True)
class BoundEntry:
    """One entry of FROM, bound."""

    unit: FromUnit
    bound: BoundQuery
    window: StreamWindow | None
    place: Place

    @property
    def has_rows(self) -> bool:
        return self.window is not None and self.window.args.get("rows") is not None


@dataclass(frozen=True)
class DerivedStream:
    """A query whose results form a stream."""

    node: Node
    """Its last column is the time of a result."""
    times: frozenset[str]
    """Columns that are equal to that time."""
    in_order: frozenset[str] = frozenset()
    """Columns that increase with it."""


class Deriver(Protocol):
    """Makes nodes out of queries in FROM."""

    def is_plain(self, tree: exp.Expr) -> bool:
        """Whether a query can be flattened into the one that reads it."""

    def has_plain_rows(self, tree: exp.Expr) -> bool:
        """Whether a query could be flattened but for subqueries in its conditions."""

    def derive(self, tree: exp.Expr, named: Mapping[str, exp.CTE]) -> Node:
        """The node of a query."""

    def derive_call(self, call: TableCall, named: Mapping[str, exp.CTE]) -> Mined:
        """The node of a table function."""

    def derive_windows(
        self, call: WindowCall, named: Mapping[str, exp.CTE]
    ) -> tuple[WindowsClause, Node]:
        """The windows of a query, and the node with all its columns in these windows."""

    def derive_over(self, call: OverCall, named: Mapping[str, exp.CTE]) -> DerivedStream:
        """The node of rows with their OVER columns; frames that look ahead delay rows."""

    def derive_table_over(self, call: TableOverCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of rows that are complete at once, with their OVER columns."""

    def derive_top(self, call: TopCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of the first rows of each partition; its last column is their number."""

    def derive_ends(self, call: EndsCall, named: Mapping[str, exp.CTE]) -> DerivedStream:
        """The node of window answers, each emitted when its window ends."""

    def derive_union(self, call: UnionCall, named: Mapping[str, exp.CTE]) -> DerivedStream:
        """The union of several streams; columns that are the time of all are its time."""

    def derive_match(self, call: MatchCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of the matches of a pattern; its last column is their time."""

    def derive_appended(self, query: exp.Expr, named: Mapping[str, exp.CTE], what: str) -> Node:
        """The node of an append query; its last column is the time of a result."""

    @property
    def appends(self) -> bool:
        """Whether rows are only appended, so that no window must remove them."""

    def derive_unit(self, bound: BoundQuery, length: int | None) -> Node:
        """The node of an append query whose results are each kept for that long."""
