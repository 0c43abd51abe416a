"""Rows of a key as samples: each has a position, which is a row number or a time step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import Saved


@dataclass(frozen=True)
class Samples:
    """Samples by ascending position; a time is that of a sample's row."""

    positions: Int64s
    times: Int64s
    values: pa.Array

    @classmethod
    def none(cls, kind: pa.DataType) -> Samples:
        """No samples."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), pa.array([], kind))

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, begin: int, end: int | None = None) -> Samples:
        """A range of the samples."""
        stop = len(self) if end is None else end
        values = self.values.slice(begin, stop - begin)
        return Samples(self.positions[begin:stop], self.times[begin:stop], values)

    def then(self, others: Samples) -> Samples:
        """These samples followed by others; of several at one position the last counts."""
        positions = np.concatenate([self.positions, others.positions])
        times = np.concatenate([self.times, others.times])
        values = pa.concat_arrays([self.values, others.values])
        lasts = np.append(positions[1:] != positions[:-1], True) if len(positions) else positions
        if len(positions) == 0 or lasts.all():
            return Samples(positions, times, values)
        chosen = np.flatnonzero(lasts)
        return Samples(positions[chosen], times[chosen], values.take(pa.array(chosen)))

    def save(self) -> Saved:
        """What `load` needs; each string is saved once."""
        saved: Saved = {"positions": self.positions, "times": self.times}
        if self.values.type == pa.float64():
            return saved | {"numbers": self.values.to_numpy(zero_copy_only=False)}
        encoded = pc.dictionary_encode(self.values)
        places = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return saved | {"places": places, "texts": encoded.dictionary.to_pylist()}

    @classmethod
    def load(cls, saved: Saved) -> Samples:
        """Restore the samples."""
        if "numbers" in saved:
            values = pa.array(saved["numbers"], from_pandas=True)
        else:
            texts = pa.array([*saved["texts"], None], pa.string())
            values = texts.take(pa.array(saved["places"] % len(texts)))
        return cls(saved["positions"], saved["times"], values)
