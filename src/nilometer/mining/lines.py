"""LINES in FROM: how much of each known spectrum is in a measured one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools
from nilometer.mining.line_fit import Fit, LineFit
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    MiningError,
    Numbers,
    OptionArgument,
    OptionKind,
    ResultColumn,
    RowFunction,
    RowResults,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
)
from nilometer.mining.vectors import as_matrix, as_numbers

_NUMBERS: Final = pa.list_(pa.float64())


@dataclass(frozen=True)
class Templates:
    """Known spectra ordered by name, and the weight of each in the pattern."""

    names: tuple[str, ...]
    counts: Numbers
    weights: Numbers


class Fitting:
    """One fit for all rows."""

    def __init__(self, templates: Templates, fit: LineFit, floor: float, least: float) -> None:
        self._templates = templates
        self._fit = fit
        self._floor = floor
        self._least = least

    def look(self, columns: Columns) -> RowResults:
        spectra, usable = as_matrix(columns["counts"], self._fit.channels)
        lives = as_numbers(columns["live"]) if "live" in columns else np.ones(len(spectra))
        with np.errstate(invalid="ignore"):
            usable &= np.isfinite(lives) & (lives > 0) & (spectra >= 0).all(axis=1)
        fit = self._fit.fit(spectra[usable], lives[usable])
        places = pa.array(np.where(usable, np.cumsum(usable) - 1, 0), mask=~usable)
        results = self._columns(fit)
        return RowResults(np.arange(len(usable)), tuple(one.take(places) for one in results))

    def _columns(self, fit: Fit) -> tuple[pa.Array, ...]:
        significance = fit.amounts / fit.sigmas
        counted = self._templates.weights > 0
        patterns = self._templates.weights * fit.patterns(self._floor)
        return (
            _arrays(fit.amounts),
            _arrays(fit.sigmas),
            _arrays(fit.shares),
            _arrays(patterns[:, counted]),
            pa.array(significance.max(axis=1)),
            pa.array(fit.chi2),
            pa.array(fit.background),
            pa.array([self._names(one) for one in significance], pa.string()),
            _arrays(fit.fitted),
        )

    def _names(self, significance: Numbers) -> str:
        """The names of detected templates, the most significant first."""
        order = np.argsort(-significance, kind="stable")
        seen = order[significance[order] >= self._least]
        return ", ".join(self._templates.names[one] for one in seen)


def _arrays(rows: Numbers) -> pa.Array:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows).ravel())


def _templates(rows: pa.RecordBatch) -> Templates:
    """The rows of the table ordered by name; raises an error if they are unusable."""
    if not rows.num_rows:
        raise MiningError(
            "there are no templates",
            detail="the table of templates => (…) has no rows",
            hint="insert known spectra before the query is started",
            argument="templates",
        )
    names = rows["c0"].cast(pa.string()).to_pylist()
    if None in names or len(set(names)) < len(names):
        raise MiningError(
            "each template needs a name of its own",
            detail=f"the names are {', '.join(map(str, names))}",
            argument="templates",
        )
    counts, usable = as_matrix(rows["c1"])
    _check_lengths(usable, "templates")
    weights = as_numbers(rows["c2"]) if rows.num_columns > 2 else np.ones(len(names))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise MiningError(
            "a template has a weight that cannot be used",
            detail="weights are numbers from 0 on, not all of them 0",
            argument="templates",
        )
    order = sorted(range(len(names)), key=lambda place: names[place])
    return Templates(tuple(names[one] for one in order), counts[order], weights[order])


def _background(rows: pa.RecordBatch | None, channels: int) -> Numbers | None:
    if rows is None or not rows.num_rows:
        return None
    counts, usable = as_matrix(rows["c0"], channels)
    _check_lengths(usable, "background")
    return counts


def _check_lengths(usable: Bools, argument: str) -> None:
    if not usable.all():
        raise MiningError(
            "the known spectra do not fit together",
            detail=f"row {int(np.flatnonzero(~usable)[0]) + 1} of {argument} has another number "
            "of channels than the first template, or a NULL, NaN or infinity",
            argument=argument,
        )


class Lines:
    """Splits a spectrum into known ones: how much there is of each (STEAM section 7.3)."""

    name = "LINES"
    about = "how much of each of some known spectra is in a spectrum, and how sure that is"
    columns = (
        ColumnArgument(
            "counts",
            Takes.NUMBERS,
            "the counts of each channel; results are NULL where it is NULL, has another length "
            "than the templates, or a NULL, NaN, infinity or negative number",
        ),
        ColumnArgument(
            "live", Takes.NUMBER, "how long was counted, more than 0; 1 if left out", False
        ),
    )
    options = (
        OptionArgument(
            "floor",
            OptionKind.NUMBER,
            "how many sigmas are added to an amount before its logarithm enters the pattern",
            default=2.0,
            minimum=1e-3,
        ),
        OptionArgument(
            "significance",
            OptionKind.NUMBER,
            "the smallest amount, in sigmas, at which a template counts as seen",
            default=3.0,
            minimum=0,
        ),
    )
    tables = (
        TableArgument(
            "templates",
            (
                ColumnArgument("name", Takes.PLAIN, "what it is the spectrum of"),
                ColumnArgument(
                    "counts", Takes.NUMBERS, "what a unit amount gives in a unit of live time"
                ),
                ColumnArgument(
                    "weight",
                    Takes.NUMBER,
                    "the factor of its place in the pattern; 0: it has no place; 1 if left out",
                    False,
                ),
            ),
            "known spectra; all results are in the order of their names",
        ),
        TableArgument(
            "background",
            (ColumnArgument("counts", Takes.NUMBERS, "what it gives in a unit of live time"),),
            "the background: its amount is fitted, too, as it may vary",
            False,
        ),
    )
    window = WindowUse.NONE
    needs = ("scipy", "threadpoolctl")

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        return (
            ResultColumn("intensities", _NUMBERS),
            ResultColumn("sigmas", _NUMBERS),
            ResultColumn("shares", _NUMBERS),
            ResultColumn("pattern", _NUMBERS),
            ResultColumn("significance", pa.float64()),
            ResultColumn("chi2", pa.float64()),
            ResultColumn("background", pa.float64()),
            ResultColumn("lines", pa.string()),
            ResultColumn("fitted", _NUMBERS),
        )

    def row_worker(self, call: CheckedCall, tables: Tables) -> Fitting:
        templates = _templates(tables["templates"])
        background = _background(tables.get("background"), templates.counts.shape[1])
        fit = LineFit(templates.counts, background)
        return Fitting(templates, fit, call.options["floor"], call.options["significance"])


FUNCTION: Final[RowFunction] = Lines()
