"""Forms that mean simpler ones: rows compared, = ANY (SELECT …), LIKE ANY (…), FETCH FIRST, …"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of, put_at

_LENGTH: Final = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.IGNORECASE)


def put_plain_forms(tree: exp.Expr, sql: str) -> exp.Expr:
    """The tree with other words for the same."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        plain = _plain(node, sql)
        if plain is not None:
            node.replace(put_at(plain, place_of(node, sql)))
    for node in list(tree.find_all(exp.Like, exp.ILike)):
        if isinstance(node.expression, exp.Any | exp.All) and not isinstance(
            node.parent, exp.Escape
        ):
            node.replace(put_at(_each_pattern(node, sql), place_of(node, sql)))
    for one in tree.find_all(exp.Any, exp.All):
        if isinstance(one.this, exp.Expr) and isinstance(one.this.unnest(), exp.Query):
            raise SqlError(
                "only = ANY and <> ALL compare with the rows of a subquery",
                place=place_of(one, sql),
                hint="compare with one value: v > (SELECT MAX(v) FROM …)",
            )
    for fetch in list(tree.find_all(exp.Fetch)):
        options = fetch.args.get("limit_options")
        if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
            count = fetch.args.get("count") or exp.Literal.number(1)
            fetch.replace(put_at(exp.Limit(expression=count), place_of(fetch, sql)))
    for distinct in list(tree.find_all(exp.Distinct)):
        _put_struct(distinct, sql)
    for interval in list(tree.find_all(exp.Interval)):
        if isinstance(interval.this, exp.Expr) and not isinstance(interval.this, exp.Literal):
            interval.replace(put_at(_times(interval), place_of(interval, sql)))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "time_bucket" and call.expressions:
            _put_interval(call.expressions[0], sql)
    for listed in tree.find_all(exp.GroupConcat):
        if written(listed).lower() == "group_concat" and listed.args.get("separator") is None:
            listed.set("separator", exp.Literal.string(","))
    return tree


def _put_interval(length: exp.Expr, sql: str) -> None:
    """The length of time_bucket('5 minutes', ts) as an interval."""
    if isinstance(length, exp.Literal) and length.is_string:
        place = place_of(length, sql)
        parts = _LENGTH.fullmatch(length.name)
        if parts is None:
            raise SqlError(
                f"{length.name[:60]!r} is not a length of time",
                place=place,
                hint="write time_bucket(INTERVAL '5' MINUTES, ts)",
            )
        unit = exp.Var(this=parts[2].upper())
        interval = exp.Interval(this=exp.Literal.string(parts[1]), unit=unit)
        length.replace(put_at(interval, place))


def _put_struct(distinct: exp.Distinct, sql: str) -> None:
    """COUNT(DISTINCT (a, b)) counts values of a struct, of which NULLs are a part."""
    inner = distinct.expressions
    if isinstance(distinct.parent, exp.AggFunc) and len(inner) == 1:
        [rows] = inner
        if isinstance(rows, exp.Tuple) and rows.expressions:
            fields = [
                exp.PropertyEQ(this=exp.to_identifier(f"col{number}"), expression=value)
                for number, value in enumerate(rows.expressions, 1)
            ]
            rows.replace(put_at(exp.Struct(expressions=fields), place_of(rows, sql)))


def _times(interval: exp.Interval) -> exp.Expr:
    """INTERVAL n DAYS, of a number that is computed, as n times one day."""
    one = exp.Interval(this=exp.Literal.string("1"), unit=interval.args.get("unit"))
    number = interval.this
    if not isinstance(number, exp.Column | exp.Paren):
        number = exp.Paren(this=number)
    return exp.Paren(this=exp.Mul(this=number, expression=one))


def _plain(node: exp.Binary, sql: str) -> exp.Expr | None:
    """(a, b) = (c, d) as comparisons of values; = ANY (SELECT …) as IN, <> ALL as NOT IN."""
    left, right, is_equal = node.left, node.right, isinstance(node, exp.EQ)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        if len(left.expressions) != len(right.expressions) or not left.expressions:
            raise SqlError(
                f"{len(left.expressions)} values are compared with {len(right.expressions)}",
                place=place_of(node, sql),
                hint="write (a, b) = (1, 2)",
            )
        pairs = zip(left.expressions, right.expressions, strict=True)
        test: exp.Expr = exp.and_(*(exp.EQ(this=a, expression=b) for a, b in pairs), copy=False)
    elif isinstance(right, exp.Any if is_equal else exp.All) and isinstance(
        query := right.this.unnest(), exp.Query
    ):
        test = exp.In(this=left, query=put_at(exp.Subquery(this=query), place_of(right, sql)))
    else:
        return None
    test = exp.Paren(this=test)
    return test if is_equal else exp.Not(this=test)


def _each_pattern(node: exp.Binary, sql: str) -> exp.Expr:
    """LIKE ANY ('a%', 'b%') as one LIKE or another, LIKE ALL as one and another."""
    among = node.expression
    patterns = among.this
    tests: list[exp.Expr] = []
    if isinstance(patterns, exp.Tuple) and not patterns.expressions:
        raise SqlError(
            "there is no pattern to compare with",
            place=place_of(node, sql),
            hint="write LIKE ANY ('a%', 'b%')",
        )
    for pattern in patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns.unnest()]:
        like = type(node)(this=node.this.copy(), expression=pattern)
        tests.append(exp.Not(this=like) if node.args.get("negate") else like)
    join = exp.or_ if isinstance(among, exp.Any) else exp.and_
    return exp.Paren(this=join(*tests, copy=False))
