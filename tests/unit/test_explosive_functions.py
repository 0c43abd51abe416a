"""One row is not made into gigabytes, nor looked at for years."""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import SqlError
from nilometer.sql.expressions.patterns import slow_part
from nilometer.sql.expressions.scalars import spell
from nilometer.sql.plan.join_plan import JoinPlan
from tests.unit.test_unsafe_functions import plan_of


@pytest.mark.parametrize(
    "expression",
    [
        "repeat(s, 1000)",
        "repeat('ab', least(k, 1000))",
        "lpad(s, 20, '0')",
        "rpad(s, length(s) + 3)",
        "space(5)",
        "sequence(1, 1000)",
        "sequence(10, 1, -3)",
        "sequence(k, k + 10)",
        "sequence(k - 10, k - 10 + 5)",
        "sequence(1, size(split(s, ',')))",
        "sequence(date'2026-01-01', date'2026-12-31', interval 1 day)",
        "array_repeat(k, 12)",
        "transform(sequence(1, 100), x -> x * k)",
        "transform(sequence(1, 900), x -> transform(sequence(1, 900), y -> x * y))",
        "aggregate(sequence(1, 100), 0, (a, x) -> a + x)",
        "aggregate(array(1, 2), '', (a, x) -> concat(a, x))",
        "aggregate(array(k), 0, (a, x) -> CASE WHEN a > x THEN a ELSE x END)",
        "aggregate(array(k), 0, (a, x) -> greatest(a, x) + a)",
        "s RLIKE '^[a-z]+-(\\\\d{1,3}\\\\.){3}[0-9]+$'",
        "s RLIKE '(foo)?bar+'",
        "s RLIKE '(?>a|aa)+$'",
        "s RLIKE '(a++,)*+b'",
        "s RLIKE '\\\\d{1,3}(\\\\.\\\\d{1,3}){3}(:\\\\d{1,5})?'",
        "s RLIKE '^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug) [0-9]{1,2}'",
        f"s RLIKE '{'(?:a|b)?+' * 30}'",
        "regexp_extract(s, '(\\\\w+)@(\\\\w+)', 1)",
        "regexp_replace(s, '[(]a+[)]+', '')",
        "split(s, ',')",
        "replace(s, 'a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb')",
        "regexp_replace(s, '([a-z])([0-9])', '$2$1')",
        "array_join(split(s, ','), ', ')",
        "concat_ws(', ', s, s)",
        "s LIKE '%a%b%c%'",
        "s RLIKE '.*a.*b.*'",
        "format_string('%5.2f of %s', v, s)",
        "round(v, 2)",
        "round(v)",
        "format_number(v, '#,###.00')",
        "format_string('1.20000 is %s', s)",
    ],
)
def test_what_is_usual_is_computed(expression: str) -> None:
    plan_of(f"SELECT {expression} AS x FROM A")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("repeat('a', 2000000000)", "values from one row"),
        ("repeat(repeat('a', 10000), 10000)", "100,000,000 values from one row"),
        (f"repeat('{'a' * 1000}', 1000000)", "100,000,000 values from one row"),
        ("replace(repeat('a', 400000), 'a', repeat('b', 400000))", "values from one row"),
        ("replace(s, 'a', repeat('b', 400000))", "400,000,000 values from one row"),
        (f"regexp_replace(repeat('a', 400000), '.*', '{'$0' * 1000}')", "values from one row"),
        (f"array_join(array_repeat('a', 900000), '{'b' * 1000}')", "values from one row"),
        (f"concat_ws('{'b' * 1000}', array_repeat('a', 900000))", "values from one row"),
        ("repeat(s, k)", "how often repeat repeats cannot be determined"),
        ("repeat(s, k * 1000000)", "cannot be determined"),
        ("lpad(s, 2000000000, ' ')", "values from one row"),
        ("rpad(s, k)", "cannot be determined"),
        ("space(k)", "cannot be determined"),
        ("space(2000000000)", "values from one row"),
        ("array_repeat(k, k)", "cannot be determined"),
        ("array_repeat(1, 100000000)", "values from one row"),
        ("array_insert(array(1), 2000000000, 2)", "values from one row"),
        ("randstr(2000000000, 1)", "values from one row"),
        ("sequence(1, 1000000000)", "values from one row"),
        ("sequence(1, k)", "the length of this sequence cannot be determined"),
        ("sequence(k, v)", "cannot be determined"),
        ("sequence(1, 100, k)", "cannot be determined"),
        (
            "transform(sequence(1, 10000), x -> transform(sequence(1, 10000), y -> x * y))",
            "100,000,000 values from one row",
        ),
        (
            "exists(sequence(1, 9999), a -> exists(sequence(1, 9999), b -> a * b = k))",
            "values from one row",
        ),
        (
            "transform(q, a -> transform(q, b -> transform(q, c -> transform(q, d -> a + b))))",
            "100,000,000 values from one row",
        ),
        (
            "aggregate(sequence(1, 60), 'a', (a, x) -> concat(a, a))",
            "the accumulator, a, is used twice",
        ),
        ("aggregate(sequence(1, 60), 'a', (a, x) -> a || a)", "is used twice"),
        ("reduce(sequence(1, 60), 'a', (a, x) -> replace(a, 'a', a))", "is used twice"),
        ("reduce(sequence(1, 9), s, (a, x) -> if(a = a || a, s, a))", "is used twice"),
        ("s RLIKE '^(a|a|aa)+$'", "a pattern of rlike with (a|a|aa)+ could take years"),
        ("s REGEXP '(a+)+b'", "could take years"),
        ("regexp(s, '(a+)+b')", "could take years"),
        ("regexp_like(s, '((a*)b?)*c')", "could take years"),
        ("regexp_replace(s, '(.*,){12}x', '')", "could take years"),
        ("regexp_count(s, '(x+x+)+y')", "could take years"),
        ("regexp_extract_all(s, '([a-zA-Z]+)*', 1)", "could take years"),
        ("split(s, '(a+)+b')", "could take years"),
        ("str_to_map(s, '(a+)+b', ':')", "could take years"),
        (f"s RLIKE '{'a?' * 28 + 'a' * 28}'", "could take years"),
        (f"s RLIKE '{'a{0,3}' * 14}b'", "could take years"),
        (f"s RLIKE '{'[ab]??' * 28}c'", "could take years"),
        (f"s RLIKE '{'(?:aa|a){3}' * 10}b'", "could take years"),
        ("s RLIKE '(?:(?:(?:a|a){3}){3}){3}b'", "could take years"),
        (f"s RLIKE '(?>{'a?' * 28 + 'a' * 28})?+'", "could take years"),
        (f"split(s, '{'(a|a)' * 28}b')", "could take years"),
        ("s LIKE '%a%a%a%a%b'", "so many %"),
        ("s LIKE '%%%%%b'", "so many %"),
        ("s NOT LIKE ANY ('a', '%%%%%b')", "so many %"),
        ("parse_url(s, 'QUERY', '(a|a)*b')", "a pattern of parse_url with (a|a)* could take"),
        ("s RLIKE '(a|a|aa)\\\\Q\\\\E+$'", "could take years"),
        ("array_distinct(transform(sequence(1, 99999), x -> array(x)))", "compare every pair"),
        ("s RLIKE '.*a.*a.*a.*a.*b'", "could take years"),
        ("format_string('%2000000000d', k)", "at most 1000 characters"),
        ("printf('%2000000000d', k)", "at most 1000 characters"),
        ("format_string('%.2000000000f', v)", "at most 1000 characters"),
        ("format_string(s, k)", "must be a text"),
        ("round(v, 2000000000)", "at most 400 places"),
        ("bround(v, -2000000000)", "at most 400 places"),
        ("floor(v, k)", "at most 400 places"),
        ("format_number(v, 2000000000)", "at most 400 places"),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT {} AS x FROM A",
        "SELECT k FROM A WHERE {} IS NOT NULL",
        "SELECT x FROM (SELECT {} AS x FROM A) B",
        "SELECT count({}) AS n FROM A [RANGE 5 SECONDS]",
    ],
)
def test_what_explodes_is_refused(expression: str, said: str, query: str) -> None:
    expression = expression.replace("(q,", "(array(k),")
    with pytest.raises(SqlError) as error:
        plan_of(query.format(expression))
    assert said in str(error.value)


