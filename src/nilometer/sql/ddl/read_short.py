"""DROP, SHOW, DESCRIBE, EXPLAIN QUERY, START and STOP."""

from __future__ import annotations

from typing import Final

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.ddl.nodes import (
    Describe,
    Drop,
    ExplainQuery,
    ObjectKind,
    Show,
    ShowKind,
    StartDelivery,
    StartQuery,
    StopDelivery,
    StopQuery,
)
from nilometer.sql.ddl.statement_reader import StatementReader

_DROP: Final = (
    "write DROP STREAM s, DROP SENSOR TABLE s, DROP TABLE t, DROP VIEW v, DROP QUERY q, "
    "DROP DELIVERY d or DROP ALERT a"
)
_SHOW: Final = f"write SHOW and one of {', '.join(ShowKind)}"
_DESCRIBE: Final = (
    "write DESCRIBE and the name of a stream, table, sensor table, view, query, delivery or alert"
)
_EXPLAIN: Final = "write EXPLAIN QUERY q"
_OF_ONE: Final = (ShowKind.SENSORS, ShowKind.READERS, ShowKind.DEAD_LETTERS)


def read_drop(reader: StatementReader) -> Drop:
    """DROP STREAM | SENSOR TABLE | TABLE | QUERY | DELIVERY | VIEW | ALERT [IF EXISTS] name."""
    reader.take("DROP")
    kind = next((kind for kind in ObjectKind if reader.take(*kind.split())), None)
    if kind is None:
        reader.refuse("expected what to drop", hint=_DROP)
    if_exists = reader.take("IF", "EXISTS")
    name, place = reader.name(f"the name of the {kind.lower()}", _DROP)
    reader.finish(_DROP)
    return Drop(kind, name, if_exists, place)


def read_show(reader: StatementReader) -> Show:
    """SHOW STREAMS | TABLES | …, [FROM name]."""
    reader.take("SHOW")
    first = reader.current
    what = next((what for what in ShowKind if reader.take(*what.split())), None)
    if what is None:
        reader.refuse("unknown SHOW statement", hint=_SHOW)
    place = Place(reader.sql, first.start, reader.last.end + 1)
    if not reader.at("FROM"):
        reader.finish(f"write SHOW {what}")
        return Show(what, None, place)
    if what not in _OF_ONE:
        raise SqlSyntaxError(
            f"SHOW {what} has no FROM",
            place=Place(reader.sql, reader.current.start, reader.current.end + 1),
            hint=f"write SHOW {what}",
        )
    reader.take("FROM")
    hint = f"write SHOW {what} FROM Sensors"
    of, place = reader.name("the name of a stream or sensor table", hint)
    reader.finish(hint)
    return Show(what, of, place)


def read_describe(reader: StatementReader) -> Describe:
    """DESCRIBE name, or DESC name."""
    if not reader.take("DESCRIBE"):
        reader.take("DESC")
    name, place = reader.name("a name", _DESCRIBE)
    reader.finish(_DESCRIBE)
    return Describe(name, place)


def read_explain(reader: StatementReader) -> ExplainQuery:
    """EXPLAIN QUERY name."""
    reader.take("EXPLAIN", "QUERY")
    name, place = reader.name("the name of the query", _EXPLAIN)
    reader.finish(_EXPLAIN)
    return ExplainQuery(name, place)


def read_start(reader: StatementReader) -> StartQuery | StartDelivery:
    """START QUERY | DELIVERY name."""
    is_delivery, name, place = _running(reader, "START")
    return StartDelivery(name, place) if is_delivery else StartQuery(name, place)


def read_stop(reader: StatementReader) -> StopQuery | StopDelivery:
    """STOP QUERY | DELIVERY name."""
    is_delivery, name, place = _running(reader, "STOP")
    return StopDelivery(name, place) if is_delivery else StopQuery(name, place)


def _running(reader: StatementReader, word: str) -> tuple[bool, str, Place]:
    """Whether a delivery is named rather than a query, and the name."""
    reader.take(word)
    is_delivery = reader.take("DELIVERY")
    hint = f"write {word} DELIVERY d" if is_delivery else f"write {word} QUERY q"
    if not is_delivery:
        reader.expect("QUERY", f"QUERY or DELIVERY after {word}", hint)
    name, place = reader.name(f"the name of the {'delivery' if is_delivery else 'query'}", hint)
    reader.finish(hint)
    return is_delivery, name, place
