"""What statements ask of Spark before they run: the types of expressions that only it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql.types import StructType

from nilometer.errors import SqlError, SqlTypeError
from nilometer.spark.inputs import Inputs
from nilometer.spark.types import arrow_types
from nilometer.sql.plan.function_calls import no_function

REFUSED: Final = (PySparkException, Py4JJavaError)
"""What PySpark raises for an expression that Spark refuses."""


class SparkEngine:
    """Asks Spark for the types of expressions that only Spark can evaluate."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    @cached_property
    def time_zone(self) -> str:
        """The time zone of the DataFrames' session; logs are read by our own sessions, in UTC."""
        frame = next(iter(self._inputs.frames.values()), None)
        if frame is None:
            return "UTC"
        return frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"

    def types_of(self, relation: str, expressions: Sequence[str]) -> list[pa.DataType]:
        try:
            with analysis_kept_quiet():
                # beside the columns themselves, where no aggregate can stand
                beside = self._inputs.typed(relation).selectExpr("*", *expressions).schema
        except REFUSED as error:
            raise refusal(error) from None
        schema = StructType(beside.fields[-len(expressions) :])
        types = arrow_types(schema)
        for field, kind in zip(schema.fields, types, strict=True):
            if kind is None:
                raise SqlTypeError(
                    f"values of type {field.dataType.simpleString().upper()} cannot be used here",
                    hint="cast them",
                )
        return [kind for kind in types if kind is not None]


@contextmanager
def analysis_kept_quiet() -> Iterator[None]:
    """Keep PySpark from logging, with a Java stack trace, an error that we raise in words."""
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before


def refusal(error: Exception) -> SqlError:
    """Our error for what Spark refuses."""
    if not isinstance(error, PySparkException):  # some errors reach Python as Java has them
        return SqlTypeError("Spark refuses this expression", detail=_message(error)[:300])
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition == "UNRESOLVED_ROUTINE":
        name = parameters.get("routineName", "").replace("`", "").rpartition(".")[2].lower()
        return no_function(name)
    text = _first_sentence(str(error)).removeprefix(f"[{condition}] ")
    return SqlTypeError("Spark refuses this expression", detail=text[:300])


def _message(error: Exception) -> str:
    """Java's message of an error, without its condition."""
    java: Any = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    return re.sub(r"^\[[A-Z_.]+\] ", "", _first_sentence(text))


def _first_sentence(text: str) -> str:
    return text.splitlines()[0].split(" SQLSTATE:")[0]
