"""The energy of each channel of a spectrum, and the width of a line there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nilometer.mining.table_function import Numbers


@dataclass(frozen=True)
class EnergyScale:
    """Channels of equal width, and lines whose width grows with the square root of the energy.

    >>> scale = EnergyScale(channel_width=0.01, fwhm=0.1, fwhm_at=1.0)
    >>> scale.energy(np.array([99.5])), scale.width(np.array([4.0]))
    (array([1.]), array([0.2]))
    """

    first_energy: float = 0.0
    """The energy at the lower edge of the first channel."""
    channel_width: float = 1.0
    fwhm: float = 5.0
    """The full width at half maximum of a line, at the energy `fwhm_at`."""
    fwhm_at: float | None = None
    """None: all lines have the same width."""
    fwhm_floor: float = 0.0
    """The part of the width that does not depend on the energy."""

    def energy(self, channel: Numbers) -> Numbers:
        """The energy at a position; whole numbers are the centres of channels, from 0."""
        return self.first_energy + self.channel_width * (channel + 0.5)

    def width(self, energy: Numbers) -> Numbers:
        """The full width at half maximum of a line at an energy."""
        if self.fwhm_at is None:
            return np.full(np.shape(energy), self.fwhm)
        root = np.sqrt(np.maximum(energy, 0.0) / self.fwhm_at)
        return self.fwhm_floor + (self.fwhm - self.fwhm_floor) * root
