"""Operators without state: selection and projection, UNION ALL, and netting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nilometer.kernels.gather import join_batches
from nilometer.kernels.row_errors import compute, passing
from nilometer.model.expressions import Expression
from nilometer.operators.change_operator import (
    DIFF,
    TIME,
    ChangeOperator,
    changed_rows,
    no_changes,
)
from nilometer.operators.chunk_store import ChunkStore
from nilometer.operators.net_changes import net_changes
from nilometer.operators.stateless import Stateless


@dataclass(frozen=True, slots=True)
class ComputeSpec:
    """Some values, of these types, of the rows that pass a test, if any.

    Columns are the arguments of the expressions, by position.
    """

    test: Expression | None
    values: tuple[Expression, ...]
    types: tuple[pa.DataType, ...]
    names: tuple[str, ...] = ()
    """The names of the input columns."""

    def start(self, store: ChunkStore) -> ChangeOperator:
        return Compute(self)


class Compute(Stateless):
    """Selection and projection. Columns that pass unchanged are not copied."""

    def __init__(self, spec: ComputeSpec) -> None:
        self._spec = spec

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of the input."""
        (changes,) = inputs
        if self._spec.test is not None and len(changes):
            passed = passing(self._spec.test, changed_rows(changes, self._spec.names))
            if not passed.all():
                changes = changes.take(pa.array(np.flatnonzero(passed)))
        if not len(changes):
            return no_changes(self._spec.types)
        wanted = list(zip(self._spec.values, self._spec.types, strict=True))
        shown, computable = compute(wanted, changed_rows(changes, self._spec.names))
        if computable is not None:
            changes = changes.take(pa.array(computable))
        names = [f"c{i}" for i in range(len(shown))]
        return pa.RecordBatch.from_arrays([*shown, *changes.columns[-2:]], [*names, TIME, DIFF])


@dataclass(frozen=True, slots=True)
class UnionAllSpec:
    """All rows of all inputs."""

    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> ChangeOperator:
        return UnionAll(self)


class UnionAll(Stateless):
    """All changes of all inputs; equal rows are not netted."""

    def __init__(self, spec: UnionAllSpec) -> None:
        self._spec = spec

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of all inputs."""
        parts = [changes for changes in inputs if len(changes)]
        if not parts:
            return no_changes(self._spec.types)
        return join_batches(parts)


@dataclass(frozen=True, slots=True)
class NetSpec:
    """The same changes, one for each row and instant."""

    types: tuple[pa.DataType, ...]

    def start(self, store: ChunkStore) -> ChangeOperator:
        return Net()


class Net(Stateless):
    """Nets changes of equal rows at equal instants."""

    def process(self, inputs: Sequence[pa.RecordBatch], frontier: int) -> pa.RecordBatch:
        """The changes strictly before a frontier, given those of the input."""
        return net_changes(inputs[0])
