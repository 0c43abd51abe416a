"""Queries in FROM, bound: dissolved into their sources, or held by nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.bind.scope import Unit
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.over_calls import OverCall, TableOverCall, TopCall
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Mined, Node
from nilometer.sql.plan.join_plan import WindowsClause


@dataclass(frozen=True)
class Entry:
    """One entry of FROM, bound."""

    unit: Unit
    bound: BoundQuery
    window: StreamWindow | None
    place: Place

    @property
    def has_rows(self) -> bool:
        return self.window is not None and self.window.args.get("rows") is not None


@dataclass(frozen=True)
class WindowAnswers:
    """Answers of windows as a stream."""

    node: Node
    """Its last column is the time of an answer, the end of its window."""
    ends: frozenset[str]
    """The columns that are that end, too."""
    in_order: frozenset[str]
    """Those that go up with it."""


class Deriver(Protocol):
    """Makes nodes of queries in FROM."""

    def is_plain(self, tree: exp.Expr) -> bool:
        """Whether a query can be dissolved into the one that reads it."""

    def has_plain_rows(self, tree: exp.Expr) -> bool:
        """Whether a query could be dissolved, but for subqueries that it asks about its rows."""

    def derive(self, tree: exp.Expr, named: Mapping[str, exp.CTE]) -> Node:
        """The node of a query."""

    def derive_call(self, call: TableCall, named: Mapping[str, exp.CTE]) -> Mined:
        """The node of a table function."""

    def derive_windows(
        self, call: WindowCall, named: Mapping[str, exp.CTE]
    ) -> tuple[WindowsClause, Node]:
        """The windows of a query, and the node of all its columns in them."""

    def derive_over(self, call: OverCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of rows and what windows say of them; its last column is their time."""

    def derive_table_over(self, call: TableOverCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of rows of static tables, and what windows say of them."""

    def derive_top(self, call: TopCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of the first rows of each partition; its last column is their number."""

    def derive_ends(self, call: EndsCall, named: Mapping[str, exp.CTE]) -> WindowAnswers:
        """The answers of windows, each of which comes when its window ends."""

    def derive_match(self, call: MatchCall, named: Mapping[str, exp.CTE]) -> Node:
        """The node of the matches of a pattern; its last column is their time."""

    def derive_appended(self, query: exp.Expr, named: Mapping[str, exp.CTE], what: str) -> Node:
        """The node of a query that is appended to; its last column is the time of a result."""

    @property
    def appends(self) -> bool:
        """Whether rows only come, so that none needs a window to leave."""

    def derive_unit(self, bound: BoundQuery, length: int | None) -> Node:
        """The node of a query that is appended to, each result of which stays for so long."""
