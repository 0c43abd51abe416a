"""Plans for Nile's pipelines, and their answers by definition: the plain query at an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from nilometer_papers.algorithms.nile.answer import AnswerOperator, Change
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline
from nilometer_papers.algorithms.nile.plan_tuple import Values
from nilometer_papers.algorithms.nile.project import Project
from nilometer_papers.algorithms.nile.select import Select
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.table_join import TableJoin
from nilometer_papers.algorithms.nile.w_aggregate import WAggregate
from nilometer_papers.algorithms.nile.w_distinct import WDistinct
from nilometer_papers.algorithms.nile.w_group_by import WGroupBy
from nilometer_papers.algorithms.nile.w_intersect import WIntersect
from nilometer_papers.algorithms.nile.w_join import WJoin
from nilometer_papers.algorithms.nile.w_minus import WMinus
from nilometer_papers.algorithms.nile.w_union import WUnion

Rows = Counter[Values]
Inputs = Sequence[tuple[int, int, Values]]
"""Tuples: (stream, timestamp, values)."""

FAVOURITES = [(0,), (2,)]
SETS: dict[str, type[WUnion | WMinus | WIntersect]] = {
    "union": WUnion,
    "minus": WMinus,
    "intersect": WIntersect,
}


@dataclass(frozen=True)
class Node:
    """A node of a plan; all rows have two columns, those of aggregates at the top any number."""

    kind: str
    below: tuple[Node, ...] = ()
    detail: Any = None

    @property
    def nodes(self) -> list[Node]:
        return [self, *(one for child in self.below for one in child.nodes)]


def key(values: Values) -> Any:
    return values[0]


def second(values: Values) -> Any:
    return values[1]


def scan(stream: int, window: int) -> Node:
    return Node("scan", (), (stream, window))


def operator(node: Node) -> Operator:
    """The operators of a node and of all nodes below it."""
    below = [operator(child) for child in node.below]
    match node.kind:
        case "scan":
            return StreamScan(*node.detail)
        case "select":
            return Select(below[0], lambda values: values[1] > node.detail)
        case "project":
            return Project(below[0], lambda values: (values[0], 0))
        case "table":
            joined = TableJoin(below[0], key, FAVOURITES, key)
            return Project(joined, lambda values: values[:2])
        case "join":
            joined_streams = WJoin(below[0], below[1], (key, key))
            return Project(joined_streams, lambda values: (values[0], values[1] + values[3]))
        case "distinct":
            return WDistinct(below[0])
        case "group":
            return WGroupBy(below[0], lambda values: values[:1], [(node.detail, second)])
        case "aggregate":
            return WAggregate(below[0], [(name, second) for name in node.detail])
        case kind:
            return SETS[kind](below[0], below[1])


def evaluate(node: Node, inputs: Inputs, at: int) -> Rows:
    """The answer of the plain query at an instant, by definition."""
    below = [evaluate(child, inputs, at) for child in node.below]
    match node.kind:
        case "scan":
            stream, window = node.detail
            return Counter(v for s, ts, v in inputs if s == stream and at - window <= ts <= at)
        case "select":
            return Counter({row: n for row, n in below[0].items() if row[1] > node.detail})
        case "project":
            return Counter((row[0], 0) for row in below[0].elements())
        case "table":
            return Counter({row: n for row, n in below[0].items() if row[:1] in FAVOURITES})
        case "join":
            first, other = (list(rows.elements()) for rows in below)
            return Counter((a[0], a[1] + b[1]) for a in first for b in other if a[0] == b[0])
        case "distinct":
            return Counter(set(below[0]))
        case "group":
            groups = {row[0] for row in below[0]}
            return Counter((g, aggregate(node.detail, below[0], g)) for g in groups)
        case "aggregate":
            return Counter([tuple(aggregate(name, below[0]) for name in node.detail)])
        case "union":
            return below[0] + below[1]
        case "minus":
            return below[0] - below[1]
        case _:
            return below[0] & below[1]


def aggregate(name: str, rows: Rows, group: Any = None) -> Any:
    values = [row[1] for row in rows.elements() if group is None or row[0] == group]
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "SUM": sum,
        "MIN": min,
        "MAX": max,
        "AVG": lambda given: sum(given) / len(given),
    }
    if name == "COUNT":
        return len(values)
    return functions[name](values) if values else None


def fold(changes: Sequence[Change], at: int) -> Rows:
    """The answer that changes add up to at an instant."""
    rows: Rows = Counter()
    for values, instant, sign in changes:
        if instant <= at:
            rows[values] += sign
    assert min(rows.values(), default=0) >= 0
    return +rows


class Ticks:
    """A meter that advances by a millisecond between two readings."""

    def __init__(self) -> None:
        self._readings = 0

    def __call__(self) -> int:
        self._readings += 1
        return self._readings * 1_000_000


def pipeline(node: Node, approach: Approach, meter: Callable[[], int] = lambda: 0) -> Pipeline:
    """A running pipeline of a plan, on a clock that work does not move unless told."""
    return Pipeline(AnswerOperator(operator(node)), approach, meter)


def generate_inputs(random: Random) -> list[Arrival]:
    """Two streams in order of arrival: delays, bursts, equal times, silence."""
    delays = [random.choice((0, 0, random.randint(1, 12))) for _ in range(2)]
    keys, arrivals = random.randint(1, 4), []
    for stream in range(2):
        time = random.randint(0, 6)
        for _ in range(random.choice((0, 1, 12, 18, 18))):
            values = (random.randrange(keys), random.randrange(4))
            arrivals.append(Arrival(time + delays[stream], stream, time, values))
            time += random.choice((0, 0, 1, 1, 2, 3, 8))
    return sorted(arrivals, key=lambda one: one.clock)


def generate_plan(random: Random, depth: int) -> Node:
    """A plan over two streams, with one window or two."""
    windows = [random.randint(0, 9)] * 2
    if random.random() < 0.5:
        windows[1] = random.randint(0, 9)
    return _any_node(random, depth, windows)


def _any_node(random: Random, depth: int, windows: Sequence[int]) -> Node:
    if depth == 0:
        stream = random.randrange(2)
        return scan(stream, windows[stream])
    kind = random.choice(
        ("select", "project", "table", "distinct", "group", "union", "minus", "intersect", "join")
    )
    count = 2 if kind in ("join", *SETS) else 1
    below = tuple(_any_node(random, depth - 1, windows) for _ in range(count))
    if kind == "group":
        return Node(kind, below, random.choice(("SUM", "COUNT", "MIN", "MAX")))
    return Node(kind, below, random.randint(0, 2) if kind == "select" else None)
