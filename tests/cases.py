"""Generated window joins: streams, windows and the order in which rows arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from nilometer.errors import WindowError
from nilometer.kernels.chunk import Kernel, RowLayout
from nilometer.kernels.routing import route_by_keys, route_without_key
from nilometer.kernels.window_join import Residual
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow, RangeWindow, UniformWindow, Window
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.operators.window_join import WindowJoinSpec

SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("v", pa.int64()), ("id", pa.int64())]
)
LAYOUT = RowLayout(0, ((1,),))
KEYLESS = RowLayout(0, ())

Row = tuple[int | None, int | None, int, int]
"""(time, key, value, number of the row in its stream)"""


@dataclass(frozen=True)
class JoinCase:
    """A join and its input: the rows of every stream in order of arrival."""

    network: TimeNetwork
    streams: tuple[tuple[Row, ...], ...]
    lateness: tuple[int, ...]

    def batch(self, stream: int, first: int, last: int) -> pa.RecordBatch:
        return to_batch(self.streams[stream][first:last])

    def stage(
        self,
        kernel: Kernel = Kernel.HASH,
        buckets: int = 1,
        residuals: tuple[Residual, ...] = (),
    ) -> Stage:
        n = len(self.streams)
        keyed = kernel is not Kernel.MERGE
        layouts = ((LAYOUT if keyed else KEYLESS),) * n
        spec = WindowJoinSpec(
            self.network,
            (SCHEMA,) * n,
            layouts,
            tuple((s, 3) for s in range(n)),
            kernel,
            residuals,
        )
        routing = (
            route_by_keys((((1,),),) * n, buckets)
            if keyed
            else route_without_key((tuple(range(4)),) * n, buckets)
        )
        return Stage(spec, tuple(StreamClock(late) for late in self.lateness), routing)


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@st.composite
def networks(draw: st.DrawFn, streams: int, longest: int = 6) -> TimeNetwork:
    """All forms: uniform, paths and graphs of pairs (plain, directed, signed), ranges."""
    names = tuple("ABCDEF"[:streams])
    length = st.integers(0, longest)
    form = draw(st.sampled_from(("uniform", "pairs", "pairs", "pairs", "ranges", "mixed")))
    windows: list[Window] = []
    if form in ("uniform", "mixed"):
        windows.append(UniformWindow(draw(length)))
    if form == "ranges":
        windows += [RangeWindow(name, draw(length)) for name in names]
    if form in ("pairs", "mixed"):
        for i in range(1, streams):
            windows.append(draw(pairs(names[draw(st.integers(0, i - 1))], names[i], longest)))
        for _ in range(draw(st.integers(0, 2))):
            first, second = draw(st.permutations(names))[:2]
            windows.append(draw(pairs(first, second, longest)))
    try:
        return TimeNetwork(names, tuple(windows))
    except WindowError:
        assume(False)
        raise


@st.composite
def pairs(draw: st.DrawFn, first: str, second: str, longest: int) -> PairWindow:
    kind = draw(st.sampled_from(("window", "dwindow", "between")))
    w = draw(st.integers(0, longest))
    if kind == "window":
        return PairWindow(first, second, -w, w)
    if kind == "dwindow":
        return PairWindow(first, second, 0, w)
    low = draw(st.integers(-longest, w))
    return PairWindow(first, second, low, w)


@st.composite
def join_cases(
    draw: st.DrawFn, max_streams: int = 6, max_rows: int = 12, keys: int = 3
) -> JoinCase:
    """Streams with equal timestamps, NULL keys and times, empty ones, and rows out of order."""
    n = draw(st.integers(2, max_streams))
    network = draw(networks(n))
    streams, lateness = [], []
    key = st.one_of(st.none(), *[st.integers(0, keys - 1)] * 5)
    for _ in range(n):
        late = draw(st.sampled_from((0, 0, 1, 3, 8)))
        rows = draw(
            st.lists(
                st.tuples(st.integers(0, 25), key, st.integers(0, 4), st.integers(0, late)),
                max_size=max_rows,
            )
        )
        arriving = sorted(rows, key=lambda row: row[0] + row[3])
        numbered: list[Row] = [(t, k, v, i) for i, (t, k, v, _) in enumerate(arriving)]
        if numbered and draw(st.integers(0, 9)) == 0:
            place = draw(st.integers(0, len(numbered) - 1))
            numbered[place] = (None, *numbered[place][1:])
        streams.append(tuple(numbered))
        lateness.append(late)
    return JoinCase(network, tuple(streams), tuple(lateness))


@st.composite
def splits(draw: st.DrawFn, case: JoinCase, max_batches: int = 5) -> list[list[tuple[int, int]]]:
    """Micro-batches: for each, the part of every stream that arrives in it."""
    batches = draw(st.integers(1, max_batches))
    cuts = [
        [0, *sorted(draw(st.integers(0, len(rows))) for _ in range(batches - 1)), len(rows)]
        for rows in case.streams
    ]
    return [[(cut[b], cut[b + 1]) for cut in cuts] for b in range(batches)]
