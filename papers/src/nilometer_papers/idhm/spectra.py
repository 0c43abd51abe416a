"""The pre-processing unit (STEAM section 7.1): forms energy spectra from detectors' events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nilometer_papers.idhm.detector import CHANNELS


class Spectra:
    """Counts the events of a burst by channel; each detector has its own.

    A burst that a detector sends twice yields nothing the second time.

    >>> spectrum = Spectra()({"box": 7, "burst": 1, "live": 1.0, "channels": [3, 5, 3]})
    >>> spectrum["counts"][:6].tolist()
    [0, 0, 0, 2, 0, 1]
    """

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    def __call__(self, burst: Mapping[str, Any]) -> dict[str, Any] | None:
        identity = (burst["box"], burst["burst"])
        if identity == self._last:
            return None
        channels = np.asarray(burst["channels"], dtype=np.int64)
        if len(channels) and not 0 <= channels.min() <= channels.max() < CHANNELS:
            raise ValueError(f"there are the channels 0 to {CHANNELS - 1}")
        counts = np.bincount(channels, minlength=CHANNELS)
        self._last = identity
        rest = {name: value for name, value in burst.items() if name not in ("channels", "times")}
        return {**rest, "counts": counts}
