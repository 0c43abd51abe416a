"""Functions of other databases that are often typed, with what to write instead."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError, UnknownNameError
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of

_PERCENTILE: Final = "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"
_START: Final = "date_trunc('minute', ts)"
_SPLIT: Final = "split(s, ',')"
INSTEAD: Final = {
    "age": "b - a, or timestampdiff(DAY, a, b)",
    "array_has": "array_contains(a, x)",
    "array_length": "size(a)",
    "charindex": "locate('a', s)",
    "columns": "the columns, or * EXCEPT (k)",
    "date_bin": "time_bucket(INTERVAL '5' MINUTES, ts)",
    "datetime_trunc": _START,
    "datetrunc": _START,
    "epoch": "unix_timestamp(ts), or timestampdiff(SECOND, a, b) of two times",
    "epoch_ms": "unix_millis(ts)",
    "epoch_us": "unix_micros(ts)",
    "format_datetime": "date_format(ts, 'yyyy-MM-dd HH:mm:ss')",
    "generate_series": "FROM UNNEST(sequence(1, 5)) AS u (n)",
    "getdate": "now()",
    "iff": "if(c, a, b)",
    "iif": "if(c, a, b)",
    "json_extract": "get_json_object(s, '$.a')",
    "json_extract_string": "get_json_object(s, '$.a')",
    "list": "collect_list(x)",
    "list_contains": "array_contains(a, x)",
    "list_value": "array(a, b)",
    "mid": "substring(s, 1, 2)",
    "quantile": _PERCENTILE,
    "quantile_cont": _PERCENTILE,
    "quantile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
    "regexp_matches": "regexp_like(s, 'a.*')",
    "str_split": _SPLIT,
    "strftime": "date_format(ts, 'yyyy-MM-dd HH:mm:ss')",
    "string_split": _SPLIT,
    "string_to_array": _SPLIT,
    "strptime": "to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')",
    "to_days": "k * INTERVAL '1' DAY",
    "to_hours": "k * INTERVAL '1' HOUR",
    "to_minutes": "k * INTERVAL '1' MINUTE",
    "to_seconds": "k * INTERVAL '1' SECOND",
    "tostartofday": "date_trunc('day', ts)",
    "tostartofhour": "date_trunc('hour', ts)",
    "tostartofinterval": "time_bucket(INTERVAL '5' MINUTES, ts)",
    "tostartofminute": _START,
    "truncate": "floor(x), or round(x, 1)",
    "uniq": "COUNT(DISTINCT x)",
}
"""What is written here, by the lower-case names of others' functions."""
_FORMATS: Final = frozenset(
    {"date_format", "to_char", "to_date", "to_timestamp", "unix_timestamp", "from_unixtime"}
)


def refuse_foreign(tree: exp.Expr, sql: str, functions: Container[str]) -> None:
    """Refuse functions of other databases, unless the user has registered some of that name."""
    for node in tree.find_all(exp.Func):
        if isinstance(node, exp.Cast):
            _refuse_times(node, sql)
            continue
        name = node.name if isinstance(node, exp.Anonymous) else written(node)
        if name.lower() in _FORMATS:
            _refuse_percents(node, name, sql)
        instead = INSTEAD.get(name.lower())
        if instead is not None and name.lower() not in functions:
            raise UnknownNameError(
                f"there is no function {name}", place=place_of(node, sql), hint=f"write {instead}"
            )


def _refuse_percents(call: exp.Func, name: str, sql: str) -> None:
    """Refuse date_format(ts, '%Y-%m-%d')."""
    for one in call.find_all(exp.Literal):
        if one.is_string and "%" in one.name and one.parent is call:
            raise SqlError(
                f"{name} does not support patterns with %",
                place=place_of(call, sql),
                detail=f"got {one.name!r:.60}",
                hint="write 'yyyy-MM-dd HH:mm:ss', as in Spark",
            )


def _refuse_times(cast: exp.Cast, sql: str) -> None:
    """Refuse CAST(ts AS TIME), which the parser would take for a TIMESTAMP."""
    if cast.is_type(exp.DType.TIME, exp.DType.TIMETZ):
        raise SqlError(
            "there is no type for times of day here",
            place=place_of(cast, sql),
            hint="write date_format(ts, 'HH:mm:ss'), or hour(ts) and minute(ts)",
        )
