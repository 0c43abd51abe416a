"""Decide where the nodes of a windowed plan run, so that rows to be compared are together.

A node wants its input's rows together by some of their columns (a group's keys, all columns of a
set operator, the keys of a join). If they already are, or if they come straight from a stream,
which can be routed by any columns, the node runs in the same stage; otherwise the plan is cut
there, and rows travel on. Zero columns mean one place for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nilometer.kernels.routing import Routing
from nilometer.mining.registry import FunctionKind
from nilometer.model.time_windows import SessionWindows
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.block import BlockSpec
from nilometer.operators.change_operator import ChangeSpec
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.last_results import LastResultsSpec
from nilometer.operators.last_rows import LastRowsSpec
from nilometer.operators.lasting import LastingSpec
from nilometer.operators.leaves import LeafSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.received import ReceivedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.operators.window_ends import WindowEndsSpec
from nilometer.operators.window_rows import WindowRowsSpec
from nilometer.sql.physical.change_places import (
    StreamLeaf,
    build_block,
    build_last_rows,
    build_single,
    spec_of,
)
from nilometer.sql.physical.rows_together import (
    Places,
    above,
    all_columns,
    is_free,
    key_places,
    short_columns,
    shown,
    through,
)
from nilometer.sql.plan.changes_plan import (
    Block,
    Combine,
    LastRows,
    Match,
    Mined,
    Node,
    Operation,
    Over,
    TableOver,
    names_of,
    types_of,
)
from nilometer.sql.plan.join_plan import JoinPlan


@dataclass(eq=False)
class StageDraft:
    """A stage under construction."""

    routing: Routing | None
    """The routing that a join needs; None: by key, or everything in one bucket."""
    buckets: int
    merged: StageDraft | None = None
    is_closed: bool = False
    """Whether it sends already, so that no more tasks can be added."""

    @property
    def root(self) -> StageDraft:
        return self if self.merged is None else self.merged.root


@dataclass(eq=False)
class Task:
    """A leaf or a step of a stage."""

    spec: LeafSpec | ChangeSpec
    inputs: list[Task]
    draft_at_first: StageDraft
    streams: list[tuple[JoinPlan, int]] = field(default_factory=list)
    """The streams of a leaf."""
    feed: Task | None = None
    """The senders of a receiving leaf."""
    places: list[Places | None] = field(default_factory=list)
    """The columns by which the rows of each of a leaf's streams are routed."""
    names: tuple[str, ...] = ()
    """The names of the columns that a receiving leaf gets."""
    together: Places | None = None
    """The columns by which its rows are together; None: by columns that are gone."""

    @property
    def draft(self) -> StageDraft:
        return self.draft_at_first.root

    @property
    def leaf(self) -> LeafSpec:
        assert isinstance(self.spec, BlockSpec | LastRowsSpec | ReceivedSpec)
        return self.spec

    @property
    def step(self) -> ChangeSpec:
        assert not isinstance(self.spec, BlockSpec | LastRowsSpec | ReceivedSpec)
        return self.spec


@dataclass(frozen=True)
class PlacedTask:
    """A task, and how its rows are together."""

    task: Task
    together: Places | None
    """The columns by which rows are together; None: by columns that are gone."""

    def __post_init__(self) -> None:
        self.task.together = self.together


