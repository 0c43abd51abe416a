"""The plan of a query whose answer changes: operators over changes, from streams to the answer.

Leaves are select-project-join blocks over streams, which run as one window join each; what stands
above them takes changes and emits changes. A node that is used twice is one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from nilometer.mining.registry import FunctionKind, kind_of
from nilometer.operators.change_operator import DIFF, TIME, ChangeSpec
from nilometer.operators.stage import Execution
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.scalars import ColumnRef
from nilometer.sql.plan.join_plan import JoinPlan, Source

if TYPE_CHECKING:
    from nilometer.mining.hosted_answers import AnswersSpec
    from nilometer.mining.hosted_follow import FollowSpec
    from nilometer.mining.hosted_rows import RowsSpec
    from nilometer.operators.match_rows import MatchSpec
    from nilometer.operators.over_rows import OverSpec
    from nilometer.operators.table_over import TableOverSpec

RESULT_TIME_NAME = "time of the result"
"""The name of the time column inside plans; no user can choose this name."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a node's rows. Names are for people: nodes refer to columns by position.

    Computed values are cast to the type of the column if theirs differs.
    """

    name: str
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a result is kept after the latest time of these streams (microseconds)."""

    streams: tuple[str, ...]
    length: int
    until: ColumnRef | None = None
    """The column that says when rows are retracted, instead of a length."""


@dataclass(frozen=True, eq=False)
class Block:
    """A join of streams and static tables, the streams under time windows; or one alone.

    A result is emitted at the latest of its rows' times and retracted when its first lifetime
    ends: strictly later than all of them. Without any (only static tables) it holds for ever.
    """

    plan: JoinPlan
    """The plan after all rules; its items are the node's columns, without the result's time."""
    lifetimes: tuple[Lifetime, ...]
    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class LastRows:
    """The last n rows of a stream, or of each partition of it."""

    plan: JoinPlan
    """The plan after all rules; its one source has a ROWS window."""
    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Combine:
    """A join of the rows of other nodes.

    The sources of the plan stand for the inputs, in order; the columns of an input are those
    that its source carries. The times in the plan are those at which changes take effect.
    """

    plan: JoinPlan
    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """An operator over the changes of other nodes."""

    spec: ChangeSpec
    inputs: tuple[Node, ...]
    names: tuple[str, ...]
    """The names of its columns."""
    texts: tuple[str, ...] = ()
    """What it computes as the user wrote it, or might: first the test, if it has one."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(map(Column, self.names, self.spec.types))


# Operators that few statements need are imported only for these; so a class tells their nodes.


@dataclass(frozen=True, eq=False)
class Mined(Operation):
    """What a table function finds in the rows of its first input, which are only appended.

    Further inputs are static tables. If the function answers, the columns are those of the
    key and its own; otherwise the first `passed` of the input, its own, and the time.
    """

    spec: RowsSpec | FollowSpec | AnswersSpec

    @property
    def kind(self) -> FunctionKind:
        return kind_of(self.spec.function.name)


@dataclass(frozen=True, eq=False)
class Over(Operation):
    """Append-only rows, with window functions over each and the rows before it.

    The columns are the first `passed` of the input, the windows' values, and the time.
    """

    spec: OverSpec


@dataclass(frozen=True, eq=False)
class TableOver(Operation):
    """Rows that are complete at once, with window functions over each and those around it.

    Such are rows of static tables, and of time windows that are answered at their ends.

    The columns are the first `passed` of the input, and the windows' values.
    """

    spec: TableOverSpec


@dataclass(frozen=True, eq=False)
class Match(Operation):
    """Matches of a pattern in append-only rows; the last column is the time.

    Its texts are the pattern, and the definitions of its variables.
    """

    spec: MatchSpec
    skip_to: str = ""
    """The variable at whose row the next match may begin."""

    @property
    def skip(self) -> str:
        """Where the next match may begin, in words."""
        skip = str(self.spec.matching.skip.value)
        return skip + (f" {self.skip_to}" if self.skip_to else "")


Node: TypeAlias = Block | LastRows | Combine | Operation


def runs(node: Node | None, kind: type[ChangeSpec]) -> bool:
    """Whether a node's operator is of this kind."""
    return isinstance(node, Operation) and isinstance(node.spec, kind)


def types_of(columns: Sequence[Column]) -> tuple[pa.DataType, ...]:
    return tuple(one.kind for one in columns)


def names_of(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(one.name for one in columns)


def is_static(node: Node) -> bool:
    """Whether a node reads static tables alone, so that its rows have always held."""
    return all(source.is_table for leaf in leaves_of(node) for source in leaf.plan.sources)


def leaves_of(root: Node) -> Iterator[Block | LastRows]:
    """The joins below a node, each once."""
    seen, todo = set[int](), [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Block | LastRows):
            yield node
        todo += reversed(node.inputs)


@dataclass(frozen=True)
class ChangesPlan:
    """A statement whose answer is a changelog, or whose results come from table functions."""

    sql: str
    catalog: Catalog
    root: Node
    buckets: int
    execution: Execution | None = None
    """The execution that a hint chose, if any."""
    appends: bool = False
    """Whether nothing is ever retracted: results are appended, like those of a join."""

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of results besides those of the root."""
        return (TIME,) if self.appends else (TIME, DIFF)


@dataclass(frozen=True)
class UnionPlan:
    """Append queries whose results are combined: UNION ALL.

    The items of all plans have the names of the first's. Where `kinds` differs from the
    type of an item, the item is to be cast.
    """

    plans: tuple[JoinPlan, ...]
    kinds: tuple[pa.DataType | None, ...]
    """The types of the columns of the result; None: known to Spark alone."""

    @property
    def buckets(self) -> int:
        return self.plans[0].buckets


Plan: TypeAlias = JoinPlan | UnionPlan | ChangesPlan


def joins_of(plan: Plan) -> Iterator[JoinPlan]:
    """The joins that a plan consists of, each once."""
    match plan:
        case ChangesPlan():
            yield from (leaf.plan for leaf in leaves_of(plan.root))
        case UnionPlan():
            yield from plan.plans
        case JoinPlan():
            yield plan


def sources_of(plan: Plan) -> Iterator[Source]:
    """The streams and tables that a plan reads."""
    for join in joins_of(plan):
        yield from join.sources


def reads_tables_alone(plan: Plan) -> bool:
    """Whether a plan reads no streams."""
    return all(source.is_table for source in sources_of(plan))


def emits_changes(plan: Plan) -> bool:
    """Whether results are a changelog."""
    return isinstance(plan, ChangesPlan) and not plan.appends
