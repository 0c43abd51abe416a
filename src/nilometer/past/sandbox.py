"""An embedded DuckDB that sees the tables it is given, and nothing else.

It has no files, no network, no extensions and no Python variables. A statement is checked as
DuckDB itself has parsed it: one query, the given tables, functions that are known to be harmless.
How long it takes, and how much memory, cannot be known in advance: `guarded` bounds that.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from nilometer.errors import (
    InputError,
    InternalError,
    SqlError,
    SqlTypeError,
    TimeLimitError,
    TooLargeError,
)
from nilometer.extras import require_extras
from nilometer.model.names import nearest

if TYPE_CHECKING:
    import duckdb

Rows: TypeAlias = pa.Table | pa.RecordBatchReader
Cancelling: TypeAlias = Callable[[Callable[[], None]], None]

_SETTINGS: Final = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "2",
}
_IN_FROM: Final = frozenset({"range", "generate_series", "unnest"})
_HOSTILE: Final = (
    "SELECT * FROM no_such_table",
    "SELECT * FROM read_text('x')",
    "SELECT (SELECT COUNT(*) FROM glob('*')) FROM range(1)",
    "WITH sqlite_master AS (FROM sqlite_master) FROM sqlite_master",
    "WITH RECURSIVE t AS (SELECT 1 FROM t UNION ALL SELECT 1 FROM t) FROM t",
    "SELECT * FROM (SHOW ALL TABLES)",
    "SELECT getvariable('x')",
    "SELECT 1; SELECT 2",
    "ATTACH 'x'",
)
"""Statements that must be refused, or else the check misreads what DuckDB says of them."""
_BATCH_ROWS: Final = 100_000
_BY_ROW: Final = """
    SELECT function_name FROM duckdb_functions() GROUP BY function_name
    HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')
