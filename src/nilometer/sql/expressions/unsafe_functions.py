"""Functions of Spark that reach beyond the data: anybody may send statements.

Those that run Java code, that read files named in their arguments, and that reveal facts about the
machine or the session. Names in FROM are bound to the catalog, so files cannot be read there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of

_RUN_CODE: Final = frozenset({"reflect", "try_reflect", "java_method"})
_READ_FILES: Final = frozenset(
    {
        "from_protobuf",  # its third argument is a file
        "to_protobuf",
        "from_avro",  # by the option avroSchemaUrl
        "to_avro",
        "schema_of_avro",
        "from_xml",  # by the option rowValidationXSDPath
        "schema_of_xml",
        "xpath",  # by the DTD of a document
        "xpath_boolean",
        "xpath_double",
        "xpath_float",
        "xpath_int",
        "xpath_long",
        "xpath_number",
        "xpath_short",
        "xpath_string",
    }
)
_TELL: Final = frozenset(
    {
        "current_catalog",
        "current_database",
        "current_path",
        "current_role",
        "current_schema",
        "current_user",
        "current_version",
        "database",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "python_worker_logs",
        "schema",
        "session_user",
        "user",
        "version",
    }
)
_NAMES_OTHERS: Final = frozenset({"identifier"})

UNSAFE: Final = _RUN_CODE | _READ_FILES | _TELL | _NAMES_OTHERS
"""All of them, in lower case."""

_WHY: Final = (
    (_RUN_CODE, "it runs Java code"),
    (_READ_FILES, "it can read files"),
    (_TELL, "it reveals facts about the machine, not the data"),
    (_NAMES_OTHERS, "names are written literally"),
)


def reasons() -> Sequence[tuple[frozenset[str], str]]:
    """Functions that cannot be called, and why."""
    return _WHY


def refuse_unsafe(call: exp.Func, sql: str) -> SqlError | None:
    """The error about a function that reaches beyond the data; None if it does not."""
    spelled = [call.name] if isinstance(call, exp.Anonymous) else [written(call), *call.sql_names()]
    for name in map(str.lower, spelled):
        for names, why in _WHY:
            if name in names:
                return SqlError(
                    f"the function {name} is not allowed",
                    place=place_of(call, sql),
                    detail=why,
                    hint="use functions of values only",
                )
    return None
