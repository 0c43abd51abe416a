"""Generated queries in changelog mode, and the plain queries that they mean, for DuckDB.

The plain query reads, instead of a stream, what the stream's window holds at the instant AT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.change_aggregates import aggregate_calls
from tests.change_sources import (
    AT,
    Block,
    Source,
    blocks,
    expressions_of,
    plain_sources,
    tests_of,
)
from tests.change_subqueries import subqueries

KINDS = ("long", "int", "double", "decimal", "text", "bool", "time")
__all__ = ["AT", "ChangeCase", "change_cases"]


@dataclass(frozen=True)
class Query:
    """A query, the plain one, and the kinds of its columns, which are c0, c1, …"""

    sql: str
    oracle: str
    kinds: tuple[str, ...]
    streams: frozenset[str]
    longest: int
    """The length of its longest window."""
    appends: bool = False
    """Whether it would never retract anything unless changes are requested."""


@dataclass(frozen=True)
class ChangeCase:
    """A statement, and the plain query whose answer it must show at every instant."""

    sql: str
    oracle: str
    streams: frozenset[str]
    longest: int
    every: int | None = None


@st.composite
def change_cases(draw: st.DrawFn) -> ChangeCase:
    """Statements of all forms."""
    query = draw(_queries(depth=draw(st.sampled_from((0, 0, 1, 1, 2))), exact=False))
    every = draw(st.sampled_from((None,) * 6 + (2, 5)))
    emit = ""
    if every is not None:
        emit = f" EMIT CHANGES EVERY {every} MICROSECONDS"
    elif query.appends or draw(st.booleans()):
        emit = " EMIT CHANGES"
    return ChangeCase(query.sql + emit, query.oracle, query.streams, query.longest, every)


@st.composite
def _queries(draw: st.DrawFn, depth: int, exact: bool, kinds: tuple[str, ...] = ()) -> Query:
    """A query with columns of the given kinds, or of any; exact: see `aggregate_calls`."""
    forms = ("select", "select", "group", "group", "group", "set", "top", "asked", "first")
    form = draw(st.sampled_from(forms))
    if form == "group" and not _can_group(kinds):
        form = "select"
    if form == "set":
        return draw(_set_operations(depth, kinds))
    if form == "top":
        return draw(_top_rows(depth, kinds))
    if form == "group":
        return draw(_groups(depth, exact, kinds))
    if form == "asked":
        return draw(_with_subqueries(depth, kinds))
    if form == "first":
        return draw(_first_rows(depth, kinds))
    return draw(_selects(depth, kinds))


def _can_group(kinds: tuple[str, ...]) -> bool:
    return not kinds or kinds[-1] == "long"


def _sources(depth: int) -> st.SearchStrategy[Source]:
    """The contents of FROM: streams and tables, or queries with windows of their own."""
    if depth <= 0:
        return plain_sources()
    return st.one_of(plain_sources(), plain_sources(), _derived(depth - 1))


@st.composite
def _derived(draw: st.DrawFn, depth: int) -> Source:
    query = draw(_queries(depth, exact=True))
    columns = tuple((f"c{i}", kind) for i, kind in enumerate(query.kinds))
    return Source(
        f"({query.sql})",
        f"({query.oracle})",
        columns,
        query.streams,
        query.longest,
        appends=query.appends,
    )


@st.composite
def _selects(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Query:
    block = draw(blocks(_sources(depth), needs_stream=bool(kinds)))
    chosen = draw(_items(block, kinds))
    distinct = draw(st.booleans())
    listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(chosen))
    word = "SELECT DISTINCT" if distinct else "SELECT"
    return Query(
        f"{word} {listed} FROM {block.sql}",
        f"{word} {listed} FROM {block.oracle}",
        tuple(kind for _, kind in chosen),
        block.streams,
        block.longest,
        appends=block.appends and not distinct,
    )


@st.composite
def _items(draw: st.DrawFn, block: Block, kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    """Expressions with their kinds."""
    if not kinds:
        several = st.lists(st.sampled_from(block.expressions), min_size=1, max_size=3)
        return draw(several)
    of_kind = ([one for one in block.expressions if one[1] == kind] for kind in kinds)
    return [draw(st.sampled_from(fitting)) for fitting in of_kind]


@st.composite
def _groups(draw: st.DrawFn, depth: int, exact: bool, kinds: tuple[str, ...]) -> Query:
    block = draw(blocks(_sources(depth), needs_stream=bool(kinds)))
    if kinds:
        keys = draw(_items(block, kinds[:-1])) if kinds[1:] else []
    else:
        keys = draw(st.lists(st.sampled_from(block.expressions), max_size=2, unique=True))
    call = aggregate_calls(list(block.expressions), exact)
    calls = draw(st.lists(call, min_size=1, max_size=1 if kinds else 3))
    if kinds:
        calls = [draw(call.filter(lambda one: one.kind == "long"))]
    written = [*keys, *((one.sql, one.kind) for one in calls)]
    asked = [*keys, *((one.oracle, one.kind) for one in calls)]
    if not kinds and draw(st.integers(0, 3)) == 0:
        written.append(("COUNT(*) * 2 - 1", "long"))
        asked.append(("COUNT(*) * 2 - 1", "long"))
    by = ", ".join(text for text, _ in keys)
    having = ""
    if draw(st.integers(0, 3)) == 0:
        tests = ["COUNT(*) > 1", "COUNT(*) < 3", "COUNT(*) <> 2"]
        tests += [f"{text} > 0" for text, kind in keys if kind in ("long", "int")]
        having = draw(st.sampled_from(tests))
    tail = (f" GROUP BY {by}" if keys else "") + (f" HAVING {having}" if having else "")
    plain = tail
    if keys and draw(st.integers(0, 2)) == 0:
        sets = draw(st.sampled_from((f"ROLLUP ({by})", f"CUBE ({by})", _sets(keys))))
        tail = f" GROUP BY {sets}" + (f" HAVING {having}" if having else "")
        # As in Spark, and unlike in DuckDB, there is no grand total of nothing.
        plain = f" GROUP BY {sets} HAVING COUNT(*) > 0" + (f" AND {having}" if having else "")
        if not kinds:
            written.append((f"GROUPING({keys[0][0]})", "int"))
            asked.append((f"GROUPING({keys[0][0]})", "int"))
    return Query(
        f"SELECT {_listed(written)} FROM {block.sql}{tail}",
        f"SELECT {_listed(asked)} FROM {block.oracle}{plain}",
        tuple(kind for _, kind in written),
        block.streams,
        block.longest,
    )


def _sets(keys: Sequence[tuple[str, str]]) -> str:
    """All keys, the first of them, and the first of them again."""
    return f"GROUPING SETS (({', '.join(text for text, _ in keys)}), ({keys[0][0]}), {keys[0][0]})"


@st.composite
def _with_subqueries(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Query:
    """Rows of one source, and the values of subqueries for each."""
    source = draw(plain_sources(stream_only=True) if kinds else _sources(depth))
    asked = [draw(subqueries(source.columns)) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    offered = [(text, text, kind) for text, kind in expressions_of([source.columns])]
    inner = [(one.sql, one.oracle, one.kind) for one in asked]
    if kinds:
        fitting = ([one for one in offered if one[2] == kind] for kind in kinds)
        items = [draw(st.sampled_from(those)) for those in fitting]
    else:
        items = [draw(st.sampled_from(offered)), draw(st.sampled_from(inner))]
    first = asked[0]
    test = draw(tests_of([source.columns]))
    form = draw(
        st.sampled_from(("", " WHERE {0} OR {1}", " WHERE NOT ({0} AND {1})", " WHERE {1}"))
    )
    parts = (f"{one} > 0" if first.kind == "long" else one for one in (first.sql, first.oracle))
    written, plain = (form.format(f"({test})", part) for part in parts)
    listed = _listed([(sql, "") for sql, _, _ in items])
    used = [one.inner for one in asked if one.sql in listed + written]
    return Query(
        f"SELECT {listed} FROM {source.sql} a{source.window}{written}",
        f"SELECT {_listed([(oracle, '') for _, oracle, _ in items])} FROM {source.oracle} a{plain}",
        tuple(kind for _, _, kind in items),
        source.streams.union(*(one.streams for one in used)),
        max(source.longest, *(one.longest for one in used), 0),
    )


@st.composite
def _first_rows(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Query:
    """The first rows of each partition of a query's rows."""
    chosen = kinds or tuple(draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=3)))
    query = draw(_selects(depth, chosen))
    columns = [f"c{i}" for i in range(len(query.kinds))]
    partition = draw(st.sampled_from(("", "PARTITION BY c0 ")))
    terms = draw(_terms(columns))
    ties = " NULLS FIRST"
    if all(" DESC" in one and " FIRST" not in one for one, _ in terms):
        ties = " DESC NULLS LAST"
    ordered = ", ".join([*(plain for _, plain in terms), *(f"{one}{ties}" for one in columns)])
    count = draw(st.integers(1, 3))
    written = f"ROW_NUMBER() OVER ({partition}ORDER BY {', '.join(one for one, _ in terms)})"
    plain = f"row_number() OVER ({partition}ORDER BY {ordered})"
    listed = ", ".join(columns)
    sql = f"SELECT {listed} FROM ({query.sql}) a QUALIFY {written} <= {count}"
    if partition and any(not one.startswith("c0") for one, _ in terms) and draw(st.booleans()):
        count, order = 1, ", ".join(one for one, _ in terms)
        sql = f"SELECT DISTINCT ON (c0) {listed} FROM ({query.sql}) a ORDER BY c0, {order}"
    return replace(
        query,
        sql=sql,
        oracle=f"SELECT {listed} FROM (SELECT *, {plain} AS _n FROM ({query.oracle})) "
        f"WHERE _n <= {count}",
        appends=False,
    )


