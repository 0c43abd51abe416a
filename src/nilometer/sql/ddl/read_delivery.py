"""CREATE DELIVERY."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import TokenType

from nilometer.sql.ddl.nodes import CreateDelivery, DeliverTo
from nilometer.sql.ddl.read_options import read_placed_options
from nilometer.sql.ddl.statement_reader import StatementReader
from nilometer.sql.parse.placed_parser import token_place

_HINT: Final = "write CREATE DELIVERY d FROM q TO webhook WITH (url = 'https://…', secret = '…')"


def read_delivery(reader: StatementReader) -> CreateDelivery:
    """[IF NOT EXISTS] name FROM query TO unit [WITH (…)]."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name, place = reader.name("the name of the delivery", _HINT)
    reader.expect("FROM", "FROM and a query", _HINT)
    query, query_place = reader.name("the name of a query", _HINT)
    to = read_deliver_to(reader, _HINT)
    reader.finish(_HINT)
    return CreateDelivery(
        name, query, to.unit, to.options, if_not_exists, place, query_place, to.place
    )


def read_deliver_to(reader: StatementReader, hint: str) -> DeliverTo:
    """TO unit [WITH (…)]."""
    reader.expect("TO", "TO and a unit", hint)
    token = reader.current
    if not reader.at_end and token.token_type == TokenType.STRING and token.text:
        reader.go_on()
        unit, place = token.text, token_place(reader.sql, token)
    else:
        unit, place = reader.name("a unit", hint)
    options = read_placed_options(reader, "WITH") if reader.take("WITH") else {}
    return DeliverTo(unit.lower(), options, place)
