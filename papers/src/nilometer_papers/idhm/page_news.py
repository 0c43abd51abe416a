"""What detectors have seen and the verdicts on boxes, read from rows of the queries' results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MOST_CHANNELS: Final = 1 << 16

Row = Mapping[str, Any]
Counts = NDArray[np.float64]


class BoxState(StrEnum):
    """How far a box has come."""

    WAITING = "waiting"
    EXPOSED = "exposed"
    MORE_DATA = "more data"
    SAFE = "safe"
    SUSPECT = "suspect"

    @property
    def is_decided(self) -> bool:
        return self in (BoxState.SAFE, BoxState.SUSPECT)


@dataclass(frozen=True)
class Spectrum:
    """What a detector has counted for the box before it, all bursts together."""

    kind: str
    box: int
    burst: int
    exposure: float
    """Seconds."""
    counts: Counts
    matched: Counts | None = None
    """What the elements and the background found in it explain."""


@dataclass(frozen=True)
class Peak:
    """A peak of a spectrum, with the line that explains it, if any."""

    energy: float
    """MeV."""
    area: float
    significance: float
    line: str | None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a box after a burst, by one detector or by all."""

    box: int
    state: BoxState
    family: str | None
    """The class of the knowledge base; `none`: nothing hazardous."""
    material: str | None
    """The hazardous material that it most resembles."""
    confidence: float | None
    exposure: float | None
    lines: str | None

    @property
    def content(self) -> str:
        """The supposed content of the box, in words."""
        if self.family is None:
            return "—"
        if self.family.lower() == "none":
            return "nothing hazardous"
        return self.family if self.material is None else f"{self.family}, like {self.material}"


def rows_of(table: pa.Table) -> Iterable[Row]:
    """The rows of results that are about a box."""
    rows: list[Row] = table.to_pylist()
    return (row for row in rows if row.get("box") is not None)


def read_spectrum(row: Row) -> Spectrum | None:
    """The spectrum in a row; None if there are no counts."""
    counts, matched = _counts(row.get("counts")), _counts(row.get("matched"))
    if counts is None:
        return None
    if matched is not None and len(matched) != len(counts):
        matched = None
    return Spectrum(
        str(row.get("kind") or ""),
        int(row["box"]),
        int(row.get("burst") or 0),
        _number(row.get("exposure")) or 0.0,
        counts,
        matched,
    )


def read_peak(row: Row) -> Peak | None:
    """The peak in a row; None if it has no energy."""
    if (energy := _number(row.get("energy"))) is None:
        return None
    return Peak(
        energy,
        _number(row.get("area")) or 0.0,
        _number(row.get("significance")) or 0.0,
        read_text(row.get("line")),
    )


def read_verdict(row: Row) -> Verdict | None:
    """The verdict in a row, if there is one."""
    try:
        state = BoxState(str(row.get("verdict")).lower())
    except ValueError:  # none yet, or a word that the page does not know
        return None
    return Verdict(
        int(row["box"]),
        state,
        read_text(row.get("class")),
        read_text(row.get("material")),
        _number(row.get("confidence")),
        _number(row.get("exposure")),
        read_text(row.get("lines")),
    )


def _counts(value: Any) -> Counts | None:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_CHANNELS:
        return None
    counts = np.array([np.nan if one is None else one for one in value], dtype=np.float64)
    return np.clip(np.nan_to_num(counts, nan=0.0, posinf=0.0, neginf=0.0), 0.0, None)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    return float(value) if np.isfinite(float(value)) else None


def read_text(value: Any) -> str | None:
    """A text; None if it is NULL or empty."""
    return None if value is None or value == "" else str(value)
