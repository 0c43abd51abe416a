"""Generated joins of every shape: key graphs, static tables, ROWS windows, streams that ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from nilometer.errors import WindowError
from nilometer.kernels.chunk import Kernel, RowLayout, StreamKeys
from nilometer.kernels.routing import (
    Routing,
    route_by_keys,
    route_in_parts,
    route_with_rows,
    route_without_key,
)
from nilometer.kernels.rows_window import RowsWindow
from nilometer.model.network import TimeNetwork
from nilometer.model.time import EARLIEST
from nilometer.model.windows import RangeWindow, UniformWindow, Window
from nilometer.operators.stage import Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.operators.window_join import WindowJoinSpec
from tests.cases import pairs

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("z", pa.float64()),
        ("chosen", pa.bool_()),
        ("id", pa.int64()),
    ]
)
ID = 5
CHOSEN = 4
ORDER = (1, 2, 3, 4, 5)

GraphRow = tuple[int | None, int | None, int | None, float | None, bool | None, int]


@dataclass(frozen=True)
class GraphCase:
    """A join and its input: the rows of every stream in order of arrival."""

    network: TimeNetwork
    keys: tuple[StreamKeys, ...]
    rows: tuple[RowsWindow | None, ...]
    streams: tuple[tuple[GraphRow, ...], ...]
    lateness: tuple[int, ...]
    ended: frozenset[int]
    """Streams whose rows all exist before the query starts; static tables among them."""

    def batch(self, stream: int, first: int = 0, last: int | None = None) -> pa.RecordBatch:
        return to_batch(self.streams[stream][first:last])

    def stage(
        self, kernel: Kernel = Kernel.HASH, buckets: int = 1, parts: tuple[int, int] | None = None
    ) -> Stage:
        """The stage in so many buckets; `parts`: how many a key has, and of which stream."""
        n = len(self.streams)
        layouts = tuple(RowLayout(0, keys) for keys in self.keys)
        output = tuple((s, ID) for s in range(n))
        spec = WindowJoinSpec(self.network, (SCHEMA,) * n, layouts, output, kernel, rows=self.rows)
        clocks = tuple(
            StreamClock(late, ended=i in self.ended) for i, late in enumerate(self.lateness)
        )
        return Stage(spec, clocks, self.routing(buckets, parts))

    def routing(self, buckets: int, parts: tuple[int, int] | None = None) -> Routing:
        if parts is not None:
            return route_in_parts(self.keys, buckets, *parts, ORDER)
        if any(self.rows):
            return route_with_rows(self.keys, self.rows, buckets).routing
        if self.keys[0]:
            return route_by_keys(self.keys, buckets)
        return route_without_key(((0, 1, 5),) * len(self.streams), buckets)


def to_batch(rows: Sequence[GraphRow]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@st.composite
def graph_cases(
    draw: st.DrawFn, max_streams: int = 5, counted: bool | None = None, live: bool = True
) -> GraphCase:
    """Joins of up to five streams; `counted` says whether some have ROWS windows."""
    n = draw(st.sampled_from([n for n in (2, 3, 1, 4, 5, 2, 3) if n <= max_streams]))
    names = tuple("ABCDE"[:n])
    kinds = st.sampled_from(("plain", "plain", "plain", "ended", "static"))
    kind = [draw(kinds) for _ in names]
    if live and not {"plain"} & set(kind):
        kind[draw(st.integers(0, n - 1))] = "plain"
    static = frozenset(name for name, k in zip(names, kind, strict=True) if k == "static")
    keys = draw(key_graphs(n))
    rows = draw(rows_windows(kind, keys)) if counted is not False else (None,) * n
    assume(counted is None or any(rows) == counted)
    network = draw(_networks(names, static, rows))
    lateness = tuple(draw(st.sampled_from((0, 0, 1, 4))) for _ in names)
    streams = tuple(
        draw(stream_rows(late, k == "static", 18 - 3 * n))
        for late, k in zip(lateness, kind, strict=True)
    )
    ended = frozenset(i for i, k in enumerate(kind) if k != "plain")
    return GraphCase(network, keys, rows, streams, lateness, ended)


@st.composite
def key_graphs(draw: st.DrawFn, n: int) -> tuple[StreamKeys, ...]:
    """No key, one common to all, chains on different attributes, or any other graph."""
    form = draw(st.sampled_from(("none", "common", "common", "chain", "chain", "any", "any")))
    if form == "none":
        return ((),) * n
    if form == "common":
        return tuple((columns,) for columns in draw(_columns(n, draw(st.integers(1, 2)))))
    if form == "chain":
        return tuple(
            tuple((1 + k % 3,) if s in (k, k + 1) else None for k in range(max(1, n - 1)))
            for s in range(n)
        )
    made = []
    for _ in range(draw(st.integers(1, 3))):
        columns = draw(_columns(n, draw(st.integers(1, 2))))
        took = [draw(st.integers(0, 2)) > 0 for _ in range(n)]
        took[draw(st.integers(0, n - 1))] = True
        made.append([c if t else None for c, t in zip(columns, took, strict=True)])
    return tuple(zip(*made, strict=True))


def _columns(n: int, width: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Key columns of each stream; of equal types, so the third only joins with itself."""
    if width == 1:
        own = st.lists(st.sampled_from(((1,), (2,))), min_size=n, max_size=n)
        return st.one_of(own, own, st.just([(3,)] * n))
    return st.lists(st.sampled_from(((1, 3), (2, 3))), min_size=n, max_size=n)


