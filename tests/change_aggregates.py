"""Aggregate calls in the dialect, and the same in DuckDB's SQL with Spark's meaning."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

NUMBERS = ("long", "int", "double", "decimal")


@dataclass(frozen=True)
class Call:
    """An aggregate as SQL, its DuckDB equivalent, and the kind of its result."""

    sql: str
    oracle: str
    kind: str


@st.composite
def aggregate_calls(draw: st.DrawFn, columns: list[tuple[str, str]], exact: bool) -> Call:
    """A call on one of these (expression, kind); exact: its bits do not depend on an order."""
    call = draw(_calls(columns, exact))
    test = next((text for text, kind in columns if kind in ("long", "int")), None)
    if test is None or draw(st.integers(0, 7)):
        return call
    # not of what is a formula in DuckDB, but of single calls
    if call.oracle.count("(") > 1 or not call.oracle.endswith(")"):
        return call
    tail = f" FILTER (WHERE {test} > 0)"
    return Call(call.sql + tail, call.oracle + tail, call.kind)


@st.composite
def _calls(draw: st.DrawFn, columns: list[tuple[str, str]], exact: bool) -> Call:
    text, kind = draw(st.sampled_from(columns))
    plain = [other for other, its in columns if its in ("long", "int", "text", "bool")]
    forms = ["rows", "count", "distinct", "min", "max"]
    if kind in ("long", "int", "text", "bool"):
        forms += ["pairs", "both"]
    if kind == "bool":
        forms += ["bool_and", "bool_or", "count_if"]
    if kind in ("long", "int"):
        forms += ["bit_and", "bit_or", "bit_xor"]
    if kind in NUMBERS:
        forms += ["sum", "avg", "sum", "avg", "median", "percentile", "sum distinct"]
        forms += [] if exact else ["var", "stddev"]
    form = draw(st.sampled_from(forms))
    if form == "rows":
        return Call("COUNT(*)", "count(*)", "long")
    if form == "count":
        return Call(f"COUNT({text})", f"count({text})", "long")
    if form == "distinct":
        return Call(f"COUNT(DISTINCT {text})", f"count(DISTINCT {text})", "long")
    if form in ("pairs", "both"):
        other = draw(st.sampled_from(plain))
        if form == "pairs":
            pair = f"DISTINCT ({text}, {other})"
            return Call(f"COUNT({pair})", f"count({pair})", "long")
        known = f"CASE WHEN {text} IS NOT NULL AND {other} IS NOT NULL THEN ({text}, {other}) END"
        return Call(f"COUNT(DISTINCT {text}, {other})", f"count(DISTINCT {known})", "long")
    if form in ("bool_and", "bool_or"):
        return Call(f"{form.upper()}({text})", f"{form}({text})", "bool")
    if form == "count_if":
        oracle = f"count(CASE WHEN {text} THEN 1 END)"
        return Call(f"COUNT_IF({text})", oracle, "long")
    if form in ("bit_and", "bit_or", "bit_xor"):
        return Call(f"{form.upper()}({text})", f"{form}({text})", kind)
    if form in ("min", "max"):
        return Call(f"{form.upper()}({text})", f"{form}({text})", kind)
    if form == "sum distinct":
        return Call(f"SUM(DISTINCT {text})", f"sum(DISTINCT {text})", _sum_kind(kind))
    if form == "sum":
        return Call(f"SUM({text})", f"sum({text})", _sum_kind(kind))
    if form == "avg":
        return _average(text, kind)
    if form in ("median", "percentile"):
        return draw(_percentiles(text, form))
    return draw(_spreads(text, form))


def _sum_kind(kind: str) -> str:
    """Sums are wider than what they add: integers become BIGINT, decimals get ten more digits."""
    return {"int": "long", "decimal": "wide decimal"}.get(kind, kind)


def _average(text: str, kind: str) -> Call:
    """DuckDB's average of decimals is a double; Spark's has four more digits, rounded half up."""
    if kind != "decimal":
        return Call(f"AVG({text})", f"avg({text})", "double")
    total, count = f"CAST(sum({text}) * 100 AS BIGINT) * 10000", f"count({text})"
    units = f"sign({total}) * ((2 * abs({total}) + {count}) // (2 * {count}))"
    oracle = f"CAST({units} AS DECIMAL(12, 0)) * CAST(0.000001 AS DECIMAL(6, 6))"
    return Call(f"AVG({text})", f"CASE WHEN {count} > 0 THEN {oracle} END", "wide decimal")


@st.composite
def _percentiles(draw: st.DrawFn, text: str, form: str) -> Call:
    """Spark weights the two neighbours, which matters for infinities."""
    fraction = 0.5 if form == "median" else draw(st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)))
    values = f"list_sort(list(CAST({text} AS DOUBLE)) FILTER ({text} IS NOT NULL))"
    place = f"({fraction} * (count({text}) - 1))"
    low = f"{values}[CAST(floor({place}) AS INT) + 1]"
    high = f"{values}[CAST(ceil({place}) AS INT) + 1]"
    weighed = f"(ceil({place}) - {place}) * {low} + ({place} - floor({place})) * {high}"
    oracle = f"CASE WHEN {low} = {high} THEN {low} ELSE {weighed} END"
    sql = f"MEDIAN({text})" if form == "median" else f"PERCENTILE({text}, {fraction})"
    return Call(sql, f"CASE WHEN count({text}) > 0 THEN {oracle} END", "double")


@st.composite
def _spreads(draw: st.DrawFn, text: str, form: str) -> Call:
    """The variance of NaN and infinities is undefined; DuckDB returns 0 or fails."""
    names = {
        "var": ("VARIANCE", "VAR_SAMP", "VAR_POP"),
        "stddev": ("STDDEV", "STDDEV_SAMP", "STDDEV_POP"),
    }
    name = draw(st.sampled_from(names[form]))
    population = name.endswith("POP")
    value = f"CAST({text} AS DOUBLE)"
    finite = f"CASE WHEN isfinite({value}) THEN {value} END"
    same = f"{form}_{'pop' if population else 'samp'}({finite})"
    enough = f"count({text}) >= {1 if population else 2}"
    oracle = (
        f"CASE WHEN NOT ({enough}) THEN NULL WHEN count({text}) > count({finite}) "
        f"THEN CAST('nan' AS DOUBLE) ELSE {same} END"
    )
    return Call(f"{name}({text})", oracle, "spread")