def test_what_names_stand_for_is_multiplied() -> None:
    inner = "SELECT repeat(s, 1000) AS t FROM A"
    plan_of(f"SELECT repeat(t, 1000) AS x FROM ({inner}) B")
    with pytest.raises(SqlError, match="10,000,000 values from one row"):
        plan_of(f"SELECT repeat(t, 10000) AS x FROM ({inner}) B")


def sent(expression: str) -> str:
    plan = plan_of(f"SELECT {expression} AS x FROM A")
    assert isinstance(plan, JoinPlan)
    return spell(plan.items[0].value.tree, str)


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("s RLIKE 'a*b'", "LENGTH(A.s) > 44718"),
        ("s RLIKE 'a*a*b'", "LENGTH(A.s) > 1812"),
        ("regexp_replace(s, 'a*a*a*b', '')", "LENGTH(A.s) > 388"),
        ("s LIKE '%a%b%'", "LENGTH(A.s) > 39034"),
        ("s LIKE ANY ('b', '%a%b')", "LENGTH(A.s) > 39998"),
        ("parse_url(s, 'QUERY', 'a*b')", "LENGTH(A.s) > 44718"),
        ("transform(split(s, ','), x -> x RLIKE 'a*b')", "LENGTH(x) > 4469"),
        ("transform(sequence(1, 100000), x -> s RLIKE 'error')", "LENGTH(A.s) > 7618"),
        ("levenshtein(s, 'ab')", "CAST(LENGTH(A.s) AS BIGINT) * LENGTH('ab') > 1000000000"),
        ("s LIKE s", "> 1000000000"),
        ("repeat(s, 1000000)", "CAST(LENGTH(A.s) AS BIGINT) * 1000000 > 100000000"),
        ("repeat(s, least(k, 1000))", "CAST(LENGTH(A.s) AS BIGINT) * LEAST(A.k, 1000) > 100000000"),
    ],
)
def test_slow_patterns_are_looked_for_in_short_texts(expression: str, condition: str) -> None:
    assert f"IF({condition}, CAST(RAISE_ERROR(" in sent(expression) or condition.startswith(">")
    assert condition in sent(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "s RLIKE '^\\\\d+-\\\\d+$'",
        "s RLIKE '.*error'",
        "s LIKE '%error%'",
        "repeat(s, 100)",
        "repeat('ab', 1000)",
        "split(s, ',')",
        "regexp_replace(s, '\\\\s+', ' ')",
    ],
)
def test_quick_patterns_are_looked_for_in_any_text(expression: str) -> None:
    assert "RAISE_ERROR" not in sent(expression)