"""
_EXPANDED_BY_ROW: Final = frozenset({"nullif"})
"""Functions that DuckDB rewrites as others, all of them row by row."""
_BY_CLOCK: Final = frozenset({"age", "current_localtime", "current_localtimestamp"})
"""Functions that may read the clock, although DuckDB calls them consistent."""
_CLOCKS: Final = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)
"""Columns that mean the current time if no table has them."""


@dataclass(frozen=True)
class AnswerLimits:
    """Limits on an answer."""

    rows: int | None = None
    """At most this many rows are returned."""
    bytes: int | None = None
    """A larger answer, in bytes, is refused."""
    seconds: float | None = None


class Sandbox:
    """A DuckDB for any number of threads; statements do not see each other's tables."""

    def __init__(self, memory: int, macros: Mapping[str, str] | None = None) -> None:
        """`memory` is what all statements together may use, in bytes.

        Statements may also call the macros: parameters and bodies, by name.
        """
        require_extras("SELECT over what is stored", "history")
        import duckdb  # noqa: PLC0415  an extra

        settings: dict[str, Any] = {**_SETTINGS, "memory_limit": f"{memory >> 20}MiB"}
        self._root: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=settings)
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        for name, body in (macros or {}).items():
            self._root.execute(f"CREATE MACRO {name}{body}")
        self._functions = safe_functions() | set(macros or ())
        type_names = self._root.execute("SELECT lower(type_name) FROM duckdb_types()").fetchall()
        self._types = frozenset(str(one) for (one,) in type_names)
        self._root.execute("SET lock_configuration = true")
        for hostile in _HOSTILE:
            if self._passes(hostile):
                raise InternalError("this version of DuckDB cannot be sandboxed", detail=hostile)

    def _passes(self, sql: str) -> bool:
        try:
            self.require_safe(sql, ())
        except SqlError:
            return False
        return True

    def require_safe(self, sql: str, tables: Collection[str]) -> None:
        """Refuse anything but one query over these tables that uses only harmless functions."""
        check = _Check(self._functions, self._types)
        check.walk(self._parsed(sql), {one.lower() for one in tables})

    def is_by_row(self, sql: str, aggregates: Collection[str] = ()) -> bool:
        """Whether a query computes row by row, apart from these aggregates.

        It has no OVER, and calls only functions of their arguments. DuckDB itself says what kind
        a function is; one that may be of several kinds, or expands to others, does not count.
        """
        return _calls_only(self._parsed(sql), self._by_row.union(aggregates))

    @cached_property
    def _by_row(self) -> frozenset[str]:
        with self._cursor() as cursor:
            names = {str(one).lower() for (one,) in cursor.execute(_BY_ROW).fetchall()}
        return frozenset(names - _BY_CLOCK) | _EXPANDED_BY_ROW

    def _parsed(self, sql: str) -> dict[str, Any]:
        """A query as DuckDB has parsed it."""
        with self._cursor() as cursor, _errors():
            rows = cursor.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
        parsed: dict[str, Any] = json.loads(rows[0][0])
        if parsed["error"]:
            message = str(parsed.get("error_message"))
            if _is_about_memory(message):
                raise too_much_memory()
            raise SqlError("cannot read the query", detail=message)
        if len(parsed["statements"]) != 1:
            raise SqlError("expected one query")
        first: dict[str, Any] = parsed["statements"][0]
        return first

    def types(self, sql: str, tables: Mapping[str, pa.Table]) -> list[str]:
        """DuckDB's names for the types of an answer's columns."""
        with self._cursor() as cursor, _errors():
            for name, rows in tables.items():
                cursor.register(name, rows)
            return [str(one) for one in cursor.sql(sql).types]

    def value(self, sql: str) -> Any:
        """The value of an expression without columns; None if it cannot be determined."""
        try:
            self.require_safe(f"SELECT {sql}", ())
            with self._cursor() as cursor, _errors():
                return cursor.execute(f"SELECT {sql}").fetchall()[0][0]
        except (SqlError, InputError):
            return None

    def bind(self, sql: str, tables: Mapping[str, pa.Table]) -> None:
        """Refuse a query that cannot be run over tables like these."""
        with self._cursor() as cursor, _errors():
            for name, rows in tables.items():
                cursor.register(name, rows)
            cursor.execute(f"EXPLAIN {sql}")

    def run(
        self,
        sql: str,
        tables: Mapping[str, Rows],
        limits: AnswerLimits | None = None,
        cancelling: Cancelling | None = None,
    ) -> pa.Table:
        """The first rows of the answer to a query that `require_safe` has accepted.

        `cancelling` is given a callable that ends the query early.
        """
        with self._cursor() as cursor, _errors():
            for name, rows in tables.items():
                cursor.register(name, rows)
            late = threading.Event()

            def stop() -> None:
                late.set()
                cursor.interrupt()

            if cancelling is not None:
                cancelling(cursor.interrupt)
            limits = limits or AnswerLimits()
            seconds = limits.seconds
            timer = None if seconds is None else threading.Timer(seconds, stop)
            if timer is not None:
                timer.start()
            try:
                reader = cursor.sql(sql).to_arrow_reader(_BATCH_ROWS)
                return pa.Table.from_batches(_first(reader, limits), reader.schema)
            except Exception:
                if late.is_set():
                    raise took_too_long(seconds) from None
                raise
            finally:
                if timer is not None:
                    timer.cancel()

    def close(self) -> None:
        self._root.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._root.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


def took_too_long(seconds: float | None) -> TimeLimitError:
    """The error for a query that did not finish in time."""
    return TimeLimitError(
        f"the query took longer than {seconds or 0:.0f} s",
        hint="ask for a shorter range of time, or keep it as a query",
    )


def too_much_memory() -> TooLargeError:
    """The error for a query that needs more memory than it may use."""
    return TooLargeError(
        "the query exceeds its memory limit",
        hint="ask for a shorter range of time, or for fewer columns",
    )


@cache
def safe_functions() -> frozenset[str]:
    """The DuckDB functions that statements may call."""
    return frozenset((files(__package__) / "safe_functions.txt").read_text().split())


