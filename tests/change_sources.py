"""The contents of FROM in generated queries: streams under windows, tables, joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow, RangeWindow, UniformWindow, Window
from tests.cases import networks
from tests.change_data import SCHEMA, STREAMS

AT = "_i._t"
"""The instant at which DuckDB is queried, in microseconds."""

STREAM = tuple(
    zip(SCHEMA.names, ("time", "long", "int", "double", "decimal", "text", "bool"), strict=True)
)
_ORDER = ", ".join(f"{name} NULLS FIRST" for name in SCHEMA.names)
_NAMES = "abc"
_VALUES = (
    "(SELECT * FROM (VALUES (CAST(1 AS BIGINT), 'a'), (2, 'ab'), (2, NULL), (NULL, 'b')) "
    "v(id, label))"
)

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Source:
    """An entry of FROM without its name, columns with their kinds, and how long rows stay."""

    sql: str
    oracle: str
    columns: Columns
    streams: frozenset[str]
    longest: int
    window: str = ""
    """The text after the name."""
    appends: bool = True
    """Whether it would never retract anything by itself."""


@dataclass(frozen=True)
class Block:
    """Everything after FROM, including WHERE, and the expressions that it offers."""

    sql: str
    oracle: str
    expressions: tuple[tuple[str, str], ...]
    streams: frozenset[str]
    longest: int
    appends: bool


@st.composite
def lengths(draw: st.DrawFn, length: int) -> str:
    sign, n = "-" if length < 0 else "", abs(length)
    forms = (f"{sign}{n} MICROSECONDS", f"INTERVAL '{sign}{n}' MICROSECOND", f"{sign}0.{n:03d} ms")
    return draw(st.sampled_from(forms))


def _items_of(relation: str) -> tuple[str, str]:
    """A stream whose rows are built from arrays: one for k, one for j, and one or none for NULL."""
    others = ", ".join(name for name in SCHEMA.names if name not in ("ts", "k"))
    array = "CASE WHEN j > 1 THEN {0}k, CAST(j AS BIGINT), NULL{1} ELSE {0}k{1} END"
    ours, theirs = array.format("array(", ")"), array.format("[", "]")
    return (
        f"(SELECT ts, u.item AS k, {others} FROM {relation}, UNNEST({ours}) AS u (item))",
        f"(SELECT ts, unnest({theirs}) AS k, {others} FROM {relation})",
    )


def _held(rows: str, length: int) -> str:
    return f"(SELECT * FROM {rows} WHERE ts BETWEEN {AT} - {length} AND {AT})"


def _last(rows: str, by: str, count: int) -> str:
    until = f"lead(ts, {count}) OVER ({by}ORDER BY {_ORDER})"
    inside = f"SELECT *, {until} AS _until FROM {rows} WHERE ts IS NOT NULL"
    return (
        f"(SELECT {', '.join(SCHEMA.names)} FROM ({inside}) "
        f"WHERE ts <= {AT} AND (_until IS NULL OR _until > {AT}))"
    )


@st.composite
def plain_sources(draw: st.DrawFn, stream_only: bool = False) -> Source:
    """A stream followed by a window, or the static table."""
    if not stream_only and draw(st.integers(0, 9)) == 0:
        table = draw(st.sampled_from(("T", "T", _VALUES)))
        return Source(table, table, (("id", "long"), ("label", "text")), frozenset(), 0)
    relation = draw(st.sampled_from(STREAMS))
    chosen = f"(SELECT * FROM {relation} WHERE j > 0)"
    bodies: tuple[tuple[str, str], ...] = ((relation, relation),) * 4 + ((chosen, chosen),)
    has_rows = draw(st.integers(0, 3)) == 0
    if not has_rows:  # the last items of an instant have the largest numbers
        bodies += (_items_of(relation),)
    body, plain = draw(st.sampled_from(bodies))
    if has_rows:
        count = draw(st.integers(1, 3))
        by = draw(st.sampled_from(("", "", "PARTITION BY k ", "PARTITION BY s, j ")))
        window, held, longest = f" [{by}ROWS {count}]", _last(plain, by, count), 0
    else:
        longest = draw(st.integers(0, 6))
        window, held = f" [RANGE {draw(lengths(longest))}]", _held(plain, longest)
    return Source(body, held, STREAM, frozenset((relation,)), longest, window)


@st.composite
def blocks(draw: st.DrawFn, sources: st.SearchStrategy[Source], needs_stream: bool) -> Block:
    """One source or a join of several."""
    form = draw(st.sampled_from(("one", "one", "one", "own", "own", "network", "outer", "exists")))
    first = plain_sources(stream_only=True) if needs_stream else sources
    if form == "network":
        return draw(_network_joins())
    if form == "outer":
        return draw(_outer_joins(draw(first), draw(sources)))
    count = {"one": 1, "exists": 1}.get(form) or draw(st.sampled_from((2, 2, 2, 3)))
    chosen = [draw(first), *(draw(sources) for _ in range(count - 1))]
    tests = draw(_conditions([one.columns for one in chosen]))
    asked = list(tests)
    streams, longest = _all_streams(chosen), max(one.longest for one in chosen)
    if form == "exists":
        sql, oracle, inner = draw(_exists(chosen[0]))
        tests, asked = [*tests, sql], [*asked, oracle]
        streams, longest = streams | inner.streams, max(longest, inner.longest)
    named = [f"{s.sql} {n}{s.window}" for s, n in zip(chosen, _NAMES, strict=False)]
    plain = [f"{s.oracle} {n}" for s, n in zip(chosen, _NAMES, strict=False)]
    return Block(
        ", ".join(named) + where(tests),
        ", ".join(plain) + where(asked),
        expressions_of([one.columns for one in chosen]),
        streams,
        longest,
        appends=form != "exists" and all(one.appends for one in chosen),
    )


@st.composite
def _network_joins(draw: st.DrawFn) -> Block:
    """Streams with windows between them; their rows stay as long as the windows say."""
    n = draw(st.sampled_from((1, 2, 2, 3)))
    network = draw(networks(n)) if n > 1 else TimeNetwork(("A",), (UniformWindow(3),))
    names = tuple(name.lower() for name in network.streams)
    relations = [draw(st.sampled_from(STREAMS)) for _ in names]
    ranges = {w.stream.lower(): w.length for w in network.windows if isinstance(w, RangeWindow)}
    stays = [ranges.get(name, network.local_window(i)) for i, name in enumerate(names)]
    stays = stays if n > 1 else [3]
    written = []
    for name, relation in zip(names, relations, strict=True):
        window = f" [RANGE {draw(lengths(ranges[name]))}]" if name in ranges else ""
        written.append(f"{relation} {name}{window}")
    plain = [f"{_held(r, w)} {n}" for n, r, w in zip(names, relations, stays, strict=True)]
    clause = draw(_window_clause(network.windows))
    tests = draw(_conditions([STREAM] * n))
    bounds = [
        f"{bound.later.lower()}.ts - {bound.earlier.lower()}.ts <= {bound.limit}"
        for window in network.windows
        for bound in window.bounds(network.streams)
    ]
    asked = where(tests)
    return Block(
        ", ".join(written) + (asked + clause if draw(st.booleans()) else clause + asked),
        ", ".join(plain) + where([*tests, *bounds]),
        expressions_of([STREAM] * n),
        frozenset(relations),
        max(stays),
        appends=True,
    )


@st.composite
def _window_clause(draw: st.DrawFn, windows: Sequence[Window]) -> str:
    written = []
    for window in windows:
        if isinstance(window, UniformWindow):
            written.append(f"WINDOW = {draw(lengths(window.length))}")
        elif isinstance(window, PairWindow):
            pair = f"({window.first}, {window.second})".lower()
            low, high = draw(lengths(window.low)), draw(lengths(window.high))
            if window.low == -window.high:
                written.append(f"WINDOW{pair} = {high}")
            elif window.low == 0:
                written.append(f"DWINDOW{pair} = {high}")
            else:
                written.append(f"WINDOW{pair} BETWEEN {low} AND {high}")
    return f" {' AND '.join(written)}" if written else ""


@st.composite
def _outer_joins(draw: st.DrawFn, left: Source, right: Source) -> Block:
    kind = draw(st.sampled_from(("LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN")))
    on = [draw(equalities("a", left.columns, "b", right.columns))]
    if draw(st.integers(0, 2)) == 0:
        on.append(draw(tests_of([left.columns, right.columns])))
    asked = [draw(tests_of([left.columns]))] if draw(st.integers(0, 3)) == 0 else []
    join = f" {kind} "
    tail = f" ON {' AND '.join(on)}{where(asked)}"
    return Block(
        f"{left.sql} a{left.window}{join}{right.sql} b{right.window}{tail}",
        f"{left.oracle} a{join}{right.oracle} b{tail}",
        expressions_of([left.columns, right.columns]),
        left.streams | right.streams,
        max(left.longest, right.longest),
        appends=left.appends and right.appends and not (left.streams and right.streams),
    )


@st.composite
def _exists(draw: st.DrawFn, outer: Source) -> tuple[str, str, Source]:
    inner = draw(plain_sources())
    tests = [draw(equalities("a", outer.columns, "e", inner.columns))]
    numbers = [name for name, kind in inner.columns if kind in ("long", "int")]
    if draw(st.integers(0, 2)) == 0:
        tests.append(f"e.{draw(st.sampled_from(numbers))} > {draw(st.integers(0, 2))}")
    word = draw(st.sampled_from(("EXISTS", "NOT EXISTS")))
    asked = where(tests)
    sql = f"{word} (SELECT 1 FROM {inner.sql} e{inner.window}{asked})"
    return sql, f"{word} (SELECT 1 FROM {inner.oracle} e{asked})", inner


@st.composite
def _conditions(draw: st.DrawFn, columns: Sequence[Columns]) -> list[str]:
    """Conditions that mostly equate every source but the first with another; and some more."""
    conditions = []
    for i in range(1, len(columns)):
        if i > 1 or draw(st.integers(0, 5)):
            other = draw(st.integers(0, i - 1))
            conditions.append(
                draw(equalities(_NAMES[other], columns[other], _NAMES[i], columns[i]))
            )
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        conditions.append(draw(tests_of(columns)))
    return conditions


@st.composite
def equalities(draw: st.DrawFn, a: str, left: Columns, b: str, right: Columns) -> str:
    whole = ("long", "int")
    pairs = [
        (one, other)
        for one, kind in left
        for other, kind_of_other in right
        if (kind == kind_of_other and kind not in ("time", "spread"))
        or (kind in whole and kind_of_other in whole)
    ]
    if not pairs:
        return f"{a}.{left[0][0]} IS NOT NULL AND {b}.{right[0][0]} IS NOT NULL"
    one, other = draw(st.sampled_from(pairs))
    return f"{a}.{one} = {b}.{other}"


@st.composite
def tests_of(draw: st.DrawFn, columns: Sequence[Columns]) -> str:
    """A condition on one or two of the sources."""
    named = [(f"{n}.{c}", kind) for n, own in zip(_NAMES, columns, strict=False) for c, kind in own]
    text, kind = draw(st.sampled_from(named))
    n = draw(st.integers(0, 2))
    others = [other for other, its in named if its == kind and other != text]
    forms = [f"{text} IS NOT NULL", f"{text} IS NULL"]
    if kind in ("long", "int"):
        forms += [f"{text} > {n}", f"({text} = {n} OR {text} = 3)", f"abs({text} - 2) <= {n}"]
        forms += [f"{text} IN (0, {n})", f"CASE WHEN {text} > 1 THEN {text} ELSE 2 END = {n}"]
    if kind == "double":
        forms += [f"{text} < 1", f"{text} >= 0.5"]
    if kind == "text":
        forms += [f"{text} LIKE 'a%'", f"{text} <> 'ab'"]
    if kind == "bool":
        forms += [f"{text} = true", f"NOT {text}"]
    if kind != "time":
        forms += [f"{text} <= {other}" for other in others[:2]]
    return draw(st.sampled_from(forms))


def expressions_of(columns: Sequence[Columns]) -> tuple[tuple[str, str], ...]:
    """All columns, and some expressions over them."""
    named = [(f"{n}.{c}", kind) for n, own in zip(_NAMES, columns, strict=False) for c, kind in own]
    first: dict[str, str] = {}
    for text, kind in named:
        first.setdefault(kind, text)
    made = []
    if "int" in first:
        made += [(f"{first['int']} + 1", "int"), (f"abs({first['int']} - 2)", "int")]
    if "long" in first:
        made += [(f"-{first['long']}", "long"), (f"{first['long']} IS NULL", "bool")]
    if "double" in first:
        made.append((f"{first['double']} * 2", "double"))
    if "long" in first and "int" in first:
        made.append((f"{first['long']} + {first['int']}", "long"))
    return (*named, *made)


def _all_streams(sources: Sequence[Source]) -> frozenset[str]:
    return frozenset().union(*(one.streams for one in sources))


def where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""
