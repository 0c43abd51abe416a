"""What for-loops compare over many windows, from how many tuples of each value they hold.

A few tuples with values that all streams have cause most of the cost, so a mean needs thousands of
windows. Loops over windows that are full compare what follows from the numbers of their tuples, so
these are drawn and multiplied; that an algorithm compares as many is tested.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nilometer.model.join_cost import Order, StreamLoad, orders_of

Contents = npt.NDArray[np.int64]
"""How many tuples of each value are in a window: by sample, stream, and value less one."""


def draw_windows(loads: Sequence[StreamLoad], samples: int, seed: int) -> Contents:
    """The windows of all streams at so many moments, filled as `workload.generate` fills them."""
    random, rates = np.random.default_rng(seed), np.array([load.rate for load in loads])
    unit = round(rates.sum())
    lengths = np.array([round(load.window * unit) for load in loads])
    values = np.array([_values(load) for load in loads])
    ages = np.arange(lengths.max())
    largest = int(values.max())
    contents = np.empty((samples, len(loads), largest), np.int64)
    for sample in range(samples):
        streams = random.choice(len(loads), len(ages), p=rates / rates.sum())
        streams = streams[ages < lengths[streams]]
        places = streams * largest + random.integers(0, values[streams])
        contents[sample] = np.bincount(places, minlength=len(loads) * largest).reshape(-1, largest)
    return contents


def compared_with(
    order: Order, loads: Sequence[StreamLoad], contents: Contents
) -> npt.NDArray[np.float64]:
    """Comparisons per unit of time in each sample: a mean over all values of a new tuple."""
    sizes, cost = contents.sum(axis=2), np.zeros(len(contents))
    for origin, loops in enumerate(orders_of(order)):
        partial = np.ones((len(contents), _values(loads[origin])))
        for stream in loops:
            cost += loads[origin].rate * partial.mean(axis=1) * sizes[:, stream]
            partial *= contents[:, stream, : partial.shape[1]]
    return cost


def _values(load: StreamLoad) -> int:
    return round(load.distinct_of(0))
