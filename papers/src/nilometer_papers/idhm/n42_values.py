"""The content of elements of N42 files: numbers, counts, durations, instants."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from nilometer_papers.idhm.n42_xml import N42Error

MOST_CHANNELS: Final = 2**17
_MOST_COUNTS: Final = 2.0**53
_SHOWN: Final = 40
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_GAP: Final = re.compile(r",\s*,")
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+\.?\d*|\.\d+)S)?)?",
    re.ASCII,
)
_SECONDS: Final = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def numbers(text: str, limit: int) -> npt.NDArray[np.float64]:
    """Finite numbers separated by blanks or commas, at most this many."""
    if _GAP.search(text):
        raise N42Error("nothing stands between two commas")
    words = text.replace(",", " ").split(maxsplit=limit)
    if len(words) > limit:
        raise N42Error(f"there are more than {limit} numbers")
    for word in words:
        if len(word) > _SHOWN or not _NUMBER.fullmatch(word):
            raise N42Error("there is something that is not a number", detail=word[:_SHOWN])
    values = np.array([float(word) for word in words], dtype=np.float64)
    if not np.isfinite(values).all():
        raise N42Error("a number is too large")
    return values


def counts(text: str, compression: str) -> npt.NDArray[np.float64]:
    """Counts of channels; with CountedZeroes, each zero is followed by the length of its run."""
    zeroes_are_counted = _is_counted(compression)
    values = numbers(text, MOST_CHANNELS * (1 + zeroes_are_counted))
    if values.min(initial=0) < 0 or values.max(initial=0) > _MOST_COUNTS:
        raise N42Error("a count is negative or too large")
    return _expanded(values.tolist()) if zeroes_are_counted else values


def seconds(text: str) -> float:
    """A duration in ISO 8601, without years and months: their lengths vary."""
    parts = _DURATION.fullmatch(text) if len(text) <= _SHOWN else None
    if parts is None or not any(parts.groups()):
        raise N42Error("a length of time is not one of ISO 8601", detail=text[:_SHOWN])
    return math.fsum(float(parts[name] or 0) * unit for name, unit in _SECONDS.items())


def micros(text: str) -> int | None:
    """An instant, in microseconds; None if the clock was not set. Without a zone it is UTC."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise N42Error("an instant is not one of ISO 8601", detail=text[:_SHOWN]) from error
    if instant.year <= _EPOCH.year:
        return None
    return (instant.replace(tzinfo=instant.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


def _is_counted(compression: str) -> bool:
    match compression.strip().lower():
        case "" | "none":
            return False
        case "countedzeroes" | "countedzeros":
            return True
    raise N42Error("counts are compressed in an unknown way", detail=compression[:_SHOWN])


def _expanded(packed: list[float]) -> npt.NDArray[np.float64]:
    """Expand runs of zeroes; a run that no spectrum can have is refused before it takes memory."""
    rest = iter(packed)
    pairs = [(count, 1.0 if count else next(rest, 0.0)) for count in rest]
    values, runs = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    if (runs < 1).any() or (runs % 1).any():
        raise N42Error("a run of zeroes has no length")
    if runs.sum() > MOST_CHANNELS:
        raise N42Error(f"there are more than {MOST_CHANNELS} channels")
    return np.repeat(values, runs.astype(np.int64))
