"""Statements of an attacker: text that breaks out, wherever text is allowed."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import duckdb

from tests.queries import RELATIONS, SCHEMA

_WANTED: Final = (
    "reflect('java.lang.System','getProperty','user.dir')",
    "java_method('java.lang.System','exit',1)",
    "(SELECT max(value) FROM text.`/etc/passwd`)",
    "(FROM text.`/etc/passwd`)",
    "(TABLE T)",
    "(VALUES (1))",
    "version()",
    "current_user",
    "system.builtin.version()",
    "`version`()",
    "input_file_name()",
    "_metadata.file_path",
    "xpath_string('<a/>', 'a')",
)
"""What must never be called, read or revealed."""
_WANTED_OF_THE_PAST: Final = (
    "(SELECT content FROM read_text('/etc/passwd'))",
    "(SELECT max(content) FROM read_blob('/etc/passwd'))",
    "(SELECT count(*) FROM '/etc/passwd')",
    '(SELECT count(*) FROM "/etc/passwd.csv")',
    "(FROM glob('/*'))",
    "(TABLE duckdb_settings)",
    "(SELECT count(*) FROM duckdb_settings())",
    "(SELECT sql FROM sqlite_master)",
    "(WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT count(*) FROM sqlite_master)",
    "(WITH w AS (SELECT * FROM duckdb_tables), duckdb_tables AS (SELECT 1) SELECT count(*) FROM w)",
    "(SELECT count(*) FROM information_schema.tables)",
    "getenv('HOME')",
    "current_setting('home_directory')",
    "system.main.getenv('HOME')",
    "\"getenv\"('HOME')",
    "getvariable('x')",
    "write_log('x')",
    "sleep_ms(100000)",
    "repeat('x', 2000000000)",
    "lpad('x', 2000000000, 'y')",
    "(SELECT * FROM query('SELECT 1'))",
    "(SELECT count(*) FROM pragma_database_list())",
    "(SELECT count(*) FROM sniff_csv('/etc/passwd'))",
    "'/etc/passwd'.read_text()",
)
"""The same for DuckDB."""
_STATEMENTS: Final = ("ATTACH '/tmp/x'", "COPY R0 TO '/tmp/x'", "INSTALL httpfs", "SET threads = 9")
_BREAKS: Final = (
    *("{}", "'{}", "{}'", "' || {} || '", "\\' || {} || \\'", "'' || {} || ''", "\\\\' || {} || '"),
    *("day FROM current_date()), {}, extract(day", "day' FROM current_date()), {}, extract('day"),
    *(
        "1), {}, (1",
        "1) AS x, {} AS y, (1",
        "`, {}, `",
        "``, {}, ``",
        "`) || {} || (`",
        '" || {} || "',
    ),
    *(
        "*/ {} /*",
        "/* {} */",
        "/*+ {} */",
        "-- \n {}",
        "--\\\n {}",
        "; {}",
        "${{{}}}",
        ":{}",
        "?{}",
    ),
    *("\\u0027 || {} || \\u0027", "\\047 || {} || \\047", "\n{}\n", "\x00{}", "R'\\' || {} || '"),
    *("INT) || {} || CAST(1 AS INT", "x -> {}", "> AS INT), {}, CAST(1", "|> SELECT {}"),
)
"""Ways for text to break out of its context."""
_AS_STRING: Final = ("'{}'", '"{}"', "R'{}'", "N'{}'", "'{}' ''")
_AS_NAME: Final = ("`{}`", "{}", "A.`{}`")
_PLACES: Final = (
    ("string", "SELECT concat(A.s, {}) AS x FROM R0 A"),
    ("string", "SELECT A.k FROM R0 A WHERE A.s LIKE {} ESCAPE '!'"),
    ("string", "SELECT A.k FROM R0 A WHERE A.s LIKE 'a' ESCAPE {}"),
    ("string", "SELECT A.k FROM R0 A WHERE A.s IN ('a', {})"),
    ("string", "SELECT A.k FROM R0 A WHERE A.s RLIKE {}"),
    ("string", "SELECT date_format(A.ts, {}) AS x FROM R0 A"),
    ("string", "SELECT to_timestamp(A.s, {}) AS x FROM R0 A"),
    ("string", "SELECT date_trunc({}, A.ts) AS x FROM R0 A"),
    ("string", "SELECT trunc(A.ts, {}) AS x FROM R0 A"),
    ("string", "SELECT extract({} FROM A.ts) AS x FROM R0 A"),
    ("string", "SELECT date_part({}, A.ts) AS x FROM R0 A"),
    ("string", "SELECT A.ts + INTERVAL {} DAY AS x FROM R0 A"),
    ("string", "SELECT A.ts + INTERVAL {} AS x FROM R0 A"),
    ("string", "SELECT DATE {} AS x, A.k FROM R0 A"),
    ("string", "SELECT TIMESTAMP {} AS x, A.k FROM R0 A"),
    ("string", "SELECT X{} AS x, A.k FROM R0 A"),
    ("string", "SELECT get_json_object(A.s, {}) AS x FROM R0 A"),
    ("string", "SELECT from_json(A.s, {}) AS x FROM R0 A"),
    ("string", "SELECT named_struct({}, A.k) AS x FROM R0 A"),
    ("string", "SELECT cast(A.s AS {}) AS x FROM R0 A"),
    ("string", "SELECT A.s COLLATE {} AS x FROM R0 A"),
    ("string", "SELECT timestampadd({}, 1, A.ts) AS x FROM R0 A"),
    ("string", "SELECT timestampdiff({}, A.ts, A.ts) AS x FROM R0 A"),
    ("string", "SELECT trim(BOTH {} FROM A.s) AS x FROM R0 A"),
    (
        "string",
        "SELECT A.k, COUNT(*) FILTER (WHERE A.s = {}) AS n FROM R0 A [RANGE 5 S] GROUP BY A.k",
    ),
    ("name", "SELECT A.k AS {} FROM R0 A"),
    ("name", "SELECT {}.k FROM R0 {}"),
    ("name", "SELECT {} FROM R0 A"),
    ("name", "SELECT extract({} FROM A.ts) AS x FROM R0 A"),
    ("name", "SELECT A.ts + INTERVAL 1 {} AS x FROM R0 A"),
    ("name", "SELECT INTERVAL '1' {} AS x, A.k FROM R0 A"),
    ("name", "SELECT cast(A.s AS {}) AS x FROM R0 A"),
    ("name", "SELECT cast(A.s AS STRUCT<{}: INT>) AS x FROM R0 A"),
    ("name", "SELECT A.s::{} AS x FROM R0 A"),
    ("name", "SELECT transform(array(A.k), {} -> {} + 1) AS x FROM R0 A"),
    ("name", "SELECT timestampadd({}, 1, A.ts) AS x FROM R0 A"),
    ("name", "SELECT date_add({}, 1, A.ts) AS x FROM R0 A"),
    ("name", "SELECT datediff({}, A.ts, A.ts) AS x FROM R0 A"),
    ("name", "SELECT {}(A.k) AS x FROM R0 A"),
    ("name", "SELECT mask(A.s, {} => 'X') AS x FROM R0 A"),
    ("name", "SELECT struct(A.k AS {}) AS x FROM R0 A"),
    ("name", "SELECT A.s COLLATE {} AS x FROM R0 A"),
    ("name", "SELECT A.k FROM R0 A GROUP BY {}"),
    ("name", "SELECT A.k FROM R0 A, R1 B WINDOW = 5 {} WHERE A.k = B.k"),
    ("name", "WITH {} AS (SELECT k FROM R0) SELECT k FROM {}"),
    ("any", "SELECT {} AS x FROM R0 A"),
    ("any", "SELECT A.k {} FROM R0 A"),
    ("any", "SELECT {} A.k FROM R0 A"),
    ("any", "SELECT A.k FROM R0 A WHERE A.k = {}"),
    ("any", "SELECT A.k FROM R0 A {}"),
    ("any", "SELECT A.k FROM {}"),
    ("any", "SELECT extract({} FROM A.ts) AS x FROM R0 A"),
    ("any", "SELECT A.k + {} AS x FROM R0 A"),
)
"""Statements with a place for a string, a name, or anything."""


_CALLED_OF_THE_PAST: Final = frozenset(
    {
        *("read_text", "read_blob", "glob", "getenv", "current_setting", "getvariable", "query"),
        *("write_log", "sleep_ms", "repeat", "lpad", "duckdb_settings", "sniff_csv"),
        *("pragma_database_list", "read_csv", "read_csv_auto", "parquet_scan", "query_table"),
    }
)
"""Functions of DuckDB that no query may call."""


def hostile_question(chance: random.Random) -> str:
    """A statement that reaches for DuckDB's features, by every way to break out of ours."""
    wanted = (*_WANTED_OF_THE_PAST, *_STATEMENTS, *_WANTED)
    return hostile_statement(chance, wanted)


