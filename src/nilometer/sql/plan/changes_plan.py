"""The plan of a query whose answer changes: operators over changes, from streams to the answer.

Leaves are select-project-join blocks over streams, which run as one window join each; what stands
above them takes changes and gives changes. A node that is used twice is one object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from nilometer.mining.registry import Kind
from nilometer.model.expressions import Expression
from nilometer.model.time_windows import TimeWindows
from nilometer.operators.change_operator import DIFF, TIME
from nilometer.operators.change_specs import AggregateCall, SetFunction, SortKey
from nilometer.operators.match_spec import Matching
from nilometer.operators.stage import Execution
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.scalars import ColumnRef
from nilometer.sql.plan.join_plan import JoinPlan

if TYPE_CHECKING:
    from nilometer.mining.hosted import FunctionCall
    from nilometer.operators.over_rows import OverFunction
from nilometer.operators.table_over import TableWindow

RESULT_TIME_NAME = "time of the result"
"""What the column of the time is called inside plans: it can be no name of a user's."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a node's rows. Names are for people: nodes refer to columns by their places.

    What a node computes is cast to the type of its column, if it is of another.
    """

    name: str
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A result stays for so long after the latest time of these streams (microseconds)."""

    streams: tuple[str, ...]
    length: int
    until: ColumnRef | None = None
    """The column that says when the rows go, in place of a length."""


