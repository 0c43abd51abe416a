"""Detection, false alarms and time to decision of the application, over exposure and shielding.

STEAM section 7.3 describes the application and its measure, the mean time to a decision, without
figures of its own. Claims that go beyond the paper say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nilometer.mining.registry import find_function
from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.idhm.choose_limits import choose_limits
from nilometer_papers.experiments.idhm.claims import CLAIMS
from nilometer_papers.experiments.idhm.figure import draw
from nilometer_papers.experiments.idhm.first_peaks import peak_rows
from nilometer_papers.experiments.idhm.looks import BURST, FULL, look
from nilometer_papers.experiments.idhm.rows import Judged, by_burst, by_contents, rate_row
from nilometer_papers.idhm import knowledge
from nilometer_papers.idhm.boxes import Packing, draw_boxes
from nilometer_papers.idhm.classification import METHODS, classifier
from nilometer_papers.idhm.shielding import LIGHT_SHIELDS, NO_SHIELD, STUFFS

KIND: Final = "NaI"
OTHER_KINDS: Final = ("LaBr3", "HPGe", "BGO")
_EVERY_BURST: Final = tuple(range(1, FULL + 1))
_MILLIMETRES: Final[dict[str, Sequence[int]]] = {
    "steel": (2, 5, 10, 20, 40),
    "lead": (2, 5, 10, 20, 40),
    "plastic": (5, 20, 40, 80, 160),
}
_HEAVIEST: Final = (0.15, 0.3, 0.6, 1.0, 1.5)
_TRIALS, _TESTS, _AROUND = 7_000, 8_000, 9_000
"""Seeds, to which the setting's seed is added."""


def measure(setting: Setting) -> list[Row]:
    """Boxes of new materials, seen by several kinds of detectors and three classifiers."""
    for name in ("LINES", "CLASSIFY", "PEAKS"):
        find_function(name)  # raises if a package is missing
    judged = _judge(setting, KIND)
    tests = draw_boxes(Packing(known=False), _TESTS + setting.seed, 0, _boxes(setting))
    rows: list[Row] = []
    for method, looks in look(
        KIND, judged.workers, tests, _EVERY_BURST, _TESTS + setting.seed
    ).items():
        rows += by_burst(judged, method, looks)
        rows += by_contents(judged, method, looks)
    rows += _against_shields(setting, judged)
    rows += _against_clutter(setting, judged)
    for kind in setting.progress.track(OTHER_KINDS, "other detectors"):
        rows += _other_kind(setting, kind)
    rows += peak_rows(KIND, tests[: setting.choose(400, 200, 20)], _TESTS + setting.seed)
    return rows


def _boxes(setting: Setting) -> int:
    return setting.choose(2000, 2000, 60)


def _judge(setting: Setting, kind: str, methods: Sequence[str] = tuple(METHODS)) -> Judged:
    """Trained classifiers, and the limits chosen with trials."""
    known = knowledge.rows(kind, setting.choose(4000, 2000, 60))
    workers = {method: classifier(method, known) for method in methods}
    count = setting.choose(2000, 800, 60)
    trials = draw_boxes(Packing(known=False, trial=True), _TRIALS + setting.seed, 0, count)
    bursts = _EVERY_BURST if kind == KIND else (FULL,)
    looks = look(kind, workers, trials, bursts, _TRIALS + setting.seed)
    return Judged(kind, workers, {one: choose_limits(looks[one]) for one in methods})


def _against_shields(setting: Setting, judged: Judged) -> list[Row]:
    shields = [
        f"{millimetres} mm {stuff}" for stuff in STUFFS for millimetres in _MILLIMETRES[stuff]
    ]
    count = setting.choose(600, 200, 10)
    rows: list[Row] = []
    for shield in setting.progress.track([NO_SHIELD, *shields], "shields"):
        packing = Packing(known=False, shields=(shield,))
        rows += _at_full_exposure(setting, judged, packing, count, "shielding", shield)
    return rows


def _against_clutter(setting: Setting, judged: Judged) -> list[Row]:
    """The heavier the clutter in the beam, the less visible a hazardous material is."""
    count = setting.choose(600, 200, 10)
    rows: list[Row] = []
    for heaviest in setting.progress.track(_HEAVIEST, "heavier things"):
        packing = Packing(known=False, heaviest=heaviest)
        rows += _at_full_exposure(setting, judged, packing, count, "clutter", f"{heaviest} kg")
    return rows


def _other_kind(setting: Setting, kind: str) -> list[Row]:
    judged = _judge(setting, kind, ("neighbours",))
    count = setting.choose(2000, 500, 10)
    return _at_full_exposure(setting, judged, Packing(known=False), count, "detector", kind)


def _at_full_exposure(
    setting: Setting, judged: Judged, packing: Packing, count: int, curve: str, at: str
) -> list[Row]:
    seed = _AROUND + setting.seed
    looks = look(judged.kind, judged.workers, draw_boxes(packing, seed, 0, count), (FULL,), seed)
    return [
        rate_row(judged, method, one, curve, at, one.suspect_at(judged.limits[method], -1))
        for method, one in looks.items()
    ]


EXPERIMENT = Experiment(
    "idhm",
    "STEAM",
    "Section 7",
    "hazardous materials in boxes on a belt",
    measure,
    draw,
    CLAIMS,
    "2 000 boxes, half of them with 0.3 to 3 kg of something hazardous that the knowledge base has "
    "never seen, beside 1 to 4 harmless things of 0.05 to 0.3 kg in the view of the beam, one of "
    f"them never seen; bursts of {BURST:g} s, at most {FULL}; no shield or a light one "
    f"({', '.join(LIGHT_SHIELDS[1:])}). Limits of decisions were chosen with boxes of other new "
    "materials. With --quick 2 000 boxes are known for each exposure, not 4 000; trials have 800, "
    "not 2 000; 200 boxes are behind each shield and among heavier things, not 600, and 500 before "
    "each other detector, not 2 000. The paper gives no figures; what was chosen is in "
    "docs/idhm.md.",
)
