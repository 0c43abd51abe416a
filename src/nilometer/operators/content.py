"""What the state of an operator says, whatever has led to it.

Two operators of the same spec whose contents are equal give the same from then on. How rows are
cut into chunks does not count, nor their order, nor rows that can make no difference any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from nilometer.kernels.gather import join_batches
from nilometer.kernels.row_ids import identify_rows

Content: TypeAlias = Any
"""Numbers, texts, bytes, and tuples of contents: equal ones are the same."""


class NoContentError(Exception):
    """What the state of an operator says is not known."""


@runtime_checkable
class HasContent(Protocol):
    """An operator of which it is known what its state says."""

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says, given the latest watermarks of the stage's streams.

        It raises NoContentError for state of which that is not known.
        """


def content_of(operator: object, marks: Sequence[int] = ()) -> Content:
    """What the state of an operator says; raises NoContentError if that is not known."""
    if not isinstance(operator, HasContent):
        raise NoContentError(type(operator).__name__)
    return operator.content(marks)


def rows_content(parts: Sequence[pa.RecordBatch]) -> Content:
    """What some rows are, in any order."""
    some = [rows for rows in parts if len(rows)]
    if not some:
        return b""
    rows = join_batches(some)
    ids = identify_rows(rows.columns, len(rows))
    return batch_content(rows.take(pa.array(np.lexsort((ids.h2, ids.h1)))))


def batch_content(rows: pa.RecordBatch) -> Content:
    """What rows are, in this order, to the bit."""
    names = [str(number) for number in range(rows.num_columns)]
    return bytes(pa.RecordBatch.from_arrays(rows.columns, names).serialize())
