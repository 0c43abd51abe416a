"""The state of the belt's page: the last news of every detector and of the last boxes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import pyarrow as pa

from nilometer_papers.idhm.belt import Place
from nilometer_papers.idhm.page_news import (
    BoxState,
    Peak,
    Row,
    Spectrum,
    Verdict,
    read_peak,
    read_spectrum,
    read_text,
    read_verdict,
    rows_of,
)

MOST_DETECTORS: Final = 12
MOST_BOXES: Final = 40
MOST_DECISIONS: Final = 200
_MOST_PEAKS: Final = 60

LEFT: Final = frozenset({Place.CLEARED, Place.DIVERTED})
"""The places of boxes that have left the belt."""

_Kept = TypeVar("_Kept")


@dataclass(frozen=True)
class BoxView:
    """A box on the belt."""

    box: int
    place: Place
    verdict: Verdict | None = None
    """The last verdict on it; that of all detectors, once there is one."""
    exposure: float = 0.0

    @property
    def state(self) -> BoxState:
        """The verdict on it; without a decision, a box that has left has the state of its place."""
        if self.verdict is not None and (self.verdict.state.is_decided or self.place not in LEFT):
            return self.verdict.state
        return _STATES[self.place]


_STATES: Final = {
    Place.WAITING: BoxState.WAITING,
    Place.EXPOSED: BoxState.EXPOSED,
    Place.CLEARED: BoxState.SAFE,
    Place.DIVERTED: BoxState.MORE_DATA,
}


@dataclass
class DetectorView:
    """The last news of one detector."""

    name: str
    spectrum: Spectrum | None = None
    verdict: Verdict | None = None
    peaks: tuple[Peak, ...] = ()
    _peaks_of: tuple[int, int] = (-1, -1)

    @property
    def kind(self) -> str:
        return "" if self.spectrum is None else self.spectrum.kind

    @property
    def shown_peaks(self) -> tuple[Peak, ...]:
        """The peaks of the box whose spectrum is shown."""
        shown = self.spectrum
        return self.peaks if shown is not None and self._peaks_of[0] == shown.box else ()

    @property
    def shown_verdict(self) -> Verdict | None:
        """The verdict on the box whose spectrum is shown."""
        shown, verdict = self.spectrum, self.verdict
        return (
            verdict
            if shown is not None and verdict is not None and verdict.box == shown.box
            else None
        )

    def add_peak(self, box: int, burst: int, peak: Peak) -> None:
        """Peaks of one burst come one by one; those of another burst replace them."""
        if self._peaks_of != (box, burst):
            self._peaks_of, self.peaks = (box, burst), ()
        self.peaks = (*self.peaks, peak)[:_MOST_PEAKS]


@dataclass
class BeltState:
    """Takes rows of the queries' results and keeps the last of each; bounded in every part."""

    detectors: dict[str, DetectorView] = field(default_factory=dict)
    version: int = 0
    """Grows with everything that is taken in."""
    _newest: int = 0
    """The last box to come before the detectors."""
    _places: OrderedDict[int, Place] = field(default_factory=OrderedDict)
    _undecided: OrderedDict[int, Verdict] = field(default_factory=OrderedDict)
    _decided: OrderedDict[int, Verdict] = field(default_factory=OrderedDict)
    _lines: OrderedDict[int, str] = field(default_factory=OrderedDict)

    def take_verdicts(self, rows: pa.Table) -> None:
        """Rows (detector, kind, box, burst, exposure, counts) with the verdict on these counts."""
        for row in rows_of(rows):
            if (detector := self._detector(row)) is None:
                continue
            if (spectrum := read_spectrum(row)) is not None:
                detector.spectrum = spectrum
                self._expose(spectrum.box)
            if (verdict := read_verdict(row)) is not None:
                detector.verdict = verdict
                self._take_verdict(verdict)

    def take_peaks(self, rows: pa.Table) -> None:
        """Rows (detector, box, burst, energy, area, significance, line)."""
        for row in rows_of(rows):
            detector, peak = self._detector(row), read_peak(row)
            if detector is not None and peak is not None:
                detector.add_peak(int(row["box"]), int(row.get("burst") or 0), peak)

    def take_fused(self, rows: pa.Table) -> None:
        """Rows (box, exposure) with the joint verdict of all detectors."""
        for row in rows_of(rows):
            verdict = read_verdict(row)
            if (
                verdict is not None
                and verdict.state.is_decided
                and verdict.box not in self._decided
            ):
                self._keep(self._decided, verdict.box, self._timed(verdict), MOST_DECISIONS)

    def take_belt(self, rows: pa.Table) -> None:
        """Rows (box, place): where a box is from now on."""
        for row in rows_of(rows):
            box, place = int(row["box"]), str(row.get("place")).lower()
            if place == Place.EXPOSED:
                self._expose(box)
            elif place in set(Place):
                self._keep(self._places, box, Place(place), MOST_BOXES)

    @property
    def decisions(self) -> list[Verdict]:
        """The decisions on the last boxes, newest last; with a detector's lines."""
        return [
            replace(verdict, lines=verdict.lines or self._lines.get(box))
            for box, verdict in self._decided.items()
        ]

    def at(self, place: Place) -> list[BoxView]:
        """The boxes at a place, next ones first; of those that have left, the last first."""
        boxes = sorted(box for box, where in self._places.items() if where is place)
        return [self._box(one) for one in (reversed(boxes) if place in LEFT else boxes)]

    @property
    def in_order(self) -> list[DetectorView]:
        """The detectors by name; 2 comes before 10."""
        return sorted(self.detectors.values(), key=lambda one: (len(one.name), one.name))

    def _detector(self, row: Row) -> DetectorView | None:
        """The detector of a row; None if it names none, or there are too many."""
        name = read_text(row.get("detector"))
        if name is None or row.get("box") is None:
            return None
        if name not in self.detectors:
            if len(self.detectors) >= MOST_DETECTORS:
                return None
            self.detectors[name] = DetectorView(name)
        self.version += 1
        return self.detectors[name]

    def _expose(self, box: int) -> None:
        """A box is before the detectors; those that were there earlier have left."""
        if box < self._newest or self._places.get(box) in LEFT:
            return  # measurements of a box may come after it has left
        self._newest = box
        self._keep(self._places, box, Place.EXPOSED, MOST_BOXES)
        for other, place in list(self._places.items()):
            if other < box and place not in LEFT:
                verdict = self._decided.get(other)
                is_suspect = verdict is not None and verdict.state is BoxState.SUSPECT
                self._places[other] = Place.DIVERTED if is_suspect else Place.CLEARED

    def _take_verdict(self, verdict: Verdict) -> None:
        """The verdict of one detector; others may disagree, so it decides nothing."""
        if verdict.lines is not None:
            self._keep(self._lines, verdict.box, verdict.lines, MOST_DECISIONS)
        if not verdict.state.is_decided:
            self._keep(self._undecided, verdict.box, verdict, MOST_BOXES)

    def _box(self, box: int) -> BoxView:
        verdict = self._decided.get(box) or self._undecided.get(box)
        return BoxView(box, self._places[box], verdict, self._exposure(box, verdict))

    def _exposure(self, box: int, verdict: Verdict | None) -> float:
        shown = (one.spectrum for one in self.detectors.values())
        times = [one.exposure for one in shown if one is not None and one.box == box]
        return max([*times, 0.0 if verdict is None else verdict.exposure or 0.0])

    def _timed(self, verdict: Verdict) -> Verdict:
        """A decision with the exposure it took, if that is known."""
        return replace(verdict, exposure=self._exposure(verdict.box, verdict) or None)

    def _keep(self, into: OrderedDict[int, _Kept], box: int, value: _Kept, limit: int) -> None:
        """Keep the newest of what is known about boxes."""
        into[box] = value
        into.move_to_end(box)
        self.version += 1
        while len(into) > limit:
            into.popitem(last=False)


@dataclass(frozen=True)
class Summary:
    """The last decided boxes, counted."""

    decided: int
    suspect: int
    mean_exposure: float | None

    @classmethod
    def of(cls, decisions: Sequence[Verdict]) -> Summary:
        times = [one.exposure for one in decisions if one.exposure is not None]
        suspect = sum(one.state is BoxState.SUSPECT for one in decisions)
        return cls(len(decisions), suspect, sum(times) / len(times) if times else None)