def test_a_statement_has_no_thousands_of_slow_patterns() -> None:
    for number, is_refused in ((50, False), (200, True)):
        columns = ", ".join(f"s RLIKE 'a*b' AS x{n}" for n in range(number))
        statement = f"SELECT {columns} FROM A"
        with pytest.raises(SqlError) if is_refused else nullcontext():
            plan_of(statement)


@pytest.mark.limit(20)
def test_slow_patterns_in_each_other_are_counted_as_often_as_they_are_tried() -> None:
    for pattern in ("'a*b'", "s"):
        nested = "s"
        for _ in range(60):
            nested = f"regexp_replace({nested}, {pattern}, 'c')"
        with pytest.raises(SqlError, match="parts"):
            plan_of(f"SELECT {nested} AS x FROM A")


def test_patterns_of_the_data_are_looked_at_first() -> None:
    for pattern in ("s", "concat('(a+', ')+b')", "upper(t)"):
        inner = "SELECT *, '(a+)+' || s AS t FROM A"
        plan = plan_of(f"SELECT s RLIKE {pattern} AS hit FROM ({inner}) A")
        assert isinstance(plan, JoinPlan)
        spelt = spell(plan.items[0].value.tree, str)
        assert "RLIKE '[)][*+{]|" in spelt
        assert "RAISE_ERROR('a pattern from the data that repeats a group" in spelt
        assert "RAISE_ERROR('a text is too long for a pattern from the data" in spelt
        assert "RAISE_ERROR" not in str(plan.items[0].value)  # what people read
    with pytest.raises(SqlError, match=r"with \(a\+\)\+ could take years"):
        plan_of("SELECT k FROM (SELECT *, '(a+)+' AS t FROM A) A WHERE s RLIKE t")


@pytest.mark.limit(20)
def test_ways_are_not_counted_for_ever() -> None:
    assert slow_part("(" * 100 + "a|a" + "){64}" * 100) is not None
    assert slow_part("(a|b)" * 100_000) is not None


PIECES = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", "\\.", "[^a\\]]", "\\d"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
            lambda both: f"(?:{both[0]}){both[1]}"
        ),
    ),
    max_leaves=8,
)


@given(PIECES)
def test_a_pattern_that_is_let_through_repeats_no_choice_without_bound(pattern: str) -> None:
    """Judged by the tree that Python's own parser makes of it."""
    if slow_part(pattern) is None:
        assert not _has_nested(re._parser.parse(pattern), 0), pattern  # type: ignore[attr-defined]


def _has_nested(parsed: object, depth: int) -> bool:
    """Whether, inside of what is repeated without bound, something else is, or is chosen."""
    parser = re._parser  # type: ignore[attr-defined]
    for op, given_to in parsed:  # type: ignore[attr-defined]
        if op in (parser.MAX_REPEAT, parser.MIN_REPEAT):
            few, most, body = given_to
            if depth and few != most and most > 10:
                return True
            if _has_nested(body, depth + (most > 10)):
                return True
        elif op is parser.BRANCH:
            if depth or any(_has_nested(one, depth) for one in given_to[1]):
                return True
        elif op is parser.SUBPATTERN and _has_nested(given_to[-1], depth):
            return True
    return False
