"""DuckDB as an independent judge of changelogs, at every instant at which anything can change."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from nilometer.model.time import EARLIEST, FOREVER
from tests.change_data import LAST, SCHEMA, STREAMS, TABLE, ChangeData
from tests.change_queries import ChangeCase

Row = tuple[Any, ...]
Change = tuple[Row, int, int]
"""A row, the instant from which it holds (microseconds), and how many copies come."""

_STORED = pa.schema([("ts", pa.int64()), *list(SCHEMA)[1:]])


class _Judge:
    """A DuckDB that is recreated after it has failed: from then on it would answer nothing."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def ask(self, sql: str, tables: Mapping[str, pa.Table]) -> list[Row]:
        """The rows of an answer; an InternalException if DuckDB breaks."""
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            return self._connection.execute(sql).fetchall()
        except duckdb.InternalException:
            self._start()
            raise


_judge = _Judge()


def instants(case: ChangeCase, data: ChangeData) -> range:
    """All instants, from before everything until after everything has left."""
    last = data.first + LAST + case.longest + (case.every or 0)
    return range(data.first - 1, last + 3)


def answers(case: ChangeCase, data: ChangeData) -> dict[int, Counter[Row]]:
    """The answer of the plain query at every instant."""
    times = instants(case, data)
    paces = sorted({_pace(t, case.every) for t in times})
    try:
        by_pace = _answers_together(case, data, paces)
    except duckdb.InternalException:  # It breaks on some queries over all instants at once.
        by_pace = {pace: plain_answer(case, data, pace) for pace in paces}
    return {t: by_pace.get(_pace(t, case.every), Counter()) for t in times}


def _answers_together(
    case: ChangeCase, data: ChangeData, paces: Sequence[int]
) -> dict[int, Counter[Row]]:
    asked = {**_tables(data), "_instants": pa.table({"_t": pa.array(paces, pa.int64())})}
    sql = f"SELECT _i._t, _q.* FROM _instants _i, LATERAL ({case.oracle}) _q"
    answers: dict[int, Counter[Row]] = {}
    for at, *row in _judge.ask(sql, asked):
        answers.setdefault(at, Counter())[canonical(row)] += 1
    return answers


def plain_answer(case: ChangeCase, data: ChangeData, at: int) -> Counter[Row]:
    """The answer of the plain query at one instant, run separately."""
    sql = case.oracle.replace("_i._t", f"({_pace(at, case.every)})")
    return Counter(canonical(row) for row in _judge.ask(sql, _tables(data)))


def may_lose_rows(sql: str) -> bool:
    """Whether DuckDB, run for all instants at once, may lose the row of an aggregate of nothing.

    It does so in an operand of a set operator: LATERAL (… UNION SELECT min(k) FROM nothing).
    """
    combines = re.search(r"\b(UNION|INTERSECT|EXCEPT)\b", sql) is not None
    return combines and re.search(r"\b(min|max|sum|count)\(", sql) is not None


def _pace(instant: int, every: int | None) -> int:
    """The last instant at which changes took effect."""
    return instant if every is None else instant // every * every


def _tables(data: ChangeData) -> dict[str, pa.Table]:
    tables = {"T": _table(data.table, TABLE)}
    for name in STREAMS:
        rows = [(*r[:3], None if r[3] is None else r[3] + 0.0, *r[4:]) for r in data.streams[name]]
        tables[name] = _table(rows, _STORED)
    return tables


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def canonical(row: Iterable[Any]) -> Row:
    """A row such that equal ones are equal in Python, with floats rounded to nine digits."""
    return tuple(_canonical_value(value) for value in row)


def _canonical_value(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return float(f"{value:.9g}") + 0.0
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal):
        return value.normalize() + 0
    return value


def bits(row: Iterable[Any]) -> Row:
    """A row such that only those with the same bits are equal."""
    return tuple(struct.pack("<d", v) if isinstance(v, float) else v for v in row)


def changes_of(table: pa.Table) -> list[Change]:
    """A changelog as Python values, times as microseconds."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())  # noqa: PLW2901
        columns.append(column.to_pylist())
    return [(tuple(row[:-2]), row[-2], row[-1]) for row in zip(*columns, strict=True)]


def check_net(changes: Sequence[Change]) -> None:
    """Check that no change is empty, and that none comes twice."""
    assert all(diff != 0 for _, _, diff in changes), "a change of nothing"
    seen = Counter((bits(row), time) for row, time, _ in changes)
    twice = [key for key, count in seen.items() if count > 1]
    assert not twice, f"several changes of a row at one instant: {twice[:3]}"


def check_against(case: ChangeCase, data: ChangeData, changes: Sequence[Change]) -> None:
    """Check that the folded changelog is the plain answer at every instant, never negative."""
    expected = answers(case, data)
    held: Counter[Row] = Counter()
    rows: dict[Row, Row] = {}
    waiting = sorted(changes, key=lambda change: change[1])
    known = instants(case, data)
    for row, time, diff in waiting:
        assert time == EARLIEST or time in known, f"{row} changes by {diff} at {time}"
    position = 0
    for at, right in expected.items():
        while position < len(waiting) and waiting[position][1] <= at:
            row, _, diff = waiting[position]
            key = bits(row)
            rows.setdefault(key, row)
            held[key] += diff
            position += 1
        negative = {rows[key]: count for key, count in held.items() if count < 0}
        assert not negative, f"at {at}: copies are less than none: {negative}"
        answer: Counter[Row] = Counter()
        for key, count in held.items():
            if count:
                answer[canonical(rows[key])] += count
        if is_same(answer, right):
            continue
        alone = plain_answer(case, data, at)  # rarely, DuckDB fails on all at once
        assert is_same(answer, alone), f"at {at}: found {dict(answer)}, right is {dict(alone)}"


def is_same(answer: Counter[Row], right: Counter[Row]) -> bool:
    """Whether rows agree, floats to a relative 1e-9."""
    if answer == right:
        return True
    ordered = [sorted(one.elements(), key=_rough) for one in (answer, right)]
    return len(ordered[0]) == len(ordered[1]) and all(
        len(one) == len(other) and all(_is_close(a, b) for a, b in zip(one, other, strict=True))
        for one, other in zip(*ordered, strict=True)
    )


def _rough(row: Row) -> str:
    return repr([f"{value:.5g}" if isinstance(value, float) else value for value in row])


def _is_close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=4e-9, abs_tol=1e-12)
    return bool(a == b)


def as_counter(changes: Iterable[Change]) -> Counter[Row]:
    """Changes in a form that can be compared with those of another run."""
    return Counter((*canonical(row), time, diff) for row, time, diff in changes)


def settled(changes: Iterable[Change], case: ChangeCase, data: ChangeData) -> list[Change]:
    """What streams emit of all changes: those before the watermark, or that have always held."""
    marks = [data.watermark(name) for name in case.streams]
    known = [mark for mark in marks if mark is not None]
    end = EARLIEST if len(known) < len(marks) else min(known, default=FOREVER)
    return [change for change in changes if change[1] < end or change[1] == EARLIEST]
