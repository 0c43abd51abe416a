"""--param NAME=VALUE: a constant in SQL syntax, or else the text itself."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.errors import InputError, SqlError
from nilometer.sql.ddl.constants import constant_value
from nilometer.sql.parse.query_text import read_expression


def read_parameters(texts: Sequence[str]) -> dict[str, object]:
    """The values of parameters by name.

    >>> read_parameters(["k=3", "name=hall", "id='3'", "day=DATE '2026-01-31'"])
    {'k': 3, 'name': 'hall', 'id': '3', 'day': datetime.date(2026, 1, 31)}
    """
    parameters: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix(":")
        if not equals or not name.isidentifier():
            raise InputError(
                "cannot read --param",
                detail=f"got {text!r}",
                hint="write --param k=3, --param name=hall or --param \"t=TIMESTAMP '2026-01-31 "
                "12:00:00'\"",
            )
        if name in parameters:
            raise InputError(f"the parameter :{name} is given twice", hint="leave one of them out")
        parameters[name] = read_value(value.strip())
    return parameters


def read_value(text: str) -> object:
    """A constant in SQL syntax, or else the text itself."""
    try:
        return constant_value(read_expression(text), text)
    except SqlError:
        return text
