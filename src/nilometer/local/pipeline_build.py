"""The nodes of a windowed plan as operators of a pipeline, with queues between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from nilometer.errors import NotYetError
from nilometer.local.memory_store import MemoryStore
from nilometer.local.pipeline_leaves import (
    JoinPeriods,
    JoinSigned,
    RowsWindowed,
    Select,
    SelectPeriods,
)
from nilometer.local.pipeline_operators import Body, PipelineOperator
from nilometer.local.pipeline_queues import Inbox
from nilometer.local.pipeline_scan import Scan
from nilometer.local.read_source import read_source
from nilometer.operators.block import BlockSpec
from nilometer.operators.compute import NetSpec
from nilometer.operators.last_rows import LastRowsSpec
from nilometer.operators.stage import Execution
from nilometer.sql.change_physical import (
    StreamLeaf,
    build_block,
    build_last_rows,
    build_single,
    build_step,
    types_of,
)
from nilometer.sql.changes_plan import (
    Aggregate,
    Block,
    ChangesPlan,
    Combine,
    Compute,
    Counted,
    LastResults,
    LastRows,
    Node,
    Paced,
    TopRows,
    UnionAll,
)
from nilometer.sql.place_nodes import is_net


@dataclass(frozen=True)
class Built:
    """What gives the rows of a node."""

    operator: Scan | PipelineOperator
    types: tuple[pa.DataType, ...]
    in_periods: bool
    """Rows leave with their periods, for others to expire."""


class PipelineBuilder:
    """Makes operators, from scans to the answer; a node that is used twice is one operator."""

    def __init__(self, execution: Execution, distinct_times: bool) -> None:
        self.scans: list[Scan] = []
        self.operators: list[Scan | PipelineOperator] = []
        self._execution = execution
        self._distinct_times = distinct_times
        self._built: dict[int, Built] = {}
        self._names: Counter[str] = Counter()

    def build(self, plan: ChangesPlan) -> PipelineOperator:
        """The operator that gives the answer."""
        root, types = self._node(plan.root), types_of(plan.root.columns)
        if not plan.appends and not is_net(plan.root):
            net = NetSpec(types).start(MemoryStore())
            root = self._operator("net", net, [root], types)
        assert isinstance(root.operator, PipelineOperator)
        return root.operator

    def _node(self, node: Node) -> Built:
        if id(node) not in self._built:
            self._built[id(node)] = self._build(node)
        return self._built[id(node)]

    def _build(self, node: Node) -> Built:
        match node:
            case Block():
                return self._single(node) if len(node.plan.sources) == 1 else self._join(node)
            case LastRows():
                return self._last_rows(node)
        inputs = [self._node(one) for one in node.inputs]
        passes_on = isinstance(node, Compute | UnionAll) and all(one.in_periods for one in inputs)
        every = node.every if isinstance(node, Paced) else None
        step = build_step(node).start(MemoryStore())
        return self._operator(
            _name(node), step, inputs, types_of(node.columns), in_periods=passes_on, every=every
        )

    def _single(self, node: Block) -> Built:
        leaf = build_single(node)
        assert isinstance(leaf.spec, BlockSpec)
        lifetime = min((one.length for one in node.lifetimes), default=None)
        signs = self._execution is Execution.NTA
        scan = self._scan(leaf, 0, lifetime if signs else None)
        body = SelectPeriods(self._selection(leaf, 0), leaf.spec, signs)
        name = f"select {leaf.plan.sources[0].name}"
        return self._operator(name, body, [scan], leaf.spec.types, in_periods=not signs)

    def _last_rows(self, node: LastRows) -> Built:
        leaf = build_last_rows(node)
        assert isinstance(leaf.spec, LastRowsSpec)
        rows = self._select(leaf, 0, None)
        return self._operator("last rows", RowsWindowed(leaf.spec), [rows], leaf.spec.types)

    def _join(self, node: Block) -> Built:
        leaf = build_block(node)
        assert isinstance(leaf.spec, BlockSpec)
        signs = self._execution is Execution.NTA and _each_expires(node)
        lengths: dict[str, int] = {}
        for one in node.lifetimes if signs else ():
            (stream,) = one.streams
            lengths[stream] = min(one.length, lengths.get(stream, one.length))
        inputs = [
            self._select(leaf, number, lengths.get(source.name))
            for number, source in enumerate(leaf.plan.sources)
        ]
        body = JoinSigned(leaf.spec) if signs else JoinPeriods(leaf.spec)
        return self._operator("join", body, inputs, leaf.spec.types, in_periods=not signs)

    def _select(self, leaf: StreamLeaf, stream: int, lifetime: int | None) -> Built:
        scan = self._scan(leaf, stream, lifetime)
        body = self._selection(leaf, stream)
        name = f"select {leaf.plan.sources[stream].name}"
        return self._operator(name, body, [scan], tuple(body.types))

    def _selection(self, leaf: StreamLeaf, stream: int) -> Select:
        source = leaf.plan.sources[stream]
        by_arrival = source.relation.time is None and not source.is_table
        return Select(read_source(leaf.plan, source), leaf.spec, stream, by_arrival)

    def _scan(self, leaf: StreamLeaf, stream: int, lifetime: int | None) -> Built:
        source = leaf.plan.sources[stream]
        if source.expansions:
            raise NotYetError("the items of arrays cannot be sent tuple by tuple yet")
        name = self._distinct(f"scan {source.name}")
        scan = Scan(name, source.relation, lifetime, self._distinct_times)
        self.scans.append(scan)
        self.operators.append(scan)
        return Built(scan, tuple(scan.types), in_periods=False)

    def _operator(
        self,
        name: str,
        body: Body,
        inputs: list[Built],
        types: tuple[pa.DataType, ...],
        in_periods: bool = False,
        every: int | None = None,
    ) -> Built:
        inboxes = [
            Inbox(one.operator, one.types, expires=one.in_periods and not in_periods)
            for one in inputs
        ]
        operator = PipelineOperator(self._distinct(name), body, inboxes, self._execution, every)
        for one, inbox in zip(inputs, inboxes, strict=True):
            one.operator.receivers.append(inbox)
        self.operators.append(operator)
        return Built(operator, types, in_periods)

    def _distinct(self, name: str) -> str:
        """The name, numbered if it comes again."""
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name} ({self._names[name]})"


def _each_expires(node: Block) -> bool:
    """Whether results go when the first of their rows does: then negative rows say it all."""
    if any(len(one.streams) != 1 for one in node.lifetimes):
        return False
    ending = {one.streams[0] for one in node.lifetimes}
    return bool(ending) and all(s.is_table or s.name in ending for s in node.plan.sources)


def _name(node: Node) -> str:
    match node:
        case Aggregate():
            return "aggregate"
        case Counted(function):
            return function.lower()
        case Combine():
            return "combine"
        case Compute():
            return "compute"
        case UnionAll():
            return "union all"
        case TopRows():
            return "top rows"
        case LastResults():
            return "last results"
        case Paced():
            return "paced"
    raise AssertionError("a leaf has the name of its stream")
