"""Lines of known energies, which appear as peaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.table_function import Numbers


class KnownLines:
    """Finds the line nearest to an energy, if it is within a number of line widths.

    Of lines with the same energy, the first by name is used.

    >>> lines = KnownLines([2.223, 4.44], ["H", "C"], EnergyScale(fwhm=0.1), tolerance=0.5)
    >>> lines.match(np.array([2.21, 3.0, 4.48]))
    (['H', None, 'C'], array([2.223,   nan, 4.44 ]))
    """

    def __init__(
        self,
        energies: npt.ArrayLike,
        names: Sequence[str],
        scale: EnergyScale,
        tolerance: float = 0.5,
    ) -> None:
        known: dict[float, str] = {}
        for energy, name in sorted(zip(np.asarray(energies).tolist(), names, strict=True)):
            known.setdefault(energy, name)
        self._energies = np.array(list(known), np.float64)
        self._names = list(known.values())
        self._reach = tolerance * scale.width(self._energies)

    def match(self, energy: Numbers) -> tuple[list[str | None], Numbers]:
        """The names and energies of the lines; None and NaN where there is no line."""
        if not self._names:
            return [None] * len(energy), np.full(len(energy), np.nan)
        after = np.searchsorted(self._energies, energy).clip(0, len(self._names) - 1)
        before = np.maximum(after - 1, 0)
        is_before = energy - self._energies[before] <= self._energies[after] - energy
        nearest = np.where(is_before, before, after)
        known = np.abs(energy - self._energies[nearest]) <= self._reach[nearest]
        names = [
            self._names[line] if is_known else None
            for line, is_known in zip(nearest.tolist(), known.tolist(), strict=True)
        ]
        return names, np.where(known, self._energies[nearest], np.nan)
