"""Functions that reach beyond the data are refused wherever they stand, however they are spelt."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from sqlglot import exp

from nilometer.errors import NilometerError, SqlError
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.expressions.function_kinds import (
    AGGREGATES,
    GENERATORS,
    TIME_GROUPS,
    WINDOW_FUNCTIONS,
)
from nilometer.sql.expressions.unsafe_functions import UNSAFE, refuse_unsafe
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.statements import read_query
from tests.plan_nodes import make_database


class AnyEngine:
    """Takes every expression for text, as Spark does that reflects."""

    time_zone = "UTC"

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        return [pa.string() for _ in expressions]


def plan_of(sql: str) -> object:
    """What would run, if Spark had no objection."""
    known = make_database().plan("SELECT k FROM A").catalog
    catalog = Catalog(known.relations, known.functions, AnyEngine())
    return compile_statement(read_query(sql), catalog, 1)


CALL = "reflect('java.lang.System', 'getProperty', 'user.dir')"


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        f"`reflect`{CALL[7:]}",
        f"builtin.{CALL}",
        f"system.builtin.{CALL}",
        f"REFLECT /* x */ {CALL[7:]}",
        f"{{fn {CALL}}}",
        f"upper({CALL})",
        f"transform(array(1), x -> {CALL})",
        f"CASE WHEN k > 0 THEN {CALL} END",
        f"s LIKE {CALL}",
        "try_reflect('a', 'b')",
        "java_method('a', 'b')",
        "IDENTIFIER('s')",
        "from_protobuf(s, 'M', '/etc/passwd')",
        "from_avro(s, '{}', map('avroSchemaUrl', '/etc/passwd'))",
        "from_xml(s, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
        "xpath_string(s, 'a')",
        "input_file_name()",
        "current_user",
        "current_user()",
        "user()",
        "session_user",
        "current_catalog()",
        "current_database()",
        "current_schema()",
        "version()",
        "current_version()",
    ],
)
def test_it_is_refused(call: str) -> None:
    for sql in (
        f"SELECT {call} AS x FROM A",
        f"SELECT k FROM A WHERE {call} = 'x'",
        f"SELECT count({call}) AS n FROM A [RANGE 1 SECOND]",
        f"SELECT k FROM A [RANGE 1 SECOND] ORDER BY {call} LIMIT 1",
    ):
        with pytest.raises(SqlError, match="is not allowed") as caught:
            plan_of(sql)
        assert caught.value.place is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM `csv`.`/etc/passwd`",
        "SELECT * FROM `csv.``/etc/passwd```",
        "SELECT A.k FROM A, text.`/etc/passwd` X",
        "SELECT k FROM A WHERE s IN (SELECT value FROM text.`/etc/passwd`)",
        "SELECT (SELECT value FROM text.`/etc/passwd`) AS x FROM A",
        "SELECT k FROM A WHERE EXISTS (SELECT * FROM text.`/etc/passwd`)",
        "SELECT * FROM read_files('/etc')",
        "SELECT * FROM spark_catalog.default.t",
        "SELECT * FROM python_worker_logs()",
        "SELECT TRANSFORM(s) USING 'cat' FROM A",
        "SET spark.app.name",
        "ADD JAR '/tmp/x.jar'",
        "CREATE TEMPORARY FUNCTION f AS 'x.Y'",
        "LOAD DATA INPATH '/etc/passwd' INTO TABLE A",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT k FROM A",
    ],
)
def test_no_other_way_leads_to_files_or_code(sql: str) -> None:
    with pytest.raises(NilometerError):
        plan_of(sql)


def test_words_of_values_are_no_calls() -> None:
    for value in ("user", "version", "reflect"):
        assert plan_of(f"SELECT upper('{value}') AS x, concat(s, '{value}') AS y FROM A")


def test_whatever_the_parser_makes_of_a_name_is_refused_by_what_spark_would_call() -> None:
    made = 0
    for kind in _subclasses(exp.Func):
        needed = {name: exp.Literal.string("a") for name, must in kind.arg_types.items() if must}
        try:
            call = kind(**needed)
            called = call.sql("spark").partition("(")[0].strip().lower()
        except Exception:
            continue
        if called in UNSAFE:
            made += 1
            assert refuse_unsafe(call, "") is not None, (kind, written(call))
    assert made >= 5


def _subclasses(kind: type[exp.Func]) -> set[type[exp.Func]]:
    return {kind}.union(*(_subclasses(one) for one in kind.__subclasses__()))


OF_SEVERAL_ROWS = sorted(AGGREGATES | WINDOW_FUNCTIONS | GENERATORS | TIME_GROUPS)


@pytest.mark.parametrize("name", OF_SEVERAL_ROWS)
def test_no_function_of_several_rows_stands_for_a_value(name: str) -> None:
    """Spark would run it over a micro-batch, or make several rows of one."""
    for arguments in ("", "k", "k, k", "s, '1 minute'", "ts, '1 minute', '1 second'", "k, k, k, k"):
        call = f"{name}({arguments})"
        if name == "window" and arguments.count(",") == 1:  # every row has one
            continue
        with pytest.raises(NilometerError):
            plan_of(f"SELECT k FROM A WHERE {call} > 1")
        with pytest.raises(NilometerError):
            plan_of(f"SELECT {call} AS x FROM A")
