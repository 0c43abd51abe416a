"""Fewer points that look the same: largest triangle three buckets.

Steinarsson, "Downsampling Time Series for Visual Representation" (2013), section 4.2.
"""

from __future__ import annotations

import numpy as np

from nilometer.kernels.arrays import Float64s, Int64s


def largest_triangles(times: Int64s, values: Float64s, count: int) -> Int64s:
    """The positions of at most that many (at least three) of the points, which are in time order.

    The first and the last are kept; of every bucket between them, the point that makes the largest
    triangle with the one before and the mean of the next bucket. The values are finite.

    >>> largest_triangles(np.arange(5), np.array([0.0, 0.0, 9.0, 0.0, 0.0]), 3).tolist()
    [0, 2, 4]
    """
    size = len(times)
    if size <= count:
        return np.arange(size)
    x = (times - times[0]).astype(np.float64)
    edges = np.floor(np.arange(count - 1) * ((size - 2) / (count - 2))).astype(np.int64) + 1
    edges = np.append(edges, size)
    chosen = np.empty(count, np.int64)
    chosen[0], chosen[-1] = 0, size - 1
    for bucket in range(count - 2):
        first, end, after = edges[bucket : bucket + 3]
        mean_x, mean_y = x[end:after].mean(), values[end:after].mean()
        before = chosen[bucket]
        area = np.abs(
            (x[before] - mean_x) * (values[first:end] - values[before])
            - (x[before] - x[first:end]) * (mean_y - values[before])
        )
        chosen[bucket + 1] = first + int(np.argmax(area))
    return chosen