@st.composite
def rows_windows(
    draw: st.DrawFn, kind: Sequence[str], keys: Sequence[StreamKeys]
) -> tuple[RowsWindow | None, ...]:
    windows: list[RowsWindow | None] = []
    for own, k in zip(keys, kind, strict=True):
        if k == "static" or draw(st.booleans()):
            windows.append(None)
            continue
        used = tuple({c: None for columns in own for c in columns or ()})
        partition = draw(st.sampled_from(((), (1,), (3, 2), used, used)))
        selected = draw(st.sampled_from((None, CHOSEN)))
        windows.append(RowsWindow(draw(st.integers(1, 3)), partition, ORDER, selected))
    return tuple(windows)


@st.composite
def _networks(
    draw: st.DrawFn,
    names: tuple[str, ...],
    static: frozenset[str],
    rows: Sequence[RowsWindow | None],
) -> TimeNetwork:
    timed = [name for name in names if name not in static]
    counted = frozenset(name for name, w in zip(names, rows, strict=True) if w is not None)
    length = st.integers(0, 8)
    form = draw(st.sampled_from(("uniform", "pairs", "ranges", "ranges", "mixed")))
    windows: list[Window] = []
    if form in ("uniform", "mixed"):
        windows.append(UniformWindow(draw(length)))
    if form in ("ranges", "mixed"):
        windows += [RangeWindow(name, draw(length)) for name in timed if name not in counted]
    if form == "pairs":
        for i in range(1, len(timed)):
            windows.append(draw(pairs(timed[draw(st.integers(0, i - 1))], timed[i], 8)))
    try:
        return TimeNetwork(names, tuple(windows), static, counted)
    except WindowError:
        assume(False)
        raise


@st.composite
def stream_rows(draw: st.DrawFn, late: int, static: bool, limit: int) -> tuple[GraphRow, ...]:
    value = st.sampled_from((0, 1, 0, 1, 0, 1, 0, 1, None))
    real = st.sampled_from((0.0, 1.0, -0.0, 1.0, 0.0, 1.0, float("nan"), None))
    size = draw(st.sampled_from((limit // 2, limit, limit - 1, 2 * limit // 3, 1, 0)))
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, 11),
                value,
                value,
                real,
                st.sampled_from((True, True, True, False, None)),
                st.integers(0, late),
            ),
            min_size=size,
            max_size=size,
        )
    )
    arriving = sorted(drawn, key=lambda row: row[0] + row[-1])
    numbered: list[GraphRow] = [
        (EARLIEST if static else row[0], *row[1:-1], i) for i, row in enumerate(arriving)
    ]
    if numbered and draw(st.integers(0, 9)) == 0:
        numbered[-1] = (None, *numbered[-1][1:])
    return tuple(numbered)
