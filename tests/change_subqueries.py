"""Subqueries inside the expressions of generated queries, and their DuckDB equivalents."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.change_sources import Columns, Source, equalities, plain_sources, where


@dataclass(frozen=True)
class Asked:
    """An expression with a subquery about the rows of a source named a."""

    sql: str
    oracle: str
    kind: str
    inner: Source


@st.composite
def subqueries(draw: st.DrawFn, outer: Columns) -> Asked:
    """Values of subqueries, and whether these have rows."""
    inner = draw(plain_sources())
    numbers = [name for name, kind in inner.columns if kind in ("long", "int")]
    column = draw(st.sampled_from(numbers))
    form = draw(st.sampled_from(("value", "value", "first", "exists", "in", "nested")))
    tests = draw(_links(outer, inner.columns))
    if form == "in":
        return draw(_memberships(outer, inner, column))
    if form == "nested":
        return draw(_nested(outer, inner))
    if form == "exists":
        word = draw(st.sampled_from(("EXISTS", "NOT EXISTS")))
        return _asked(f"{word} (SELECT 1 FROM ", where(tests) + ")", "bool", inner)
    if form == "first":
        down = draw(st.booleans())
        order = f"e.{column} DESC NULLS LAST" if down else f"e.{column} NULLS FIRST"
        return _asked(f"(SELECT e.{column} FROM ", f" ORDER BY {order} LIMIT 1)", "long", inner)
    calls = (f"MAX(e.{column})", f"SUM(e.{column})", "COUNT(*)", f"COUNT(e.{column}) + 1")
    value = draw(st.sampled_from((*calls, f"COUNT(*) * MIN(e.{column})")))
    return _asked(f"(SELECT {value} FROM ", where(tests) + ")", "long", inner)


def _asked(before: str, after: str, kind: str, inner: Source) -> Asked:
    return Asked(
        f"{before}{inner.sql} e{inner.window}{after}",
        f"{before}{inner.oracle} e{after}",
        kind,
        inner,
    )


@st.composite
def _links(draw: st.DrawFn, outer: Columns, inner: Columns) -> list[str]:
    """How a subquery uses the outer row: not at all, by equality, by other comparisons."""
    form = draw(st.sampled_from(("none", "equal", "equal", "less", "null")))
    around = [name for name, kind in outer if kind in ("long", "int")]
    own = [name for name, kind in inner if kind in ("long", "int")]
    tests = [f"e.{draw(st.sampled_from(own))} > 0"] if draw(st.integers(0, 2)) == 0 else []
    if form == "none" or not around:
        return tests
    a, e = draw(st.sampled_from(around)), draw(st.sampled_from(own))
    if form == "equal":
        return [*tests, draw(equalities("a", outer, "e", inner))]
    if form == "less":
        return [*tests, f"e.{e} {draw(st.sampled_from(('<', '>=', '<>')))} a.{a}"]
    return [*tests, f"(a.{a} IS NULL OR e.{e} = a.{a})"]


@st.composite
def _memberships(draw: st.DrawFn, outer: Columns, inner: Source, column: str) -> Asked:
    around = [name for name, kind in outer if kind in ("long", "int")] or ["c0 IS NULL"]
    value = f"a.{draw(st.sampled_from(around))}"
    chosen = f"e.{column}" if " " not in value else f"e.{column} IS NULL"
    if " " in value:
        value = f"({value})"
    tests = draw(_links(outer, inner.columns))
    word = draw(st.sampled_from(("IN", "NOT IN")))
    return _asked(f"{value} {word} (SELECT {chosen} FROM ", where(tests) + ")", "bool", inner)


@st.composite
def _nested(draw: st.DrawFn, outer: Columns, inner: Source) -> Asked:
    """A subquery in a subquery that refers to the rows of both."""
    word, other = (draw(st.sampled_from(("EXISTS", "NOT EXISTS"))) for _ in range(2))
    tests = draw(_links(outer, inner.columns))
    numbers = [name for name, kind in inner.columns if kind in ("long", "int")]
    links = [f"f.id = e.{draw(st.sampled_from(numbers))}"]
    around = [name for name, kind in outer if kind in ("long", "int")]
    if around and draw(st.booleans()):
        links.append(f"f.id <= a.{draw(st.sampled_from(around))}")
    tests = [*tests, f"{other} (SELECT 1 FROM T f{where(links)})"]
    return _asked(f"{word} (SELECT 1 FROM ", where(tests) + ")", "bool", inner)
