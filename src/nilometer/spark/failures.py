"""Translates failures inside Spark into our own errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from nilometer import errors
from nilometer.errors import (
    InputError,
    NilometerError,
    PredicateError,
    SessionError,
    TooLargeError,
)
from nilometer.mining.table_function import MiningError
from nilometer.spark.serve_checkpoints import without_addresses
from nilometer.spark.workers import explain_worker

_OURS: Final = re.compile(
    r"nilometer\.(?:errors|mining\.table_function)\.(\w+): "
    r"(.+(?:\n  (?:detail|hint): .+|\n    .*)*)",
    re.MULTILINE,
)
_CAUSE: Final = re.compile(r"^(?:: |Caused by: )[\w.$]+(?:Exception|Error)\b:? ?(.*)", re.MULTILINE)
_CONDITION: Final = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_STREAM: Final = re.compile(r"^Query \[.*?\] terminated with exception: ")
_FILE: Final = re.compile(r"while reading file (?:file:/*)?(/?\S+?)\.?(?:\s|$)")
_PYTHON: Final = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\w[\w.]*(?:: .*)?)", re.MULTILINE
)
"""The exception at the end of a Python traceback."""
_LONGEST: Final = 400
_DATA: Final = re.compile(r"(\[[A-Z0-9_.]+\] [^\n]*) SQLSTATE: 22\w{3}")
"""Spark's errors about values: SQL's error class 22, data exceptions."""


@contextmanager
def explained_failures(reading: str = "a file") -> Iterator[None]:
    """Turn Spark's failures into our errors; `reading` is the input that may be at fault."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explain_failure(error, reading) from None
    except BrokenPipeError:
        raise  # the reader of our output has closed it
    except ConnectionError:
        raise _gone() from None


def explain_failure(error: Exception, reading: str = "a file") -> NilometerError:
    """Our error for one of Spark's."""
    try:
        text = without_addresses(str(error))  # for a Java exception, this asks Java
    except (Py4JError, ConnectionError):
        return _gone()
    if isinstance(error, Py4JNetworkError):
        return _gone()
    if ours := _raised_by_us(text):
        return ours
    if worker := explain_worker(text):
        return worker
    causes = _causes(text)
    first = causes[0]
    if raised := re.search(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE", text, re.DOTALL):
        return InputError(raised[1], hint="write times such as 2026-01-31 12:00:00.5")
    if "NANOS" in first and "Parquet" in first:
        return InputError(
            "Spark cannot read Parquet times in nanoseconds",
            hint='write them in microseconds: df.to_parquet(path, coerce_timestamps="us")',
        )
    if file := _FILE.search(first):
        return InputError(f"cannot read the file /{file[1].lstrip('/')}", detail=_deepest(causes))
    if "MALFORMED_RECORD" in text:
        return InputError(f"{reading} holds values that cannot be read", detail=_deepest(causes))
    if "spark.driver.maxResultSize" in text:
        return too_large_answer()
    if "CANNOT_LOAD_STATE_STORE" in text:
        return SessionError(
            "the state of the query cannot be loaded",
            detail=_deepest(causes),
            hint="if this persists, restore its checkpoint together with its results from a copy, "
            "or drop the query and create it again",
        )
    if data := _DATA.search(text):
        return PredicateError(
            "a value of a row cannot be computed", detail=_plain(data[1]).split(" Use `try_")[0]
        )
    if "OutOfMemoryError" in text:
        return SessionError("Spark has run out of memory", detail=first)
    return SessionError("Spark could not do this", detail=_raised_in_python(text) or first)


def too_large_answer() -> TooLargeError:
    """The error for an answer that is too large to be returned at once."""
    return TooLargeError("the answer is too large", hint="select fewer rows or columns")


def _raised_by_us(text: str) -> NilometerError | None:
    """The error that a Python worker raised, from the traceback in Spark's message."""
    match = _OURS.search(text)
    if match is None:
        return None
    kind = getattr(errors, match[1], NilometerError)
    if match[1] == MiningError.__name__:
        kind = MiningError
    message, *rest = match[2].split("\n")
    parts = {"detail": "", "hint": ""}
    for line in rest:
        word, colon, value = line.strip().partition(": ")
        if colon and word in parts:
            parts[word] = value
    error: NilometerError = kind(
        message, detail=parts["detail"] or None, hint=parts["hint"] or None
    )
    return error


def _raised_in_python(text: str) -> str | None:
    """The last exception in Python, from the traceback in Spark's message."""
    raised = _PYTHON.findall(text)
    return _plain(raised[-1]) if raised else None


def _causes(text: str) -> list[str]:
    """The messages of an exception and of its causes, the most recent first."""
    messages = [_plain(cause) for cause in _CAUSE.findall(text)]
    named = [cause for cause in messages if cause]
    return named or [_plain(text.strip().split("\n")[0])]


def _deepest(causes: list[str]) -> str:
    """The most informative message: the record that could not be read, else the root cause."""
    records = [cause for cause in causes if "alformed" in cause]
    return (records or causes)[-1]


def _plain(message: str) -> str:
    """Spark's message without its codes."""
    text = _CONDITION.sub("", message.strip())
    text = _CONDITION.sub("", _STREAM.sub("", text))
    text = re.sub(r"\s*SQLSTATE: \w+.*", "", text)
    text = re.sub(r" If necessary set \S+ to \S+ to bypass this error\.", "", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _gone() -> SessionError:
    return SessionError(
        "Spark has stopped",
        hint="its log may say why: run again with NILOMETER_SPARK_LOG=spark.log set",
    )
