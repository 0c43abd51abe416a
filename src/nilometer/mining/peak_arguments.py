"""The arguments and results of PEAKS."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nilometer.mining.table_function import (
    ColumnArgument,
    OptionArgument,
    OptionKind,
    ResultColumn,
    TableArgument,
    Takes,
)

COLUMNS: Final = (
    ColumnArgument(
        "counts",
        Takes.NUMBERS,
        "the spectrum: counts by channel; no peaks are found where it is NULL or has a NULL, NaN, "
        "infinity or negative count, or more than 32768 channels",
    ),
    ColumnArgument(
        "background",
        Takes.NUMBERS,
        "counts of a background, of the same length, to be subtracted",
        required=False,
    ),
    ColumnArgument("scale", Takes.NUMBER, "how many times it is subtracted; 1 if left out", False),
    ColumnArgument(
        "live", Takes.NUMBER, "the live time of the spectrum, if there is a blank", False
    ),
)

OPTIONS: Final = (
    OptionArgument(
        "first_energy", OptionKind.NUMBER, "the energy at the lower edge of the first channel", 0.0
    ),
    OptionArgument("channel_width", OptionKind.NUMBER, "the width of a channel in energy", 1.0),
    OptionArgument(
        "fwhm",
        OptionKind.NUMBER,
        "the full width of a line at half of its height, in energy",
        required=True,
    ),
    OptionArgument(
        "fwhm_at",
        OptionKind.NUMBER,
        "the energy where lines have the width fwhm; elsewhere it grows with the root of the "
        "energy; if left out it is the same everywhere",
    ),
    OptionArgument(
        "fwhm_floor", OptionKind.NUMBER, "the part of fwhm that does not grow with the energy", 0.0
    ),
    OptionArgument(
        "significance",
        OptionKind.NUMBER,
        "the least area of a peak in standard deviations",
        4.0,
        minimum=1,
    ),
    OptionArgument(
        "most",
        OptionKind.INTEGER,
        "the maximum number of peaks of a spectrum; the most significant are kept",
        20,
        minimum=1,
    ),
    OptionArgument(
        "tolerance",
        OptionKind.NUMBER,
        "how far a peak may be from its line, in fwhm",
        0.5,
        minimum=0,
    ),
)

TABLES: Final = (
    TableArgument(
        "blank",
        (
            ColumnArgument("counts", Takes.NUMBERS, "counts by channel"),
            ColumnArgument("live", Takes.NUMBER, "the live time in which they were counted"),
        ),
        "one background for all rows, to be subtracted live time for live time; several rows are "
        "added up",
        required=False,
    ),
    TableArgument(
        "lines",
        (
            ColumnArgument("energy", Takes.NUMBER, "the energy of a line"),
            ColumnArgument("name", Takes.PLAIN, "its name"),
        ),
        "the lines that are known",
        required=False,
    ),
)

RESULTS: Final = (
    ResultColumn("channel", pa.float64()),
    ResultColumn("energy", pa.float64()),
    ResultColumn("area", pa.float64()),
    ResultColumn("sigma", pa.float64()),
    ResultColumn("significance", pa.float64()),
    ResultColumn("line", pa.string()),
    ResultColumn("line_energy", pa.float64()),
)
