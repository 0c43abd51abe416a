"""The order in which new rows look for partners: by declared loads, later by measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from nilometer.kernels.chunk import Chunk, Kernel
from nilometer.kernels.window_join import Residual, Side
from nilometer.model.join_cost import Links, Order, Predicate, Scan, StreamLoad
from nilometer.model.join_order import choose_orders, has_drifted
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER

ASSUMED_RATE: Final = 1.0
ASSUMED_DISTINCT: Final = 100.0
ASSUMED_TABLE: Final = 1000.0

_SECOND: Final = 1e6
_FEW: Final = 64
_SAMPLE: Final = 4096


class JoinOrders:
    """The orders of a running join; they affect how long it takes, never its results."""

    def __init__(
        self,
        loads: Sequence[StreamLoad],
        links: Links,
        kernel: Kernel,
        residuals: Sequence[Residual] = (),
    ) -> None:
        self._links = links
        self._predicates = [Predicate(r.streams, r.cost) for r in residuals if r.cost]
        self._scan = Scan.HASH if kernel is Kernel.HASH else Scan.NLJ
        self._chosen_with = list(loads)
        self.orders = self._choose()

    def update(self, sides: Sequence[Side]) -> tuple[Order, ...]:
        """The orders for a micro-batch, changed if rates or sizes have drifted."""
        if len(sides) > 2 and all(sum(map(len, side.chunks)) >= _FEW for side in sides):
            now = [_measure(side, old) for side, old in zip(sides, self._chosen_with, strict=True)]
            if has_drifted(self._chosen_with, now):
                self._chosen_with = [
                    self._count(load, s) for load, s in zip(now, sides, strict=True)
                ]
                self.orders = self._choose()
        return self.orders

    def to_json(self) -> dict[str, Any]:
        return {"loads": [asdict(load) for load in self._chosen_with], "orders": self.orders}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue with the orders that were saved."""
        loads = [{**load, "distinct": _numbers(load["distinct"])} for load in saved["loads"]]
        self._chosen_with = [StreamLoad(**load) for load in loads]
        self.orders = tuple(tuple(order) for order in saved["orders"])

    def _choose(self) -> tuple[Order, ...]:
        return choose_orders(self._chosen_with, self._links, self._scan, self._predicates)

    def _count(self, load: StreamLoad, side: Side) -> StreamLoad:
        """The same load with the distinct values of keys counted in the newest rows."""
        newest = side.chunks[-1]
        rows = sum(map(len, side.chunks))
        distinct = tuple(_distinct(newest, key, rows) for key in range(len(self._links)))
        return StreamLoad(load.rate, load.window, distinct, load.rows)


def assume_load(
    network: TimeNetwork,
    stream: int,
    distinct: tuple[float, ...],
    rate: float | None = None,
    rows: int | None = None,
) -> StreamLoad:
    """The load assumed for a stream until it is measured; `rows` is that of its ROWS window."""
    if network.streams[stream] in network.static:
        return StreamLoad.of_table(ASSUMED_TABLE, distinct)
    rate = ASSUMED_RATE if rate is None else rate
    if rows is not None:
        return StreamLoad(rate, rows / rate, distinct)
    return StreamLoad(rate, max(1, _longest_bound(network, stream)) / _SECOND, distinct)


def _longest_bound(network: TimeNetwork, stream: int) -> int:
    """The longest bounded time between a row and a partner."""
    closed = network.closed
    bounds = [b for j in range(len(closed)) for b in (closed[stream][j], closed[j][stream])]
    return max(bound for bound in bounds if bound < FOREVER)


def _measure(side: Side, before: StreamLoad) -> StreamLoad:
    """Measure a stream by its stored rows; windows and distinct values stay unchanged."""
    rows = sum(map(len, side.chunks))
    if before.rows is not None:
        return StreamLoad.of_table(rows, before.distinct)
    first, last = min(c.first for c in side.chunks), max(c.last for c in side.chunks)
    rate = rows * _SECOND / (last - first + 1)
    return StreamLoad(rate, before.window, before.distinct)


def _distinct(chunk: Chunk, key: int, rows: int) -> float:
    """Estimate the distinct values of a key among all rows from a sample of a chunk."""
    if key not in chunk.hashes:
        return 1.0
    hashes = chunk.hashes[key]
    sample = hashes[:: max(1, len(hashes) // _SAMPLE)]
    distinct = len(np.unique(sample))
    if distinct < len(sample) / 2:  # values repeat: the sample has seen all of them
        return float(distinct)
    return float(max(1, distinct * rows // len(sample)))


def _numbers(saved: float | list[float]) -> float | tuple[float, ...]:
    return tuple(saved) if isinstance(saved, list) else saved
