"""Sends work to Spark's Python workers so that a worker without Nilometer fails clearly.

What Spark pickles by value are the small functions below, which need nothing but Python; they
check the worker's installation before they unpickle the work itself, which needs Nilometer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from nilometer.version import VERSION

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@lru_cache(maxsize=64)
def unpack_work(payload: bytes) -> Any:
    """Unpickle the work in a payload, only once per worker."""
    return cloudpickle.loads(payload)


def pickle_work(work: Any) -> bytes:
    """Work as bytes, including what the worker cannot import."""
    payload: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    return payload


def ship_function(work: BatchFunction) -> BatchFunction:
    """The same function over record batches, in a form that can be sent to a worker."""
    load = _loader(pickle_work(work), VERSION)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from load()(batches)

    return run


def ship_processor(work: Any) -> StatefulProcessor:
    """A stateful processor that delegates everything to `work` (see `spark.host.Host`)."""
    load = _loader(pickle_work(work), VERSION)

    class Processor(StatefulProcessor):
        def init(self, handle: Any) -> None:
            # Spark also calls this on the driver, in a Python process of its own that is to
            # learn the state's schema only: nothing but the schema is loaded for it. Every
            # state variable costs each task some ten milliseconds, so there is one.
            key = StructType([StructField("name", StringType())])
            value = StructType([StructField("content", BinaryType())])
            self.state = handle.getMapState("state", key, value)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            yield from load().open(self.state).process(key[0], rows)

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
            load().open(self.state).hold(key[0], initialState)

        def close(self) -> None:
            pass

    return Processor()


def _loader(payload: bytes, version: str) -> Callable[[], Any]:
    def load() -> Any:
        import sys  # noqa: PLC0415

        where = f"is not installed in the worker's Python {sys.executable}"
        advice = f"install nilometer=={version} there, or start Spark with PYSPARK_PYTHON set"
        others = "install the same packages there as on the driver"
        try:
            from nilometer.spark.ship import unpack_work  # noqa: PLC0415
            from nilometer.version import VERSION as installed  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name is None:
                raise
            missing = error.name.split(".")[0]
            raise RuntimeError(
                f"{missing} {where}: {advice if missing == 'nilometer' else others}"
            ) from None
        if installed != version:
            raise RuntimeError(
                f"the worker's Python {sys.executable} has nilometer {installed}, "
                f"but the driver has {version}: {advice}"
            )
        try:
            return unpack_work(payload)
        except ModuleNotFoundError as error:
            if error.name is None:
                raise
            raise RuntimeError(f"{error.name} {where}: {others}") from error

    return load
