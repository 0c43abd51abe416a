"""Parameters of statements: constants of the tree, whatever they hold; what is missing or left."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from nilometer.client.parameter_json import value_from_json, value_to_json
from nilometer.commands.parameter_option import read_parameters
from nilometer.commands.statements import split_statements
from nilometer.errors import InputError, NilometerError, SqlError
from nilometer.kernels.evaluate import evaluate
from nilometer.local.embedded import EmbeddedDatabase
from nilometer.sql.ddl.nodes import Insert, Update
from nilometer.sql.expressions.compile_scalar import SubsetCompiler
from nilometer.sql.parse.parameters import Parameters, constant_of, merged
from nilometer.sql.statements import Statement, read_one, read_statements

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5.5))])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(),
    st.decimals(-(10**20), 10**20, allow_nan=False, places=6),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.dates(),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES),
    st.timedeltas(timedelta(days=-300_000), timedelta(days=300_000)),
)
HOSTILE = ["'; DROP TABLE t; --", "\\' OR 1=1", "`", "${x}", "/*", "\u2028", "\\", "''", "%", ":k"]


def evaluated(tree: exp.Expr) -> object:
    compiled = SubsetCompiler("", _no_column, {}, "+00:00").compile(tree)
    return evaluate(compiled, [], 1)[0].as_py()


def _no_column(_: object) -> Any:
    raise AssertionError


def same(answer: Any, value: object) -> bool:
    if isinstance(value, float) and type(answer) is float:
        if math.isnan(value):
            return math.isnan(answer)
        return (answer, math.copysign(1, answer)) == (value, math.copysign(1, value))
    if isinstance(value, timedelta):
        return bool(answer == value // timedelta(microseconds=1) or answer == value)
    return type(answer) is type(value) and bool(answer == value)


@given(VALUES)
@example(-0.0)
@example(math.nan)
@example(-math.inf)
@example(Decimal("0.00"))
@example(Decimal("1E+3"))
@example(timedelta(microseconds=-1))
def test_a_value_is_the_constant_that_it_becomes(value: object) -> None:
    assert same(evaluated(constant_of(value)), value)


@given(VALUES)
@example(b"\x00\xff")
def test_a_value_goes_over_the_wire_and_comes_back(value: object) -> None:
    assert same(value_from_json(json.loads(json.dumps(value_to_json(value)))), value)


@pytest.mark.parametrize("value", HOSTILE)
def test_texts_are_constants_and_never_sql(value: str) -> None:
    read = read_one("SELECT k FROM A WHERE name = :name", Parameters({"name": value}))
    assert isinstance(read, Statement)
    (literal,) = read.tree.find_all(exp.Literal)
    assert (literal.is_string, literal.this) == (True, value)


def test_instants_without_a_zone_are_as_if_they_were_written() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 5)
    written = read_one("SELECT TIMESTAMP '2026-01-31 12:00:00.000005' AS t FROM A")
    given = read_one("SELECT :t AS t FROM A", merged(None, {"t": moment}))
    assert isinstance(written, Statement)
    assert isinstance(given, Statement)
    assert written.tree == given.tree


def test_statements_of_the_database_take_values() -> None:
    read = read_one("INSERT INTO t VALUES (:a, -:b, ARRAY(:b, 2))", Parameters({"a": None, "b": 5}))
    assert isinstance(read, Insert)
    assert read.rows == ((None, -5, [5, 2]),)
    update = read_one("UPDATE t SET a = :a WHERE b = :b", Parameters({"a": "x", "b": b"\x01"}))
    assert isinstance(update, Update)
    assert update.assignments["a"] == exp.Literal.string("x")


def test_a_number_is_no_place_of_a_column() -> None:
    read = read_one("SELECT k FROM A GROUP BY :n ORDER BY :n LIMIT :n", Parameters({"n": 1}))
    assert isinstance(read, Statement)
    assert isinstance(read.tree.args["group"].expressions[0], exp.Paren)
    assert isinstance(read.tree.args["order"].expressions[0].this, exp.Paren)
    assert read.tree.args["limit"].expression == exp.Literal.number(1)


@pytest.mark.parametrize(
    ("sql", "values", "message"),
    [
        ("SELECT :k FROM A", {}, "parameter :k has no value"),
        ("SELECT :k FROM A", {"K": 1}, "parameter :k has no value"),
        ("SELECT a FROM A", {"k": 1}, "the statement has no parameter :k"),
        ("SELECT :k FROM A", {"k": 1, "n": 2}, "the statement has no parameter :n"),
        ("SELECT ? FROM A", {"k": 1}, "a parameter must have a name and stand for a value"),
        ("SELECT a FROM :t", {"t": "A"}, "a parameter must have a name and stand for a value"),
        ("SELECT a :t FROM A", {"t": "A"}, "a parameter must have a name and stand for a value"),
        ("INSERT INTO t VALUES (:k)", {}, "parameter :k has no value"),
        ("SELECT :k FROM A", {"k": 2**63}, "the parameter :k is too large"),
        ("SELECT :k FROM A", {"k": Decimal("NaN")}, "the parameter :k is not a number"),
        ("SELECT :k FROM A", {"k": Decimal(10) ** 40}, "the parameter :k has more than 38 digits"),
        ("SELECT :k FROM A", {"k": "\0"}, "the parameter :k is not valid text"),
        ("SELECT :k FROM A", {"k": [1]}, "the parameter :k cannot be of this type"),
        (
            "CREATE QUERY q AS SELECT :k FROM A",
            {"k": 1},
            "CREATE QUERY and CREATE VIEW cannot have parameters",
        ),
        ("CREATE VIEW v AS SELECT :k FROM A", {}, "parameter :k has no value"),
    ],
)
def test_what_is_refused(sql: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(NilometerError) as refused:
        read_one(sql, Parameters(values))
    assert refused.value.message == message
    assert refused.value.hint is not None or isinstance(refused.value, SqlError)


def test_values_have_names_and_are_given_once() -> None:
    with pytest.raises(InputError, match="given twice"):
        merged({"k": 1}, {"k": 2})
    with pytest.raises(InputError, match="only contain letters, digits and underscores"):
        merged({"a b": 1}, {})


def test_several_statements_share_their_values() -> None:
    assert (
        len(read_statements("SELECT :a FROM A; SELECT :b FROM A", Parameters({"a": 1, "b": 2})))
        == 2
    )
    split = split_statements("SELECT :a FROM A; SELECT 1 FROM A", {"a": 1})
    assert [one.parameters for one in split] == [{"a": 1}, {}]


def test_the_command_line_reads_constants_and_texts() -> None:
    given = ["a=3", "b=-2.5e0", "c='3'", "d=hall", "e=NULL", "f=", ":g=a=b", "h=1 + 1", "i=x'0A'"]
    assert read_parameters(given) == {
        "a": 3,
        "b": -2.5,
        "c": "3",
        "d": "hall",
        "e": None,
        "f": "",
        "g": "a=b",
        "h": 2,
        "i": b"\n",
    }
    for wrong in (["a"], ["=3"], ["a b=3"], ["a=1", "a=2"]):
        with pytest.raises(InputError):
            read_parameters(wrong)


@pytest.mark.parametrize(
    "given",
    [
        [1],
        {"type": "DATE"},
        {"type": "X", "value": "1"},
        {"type": "DATE", "value": "x"},
        {"type": "DECIMAL", "value": "x"},
    ],
)
def test_json_that_is_no_value(given: Any) -> None:
    with pytest.raises(InputError):
        value_from_json(given)


LENGTHS = [
    ("SELECT COUNT(*) AS n FROM S [RANGE {}]", "5 SECONDS"),
    ("SELECT COUNT(*) AS n FROM S [RANGE 10 S SLIDE {}]", "5 SECONDS"),
    ("SELECT COUNT(*) AS n FROM TUMBLE(TABLE S, DESCRIPTOR(ts), {})", "5 SECONDS"),
    ("SELECT A.k FROM S A, S B WINDOW(A, B) BETWEEN 0 S AND {}", "5 SECONDS"),
    ("SELECT k, COUNT(*) AS n FROM S [ROWS 2] GROUP BY k EMIT CHANGES EVERY {}", "5 SECONDS"),
]


def small_database() -> EmbeddedDatabase:
    db = EmbeddedDatabase()
    times = pa.array([0, 1, 4, 5, 9, 11, 30], pa.int64())
    seconds = pc.multiply(times, 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    db.create_stream("S", pa.table({"ts": seconds, "k": [1, 2, 1, 2, 1, 2, 1]}), time="ts")
    return db


@pytest.mark.parametrize(("statement", "written"), LENGTHS)
@pytest.mark.parametrize(
    ("parameter", "value"),
    [(":w", timedelta(seconds=5)), (":w", "5 seconds"), (":w SECONDS", 5), (":w S", 5.0)],
)
def test_lengths_of_windows_can_be_parameters(
    statement: str, written: str, parameter: str, value: object
) -> None:
    db = small_database()
    right = db.sql(statement.format(written))
    assert right.num_rows
    assert db.sql(statement.format(parameter), w=value).equals(right)


@pytest.mark.parametrize(
    ("statement", "written", "value"),
    [
        ("SELECT COUNT(*) AS n FROM S GROUP BY window(ts, {})", "'5 seconds'", "5 seconds"),
        ("SELECT window.end FROM S GROUP BY window(ts, {})", "'5 s'", timedelta(seconds=5)),
        (
            "SELECT MAX(k) OVER (ORDER BY ts RANGE BETWEEN {} PRECEDING AND CURRENT ROW) n FROM S",
            "INTERVAL '5' SECONDS",
            timedelta(seconds=5),
        ),
    ],
)
def test_lengths_in_expressions_can_be_parameters(
    statement: str, written: str, value: object
) -> None:
    db = small_database()
    assert db.sql(statement.format(":w"), w=value).equals(db.sql(statement.format(written)))


def test_numbers_of_rows_can_be_parameters() -> None:
    db = small_database()
    asked = "SELECT k, MAX(ts) AS t FROM S [PARTITION BY k ROWS {}] GROUP BY k"
    assert db.sql(asked.format(":n"), n=2).equals(db.sql(asked.format(2)))
    assert db.explain(asked.format(":n"), n=2) == db.explain(asked.format(2))


@pytest.mark.parametrize(
    ("window", "value", "message"),
    [
        ("RANGE :w", 5, "the parameter :w is not a length of time"),
        ("RANGE :w", True, "the parameter :w is not a length of time"),
        ("RANGE :w SECONDS", "5", "the parameter :w is not a length of time"),
        ("RANGE :w", "5 parsecs", "cannot read a duration"),
        ("RANGE :w", timedelta(seconds=-1), "negative"),
        ("ROWS :w", "5", "the parameter :w is not a number of rows"),
        ("ROWS :w", -1, "the parameter :w is not a number of rows"),
        ("RANGE :v", 5, "parameter :v has no value"),
    ],
)
def test_other_values_are_no_lengths(window: str, value: object, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        small_database().sql(f"SELECT COUNT(*) AS n FROM S [{window}]", w=value)
