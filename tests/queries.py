"""Generated statements with their data, and the equivalent queries in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from nilometer.model.windows import PairWindow, RangeWindow, UniformWindow, Window
from tests.cases import networks

TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("ts", TIMESTAMP),
        ("k", pa.int64()),
        ("j", pa.int32()),
        ("v", pa.int32()),
        ("s", pa.string()),
        ("id", pa.int64()),
    ]
)
TABLE = pa.schema([("id", pa.int64()), ("label", pa.string())])
DDL = "ts TIMESTAMP, k BIGINT, j INT, v INT, s STRING, id BIGINT"
RELATIONS = ("R0", "R1", "R2")

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Data:
    """Rows of the streams in order of arrival, their lateness, and a static table."""

    streams: dict[str, tuple[Row, ...]]
    lateness: dict[str, int]
    table: tuple[Row, ...]

    def batch(self, name: str, first: int = 0, last: int | None = None) -> pa.RecordBatch:
        return _to_batch(self.streams[name][first:last], SCHEMA)

    def static(self) -> pa.RecordBatch:
        return _to_batch(self.table, TABLE)

    def watermark(self, name: str) -> int:
        """The final watermark of a stream."""
        times = [row[0] for row in self.streams[name] if row[0] is not None]
        return max(times) - self.lateness[name] if times else -1


@dataclass(frozen=True)
class QueryCase:
    """A statement, its DuckDB equivalent, and which relations have ROWS windows."""

    sql: str
    oracle: str
    counted: tuple[str, ...] = ()


@dataclass
class _Entry:
    """One stream in FROM."""

    alias: str
    relation: str
    sql: str = ""
    oracle: str = ""
    conditions: list[str] = field(default_factory=list)


def _to_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@st.composite
def data(draw: st.DrawFn, max_rows: int = 9) -> Data:
    """Small streams with equal times, NULLs, rows out of order; times are microseconds."""
    streams, lateness = {}, {}
    value = st.integers(0, 3)
    maybe = st.one_of(st.none(), *[value] * 4)
    for name in RELATIONS:
        late = draw(st.sampled_from((0, 0, 2, 6)))
        row = st.tuples(
            st.integers(0, 20),
            maybe,
            value,
            value,
            st.sampled_from(("a", "ab", "b", None)),
            st.integers(0, late),
        )
        rows = sorted(draw(st.lists(row, max_size=max_rows)), key=lambda r: r[0] + r[5])
        numbered = [(*r[:5], number) for number, r in enumerate(rows)]
        if numbered and draw(st.integers(0, 9)) == 0:
            numbered[0] = (None, *numbered[0][1:])
        streams[name], lateness[name] = tuple(numbered), late
    table = draw(st.lists(st.tuples(value, st.sampled_from(("x", "y"))), max_size=4))
    return Data(streams, lateness, tuple(table))


@st.composite
def statements(draw: st.DrawFn, max_streams: int = 5) -> QueryCase:
    """Joins of all forms."""
    if draw(st.integers(0, 7)) == 0:
        return draw(_nested())
    n = draw(st.integers(2, max_streams))
    network = draw(networks(n))
    names = network.streams
    entries = [_Entry(name, draw(st.sampled_from(RELATIONS))) for name in names]
    ranges = {w.stream: w for w in network.windows if isinstance(w, RangeWindow)}
    counted = []
    for entry in entries:
        if draw(_entry(entry, ranges.get(entry.alias))):
            counted.append(entry.relation)
    latest = f"greatest({', '.join(f'{name}.ts' for name in names)})"
    conditions = draw(_conditions(names))
    oracle_only = [c.replace("LATEST", latest) for e in entries for c in e.conditions]
    oracle_only += [c for w in network.windows for c in _bounds(w, names)]
    table = draw(st.integers(0, 5)) == 0
    if table:
        conditions.append(draw(st.sampled_from(("T.id = A.k", "T.id < B.v", "T.label = 'x'"))))
    items = [f"{name}.id" for name in names] + draw(_items(names)) + ["T.label"] * table
    sql = _select(items, [*(e.sql for e in entries), *["T"] * table])
    clause = draw(_window_clause(network.windows))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    after = draw(st.booleans())
    sql += where + clause if after else clause + where
    sql += draw(st.sampled_from(("", " EMIT APPEND")))
    tables = [*(e.oracle for e in entries), *["T"] * table]
    tests = [*conditions, *oracle_only]
    oracle = _select([*items, f"{latest} AS _time"], tables) + _where(tests)
    return QueryCase(sql, oracle, tuple(counted))


@st.composite
def _entry(draw: st.DrawFn, entry: _Entry, window: RangeWindow | None) -> bool:
    """Write one entry of FROM; returns whether it has a ROWS window."""
    body = entry.relation
    form = draw(st.integers(0, 7))
    if form == 0:
        body = f"(SELECT * FROM {entry.relation} WHERE v > 0)"
    elif form == 1:
        body = f"(SELECT ts, k, j - 1 AS j, v + j AS v, s, id FROM {entry.relation})"
    plain = f"(SELECT * FROM {body} WHERE ts IS NOT NULL)"
    entry.sql, entry.oracle = f"{body} {entry.alias}", f"{plain} {entry.alias}"
    if window is not None:
        entry.sql += f" [RANGE {draw(_length(window.length))}]"
        return False
    if draw(st.integers(0, 7)) != 0:
        return False
    count = draw(st.integers(1, 3))
    partition = draw(st.sampled_from(("", "k", "j", "k, j")))
    by = f"PARTITION BY {partition} " if partition else ""
    entry.sql += f" [{by}ROWS {count}]"
    order = ", ".join(f"{name} NULLS FIRST" for name in SCHEMA.names)
    entry.oracle = (
        f"(SELECT *, lead(ts, {count}) OVER ({by}ORDER BY {order}) AS _until "
        f"FROM {plain}) {entry.alias}"
    )
    entry.conditions.append(f"({entry.alias}._until IS NULL OR LATEST < {entry.alias}._until)")
    return True


@st.composite
def _conditions(draw: st.DrawFn, names: Sequence[str]) -> list[str]:
    conditions = []
    for i in range(1, len(names)):
        if draw(st.integers(0, 3)):
            a, b = names[draw(st.integers(0, i - 1))], names[i]
            left, right = draw(st.sampled_from((("k", "k"), ("k", "k"), ("j", "j"), ("k", "j"))))
            conditions.append(f"{a}.{left} = {b}.{right}")
    for _ in range(draw(st.integers(0, 2))):
        a, b = draw(st.permutations(names))[:2]
        template = draw(st.sampled_from(_TESTS))
        conditions.append(template.format(a=a, b=b, n=draw(st.integers(0, 3))))
    order = draw(st.permutations(range(len(conditions))))
    return [conditions[i] for i in order]


_TESTS = (
    "{a}.v > {n}",
    "{a}.s IS NOT NULL",
    "{a}.s LIKE 'a%'",
    "{a}.k + 1 = {b}.j",
    "{a}.v < {b}.v",
    "{a}.v * 2 > {b}.v",
    "{n} - {a}.v < {b}.j",
    "-{a}.v < {n}",
    "{a}.v + {b}.v > {n}",
    "abs({a}.v - {b}.v) <= {n}",
    "({a}.v = {n} OR {b}.v = 2)",
    "CASE WHEN {a}.v > {b}.v THEN {a}.s ELSE {b}.s END = 'ab'",
    "{a}.v IN ({n}, {b}.v)",
    "({a}.k IS NULL OR {b}.v > {n})",
    "{a}.s <> {b}.s",
    "NOT ({a}.v = {b}.v)",
    "{a}.v BETWEEN {b}.v - 1 AND {b}.v + {n}",
    "{b}.ts - {a}.ts <= INTERVAL '{n}' MICROSECOND",
    "{a}.ts < {b}.ts",
    "{a}.ts BETWEEN {b}.ts AND {b}.ts + INTERVAL '{n}' MICROSECOND",
    "{n} = 1",
    "({a}.k, {a}.s) = ({b}.k, {b}.s)",
    "({a}.k, {a}.v) IN ((0, {n}), ({b}.j, 2))",
    "CAST({a}.ts AS DATE) + CAST({a}.v AS INT) >= CAST({b}.ts AS DATE) + {n}",
    "{a}.ts + INTERVAL '{n}' MONTH <= {b}.ts + INTERVAL '1' MONTH",
    "coalesce({a}.ts, CAST({b}.ts AS DATE)) > CAST({b}.ts AS DATE) - INTERVAL '{n}' YEAR",
    "{b}.ts - {a}.ts < {a}.v * INTERVAL '1' MICROSECOND",
)


@st.composite
def _items(draw: st.DrawFn, names: Sequence[str]) -> list[str]:
    a, b = draw(st.permutations(names))[:2]
    choices = (
        f"{a}.k AS key1",
        f"{b}.j",
        f"{a}.v + {b}.v AS total",
        f"CASE WHEN {a}.v > {b}.v THEN {a}.s END AS larger",
        f"{a}.ts AS t",
        f"{b}.k IS NULL AS missing",
        f"-{a}.v AS negative",
        f"3 - {a}.v * 2 AS less",
        f"greatest({a}.v, {b}.j, 2) AS largest",
        f"CAST({a}.ts AS DATE) + 1 AS tomorrow",
        f"{a}.ts - INTERVAL '1' MONTH AS before",
        f"greatest({a}.ts, CAST({b}.ts AS DATE)) AS latest",
    )
    return draw(st.lists(st.sampled_from(choices), max_size=2, unique=True))


@st.composite
def _window_clause(draw: st.DrawFn, windows: Sequence[Window]) -> str:
    written = []
    for window in windows:
        if isinstance(window, UniformWindow):
            written.append(f"WINDOW = {draw(_length(window.length))}")
        elif isinstance(window, PairWindow):
            written.append(draw(_pair(window)))
    return f" {' AND '.join(['', *written])[4:].strip()}" if written else ""


@st.composite
def _pair(draw: st.DrawFn, window: PairWindow) -> str:
    pair = f"({window.first}, {window.second})"
    high = draw(_length(window.high))
    if window.low == -window.high:
        return f"WINDOW{pair} = {high}"
    if window.low == 0:
        return f"DWINDOW {pair} = {high}"
    return f"WINDOW {pair} BETWEEN {draw(_length(window.low))} AND {high}"


@st.composite
def _length(draw: st.DrawFn, length: int) -> str:
    sign = "-" if length < 0 else ""
    n = abs(length)
    forms = (f"{sign}{n} MICROSECONDS", f"{sign}{n}us", f"INTERVAL '{sign}{n}' MICROSECOND")
    return draw(st.sampled_from((*forms, f"{sign}0.{n:03d} ms")))


def _bounds(window: Window, names: Sequence[str]) -> list[str]:
    return [
        f"{bound.later}.ts - {bound.earlier}.ts <= INTERVAL '{bound.limit}' MICROSECOND"
        for bound in window.bounds(names)
    ]


@st.composite
def _nested(draw: st.DrawFn) -> QueryCase:
    """A join with another join as one of its sides, windowed by the time of its results."""
    r = [draw(st.sampled_from(RELATIONS)) for _ in range(3)]
    inner, low, high = draw(st.integers(0, 5)), draw(st.integers(-5, 3)), draw(st.integers(3, 6))
    key, extra = draw(st.sampled_from(("k", "j"))), draw(st.sampled_from(("", " AND C.v > 0")))
    inside = f"A.{key} = B.{key}"
    columns = f"A.id AS a, B.id AS b, A.{key} AS key1"
    sql = (
        f"SELECT S.a, S.b, C.id, S._time AS st FROM (SELECT {columns} FROM {r[0]} A, {r[1]} B "
        f"WINDOW(A, B) = {draw(_length(inner))} WHERE {inside}) S, {r[2]} C "
        f"WINDOW(S, C) BETWEEN {draw(_length(low))} AND {draw(_length(high))} "
        f"WHERE S.key1 = C.{key}{extra}"
    )
    near = f"A.ts - B.ts <= INTERVAL '{inner}' MICROSECOND"
    near += f" AND B.ts - A.ts <= INTERVAL '{inner}' MICROSECOND"
    oracle = (
        f"SELECT S.a, S.b, C.id, S.ts AS st, greatest(S.ts, C.ts) AS _time FROM "
        f"(SELECT {columns}, greatest(A.ts, B.ts) AS ts FROM {r[0]} A, {r[1]} B "
        f"WHERE {inside} AND {near}) S, {r[2]} C "
        f"WHERE S.key1 = C.{key}{extra} AND C.ts - S.ts <= INTERVAL '{high}' MICROSECOND "
        f"AND C.ts - S.ts >= INTERVAL '{low}' MICROSECOND"
    )
    return QueryCase(sql, oracle)


def _select(items: Sequence[str], tables: Sequence[str]) -> str:
    return f"SELECT {', '.join(items)} FROM {', '.join(tables)}"


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""