@st.composite
def _terms(draw: st.DrawFn, columns: Sequence[str]) -> list[tuple[str, str]]:
    """The sort keys of rows: as they are written, and in full."""
    terms = []
    for key in draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)):
        descending = draw(st.booleans())
        nulls = draw(st.sampled_from(("", "", " NULLS FIRST", " NULLS LAST")))
        direction = " DESC" if descending else draw(st.sampled_from(("", " ASC")))
        usual = " NULLS LAST" if descending else " NULLS FIRST"
        terms.append((f"{key}{direction}{nulls}", f"{key}{direction}{nulls or usual}"))
    return terms


def _listed(items: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))


@st.composite
def _set_operations(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Query:
    if not kinds:
        kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2)))
    left = draw(_queries(depth - 1, True, kinds) if depth > 0 else _selects(0, kinds))
    right = draw(_queries(depth - 1, True, kinds) if depth > 0 else _selects(0, kinds))
    word = draw(st.sampled_from(("UNION", "INTERSECT", "EXCEPT", "MINUS")))
    every = draw(st.sampled_from(("", " ALL")))
    plain = "EXCEPT" if word == "MINUS" else word
    bare = draw(st.booleans()) and _is_simple(left) and _is_simple(right)
    sides = (left.sql, right.sql) if bare else (f"({left.sql})", f"({right.sql})")
    return Query(
        f"{sides[0]} {word}{every} {sides[1]}",
        f"({left.oracle}) {plain}{every} ({right.oracle})",
        kinds,
        left.streams | right.streams,
        max(left.longest, right.longest),
        appends=word + every == "UNION ALL" and left.appends and right.appends,
    )