@dataclass(frozen=True, eq=False)
class Block:
    """A join of streams and static tables, the streams under time windows; or one alone.

    A result comes at the latest of its rows' times and goes when the first of its lifetimes
    is over: strictly later than all of them. Without any (only static tables) it stays for ever.
    """

    plan: JoinPlan
    """After all rules; its items are the columns of the node, without the time of the result."""
    lifetimes: tuple[Lifetime, ...]
    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class LastRows:
    """The last n rows of a stream, or of each partition of it."""

    plan: JoinPlan
    """After all rules; its one source has a ROWS window."""
    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class LastResults:
    """The last n results of a query that is appended to, or of each partition of them."""

    inputs: tuple[Node]
    count: int
    partition: tuple[int, ...]
    """Columns of the results."""
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Combine:
    """A join of what other nodes hold.

    The sources of the plan stand for the inputs, in order; the columns of an input are those
    that its source carries. The times in the plan are those at which changes take effect.
    """

    plan: JoinPlan
    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Compute:
    """Rows that pass a test, and what is computed of them."""

    inputs: tuple[Node]
    test: Expression | None
    values: tuple[Expression, ...]
    columns: tuple[Column, ...]
    texts: tuple[str, ...] = ()
    """The test, if there is one, and the values, as the user may have written them."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Copies of each distinct row, as a set operator counts them."""

    function: SetFunction
    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class UnionAll:
    """All rows of all inputs."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """A row per group, if it passes a test.

    The first columns of the input are the keys of the groups. Test and values are computed of
    the keys, followed by the results of the calls. Without keys there is always one group.
    """

    inputs: tuple[Node]
    keys: int
    calls: tuple[AggregateCall, ...]
    test: Expression | None
    values: tuple[Expression, ...]
    columns: tuple[Column, ...]
    texts: tuple[str, ...] = ()
    each_instant: bool = False
    """Whether rows come for one instant each, that of the end of their windows: so do groups."""


@dataclass(frozen=True, eq=False)
class TopRows:
    """The first rows in an order; ties are ordered by all columns, ascending, NULLs first."""

    inputs: tuple[Node]
    order: tuple[SortKey, ...]
    limit: int
    offset: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Paced:
    """Changes take effect at the next multiple of a length of time, and are netted there."""

    inputs: tuple[Node]
    every: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Lasting:
    """Results that were appended; each stays for so long after its own time (microseconds)."""

    inputs: tuple[Node]
    length: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Mined:
    """What a table function finds in the rows of its first input, which are only appended.

    Further inputs are static tables. Of a function that answers, the columns are those of the
    key and its own. Of others they are the first `passed` of the input, its own, and the time.
    """

    inputs: tuple[Node, ...]
    kind: Kind
    function: FunctionCall
    passed: int
    every: int
    """How often a function answers (microseconds); of others zero."""
    columns: tuple[Column, ...]
    texts: tuple[str, ...]
    """The arguments as the user has written them."""


@dataclass(frozen=True, eq=False)
class Over:
    """Rows that are only appended, and what windows say of each and those before it.

    The columns are the first `passed` of the input, what the windows say, and the time.
    """

    inputs: tuple[Node]
    functions: tuple[OverFunction, ...]
    keys: tuple[int, ...]
    passed: int
    columns: tuple[Column, ...]
    texts: tuple[str, ...]
    """The windows as the user has written them."""


@dataclass(frozen=True, eq=False)
class TableOver:
    """Rows of static tables, and what windows say of each and those around it.

    The columns are the first `passed` of the input, and what the windows say.
    """

    inputs: tuple[Node]
    windows: tuple[TableWindow, ...]
    passed: int
    columns: tuple[Column, ...]
    texts: tuple[str, ...]
    """The windows as the user has written them."""


@dataclass(frozen=True, eq=False)
class Match:
    """Matches of a pattern in rows that are only appended; the last column is the time."""

    inputs: tuple[Node]
    matching: Matching
    keys: tuple[int, ...]
    passed: int
    """By so many columns rows of one instant are ordered."""
    columns: tuple[Column, ...]
    texts: tuple[str, ...]
    """The pattern, and what it says of its variables."""
    arguments: tuple[str, ...]
    """What the measures are computed of, as the user has written it."""
    skip_to: str = ""
    """The variable at whose row the next match may begin."""

    @property
    def skip(self) -> str:
        """Where the next match may begin, in words."""
        return str(self.matching.skip.value) + (f" {self.skip_to}" if self.skip_to else "")


@dataclass(frozen=True, eq=False)
class WindowRows:
    """Rows that are only appended, in windows of time, whose starts and ends come behind them.

    A row is there once for each of its windows: at the instant at which it ends, if windows are
    answered at their ends; else from its own time until then.
    """

    inputs: tuple[Node]
    windows: TimeWindows
    keys: tuple[int, ...]
    """By which columns of the input rows have sessions of their own."""
    at_ends: bool
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class WindowEnds:
    """What holds at the ends of windows, appended."""

    inputs: tuple[Node]
    columns: tuple[Column, ...]


Node: TypeAlias = (
    Block
    | LastRows
    | LastResults
    | Combine
    | Compute
    | Counted
    | UnionAll
    | Aggregate
    | TopRows
    | Paced
    | Lasting
    | Mined
    | Over
    | TableOver
    | Match
    | WindowRows
    | WindowEnds
)


def is_static(node: Node) -> bool:
    """Whether a node reads static tables alone, so that all its rows hold since ever."""
    if isinstance(node, Block | LastRows):
        return all(source.is_table for source in node.plan.sources)
    return all(map(is_static, node.inputs))


@dataclass(frozen=True)
class ChangesPlan:
    """A statement whose answer is a changelog, or whose results come from table functions."""

    sql: str
    catalog: Catalog
    root: Node
    buckets: int
    execution: Execution | None = None
    """As a hint says, if there is one."""
    appends: bool = False
    """Whether nothing is ever taken back: results are appended, as those of a join."""

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that results have besides those of the root."""
        return (TIME,) if self.appends else (TIME, DIFF)


@dataclass(frozen=True)
class UnionPlan:
    """Append queries whose results are put together: UNION ALL.

    The items of all plans have the names of the first's. What `kinds` says differs from the
    type of an item where the item is to be cast.
    """

    plans: tuple[JoinPlan, ...]
    kinds: tuple[pa.DataType | None, ...]
    """The types of the columns of the result; None: only Spark knows."""

    @property
    def buckets(self) -> int:
        return self.plans[0].buckets


Plan: TypeAlias = JoinPlan | UnionPlan | ChangesPlan


def emits_changes(plan: Plan) -> bool:
    """Whether results are a changelog."""
    return isinstance(plan, ChangesPlan) and not plan.appends