@dataclass(frozen=True)
class _Check:
    """Walks through a query as DuckDB has parsed it."""

    functions: frozenset[str]
    """The functions that may be called."""
    types: frozenset[str]

    def walk(self, node: Any, tables: set[str]) -> None:
        if isinstance(node, list):
            for one in node:
                self.walk(one, tables)
        if not isinstance(node, dict):
            return
        kind = node.get("type")
        if kind == "BASE_TABLE":
            self._require_table(node, tables)
        if kind == "SHOW_REF":
            raise SqlError("only tables and queries can be read from")
        if kind == "TABLE_FUNCTION":
            self._require_in_from(node["function"])
            rest = {key: one for key, one in node["function"].items() if key != "function_name"}
            self.walk({**node, "type": None, "function": rest}, tables)
            return
        if "function_name" in node:
            self._require_function(node)
        if node.get("class") == "TYPE":
            self._require_type(node)
        if kind == "RECURSIVE_CTE_NODE":
            self.walk(node["right"], tables | {node["cte_name"].lower()})
            node = {key: one for key, one in node.items() if key != "right"}
        # A WITH name is visible only after its definition: within it, the name means another table.
        for one in (node.get("cte_map") or {}).get("map", ()):
            self.walk(one["value"], tables)
            tables = tables | {one["key"].lower()}
        for key, one in node.items():
            if key != "cte_map":
                self.walk(one, tables)

    def _require_table(self, node: Mapping[str, Any], tables: set[str]) -> None:
        name = node["table_name"]
        if node.get("schema_name") or node.get("catalog_name") or name.lower() not in tables:
            raise SqlError(f"there is no table {name}", hint=nearest(name, sorted(tables)))

    def _require_in_from(self, function: Mapping[str, Any]) -> None:
        if function.get("function_name") not in _IN_FROM or function.get("schema"):
            raise SqlError(f"{function.get('function_name')} cannot be read from")

    def _require_type(self, node: Mapping[str, Any]) -> None:
        name = node["type_name"]
        if name.lower() not in self.types or node.get("schema") or node.get("catalog"):
            raise SqlError(f"there is no type {name}", hint=nearest(name, sorted(self.types)))

    def _require_function(self, node: Mapping[str, Any]) -> None:
        name = node["function_name"].lower()
        if name not in self.functions or node.get("schema") or node.get("catalog"):
            raise SqlError(
                f"there is no function {name} for stored data",
                hint=nearest(name, sorted(self.functions)),
            )


def _calls_only(node: Any, functions: Collection[str]) -> bool:
    if isinstance(node, list):
        return all(_calls_only(one, functions) for one in node)
    if not isinstance(node, dict):
        return True
    name = node.get("function_name")
    if node.get("class") == "WINDOW" or (name is not None and name.lower() not in functions):
        return False
    if any(one.lower() in _CLOCKS for one in node.get("column_names", ())):
        return False
    return all(_calls_only(one, functions) for one in node.values())


def _first(reader: pa.RecordBatchReader, limits: AnswerLimits) -> list[pa.RecordBatch]:
    """The first rows up to the limit, in batches; an answer of too many bytes is refused."""
    batches, left, size = [], limits.rows, 0
    for batch in reader:
        size += batch.nbytes
        if limits.bytes is not None and size > limits.bytes:
            raise TooLargeError(
                "the answer is too large",
                detail=f"it has more than {limits.bytes >> 20} MB",
                hint="ask for fewer rows or columns: WHERE, LIMIT, GROUP BY",
            )
        if left is not None and len(batch) >= left:
            batches.append(batch.slice(0, left))
            break
        batches.append(batch)
        left = None if left is None else left - len(batch)
    return batches


@contextmanager
def _errors() -> Iterator[None]:
    """Turn DuckDB's errors into ours: its messages are good, except for what they reveal of it."""
    import duckdb  # noqa: PLC0415  an extra

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError):
        raise too_much_memory() from None
    except (duckdb.ConversionException, duckdb.BinderException, duckdb.OutOfRangeException) as one:
        raise SqlTypeError(_sentence(one)) from None
    except duckdb.Error as error:
        if _is_about_memory(str(error)):
            raise too_much_memory() from None
        raise SqlError(_sentence(error)) from None


def _is_about_memory(message: str) -> bool:
    """Whether the system refused DuckDB memory, which gives a different error each time."""
    return "Failed to allocate" in message or "bad_alloc" in message or "bad allocation" in message


def _sentence(error: Exception) -> str:
    """The first line of a message, without the kind of error before it."""
    line = str(error).split("\n")[0]
    return line.split("Error: ", 1)[-1]
