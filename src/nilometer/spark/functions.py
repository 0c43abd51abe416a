"""Python functions that statements call: run by the join itself, and by Spark as UDFs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nilometer.errors import InputError
from nilometer.kernels.call_function import call_function
from nilometer.model.expressions import Call
from nilometer.spark.types import arrow_types
from nilometer.spark.versions import arrow_function, spark_type
from nilometer.sql.catalog import UserFunction
from nilometer.sql.declare import check_function, no_such_return
from nilometer.sql.parse.dialect import NilometerParser

_BUILT_IN: Final = "org.apache.spark.sql.catalyst."


def make_function(
    name: str,
    function: Callable[..., Any],
    returns: str,
    by_row: bool,
    cost: float | None = None,
) -> UserFunction:
    """A named function; raises an error that says what is wrong with its description."""
    check_function(name, function)
    return UserFunction(name, function, _arrow_type(name, returns), by_row, cost)


def require_new_name(session: SparkSession, name: str) -> None:
    """Refuse the name of a built-in function of Spark: it would be ambiguous."""
    if name.upper() in NilometerParser.FUNCTIONS or _is_built_in(session, name):
        raise InputError(f"function {name} already exists", hint="choose another name")


def _is_built_in(session: SparkSession, name: str) -> bool:
    """Whether a function is built into Spark; one that a user registered may be replaced."""
    if not session.catalog.functionExists(name):
        return False
    return session.catalog.getFunction(name).className.startswith(_BUILT_IN)


def register_function(session: SparkSession, function: UserFunction) -> None:
    """Register a function with Spark, too, for select lists and columns of one stream."""
    call = Call(function.name, function.function, (), function.returns, function.by_row)
    udf = arrow_function(_over_columns(call), spark_type(function.returns))
    session.udf.register(function.name, udf)


def _over_columns(call: Call) -> Callable[..., pa.Array]:
    """The function over the same columns that it gets in a join."""

    def run(first: pa.Array, *others: pa.Array) -> pa.Array:
        values = [_in_utc(column) for column in (first, *others)]
        return call_function(call, values, len(first))

    return run


def _in_utc(column: pa.Array) -> pa.Array:
    """Times as Nilometer stores them, whatever the session's zone."""
    if pat.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.timestamp("us", tz="UTC"))
    return column


def _arrow_type(name: str, returns: str) -> pa.DataType:
    try:
        schema = StructType.fromDDL(f"value {returns}")
        kind = arrow_types(schema)[0] if isinstance(schema, StructType) else None
    except ParseException:
        kind = None
    if kind is None:
        raise no_such_return(name, returns)
    return kind