def hostile_condition(chance: random.Random) -> str:
    """The same for the text after WHEN."""
    text = chance.choice(_BREAKS).format(chance.choice(_WANTED_OF_THE_PAST))
    form = chance.choice(("{}", "A.k = {}", "k > 1 AND {}", "s = '{}'", "s LIKE '{}'", "`{}` > 1"))
    return form.replace("{}", text).replace("A.k", "k")


def require_harmless(sql: str, tables: Collection[str]) -> None:
    """Refuse a query that names what it must not; judged by what DuckDB reads in it."""
    (statement,) = duckdb.extract_statements(sql)
    assert statement.type == duckdb.StatementType.SELECT, sql
    bare = _bare()
    assert not _CALLED_OF_THE_PAST & _called(bare, sql), sql
    try:
        read = bare.get_table_names(sql)
    except duckdb.Error:  # what DuckDB cannot parse it does not run
        return
    assert {one.lower() for one in read} <= {one.lower() for one in tables}, sql
    # A WITH name may hide a table that is read all the same: the plan shows it.
    try:
        planned = bare.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1]
    except duckdb.Error:
        return
    for name in _operators(json.loads(planned)):
        assert not name.lower().startswith(("duckdb_", "pragma_", "read_", "glob")), (name, sql)


def _called(bare: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """The functions that a query calls: of the tree, or every name before a parenthesis."""
    tree = json.loads(bare.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0][0])
    if not tree["error"]:
        return set(_functions(tree))
    content, words = sql.encode(), duckdb.tokenize(sql)
    ends = [at for at, _ in words[1:]] + [len(content)]
    parts = [content[at:end].decode().strip() for (at, _), end in zip(words, ends, strict=True)]
    return {one.strip('"').lower() for one, after in pairwise([*parts, ""]) if after[:1] == "("}


def _functions(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if "function_name" in tree:
            yield tree["function_name"].lower()
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _functions(one)


def _operators(planned: list[dict[str, Any]]) -> Iterator[str]:
    """The operators of a plan."""
    for one in planned:
        yield one["name"]
        yield from _operators(one.get("children", []))


@cache
def _bare() -> duckdb.DuckDBPyConnection:
    """A DuckDB with tables like those of the tests, for plans."""
    made = duckdb.connect()
    for name in RELATIONS:
        made.register(name, SCHEMA.empty_table())
    return made


def hostile_statement(chance: random.Random, wanted: Sequence[str] = _WANTED) -> str:
    """One of very many hostile statements."""
    kind, statement = chance.choice(_PLACES)
    text = chance.choice(_BREAKS).format(chance.choice(wanted))
    if chance.random() < 0.2:
        text = chance.choice(_BREAKS).format(text)
    if chance.random() < 0.1:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(("'", "\\", "`", '"', "(", ")", "\n", "--")) + text[at:]
    if kind == "string" or (kind == "any" and chance.random() < 0.3):
        text = chance.choice(_AS_STRING).format(text)
    elif kind == "name":
        text = chance.choice(_AS_NAME).format(text)
    return statement.replace("{}", text)