def _is_simple(query: Query) -> bool:
    """Whether a query needs no parentheses beside a set operator."""
    ordered = " LIMIT " in query.sql or "DISTINCT ON" in query.sql
    return not ordered and not any(
        f" {word}" in query.sql for word in ("UNION", "INTERSECT", "EXCEPT", "MINUS")
    )


@st.composite
def _top_rows(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Query:
    form = draw(st.sampled_from(("select", "group", "set")))
    if form == "set":
        query = draw(_set_operations(depth, kinds))
    elif form == "group" and _can_group(kinds):
        query = draw(_groups(depth, True, kinds))
    else:
        query = draw(_selects(depth, kinds))
    columns = [f"c{i}" for i in range(len(query.kinds))]
    terms = draw(_terms(columns))
    written = [one for one, _ in terms]
    asked = [*(plain for _, plain in terms), *(f"{column} NULLS FIRST" for column in columns)]
    cut = f" LIMIT {draw(st.integers(1, 3))}" + draw(st.sampled_from(("", "", " OFFSET 1")))
    return replace(
        query,
        sql=f"{query.sql} ORDER BY {', '.join(written)}{cut}",
        oracle=f"SELECT * FROM ({query.oracle}) ORDER BY {', '.join(asked)}{cut}",
        appends=False,
    )
