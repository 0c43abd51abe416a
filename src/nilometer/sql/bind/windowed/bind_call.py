"""A table function in FROM, bound: its input, its arguments, and the node that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.mining.hosted import FunctionCall
from nilometer.mining.hosted_answers import AnswersSpec
from nilometer.mining.hosted_follow import FollowSpec
from nilometer.mining.hosted_rows import RowsSpec
from nilometer.mining.registry import FunctionKind, find_function, kind_of
from nilometer.mining.table_function import CheckedCall, TableFunction, WindowUse
from nilometer.sql.bind.bind_from import stream_window
from nilometer.sql.bind.derived_entries import require_length
from nilometer.sql.bind.windowed.call_arguments import ArgumentReader, CallArguments, require_type
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.changes_plan import (
    RESULT_TIME_NAME,
    Column,
    Mined,
    Node,
    is_static,
    names_of,
    types_of,
)
from nilometer.sql.plan.types import TIMESTAMP
from nilometer.sql.rewrite.mining_errors import blamed


@dataclass(frozen=True)
class CallRows:
    """The input rows of a function: columns that pass, keys, arguments, and their time."""

    node: Node
    passed: int


@dataclass(frozen=True)
class CallBinder:
    """Binds calls; `appended` makes a node of an append query, `relation` of others."""

    sql: str
    appended: Callable[[exp.Select], Node]
    relation: Callable[[exp.Expr], Node]

    def bind(self, call: TableCall) -> Mined:
        """The node of a call; its last column is the time of results, unless it answers."""
        with blamed(call, self.sql):
            function = find_function(call.function)
        arguments = ArgumentReader(call, function, self.sql).read()
        window = self._window(call, function)
        rows = self._input(call, arguments)
        tables = {name: self._table(name, tree) for name, tree in arguments.tables.items()}
        return self._node(call, function, arguments, window, rows, tables)

    def _window(self, call: TableCall, function: TableFunction) -> int | None:
        """The length of the window after the input."""
        window = stream_window(call.args["input"])
        name = function.name
        if window is None:
            if function.window is WindowUse.NEEDED:
                raise SqlError(
                    f"the input of {name} needs a window",
                    place=place_of(call.args["input"], self.sql),
                    hint=f"write {name}(… [RANGE 10 SECONDS], …)",
                )
            return None
        place, length = place_of(window, self.sql), window.args.get("length")
        if function.window is WindowUse.NONE:
            raise SqlError(
                f"the input of {name} cannot have a window: rows are processed one by one as "
                "they arrive",
                place=place,
                hint=f"put it after the function: {name}(…) AS F [RANGE 10 SECONDS]",
            )
        if length is None:
            raise SqlError(
                f"the input of {name} cannot have a ROWS window",
                place=place,
                hint="write [RANGE 10 SECONDS]",
            )
        return require_length(window, self.sql)

    def _input(self, call: TableCall, arguments: CallArguments) -> CallRows:
        """The input as a query of its own: columns that pass, keys, arguments."""
        answers = kind_of(call.function) is FunctionKind.ANSWERS
        items: list[exp.Expr] = [] if answers else [exp.Star()]
        items += [tree.copy() for tree in (*arguments.keys, *arguments.columns.values())]
        source = _without_window(call.args["input"])
        query = exp.Select(expressions=items or [exp.Star()], from_=exp.From(this=source))
        node = self.appended(query)
        used = len(arguments.keys) + len(arguments.columns)
        return CallRows(node, 0 if answers else len(node.columns) - used - 1)

    def _table(self, name: str, tree: exp.Expr) -> Node:
        node = self.relation(tree)
        if not is_static(node):
            raise SqlError(
                f"{name} is a query over static tables",
                place=place_of(tree, self.sql),
                hint="the tables of a function must not change while it runs",
            )
        return node

    def _node(
        self,
        call: TableCall,
        function: TableFunction,
        arguments: CallArguments,
        window: int | None,
        rows: CallRows,
        tables: Mapping[str, Node],
    ) -> Mined:
        hosted = self._hosted(function, arguments, window, rows, tables)
        with blamed(call, self.sql):
            results = [Column(one.name, one.kind) for one in function.results(hosted.call)]
        kind = kind_of(function.name)
        answers = kind is FunctionKind.ANSWERS
        every = self._every(call, arguments, window) if answers else 0
        own = rows.node.columns[: len(hosted.keys) if answers else rows.passed]
        self._require_distinct(call, own, results)
        time = () if answers else (Column(RESULT_TIME_NAME, TIMESTAMP),)
        inputs = (rows.node, *tables.values())
        shown = (*own, *results, *time)
        spec = _spec(hosted, kind, rows.passed, every, types_of(shown))
        return Mined(spec, inputs, names_of(shown), arguments.texts)

    def _hosted(
        self,
        function: TableFunction,
        arguments: CallArguments,
        window: int | None,
        rows: CallRows,
        tables: Mapping[str, Node],
    ) -> FunctionCall:
        """The call with its inputs by position: columns that pass come first, then the keys."""
        first = rows.passed + len(arguments.keys)
        places = {name: first + i for i, name in enumerate(arguments.columns)}
        kinds = tuple(one.kind for one in rows.node.columns)
        types = {name: kinds[place] for name, place in places.items()}
        self._check(function, arguments, types, tables)
        known = {name: tuple(one.kind for one in node.columns) for name, node in tables.items()}
        checked = CheckedCall(types, arguments.options, window, known)
        keys = tuple(range(rows.passed, first))
        return FunctionCall(function.name, checked, kinds, keys, places, tuple(tables))

    def _check(
        self,
        function: TableFunction,
        arguments: CallArguments,
        types: Mapping[str, object],
        tables: Mapping[str, Node],
    ) -> None:
        """Refuse columns of wrong types."""
        for one in function.columns:
            if one.name in types:
                tree = arguments.columns[one.name]
                require_type(one.name, types[one.name], one.takes, tree, self.sql)
        for table in function.tables:
            if table.name not in tables:
                continue
            tree, columns = arguments.tables[table.name], tables[table.name].columns
            needed = [one for one in table.columns if one.required]
            if not len(needed) <= len(columns) <= len(table.columns):
                names = ", ".join(one.name for one in table.columns)
                raise SqlError(
                    f"{table.name} has the columns {names}",
                    place=place_of(tree, self.sql),
                    detail=f"got {', '.join(one.name for one in columns)}",
                    hint="name them in this order",
                )
            for wanted, got in zip(table.columns, columns, strict=False):
                name = f"column {wanted.name} of {table.name}"
                require_type(name, got.kind, wanted.takes, tree, self.sql)

    def _every(self, call: TableCall, arguments: CallArguments, window: int | None) -> int:
        every = arguments.every or window
        if not every:
            raise SqlError(
                f"{call.function} needs the argument every: how often it emits results",
                place=place_of(call, self.sql),
                hint=f"write {call.function}(…, every => 1 MINUTE)",
            )
        return every

    def _require_distinct(
        self, call: TableCall, own: Sequence[Column], results: Sequence[Column]
    ) -> None:
        taken = {one.name.lower() for one in own}
        for one in results:
            if one.name.lower() in taken:
                raise SqlError(
                    f"{call.function} returns a column {one.name}, but its input already has one",
                    place=place_of(call.args["input"], self.sql),
                    hint=f"rename it: {call.function}((SELECT {one.name} AS other, … FROM …), …)",
                )


def _spec(
    call: FunctionCall, kind: FunctionKind, passed: int, every: int, kinds: tuple[pa.DataType, ...]
) -> RowsSpec | FollowSpec | AnswersSpec:
    match kind:
        case FunctionKind.ROWS:
            return RowsSpec(call, passed, kinds)
        case FunctionKind.FOLLOWS:
            return FollowSpec(call, passed, kinds)
        case FunctionKind.ANSWERS:
            return AnswersSpec(call, every, kinds)


def _without_window(entry: exp.Expr) -> exp.Expr:
    """The input without its window; a subquery gets a name if it has none."""
    copied = entry.copy()
    alias = copied.args.get("alias")
    if alias is not None:
        alias.set("stream_window", None)
    if isinstance(copied, exp.Subquery) and not copied.alias:
        copied.set("alias", exp.TableAlias(this=exp.to_identifier("input")))
    elif alias is not None and not alias.name and not alias.args.get("columns"):
        copied.set("alias", None)
    return copied
