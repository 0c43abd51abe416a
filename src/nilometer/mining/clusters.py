"""CLUSTERS: which items are close to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Int64s
from nilometer.mining.online_clusters import METRICS, OnlineClusters
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    OptionArgument,
    OptionKind,
    ResultColumn,
    Saved,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
    result_rows,
)
from nilometer.mining.vectors import as_matrix

_RESULTS: Final = (
    ResultColumn("cluster", pa.int64()),
    ResultColumn("size", pa.int64()),
    ResultColumn("share", pa.float64()),
    ResultColumn("radius", pa.float64()),
    ResultColumn("centre", pa.list_(pa.float64())),
)


class ClusterMiner:
    """Clusters the items of one key."""

    def __init__(self, call: CheckedCall, saved: Saved | None) -> None:
        chosen = call.options
        self._clusters = OnlineClusters(
            chosen["clusters"],
            apart=chosen["apart"],
            metric=chosen["metric"],
            micro_clusters=chosen["micro_clusters"],
            dimensions=chosen["dimensions"],
            window=call.window,
        )
        if saved is not None:
            self._clusters.load(saved)

    def add(self, times: Int64s, columns: Columns) -> None:
        """Add the next items, except those that are NULL or differ in length from the first."""
        items = columns["item"]
        if self._clusters.length is None:
            lengths = pc.list_value_length(items).fill_null(0).to_numpy(zero_copy_only=False)
            if not lengths.any():
                return
            self._clusters.set_length(int(lengths[lengths > 0][0]))
        matrix, usable = as_matrix(items, self._clusters.length)
        self._clusters.add(matrix[usable], times[usable])

    def forget(self, before: int) -> None:
        """Remove items that leave the window."""
        self._clusters.forget(before)

    def answer(self) -> pa.RecordBatch:
        """The clusters, ordered by number."""
        clusters = self._clusters.answer()
        names = [column.name for column in _RESULTS]
        return result_rows(
            _RESULTS, [{name: getattr(one, name) for name in names} for one in clusters]
        )

    def save(self) -> Saved:
        """The micro-clusters, and with a window the items."""
        return self._clusters.save()


@dataclass(frozen=True)
class Clusters:
    """The table function CLUSTERS."""

    name: str = "CLUSTERS"
    about: str = "clusters of items, each an array of numbers, in one pass"
    columns: tuple[ColumnArgument, ...] = (
        ColumnArgument(
            "item",
            Takes.NUMBERS,
            "the item; left out if it is NULL, has NULL or NaN, or is not as long as the first",
        ),
    )
    options: tuple[OptionArgument, ...] = (
        OptionArgument(
            "clusters", OptionKind.INTEGER, "the maximum number of clusters", 8, minimum=1
        ),
        OptionArgument(
            "apart",
            OptionKind.NUMBER,
            "clusters whose centres are nearer to each other than this are one",
            minimum=0,
            maximum=1e100,
        ),
        OptionArgument(
            "metric",
            OptionKind.TEXT,
            "'cosine' scales items to the length 1 first, so that only their direction counts",
            default="euclidean",
            choices=METRICS,
        ),
        OptionArgument(
            "micro_clusters",
            OptionKind.INTEGER,
            "how many micro-clusters are kept; more make clusters finer, and take longer",
            default=256,
            minimum=2,
            maximum=4096,
        ),
        OptionArgument(
            "dimensions",
            OptionKind.INTEGER,
            "distances are computed after a random projection to this many dimensions: faster",
            minimum=1,
        ),
    )
    tables: tuple[TableArgument, ...] = ()
    window: WindowUse = WindowUse.ALLOWED
    needs: tuple[str, ...] = ("sklearn",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """Its columns; raises an error if there are too few micro-clusters."""
        self.miner(call, {}, None)
        return _RESULTS

    def miner(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> ClusterMiner:
        """The miner of one key, new or from its saved state."""
        return ClusterMiner(call, saved)


FUNCTION: Final = Clusters()
