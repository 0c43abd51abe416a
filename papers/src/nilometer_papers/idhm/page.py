"""The page of the belt in the console: boxes, live spectra with their lines, verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from nilometer.errors import NilometerError, in_one_line
from nilometer.server.console.drawing import Drawing, shape
from nilometer.server.console.live_elements import TOGGLE
from nilometer.server.console.page_results import PageResults
from nilometer.server.console.pages import ConsolePage
from nilometer_papers.idhm.detector import DETECTORS
from nilometer_papers.idhm.page_belt import draw_belt, legend
from nilometer_papers.idhm.page_decisions import decisions_table, last_decision, summary_figures
from nilometer_papers.idhm.page_news import Counts, Spectrum
from nilometer_papers.idhm.page_replay import Replay
from nilometer_papers.idhm.page_spectrum import Scale, draw_spectrum
from nilometer_papers.idhm.page_state import BeltState, DetectorView
from nilometer_papers.idhm.page_verdict import detector_head, draw_verdict
from nilometer_papers.idhm.spectrum_model import background

_REFRESH_SECONDS: Final = 0.4
_REPLAY_SECONDS: Final = 0.6
_REPLAY: Final = "Show a box again"
_MOST_OFFERED: Final = 20
_NOTE: Final = "Point at a box or a detector, or go to it with Tab, to read more."
_SPECTRUM_NOTE: Final = (
    "Green: the matched spectrum, of the elements that were found. Dashed: the background that is "
    "expected. Point at a line, or go to it with Tab, to read more."
)
_WAITING: Final = "Waiting for the first burst: no detector has sent anything yet."
_SHOW_DETECTORS: Final = "one => one.scrollLeft = (one.scrollWidth - one.clientWidth) * 0.3"
"""On narrow screens: show the middle of the belt, not its beginning."""
_SCALES: Final = {one: f"{one}".capitalize() for one in Scale}


class BeltPage:
    """The content of the page, in the current place."""

    def __init__(self, results: PageResults) -> None:
        self._state = BeltState()
        self._results = results
        self._replay: Replay | None = None
        self._shown = -1
        self._detectors: dict[str, DetectorCard] = {}
        self._draw()
        self._follow(results)
        ui.timer(_REFRESH_SECONDS, self._refresh)
        ui.timer(_REPLAY_SECONDS, self._go_on)

    def _draw(self) -> None:
        self._notice = ui.label().classes("nm-notice").props("role=status")
        self._notice.visible = False
        with ui.element("section").classes("nm-card nm-pad idhm-belt").props('aria-label="Belt"'):
            Drawing(legend())
            with ui.element("div").classes("nm-scroll") as self._place:
                self._belt = Drawing(shape("svg"), _NOTE)
            self._empty = ui.label(_WAITING).classes("nm-empty")
        with ui.element("div").classes("idhm-bar"):
            self._figures = Drawing(shape("div"))
            ui.element("div").classes("nm-grow")
            self._boxes = ui.select([], label=_REPLAY, on_change=self._choose_box)
            self._boxes.props("dense outlined options-dense").classes("idhm-boxes")
            self._scale = ui.toggle(_SCALES, value=Scale.ROOT).classes("nm-toggle")
            self._scale.props(f'{TOGGLE} aria-label="Scale of the counts"')
            self._scale.on_value_change(self._draw_anew)
        self._last = Drawing(shape("p"))
        with ui.element("div").classes("idhm-replay nm-notice").props("role=status") as self._again:
            self._progress = ui.label()
            ui.button("Back to the belt", on_click=self._end_replay).props("flat dense no-caps")
        self._again.visible = False
        self._cards = ui.element("div").classes("idhm-detectors")
        decisions = ui.element("section").classes("nm-card nm-pad idhm-decisions")
        with decisions.props('aria-label="Decisions"'):
            self._decisions = Drawing(shape("div")).classes("nm-scroll")

    def _follow(self, results: PageResults) -> None:
        """Verdicts come with their spectra, which are large and soon outdated: few at a time."""
        state = self._state
        results.feed("belt", state.take_belt, self._say, newest=100)
        results.feed("peaks", state.take_peaks, self._say, newest=200, at_once=2000)
        results.feed("verdicts", state.take_verdicts, self._say, newest=30, at_once=120)
        results.feed("fused", state.take_fused, self._say, newest=500, at_once=2000)

    def _refresh(self) -> None:
        """Draw what has come since the last time, if anything."""
        state = self._state
        if state.version == self._shown:
            return
        self._shown = state.version
        if self._empty.visible and state.detectors:
            self._empty.visible = False
            ui.run_javascript(f"({_SHOW_DETECTORS})(getHtmlElement({self._place.id}))")
        self._belt.show(draw_belt(state))
        self._figures.show(summary_figures(state.decisions))
        self._last.show(last_decision(state.decisions))
        self._decisions.show(decisions_table(state.decisions))
        self._offer_boxes([one.box for one in reversed(state.decisions)][:_MOST_OFFERED])
        self._show_detectors(state if self._replay is None else self._replay.state)

    def _show_detectors(self, state: BeltState) -> None:
        for place, detector in enumerate(state.in_order):
            self._card(detector.name, place).show(detector, self._scale.value)
        for name, one in self._detectors.items():
            one.card.visible = name in state.detectors

    def _offer_boxes(self, boxes: list[int]) -> None:
        """Offer the last boxes for replay; the one being replayed stays among them."""
        chosen = self._boxes.value
        if chosen is not None and chosen not in boxes:
            boxes.append(chosen)
        if boxes != self._boxes.options:
            self._boxes.set_options(boxes, value=chosen)

    async def _choose_box(self, event: ValueChangeEventArguments[int | None]) -> None:
        """Read what is stored about a box."""
        if (box := event.value) is None:
            return
        try:
            verdicts, peaks = [
                await self._results.stored(query, "box", box) for query in ("verdicts", "peaks")
            ]
        except NilometerError as error:
            self._say(in_one_line(error))
            self._end_replay()
            return
        if self._boxes.value != box:  # another was chosen meanwhile, or none
            return
        self._replay = Replay(box, verdicts, peaks)
        self._again.visible = True
        self._go_on()

    def _go_on(self) -> None:
        """Show the next burst of the box being replayed."""
        if self._replay is None:
            return
        is_new = self._replay.step()
        self._progress.text = self._replay.progress
        if is_new:
            self._show_detectors(self._replay.state)

    def _end_replay(self) -> None:
        self._replay, self._boxes.value = None, None
        self._again.visible = False
        self._show_detectors(self._state)

    def _card(self, name: str, place: int) -> DetectorCard:
        """The card of a detector, created when it first reports."""
        if name not in self._detectors:
            with self._cards:
                self._detectors[name] = DetectorCard(name)
            self._detectors[name].card.move(target_index=place)
        return self._detectors[name]

    def _draw_anew(self) -> None:
        self._shown = -1

    def _say(self, text: str) -> None:
        self._notice.text = text
        self._notice.visible = True


class DetectorCard:
    """One detector: the spectrum of the box before it, and the verdict on that box."""

    def __init__(self, name: str) -> None:
        with ui.element("section").classes("nm-card nm-pad idhm-detector") as self.card:
            self.card.props["aria-label"] = f"Detector {name}"
            self._head = Drawing(shape("div"))
            self._spectrum = Drawing(shape("svg"), _SPECTRUM_NOTE)
            self._verdict = Drawing(shape("div"))

    def show(self, detector: DetectorView, scale: Scale) -> None:
        """Show the detector's latest news."""
        self._head.show(detector_head(detector))
        self._verdict.show(draw_verdict(detector.shown_verdict))
        if (spectrum := detector.spectrum) is not None:
            expected = _expected_background(spectrum)
            self._spectrum.show(draw_spectrum(spectrum, detector.shown_peaks, scale, expected))


def _expected_background(spectrum: Spectrum) -> Counts | None:
    """What would be counted without a box, as far as is known for such detectors."""
    if spectrum.kind not in DETECTORS:
        return None
    expected: Counts = background(spectrum.kind) * spectrum.exposure
    return expected if len(expected) == len(spectrum.counts) else None


PAGE: Final = ConsolePage(
    "IDHM", "idhm", "luggage", BeltPage, Path(__file__).parent / "static" / "idhm.css"
)
