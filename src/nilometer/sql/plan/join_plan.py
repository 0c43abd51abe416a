"""The plan of a query: one N-way window join, filled in by one rule after another.

Every select-project-join query of the dialect, however its subqueries nest, is one such join:
all combinations of one row of each source that satisfy the windows, the keys and the rest of
the conditions. `sql.rules` says in which order the fields below are filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from nilometer.errors import Place
from nilometer.kernels.chunk import Kernel
from nilometer.kernels.routing import Routing
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.model.join_cost import StreamLoad
from nilometer.model.network import TimeNetwork
from nilometer.model.time_windows import TimeWindows
from nilometer.model.windows import Window
from nilometer.operators.offered_algorithms import OfferedAlgorithm
from nilometer.operators.stage import OperatorSpec
from nilometer.operators.window_join import WindowJoinSpec
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.expressions.scalars import ColumnRef, Ref, Scalar
from nilometer.sql.plan.parting import Parting

if TYPE_CHECKING:
    from nilometer.sql.plan.bound_query import BoundQuery
    from nilometer.sql.plan.changes_plan import Node


@dataclass(frozen=True)
class RowsClause:
    """``[PARTITION BY … ROWS n]``: the last n rows of a stream, or of each of its partitions."""

    count: int
    place: Place
    partition: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(map(str, self.partition))} " if self.partition else ""
        return f"[{by}ROWS {self.count}]"


@dataclass(frozen=True)
class WindowsClause:
    """Time windows over an append query."""

    query: BoundQuery
    windows: TimeWindows
    partition: tuple[Scalar, ...] = ()
    """The columns by which sessions are separated."""


@dataclass(frozen=True)
class Carried:
    """A column that travels to the join, as the type in which it is kept there."""

    ref: Ref
    kind: pa.DataType


@dataclass(frozen=True)
class Source:
    """A stream or a static table under the name that it has in the query."""

    name: str
    relation: Relation
    place: Place
    rows: RowsClause | None = None
    below: tuple[Scalar, ...] = ()
    """Selections that rows must pass first; the times of all rows count nevertheless."""
    above: tuple[Scalar, ...] = ()
    """Selections over the rows that a ROWS window holds."""
    carried: tuple[Carried, ...] = ()
    """The columns that travel to the join and are kept in its state."""
    node: Node | None = None
    """The node of the rows, if this is a query in FROM that runs as a node of its own."""
    in_windows: WindowsClause | None = None
    """What the node is made of, if it puts rows into time windows."""
    until: ColumnRef | None = None
    """Where the answer changes: the column that says until when a row counts, if one does."""
    expansions: tuple[Expansion, ...] = ()
    """Arrays of which each item makes a row; items are further columns of the relation."""
    in_order: frozenset[str] = frozenset()
    """Columns besides the time that increase with it, as window starts do with window ends."""
    is_held: bool = False
    """Whether its rows are changes of a node: they have no time by which they are kept."""

    @property
    def is_table(self) -> bool:
        return self.relation.is_table

    @property
    def time(self) -> ColumnRef:
        return ColumnRef(self.name, self.relation.time_column)

    @property
    def is_block(self) -> bool:
        """Whether it can be part of a block; otherwise its rows need a node of their own."""
        return self.node is None and self.rows is None and self.until is None


@dataclass(frozen=True)
class Expansion:
    """An array or map that makes a row per item; an empty one makes a row without an item."""

    array: Scalar
    kind: pa.DataType
    columns: tuple[str, ...]
    """The number of the item, NULL without an item, and the item itself: the key and the
    value of a map."""


@dataclass(frozen=True)
class Item:
    """A column of the result."""

    name: str
    value: Scalar


@dataclass(frozen=True)
class EqualValues:
    """Columns of different streams that must have the same value."""

    members: tuple[Ref, ...]
    kind: pa.DataType

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(member.stream for member in self.members)

    def of(self, stream: str) -> Carried:
        """The stream's column, in the type in which it is compared."""
        ref = next(member for member in self.members if member.stream == stream)
        return Carried(ref, self.kind)


@dataclass(frozen=True)
class JoinKey:
    """Values that the same streams must share, by which their rows are looked up."""

    classes: tuple[EqualValues, ...]

    @property
    def streams(self) -> frozenset[str]:
        return self.classes[0].streams


@dataclass(frozen=True)
class ChosenAlgorithm:
    """An algorithm that the user chose for a join."""

    algorithm: OfferedAlgorithm
    place: Place | None = None
    """Where the hint stands, if it was chosen by one."""
    parameters: AlgorithmParameters = field(default_factory=AlgorithmParameters)

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def paper(self) -> str:
        return self.algorithm.paper

    def host(self, join: WindowJoinSpec) -> OperatorSpec:
        """The operator that runs it instead of a join; raises an error if it cannot."""
        return self.algorithm.host(join, self.parameters)


@dataclass(frozen=True)
class JoinPlan:
    """A window join."""

    sql: str
    catalog: Catalog
    sources: tuple[Source, ...]
    windows: tuple[Window, ...]
    conditions: tuple[Scalar, ...]
    """Conditions that no rule has moved yet."""
    items: tuple[Item, ...]
    windows_place: Place | None
    """Where the WINDOW clause stands, if there is one."""
    time_conditions: tuple[tuple[Window, Place], ...] = ()
    """The windows that were written as conditions on times, with their positions."""
    keys: tuple[JoinKey, ...] = ()
    residuals: tuple[Scalar, ...] = ()
    """Conditions that the join itself tests."""
    after: tuple[Scalar, ...] = ()
    """Conditions that only Spark can test, on results."""
    output: tuple[Carried, ...] = ()
    """The columns that leave the join, besides the time of the result."""
    wanted_kernel: Kernel | None = None
    """The kernel that the user chose, if any."""
    kernel: Kernel = Kernel.MERGE
    algorithm: ChosenAlgorithm | None = None
    """The algorithm that runs instead of the columnar join, if any."""
    buckets: int = 1
    routing: Routing | None = None
    routing_reason: str = ""
    parting: Parting | None = None
    """How the rows of a key are spread over several buckets, if they are."""
    loads: tuple[StreamLoad, ...] = ()
    """Rates, windows and distinct values, as declared or assumed."""
    orders: tuple[tuple[int, ...], ...] = ()
    """For new rows of each source, the order in which the others are looked up."""
    costs: tuple[float, ...] = ()
    """The cost of each of these orders, in candidates per second."""

    @cached_property
    def network(self) -> TimeNetwork:
        """The windows, closed; raises WindowError if they contradict each other."""
        return TimeNetwork(
            tuple(source.name for source in self.sources),
            self.windows,
            static=frozenset(s.name for s in self.sources if s.is_table or s.is_held),
            rows=frozenset(s.name for s in self.sources if s.rows is not None),
        )

    @property
    def by_name(self) -> Mapping[str, Source]:
        return {source.name: source for source in self.sources}

    def number(self, stream: str) -> int:
        return [source.name for source in self.sources].index(stream)
