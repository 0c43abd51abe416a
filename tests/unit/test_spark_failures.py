"""Spark's failures in our words."""

from __future__ import annotations

from pyspark.errors import PySparkException

from nilometer.spark.failures import explain_failure

_PYTHON_SOURCE = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data \
source perform latestOffset: Traceback (most recent call last):
  File "reader.py", line 3, in latestOffset
    return self._end()
           ~~~~~~~~~^^
KeyError: 'gone'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "reader.py", line 9, in _end
    raise OSError("the store does not answer")
OSError: the store does not answer
 SQLSTATE: 38000
"""


def test_what_a_source_in_python_raised_is_reported() -> None:
    error = explain_failure(PySparkException(message=_PYTHON_SOURCE))
    assert error.message == "Spark could not do this"
    assert error.detail == "OSError: the store does not answer"


def test_what_spark_says_is_reported_where_no_python_is_to_blame() -> None:
    error = explain_failure(PySparkException(message="[NO_ROOM] There is no room. SQLSTATE: 53100"))
    assert error.detail == "There is no room."
