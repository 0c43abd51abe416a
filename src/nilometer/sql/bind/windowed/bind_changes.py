"""A query whose answer changes, bound: every part of it as a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.model.time_windows import WINDOW_END, WINDOW_START
from nilometer.sql.bind.bind_select import items_of
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.from_entry import DerivedStream
from nilometer.sql.bind.refuse import refuse_query
from nilometer.sql.bind.scope import Scope
from nilometer.sql.bind.windowed.bind_list import ListBinder, is_grouped
from nilometer.sql.bind.windowed.bind_rows import RowsBinder
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder
from nilometer.sql.bind.windowed.first_rows import first_rows
from nilometer.sql.bind.windowed.order_rows import check_limits
from nilometer.sql.bind.windowed.refusals import (
    require_comparable,
)
from nilometer.sql.bind.windowed.row_times import is_time, require_ascending, require_time
from nilometer.sql.bind.windowed.set_operators import set_operation
from nilometer.sql.bind.windowed.window_ends import answer_at_ends
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.growth import PARTS_OF_QUERY, grow, grown
from nilometer.sql.expressions.scalars import Scalar, column
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.over_calls import HIDDEN, OverCall, TableOverCall, TopCall, refuse_window
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import (
    RESULT_TIME_NAME,
    ChangesPlan,
    Lifetime,
    Mined,
    Node,
    is_static,
)
from nilometer.sql.plan.join_plan import Item, WindowsClause
from nilometer.sql.plan.operations import paced
from nilometer.sql.plan.unbounded import require_bounded
from nilometer.sql.rewrite.modes import FOLDED, Mode, Reasons, is_union_all, unwrap
from nilometer.sql.rewrite.put_ends import columns_in_order, windows_below
from nilometer.sql.rewrite.put_unions import UnionCall, sides_of

Named = Mapping[str, exp.CTE]
ANYWHERE = Place("", 0, 0)


def bind_changes(
    tree: exp.Expr, sql: str, catalog: Catalog, buckets: int, mode: Mode
) -> ChangesPlan:
    """The plan of a query whose answer changes."""
    builder = NodeBuilder(
        sql, catalog, buckets, appends=not mode.changes and not mode.at_ends, at_ends=mode.at_ends
    )
    binder = ChangesBinder(sql, catalog, builder, Reasons(sql, catalog.functions))
    root = binder.relation(tree, {}, is_outermost=True)
    require_bounded(root, place_of(tree, sql))
    if mode.at_ends:
        root = answer_at_ends(root, place_of(tree, sql))
    if mode.every is not None:
        root = paced(root, mode.every)
    return ChangesPlan(sql, catalog, root, buckets, appends=not mode.changes)


@dataclass(frozen=True)
class ChangesBinder:
    """Binds queries, and queries in queries; a query of WITH is bound once."""

    sql: str
    catalog: Catalog
    builder: NodeBuilder
    reasons: Reasons
    _nodes: dict[int, tuple[Node, int]] = field(default_factory=dict)
    """The nodes of the queries of WITH, each with its number of parts."""
    _unions: dict[int, tuple[exp.CTE, DerivedStream, int]] = field(default_factory=dict)
    """The same for unions of streams; their trees are kept, so that their ids stay unique."""

    def relation(self, tree: exp.Expr, named: Named, is_outermost: bool = False) -> Node:
        """The node of any query."""
        tree = unwrap(tree)
        refuse_query(tree, self.sql)
        check_limits(tree, self.sql)
        grow(PARTS_OF_QUERY, place_of(tree, self.sql))
        named = {**named, **named_queries(tree, self.sql)}
        match tree:
            case exp.SetOperation():
                left = self.relation(tree.this, named, is_outermost)
                right = self.relation(tree.expression, named)
                return self._lists.ordered(tree, set_operation(tree, left, right, self.sql))
            case exp.Subquery():
                return self._lists.ordered(tree, self.relation(tree.this, named, is_outermost))
        assert isinstance(tree, exp.Select)
        rows, scope = self._rows.bind(tree, None, named)
        return self._lists.node(tree, rows, scope, is_outermost)

    def is_plain(self, tree: exp.Expr) -> bool:
        """Whether a query in FROM can be flattened into the one that reads it."""
        return self.reasons.is_plain(tree)

    def has_plain_rows(self, tree: exp.Expr) -> bool:
        """Whether a query could be flattened but for subqueries in its conditions."""
        return self.reasons.has_plain_rows(tree)

    def derive(self, tree: exp.Expr, named: Named) -> Node:
        """The node of a query in FROM that cannot be flattened."""
        if (known := self._nodes.get(id(tree))) is not None:
            node, parts = known
            grow(parts, place_of(tree, self.sql))  # it is computed once, but counts each time
            return node
        before = grown()
        node = self._derive(tree, named)
        self._nodes[id(tree)] = node, grown() - before
        return node

    def _derive(self, tree: exp.Expr, named: Named) -> Node:
        node = self.relation(tree, named)
        every = unwrap(tree).meta.get(FOLDED)
        return paced(node, every) if every else node

    @property
    def appends(self) -> bool:
        """Whether rows are only appended, so that no window must remove them."""
        return self.builder.appends

    def derive_call(self, call: TableCall, named: Named) -> Mined:
        """The node of a table function."""
        appending = self._appending
        changing = replace(self, builder=replace(self.builder, appends=False))

        def appended(query: exp.Select) -> Node:
            return appending.derive_appended(query, named, f"the input of {call.function}")

        def relation(tree: exp.Expr) -> Node:
            return changing.relation(tree, named)

        from nilometer.sql.bind.windowed.bind_call import CallBinder  # noqa: PLC0415  rarely needed

        return CallBinder(self.sql, appended, relation).bind(call)

    def derive_windows(self, call: WindowCall, named: Named) -> tuple[WindowsClause, Node]:
        """The windows of a query, and the node of all its columns in them."""
        source = _named_input(call)
        refuse_window(source, call.function, self.sql)
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source))
        binder = self._appending
        bound, scope = binder._appended(query, named, f"the input of {call.function}")
        require_time(call.args.get("time"), bound, scope, self.sql)
        by = ExpressionBinder(scope, "PARTITION BY")
        partition = tuple(by.bind(one) for one in call.expressions)
        clause = WindowsClause(replace(bound, lifetimes=()), call.windows, partition)
        for item in bound.items:
            if item.name.lower() in (WINDOW_START, WINDOW_END):
                raise SqlError(
                    f"{call.function} returns a column {item.name}, but its input already has one",
                    place=place_of(call.args["input"], self.sql),
                    hint=f"rename it: {call.function}((SELECT {item.name} AS other, … FROM …), …)",
                )
        return clause, self.builder.window_rows(clause, bound.items)

    def derive_over(self, call: OverCall, named: Named) -> DerivedStream:
        """The node of rows with their OVER columns; frames that look ahead delay rows."""
        from nilometer.sql.bind.windowed.bind_over import OverBinder, looks_ahead  # noqa: PLC0415  plain queries start sooner

        binder = OverBinder(self.sql, call)
        functions = binder.functions()
        source = _named_input(call)
        hidden = [exp.column(exp.to_identifier(n, quoted=True)) for n in call.meta[HIDDEN]]
        extra = (*hidden, *binder.partition, *binder.arguments)
        items = [exp.Star(), *(one.copy() for one in extra)]
        query = exp.Select(expressions=items, from_=exp.From(this=source))
        appending = self._appending
        bound, scope = appending._appended(query, named, "the input of OVER")
        for order in call.meta.get("orders", ()):
            require_ascending(order, bound, scope, self.sql)
        node = appending.derive_unit(bound, None)
        over = binder.node(node, functions, RESULT_TIME_NAME)
        for place, one in zip(over.spec.keys, binder.partition, strict=True):
            place_of_key = place_of(one, self.sql)
            require_comparable(node.columns[place].kind, place_of_key, "PARTITION BY")
        passed = bound.items[: over.spec.passed]
        times = {one.name for one in passed if is_time(one.value.tree, bound)}
        return DerivedStream(over, frozenset() if looks_ahead(functions) else frozenset(times))

    def derive_top(self, call: TopCall, named: Named) -> Node:
        """The node of the first rows of each partition; its last column is their number."""
        hidden = [exp.column(exp.to_identifier(n, quoted=True)) for n in call.meta[HIDDEN]]
        terms, partition = call.args["order"], call.args["partition"]
        extra = (*hidden, *partition, *(term.this for term in terms))
        query = exp.Select(
            expressions=[exp.Star(), *(one.copy() for one in extra)],
            from_=exp.From(this=_named_input(call)),
        )
        query.meta.update(call.meta)
        node = self.relation(query, named)
        return first_rows(node, call, self.sql)

    def derive_table_over(self, call: TableOverCall, named: Named) -> Node:
        """The node of rows that are complete at once, with their OVER columns."""
        from nilometer.sql.bind.windowed.bind_table_over import TableOverBinder  # noqa: PLC0415  rarely needed

        hidden = [exp.column(exp.to_identifier(n, quoted=True)) for n in call.meta[HIDDEN]]
        passed_items = [exp.Star(), *hidden]
        binder = TableOverBinder(self.sql, call)
        binder.windows(0)
        query = exp.Select(
            expressions=[*passed_items, *(one.copy() for one in binder.asked)],
            from_=exp.From(this=_named_input(call)),
        )
        query.meta.update(call.meta)
        node = self.relation(query, named)
        if not is_static(node) and not self.builder.at_ends:
            raise SqlError(
                "OVER results for a whole window are only known when the window ends",
                place=place_of(call.expressions[0], self.sql),
                hint="leave EMIT CHANGES out",
            )
        passed = len(node.columns) - len(binder.asked)
        return binder.node(node, passed, binder.windows(passed))

    def derive_ends(self, call: EndsCall, named: Named) -> DerivedStream:
        """The node of window answers, each emitted when its window ends."""
        query = call.args["input"].copy()
        ends, in_order = columns_in_order(query)
        entry = windows_below(query)
        windows: WindowCall = entry.this
        name = entry.alias or windows.args["input"].alias_or_name or windows.function.lower()
        end = exp.column(exp.to_identifier(WINDOW_END), table=exp.to_identifier(name, quoted=True))
        time = exp.Max(this=end) if is_grouped(query, self.catalog) else end
        query.append("expressions", exp.alias_(time, RESULT_TIME_NAME, quoted=True))
        builder = replace(self.builder, appends=False, at_ends=True)
        node = replace(self, builder=builder, _nodes={}).relation(query, named)
        return DerivedStream(answer_at_ends(node, place_of(query, self.sql)), ends, in_order)

    def derive_union(self, call: UnionCall, named: Named) -> DerivedStream:
        """The union of several streams; columns that are the time of all are its time."""
        source = call.args["input"]
        if not isinstance(source, exp.Table):
            return self._union(source, named)
        query = named[source.name.lower()]
        if id(query) not in self._unions:
            before = grown()
            others = {name: one for name, one in named.items() if one is not query}
            stream = self._union(query.this, others)
            self._unions[id(query)] = query, stream, grown() - before
            return stream
        _, stream, parts = self._unions[id(query)]
        grow(parts, place_of(call, self.sql))  # it is computed once, but counts each time
        return stream

    def _union(self, union: exp.Expr, named: Named) -> DerivedStream:
        named = {**named, **named_queries(unwrap(union), self.sql)}
        what = "the input of UNION ALL"
        sides = [self._appending._appended(one, named, what)[0] for one in sides_of(union)]
        grow(PARTS_OF_QUERY * len(sides), place_of(union, self.sql))
        nodes = iter([self._appending.derive_unit(one, None) for one in sides])

        def put_together(tree: exp.Expr) -> Node:
            tree = unwrap(tree)
            if not is_union_all(tree):
                return next(nodes)
            refuse_query(tree, self.sql)
            assert isinstance(tree, exp.Union)
            left = put_together(tree.this)
            return set_operation(tree, left, put_together(tree.expression), self.sql)

        node = put_together(union)
        times = {
            one.name
            for place, one in enumerate(node.columns[:-1])
            if all(is_time(side.items[place].value.tree, side) for side in sides)
        }
        return DerivedStream(node, frozenset(times))

    def derive_match(self, call: MatchCall, named: Named) -> Node:
        """The node of the matches of a pattern; its last column is their time."""
        from nilometer.sql.bind.windowed.bind_match import MatchBinder, Ordered  # noqa: PLC0415  plain queries start sooner

        appending = self._appending

        def below(query: exp.Select) -> tuple[Node, Ordered]:
            bound, scope = appending._appended(query, named, "the input of MATCH_RECOGNIZE")
            node = appending.derive_unit(bound, None)
            return node, lambda tree: require_time(tree, bound, scope, self.sql)

        return MatchBinder(self.sql, self.catalog, call).bind(below)

    @property
    def _appending(self) -> ChangesBinder:
        return replace(self, builder=replace(self.builder, appends=True))

    def derive_appended(self, query: exp.Expr, named: Named, what: str) -> Node:
        """The node of an append query; its last column is the time of a result."""
        bound, _ = self._appending._appended(query, named, what)
        return self._appending.derive_unit(bound, None)

    def _appended(self, query: exp.Expr, named: Named, what: str) -> tuple[BoundQuery, Scope]:
        """A query that must be an append query, and the names in it."""
        reason = self.reasons.of_query(query, named)
        if reason is not None:
            raise SqlError(
                f"{what} must only append rows; this one also retracts rows",
                place=reason.place,
                detail=f"because of {reason.what}",
                hint="give it a stream, or a query without aggregates and set operators",
            )
        bound, scope = self._query(query, None, named)
        if all(source.is_table for source in bound.sources):
            raise SqlError(
                f"{what} must be a stream: static tables have no time",
                place=place_of(query, self.sql),
                detail="rows in time windows are emitted when the windows end"
                if any(source.in_windows is not None for source in bound.sources)
                else None,
            )
        return bound, scope

    def derive_unit(self, bound: BoundQuery, length: int | None) -> Node:
        """The node of an append query; its last column is the time of a result."""
        times = [source.time for source in bound.sources if not source.is_table]
        time = exp.Greatest(this=column(times[0]), expressions=[column(t) for t in times[1:]])
        item = Item(
            RESULT_TIME_NAME, Scalar(time if len(times) > 1 else column(times[0]), ANYWHERE)
        )
        streams = tuple(source.name for source in bound.sources if not source.is_table)
        lifetimes = () if length is None else (Lifetime(streams, length),)
        lasting = replace(bound, lifetimes=lifetimes)
        if any(source.node is not None for source in bound.sources):
            return self.builder.build(lasting, [*bound.items, item])
        return self.builder.block(lasting, [*bound.items, item])

    def query(self, tree: exp.Expr, prefix: str | None, named: Named) -> BoundQuery:
        """A query that is flattened into the one that reads it."""
        return self._query(tree, prefix, named)[0]

    def _query(self, tree: exp.Expr, prefix: str | None, named: Named) -> tuple[BoundQuery, Scope]:
        tree = unwrap(tree)
        refuse_query(tree, self.sql)
        assert isinstance(tree, exp.Select)
        named = {**named, **named_queries(tree, self.sql)}
        rows, scope = self._rows.bind(tree, prefix, named)
        items = tuple(items_of(tree, ExpressionBinder(scope, "SELECT")))
        return replace(rows, items=items), scope

    @property
    def _rows(self) -> RowsBinder:
        return RowsBinder(self.sql, self.builder, self.query, self)

    @property
    def _lists(self) -> ListBinder:
        return ListBinder(self.sql, self.catalog, self.builder)


def _named_input(call: exp.Expr) -> exp.Expr:
    """The input of a table function, under a name."""
    source: exp.Expr = call.args["input"].copy()
    if isinstance(source, exp.Subquery) and not source.alias:
        source.set("alias", exp.TableAlias(this=exp.to_identifier("input")))
    return source
