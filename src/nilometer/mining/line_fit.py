"""How much of each known spectrum is in a measured one: non-negative least squares.

Counts are modelled as a sum of templates and background, none of them negative. Each channel is
weighted by the inverse variance of its expected counts; as these depend on the result, the fit is
repeated, which converges to the maximum likelihood of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer.mining.table_function import MiningError, Numbers

_ROUNDS: Final = 4
_LEAST_VARIANCE: Final = 0.05
"""The least variance of a channel: where almost no counts are expected, one must not decide all."""
_LEAST_DIFFERENCE: Final = 1e-9
"""The least difference between distinguishable templates, relative to their sums."""


@dataclass(frozen=True)
class Fit:
    """For each spectrum, the amount of each template and the goodness of fit."""

    amounts: Numbers
    """Per unit of live time."""
    sigmas: Numbers
    """One standard deviation of each amount."""
    background: Numbers
    """The amount of background, relative to the given one, per unit of live time."""
    chi2: Numbers
    """Per degree of freedom; about 1 where the templates explain the spectrum."""
    fitted: Numbers
    """The counts of each channel that the amounts explain."""

    @property
    def shares(self) -> Numbers:
        """Each amount as a share of the sum; 0 where that is 0."""
        sums = self.amounts.sum(axis=1, keepdims=True)
        shares: Numbers = np.divide(
            self.amounts, sums, out=np.zeros_like(self.amounts), where=sums > 0
        )
        return shares

    def patterns(self, floor: float) -> Numbers:
        """The logarithm of each amount plus so many sigmas: less cannot be distinguished from 0."""
        return np.log(self.amounts + floor * self.sigmas)


class LineFit:
    """Fits templates, which are expected counts of a unit amount in a unit of live time.

    >>> fit = LineFit([[0, 10, 0, 0], [0, 0, 0, 10]], background=[[5, 5, 5, 5]])
    >>> fitted = fit.fit([[10, 30, 10, 10]], live=[2.0])
    >>> fitted.amounts.round(3).tolist(), fitted.background.round(3).tolist()
    ([[1.0, 0.0]], [1.0])
    """

    def __init__(self, templates: npt.ArrayLike, background: npt.ArrayLike | None = None) -> None:
        shapes = np.atleast_2d(np.asarray(templates, np.float64))
        self.count = len(shapes)
        if background is not None:
            shapes = np.concatenate([shapes, np.atleast_2d(np.asarray(background, np.float64))])
        self.channels = shapes.shape[1]
        self._heights = np.abs(shapes).sum(axis=1)
        _check(shapes, self._heights)
        self._shapes = shapes / self._heights[:, None]

    def fit(self, counts: npt.ArrayLike, live: npt.ArrayLike | None = None) -> Fit:
        """The amounts in each spectrum by itself, counted over its live time (by default 1)."""
        from threadpoolctl import threadpool_limits  # noqa: PLC0415  an extra

        spectra = np.asarray(counts, np.float64).reshape(-1, self.channels)
        lives = np.ones(len(spectra)) if live is None else np.asarray(live, np.float64)
        weights = np.zeros((len(spectra), len(self._shapes)))
        sigmas, chi2 = np.zeros_like(weights), np.zeros(len(spectra))
        fitted = np.zeros_like(spectra)
        # One by one and in one thread: sums of many rows at once are rounded differently.
        with threadpool_limits(1, user_api="blas"):
            for row, spectrum in enumerate(spectra):
                weights[row], sigmas[row], chi2[row], fitted[row] = self._fit(spectrum)
        units = 1.0 / (self._heights * lives[:, None])
        amounts, sigmas = weights * units, sigmas * units
        extra = amounts[:, self.count :].sum(axis=1)
        return Fit(amounts[:, : self.count], sigmas[:, : self.count], extra, chi2, fitted)

    def _fit(self, spectrum: Numbers) -> tuple[Numbers, Numbers, float, Numbers]:
        from scipy.linalg.lapack import dpotrf, dpotri  # noqa: PLC0415  an extra

        variance = spectrum + 1.0
        for _ in range(_ROUNDS):
            weighted = self._shapes / variance
            factor = dpotrf(weighted @ self._shapes.T, lower=1)[0]
            weights = _not_negative(factor, weighted @ spectrum)
            expected = weights @ self._shapes
            variance = np.maximum(expected, _LEAST_VARIANCE)
        sigmas = np.sqrt(np.diag(dpotri(factor, lower=1)[0]))
        free = max(1, self.channels - len(weights))
        chi2 = float(((spectrum - expected) ** 2 / variance).sum() / free)
        return weights, sigmas, chi2, expected


def _not_negative(factor: Numbers, towards: Numbers) -> Numbers:
    """The non-negative solution of the normal equations, which are given by their factor."""
    from scipy.linalg.lapack import dpotrs, dtrtrs  # noqa: PLC0415  an extra
    from scipy.optimize import nnls  # noqa: PLC0415  an extra

    solution: Numbers = dpotrs(factor, towards, lower=1)[0]
    if solution.min() < 0:
        solution = nnls(factor.T, dtrtrs(factor, towards, lower=1)[0])[0]
    return solution


def _check(shapes: Numbers, heights: Numbers) -> None:
    if not np.isfinite(shapes).all() or not heights.all():
        raise MiningError(
            "a template has no counts",
            detail="templates are arrays of numbers, not all of them 0, without NULL, NaN and "
            "infinity",
            argument="templates",
        )
    rank = np.linalg.matrix_rank(shapes / heights[:, None], tol=_LEAST_DIFFERENCE)
    if rank < len(shapes):
        raise MiningError(
            "the templates cannot be distinguished",
            detail="one of the templates and backgrounds is a sum of others",
            hint="leave one of them out",
            argument="templates",
        )
