"""Everything in which the supported versions of Spark differ.

No code outside of this file checks which of them it runs on. What counts is the PySpark of the
process: workers of a Spark Connect server have the server's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from socketserver import BaseServer
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyspark
from pyspark import accumulators
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructType

from nilometer.errors import InputError
from nilometer.spark.supported import read_version

Offset: TypeAlias = dict[str, Any]
"""An offset in a source, as Spark stores it in a checkpoint."""


_SPARK: Final = read_version(pyspark.__version__)

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
CHECKPOINT_FILES: Final = (
    f"{_STREAMING}.{'checkpointing.' if _SPARK >= (4, 1) else ''}"
    "FileSystemBasedCheckpointFileManager"
)
"""The class with which Spark writes checkpoints without links."""


def accumulator_servers() -> list[type[BaseServer]]:
    """The classes of PySpark's servers to which tasks report."""
    names = ("AccumulatorServer", "AccumulatorTCPServer", "AccumulatorUnixServer")
    return [getattr(accumulators, name) for name in names if hasattr(accumulators, name)]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of Spark columns, with timestamps in UTC."""
    if _SPARK >= (4, 2):
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # in UTC, which could not be changed


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow type; a timestamp without a zone stays one."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_function(function: Callable[..., pa.Array], returns: DataType) -> Any:
    """A function over Arrow columns as one that Spark can call."""
    if not hasattr(functions, "arrow_udf"):
        raise InputError(
            f"functions in Python need Spark 4.1 or later, and this is {pyspark.__version__}",
            hint="pip install 'pyspark>=4.1,<4.4'; conditions of nm.window_join may be functions",
        )
    return functions.arrow_udf(function, returns)  # type: ignore[call-overload]


if hasattr(datasource, "DataSourceStreamArrowWriter"):
    StreamArrowWriter = datasource.DataSourceStreamArrowWriter
else:
    # Spark 4.0 passes record batches to every writer that declares to take them, streaming or not.
    class StreamArrowWriter(  # type: ignore[no-redef, misc]
        datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter
    ):
        """A streaming sink that takes record batches."""


class PlacedReader(DataSourceStreamReader):
    """A reader that moves through a source by offsets, on any Spark.

    Subclasses define where the source begins and ends, and how far to go from an offset.
    """

    max_rows: int | None = None
    """The most rows of a micro-batch, as given to Spark."""

    @abstractmethod
    def begin(self) -> Offset:
        """The offset where a new query starts."""

    @abstractmethod
    def available(self) -> Offset:
        """The current end of the source."""

    @abstractmethod
    def hold(self, start: Offset) -> None:
        """Register that what comes after an offset will be read."""

    @abstractmethod
    def advance(self, start: Offset, last: Offset, max_rows: int | None) -> Offset:
        """How far a micro-batch goes: up to `last`, or at most this many rows.

        Everything before `start` has been read for good.
        """

    @abstractmethod
    def split(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Split a range into what tasks read."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.split(start, end)


class RememberingReader(PlacedReader):
    """For a Spark that asks where to end a micro-batch without saying where it starts.

    That is where the one before it ended: the last range that was planned. When a query is
    restarted, Spark plans the empty range at the last offset of the checkpoint first of all,
    and then, if necessary, the range that was not finished. Its first question may be the only one,
    of an availableNow trigger, and may come before that range is done: the end of the source
    is the answer, so the first micro-batch after a start has no most rows, and nothing has been
    read for good yet.
    """

    _begun: Offset | None = None
    _planned: Offset | None = None
    _asked = False

    def initialOffset(self) -> Offset:  # noqa: N802
        if self._begun is None:
            self._begun = self.begin()
        return self._begun

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        if self._asked and self._planned is not None:
            return self.advance(self._planned, self.available(), self.max_rows)
        self._asked = True
        # Rows from now on must not be before the start, nor be deleted before they are read.
        self.initialOffset() if self._planned is None else self.hold(self._planned)
        return self.available()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        self._planned = end
        return self.split(start, end)


if _SPARK >= (4, 2):
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    class StreamReader(PlacedReader, SupportsTriggerAvailableNow):
        """For a Spark that gives the start of a micro-batch and its maximum number of rows."""

        _last: Offset | None = None

        def initialOffset(self) -> Offset:  # noqa: N802
            return self.begin()

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            return ReadAllAvailable() if self.max_rows is None else ReadMaxRows(self.max_rows)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._last = self.available()

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
            last = self._last or self.available()
            return self.advance(
                start, last, limit.max_rows if isinstance(limit, ReadMaxRows) else None
            )

else:
    StreamReader = RememberingReader  # type: ignore[misc, assignment]