class Placer:
    """Finds a place for every node."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._placed: dict[int, PlacedTask] = {}

    def place(self, node: Node, wanted: Places | None) -> PlacedTask:
        """Place a node, if possible with its rows together by the wanted columns."""
        known = self._placed.get(id(node))
        if known is not None and not known.task.draft.is_closed:
            fits = wanted is None or known.together == wanted
            if fits or not is_free(node):
                return known
        placed = self._place(node, wanted)
        self._placed[id(node)] = placed
        return placed

    def _place(self, node: Node, wanted: Places | None) -> PlacedTask:
        match node:
            case Block() if len(node.plan.sources) == 1:
                return self._single(node, all_columns(node) if wanted is None else wanted)
            case Block():
                return self._block(node)
            case LastRows():
                return self._last_rows(node)
            case Combine():
                return self._combine(node)
            case Over():
                return self._over(node)
            case TableOver():
                return self._table_over(node)
            case Match():
                return self._match(node)
            case Mined():
                return self._mined(node, wanted)
            case Operation(ComputeSpec() as spec):
                return self._compute(node, spec, wanted)
            case Operation(AggregateSpec() as spec):
                return self._aggregate(node, spec, wanted)
            case Operation(TopRowsSpec()):
                return self._alone(node, ())
            case Operation(LastResultsSpec() as spec):
                return self._alone(node, spec.partition)
            case Operation(PacedSpec() | WindowEndsSpec()):
                return self._alone(node, None)
            case Operation(WindowRowsSpec() as spec):
                return self._window_rows(node, spec, wanted)
            case Operation(LastingSpec()):
                return self._lasting(node, wanted)
            case Operation(SetCountsSpec() | UnionAllSpec()):
                return self._counted(node, wanted)
        raise AssertionError(node)

    def cut(self, placed: PlacedTask, node: Node, wanted: Places) -> PlacedTask:
        """The same rows in a new stage, together by the wanted columns."""
        if placed.task.draft.is_closed:  # a stage sends to only one other
            return self._second_copy(node, wanted)
        draft = StageDraft(None, self._buckets if wanted else 1)
        placed.task.draft.is_closed = True
        leaf = ReceivedSpec(types_of(node.columns), as_periods=False)
        names = names_of(node.columns)
        task = Task(leaf, [], draft, feed=placed.task, places=[wanted or None], names=names)
        return PlacedTask(task, wanted)

    def _single(self, node: Block, wanted: Places) -> PlacedTask:
        leaf = build_single(node)
        assert leaf.places is not None
        draft = StageDraft(None, self._buckets if wanted else 1)
        columns = tuple(leaf.places[place] for place in wanted) or None
        return PlacedTask(_leaf_task(leaf, draft, [columns]), wanted)

    def _block(self, node: Block) -> PlacedTask:
        leaf = build_block(node)
        routing = node.plan.routing
        assert routing is not None
        own = [places[0] for places in routing.places]
        if len(routing.shares) == 1 and None not in own and len(leaf.plan.keys) == 1:
            draft = StageDraft(None, routing.buckets)
            together = key_places(leaf.plan, node)
            return PlacedTask(_leaf_task(leaf, draft, own), together)
        draft = StageDraft(routing, routing.buckets)
        return PlacedTask(_leaf_task(leaf, draft, [None] * len(own)), None)

    def _last_rows(self, node: LastRows) -> PlacedTask:
        leaf = build_last_rows(node)
        source = leaf.plan.sources[0]
        assert source.rows is not None
        assert isinstance(leaf.spec, LastRowsSpec)
        columns = leaf.spec.window.partition
        refs = [source.carried[c].ref for c in columns]
        if not refs:
            return PlacedTask(_leaf_task(leaf, StageDraft(None, 1), [None]), ())
        task = _leaf_task(leaf, StageDraft(None, self._buckets), [columns])
        kinds = [source.carried[c].kind for c in columns]
        return PlacedTask(task, shown(node, leaf.plan, [(ref,) for ref in refs], kinds))

    def _compute(self, node: Operation, spec: ComputeSpec, wanted: Places | None) -> PlacedTask:
        below = self.place(node.inputs[0], through(wanted, node, spec))
        return _above(node, below, above(below.together, node, spec))

    def _aggregate(self, node: Operation, spec: AggregateSpec, wanted: Places | None) -> PlacedTask:
        keys, child = tuple(range(spec.keys)), node.inputs[0]
        columns = through(wanted, node, spec)
        columns = columns if columns and set(columns) <= set(keys) else keys
        below = self._together_by(child, columns, keys)
        return _above(node, below, above(below.together, node, spec))

    def _window_rows(
        self, node: Operation, spec: WindowRowsSpec, wanted: Places | None
    ) -> PlacedTask:
        """Rows together as in the input; those of a session in one bucket."""
        child = node.inputs[0]
        own = tuple(place for place in wanted or () if place < len(child.columns))
        if isinstance(spec.windows, SessionWindows):
            columns = own if own and set(own) <= set(spec.keys) else spec.keys
            below = self._together_by(child, columns, spec.keys)
        else:
            below = self.place(child, None if wanted is None else own)
        return _above(node, below, below.together)

    def _alone(self, node: Operation, wanted: Places | None) -> PlacedTask:
        child = node.inputs[0]
        within = all_columns(child) if wanted is None else wanted
        below = self._together_by(child, within, within)
        return _above(node, below, below.together)

    def _over(self, node: Over) -> PlacedTask:
        below = self._together_by(node.inputs[0], node.spec.keys, node.spec.keys)
        return _above(node, below, None)

    def _table_over(self, node: TableOver) -> PlacedTask:
        """Rows together by the columns that all PARTITION BY clauses share."""
        shared = set.intersection(*(set(one.partition) for one in node.spec.windows))
        keys = tuple(sorted(shared))
        below = self._together_by(node.inputs[0], keys, keys)
        return _above(node, below, None if keys else below.together)

    def _match(self, node: Match) -> PlacedTask:
        """The rows of a partition in one bucket; its matches show the partition's columns."""
        keys, shown = node.spec.keys, node.spec.matching.before
        below = self._together_by(node.inputs[0], keys, keys)
        return _above(node, below, tuple(shown.index(place) for place in below.together or ()))

    def _lasting(self, node: Operation, wanted: Places | None) -> PlacedTask:
        below = self.place(node.inputs[0], wanted)
        return _above(node, below, below.together)

    def _mined(self, node: Mined, wanted: Places | None) -> PlacedTask:
        """Rows of a key together, with all rows of static tables in every bucket."""
        child, keys = node.inputs[0], node.spec.function.keys
        if node.kind is FunctionKind.ROWS:
            own = wanted if wanted and max(wanted) < node.spec.passed else short_columns(child)
            below = self.place(child, own)
        else:
            below = self._together_by(child, keys, keys)
        if below.task.draft.is_closed or (node.inputs[1:] and below.task.draft.routing):
            below = self.cut(below, child, below.together or keys)
        tables = [self._copied(one, below.task.draft) for one in node.inputs[1:]]
        task = Task(spec_of(node), [below.task, *tables], below.task.draft)
        return PlacedTask(task, self._columns_in(node, below.together))

    def _columns_in(self, node: Mined, together: Places | None) -> Places | None:
        """The columns of the input, by which rows are together, as columns of the node."""
        if together is None or node.kind is not FunctionKind.ANSWERS:
            return None if together is None or max((0, *together)) >= node.spec.passed else together
        keys = node.spec.function.keys
        return (
            tuple(keys.index(place) for place in together) if set(together) <= set(keys) else None
        )

    def _copied(self, node: Node, draft: StageDraft) -> Task:
        """All rows of a static table, in every bucket of a stage."""
        placed = self.place(node, ())
        if placed.task.inputs or placed.together != () or placed.task.draft.is_closed:
            placed = self.cut(placed, node, ())
        placed.task.draft.merged = draft
        return placed.task

    def _together_by(self, node: Node, wanted: Places, within: Places) -> PlacedTask:
        """Place a node so that rows are together by some of these columns."""
        below = self.place(node, wanted)
        if below.together is None or not set(below.together) <= set(within):
            return self.cut(below, node, wanted)
        return below

    def _counted(self, node: Operation, wanted: Places | None) -> PlacedTask:
        columns = all_columns(node) if wanted is None else wanted
        placed: dict[int, PlacedTask] = {}
        for number in sorted(range(len(node.inputs)), key=lambda n: is_free(node.inputs[n])):
            placed[number] = self.place(node.inputs[number], columns)
            if placed[number].together is not None:
                columns = placed[number].together or ()
        return self._join_drafts(node, placed, [columns] * len(node.inputs), columns)

    def _combine(self, node: Combine) -> PlacedTask:
        sources = node.plan.sources
        shared = next((k for k in node.plan.keys if len(k.streams) == len(sources)), None)
        wanted: list[Places] = [
            ()
            if shared is None
            else tuple(source.carried.index(equal.of(source.name)) for equal in shared.classes)
            for source in sources
        ]
        placed = {n: self.place(one, wanted[n]) for n, one in enumerate(node.inputs)}
        together = () if shared is None else key_places(node.plan, node)
        return self._join_drafts(node, placed, wanted, together)

    def _join_drafts(
        self,
        node: Combine | Operation,
        placed: dict[int, PlacedTask],
        wanted: Sequence[Places],
        together: Places | None,
    ) -> PlacedTask:
        """One stage for all inputs; an input not together as wanted is cut off."""
        for number, child in enumerate(node.inputs):
            if placed[number].together != wanted[number]:
                placed[number] = self.cut(placed[number], child, wanted[number])
        for number, child in enumerate(node.inputs):
            if placed[number].task.draft.is_closed:  # it sends to one of the others
                placed[number] = self._second_copy(child, wanted[number])
        tasks = [placed[number].task for number in range(len(node.inputs))]
        draft = StageDraft(None, self._buckets if wanted[0] else 1)
        for own in dict.fromkeys(task.draft for task in tasks):
            own.merged = draft
        return PlacedTask(Task(spec_of(node), tasks, draft), together)

    def _second_copy(self, node: Node, wanted: Places) -> PlacedTask:
        """A second copy of a node, in stages of its own."""
        fresh = Placer(self._buckets)
        below = fresh.place(node, wanted)
        return below if below.together == wanted else fresh.cut(below, node, wanted)


def _above(node: Operation, below: PlacedTask, together: Places | None) -> PlacedTask:
    """A node in the stage of its only input."""
    return PlacedTask(Task(node.spec, [below.task], below.task.draft), together)


def _leaf_task(leaf: StreamLeaf, draft: StageDraft, places: Sequence[Places | None]) -> Task:
    streams = [(leaf.plan, number) for number in range(len(leaf.plan.sources))]
    return Task(leaf.spec, [], draft, streams, places=list(places))
