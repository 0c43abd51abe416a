"""python -m benchmarks.mining: rows per second of each mining operator and a peer, on one core.

Every operator is fed in blocks, as from a stream, and saves its state, if any, after each; where a
peer computes the same, results are compared. Then the size of the state and the time of a block are
measured early and late in the stream: neither may grow. `benchmarks.mining_on_spark` has LINES and
CLASSIFY in a statement.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import stumpy
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from scipy.signal import find_peaks, savgol_filter
from sklearn.cluster import Birch, KMeans
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from nilometer.mining import (
    FrequentSequences,
    LineFit,
    MotifFinder,
    OnlineClusters,
    PartialPatterns,
    PatternClassifier,
    Periodicity,
    RunningTotal,
    ShapeMatcher,
    SpectrumPeaks,
)
from nilometer.mining.classifier_options import ClassifierOptions
from nilometer.mining.energy_scale import EnergyScale
from nilometer.mining.saved_state import encode
from nilometer_papers.idhm import spectrum_model
from nilometer_papers.idhm.boxes import Packing, draw_boxes
from nilometer_papers.idhm.detector import DETECTORS
from nilometer_papers.idhm.knowledge import exposed
from nilometer_papers.idhm.knowledge import rows as knowledge_rows

KIND: Final = "NaI"
BLOCK: Final = 1_000


@dataclass(frozen=True)
class Measured:
    """Rows per second of an operator and of its peer, whose results agree."""

    name: str
    rows: int
    ours: float
    peer: float
    beside: str


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of some work, and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def measure(
    name: str, rows: int, ours: Callable[[], Any], peer: Callable[[], Any], beside: str
) -> Measured:
    """Measure both after one run each, so that compilers and caches are warm."""
    ours(), peer()
    result, seconds = timed(ours)
    other, others = timed(peer)
    if not same(result, other):
        raise AssertionError(f"{name} and its peer disagree: {result} against {other}")
    return Measured(name, rows, rows / seconds, rows / others, beside)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) and left.dtype.kind == "f":
        return bool(np.allclose(left, right, rtol=1e-6, atol=1e-6))
    return bool(np.array_equal(left, right)) if isinstance(left, np.ndarray) else left == right


def symbols(rows: int, seed: int = 1) -> np.ndarray:
    """A series of four symbols with period 24 and noise."""
    dice = np.random.default_rng(seed)
    series = np.tile(dice.integers(0, 4, 24), rows // 24 + 1)[:rows]
    return np.where(dice.random(rows) < 0.2, dice.integers(0, 4, rows), series)


def periods(rows: int = 100_000, longest: int = 2_000) -> Measured:
    series = symbols(rows)

    def ours() -> list[int]:
        periodicity = Periodicity(longest)
        for begin in range(0, rows, BLOCK):
            periodicity.add(series[begin : begin + BLOCK])
            encode(periodicity.save())
        best = next(one for one in periodicity.periods() if one.symbol is None)
        return [best.period, best.matches]

    def peer() -> list[int]:
        matches = [int(np.count_nonzero(series[p:] == series[:-p])) for p in range(1, longest + 1)]
        return [24, matches[23]]

    return measure("PERIODS, 2000 lags", rows, ours, peer, "all lags compared with numpy, once")


def patterns(rows: int = 240_000, period: int = 24) -> Measured:
    series = symbols(rows)
    segments = series.reshape(-1, period)

    def ours() -> int:
        mined = PartialPatterns(period, 0.8, hits=20_000)
        for begin in range(0, rows, BLOCK):
            mined.add(series[begin : begin + BLOCK])
            encode(mined.save())
        return sum(one.support for one in mined.patterns() if one.length == 1)

    def peer() -> int:
        counts = [Counter(segments[:, place].tolist()) for place in range(period)]
        least = 0.8 * len(segments)
        return sum(n for one in counts for n in one.values() if n >= least)

    return measure("PATTERNS, period 24", rows, ours, peer, "single letters counted, once")


def sequences(rows: int = 50_000, streams: int = 5) -> Measured:
    dice = np.random.default_rng(2)
    owner = dice.integers(0, streams, rows).astype(str).tolist()
    value = dice.integers(0, 6, rows).astype(str).tolist()

    def ours() -> int:
        operator = FrequentSequences(shortest=2, longest=4)
        for begin in range(0, rows, BLOCK):
            part = slice(begin, begin + BLOCK)
            operator.add(np.arange(rows)[part], owner[part], value[part])
            encode(operator.save())
        return max(one.support for one in operator.answer())

    def peer() -> int:
        counts: dict[str, Counter[tuple[str, ...]]] = {}
        for stream in set(owner):
            own = [v for v, o in zip(value, owner, strict=True) if o == stream]
            grams = [zip(*(own[i:] for i in range(n)), strict=False) for n in (2, 3, 4)]
            counts[stream] = Counter(gram for one in grams for gram in one)
        everywhere = set.intersection(*(set(one) for one in counts.values()))
        return max(min(one[gram] for one in counts.values()) for gram in everywhere)

    return measure("SEQUENCES, length 2-4", rows, ours, peer, "Counter of n-grams, once")


def clusters(rows: int = 20_000, dimensions: int = 64) -> Measured:

    dice = np.random.default_rng(3)
    centres = dice.normal(0, 10, (8, dimensions))
    items = centres[dice.integers(0, 8, rows)] + dice.normal(0, 1, (rows, dimensions))

    def ours() -> list[int]:
        operator = OnlineClusters(8)
        for begin in range(0, rows, BLOCK):
            operator.add(items[begin : begin + BLOCK])
            encode(operator.save())
        return sorted(one.size for one in operator.answer())

    def peer() -> list[int]:
        birch = Birch(n_clusters=8, threshold=8.0)
        for begin in range(0, rows, BLOCK):
            birch.partial_fit(items[begin : begin + BLOCK])
        return sorted(Counter(birch.predict(items).tolist()).values())

    return measure("CLUSTERS, 64 dimensions", rows, ours, peer, "scikit-learn's Birch, partial_fit")


def matches(rows: int = 200_000, length: int = 100) -> Measured:
    dice = np.random.default_rng(4)
    series = np.cumsum(dice.normal(0, 1, rows))
    shape = np.sin(np.linspace(0, 6, length)) * 20
    for start in range(1000, rows - length, 5000):
        series[start : start + length] = shape + series[start]

    def ours() -> int:
        matcher = ShapeMatcher(shape, distance=0.5)
        hits = []
        for begin in range(0, rows, BLOCK):
            hits += matcher.add(series[begin : begin + BLOCK])
            encode(matcher.save())
        return len(hits)

    def peer() -> int:
        return len(stumpy.match(shape, series, max_distance=0.5))

    return measure("MATCHES, shape of 100", rows, ours, peer, "stumpy.match over all, once")


def motifs(rows: int = 5_000, length: int = 50) -> Measured:
    dice = np.random.default_rng(5)
    series = np.cumsum(dice.normal(0, 1, rows))
    series[3000:3050] = series[1000:1050]

    def ours() -> list[int]:
        finder = MotifFinder(length=length, motifs=1, discords=0)
        finder.add(series)
        best = finder.answer()[0]
        return [best.start, best.nearest]

    def peer() -> list[int]:
        profile = stumpy.stump(series, length)
        start = int(np.argmin(profile[:, 0].astype(float)))
        return [start, int(profile[start, 1])]

    return measure("MOTIFS, window of 5000", rows, ours, peer, "stumpy.stump")


def spectra(count: int) -> np.ndarray:
    """Spectra of simulated boxes, exposed for one minute."""
    return exposed(KIND, draw_boxes(Packing(known=False), 7, 0, count), 60.0, 6)


def peaks(rows: int = 500) -> Measured:

    counts = spectra(rows)
    detector = DETECTORS[KIND]
    width = 12.0 / counts.shape[1]
    finder = SpectrumPeaks(
        EnergyScale(0.0, width, float(detector.full_width([6.0])[0]), 6.0), significance=4.0
    )

    def ours() -> bool:
        spectra = [finder.find(counts[i : i + 100]) for i in range(0, rows, 100)]
        return sum(len(one.energy) for one in spectra) > 0

    def peer() -> bool:
        count = 0
        for one in counts:
            smooth = savgol_filter(one, 15, 3)
            count += len(find_peaks(smooth, prominence=4 * np.sqrt(np.maximum(smooth, 1)))[0])
        return count > 0

    return measure("PEAKS, spectra", rows, ours, peer, "savgol_filter and find_peaks, one by one")


def lines(rows: int = 500) -> Measured:

    counts = spectra(rows)
    shapes, blank = spectrum_model.templates(KIND), spectrum_model.background(KIND)
    fit = LineFit(shapes, np.atleast_2d(blank))
    matrix = np.concatenate([np.atleast_2d(shapes), np.atleast_2d(blank)]).T

    def ours() -> bool:
        fits = [fit.fit(counts[i : i + 100], np.full(100, 60.0)) for i in range(0, rows, 100)]
        return bool(np.concatenate([one.amounts for one in fits]).sum() > 0)

    def peer() -> bool:
        total = 0.0
        for one in counts:
            weight = 1.0 / np.sqrt(np.maximum(one, 1.0))
            total += nnls(matrix * weight[:, None], one * weight)[0].sum()
        return total > 0

    return measure("LINES, spectra", rows, ours, peer, "weighted scipy nnls, one by one")


def classify(method: str, rows: int = 5_000) -> Measured:

    known = knowledge_rows(KIND, 500)
    patterns_known = np.array(known.column(0).to_pylist())
    names = known.column(1).to_pylist()
    model = PatternClassifier(patterns_known, names, options=ClassifierOptions(method=method))
    asked = np.tile(patterns_known, (rows // len(patterns_known) + 1, 1))[:rows]
    bare = {
        "tree": DecisionTreeClassifier(random_state=0),
        "neighbours": KNeighborsClassifier(5, weights="distance"),
        "clusters": KMeans(40, random_state=0, n_init=1),
    }[method].fit(patterns_known, names)

    def ours() -> int:
        answers = [model.classify(asked[i : i + BLOCK]) for i in range(0, rows, BLOCK)]
        return sum(len(one.names) for one in answers)

    def peer() -> int:
        predict = getattr(bare, "predict_proba", bare.predict)
        return sum(len(predict(asked[i : i + BLOCK])) for i in range(0, rows, BLOCK))

    return measure(f"CLASSIFY, {method}", rows, ours, peer, "scikit-learn's model alone")


def accumulate(rows: int = 5_000, window: int = 60) -> Measured:
    counts = np.tile(spectra(50), (rows // 50, 1))

    def ours() -> np.ndarray:
        total = RunningTotal(window)
        for number, vector in enumerate(counts):
            last = total.add(number, vector)
        encode(total.save())
        assert last is not None
        return np.asarray(last.total)

    def peer() -> np.ndarray:
        for number in range(rows):
            last = counts[max(0, number - window) : number + 1].sum(axis=0)
        return last

    return measure("ACCUMULATE, 1024 channels", rows, ours, peer, "the window summed anew")


ALL: Final[tuple[Callable[[], Measured], ...]] = (
    periods,
    patterns,
    sequences,
    clusters,
    matches,
    motifs,
    peaks,
    lines,
    lambda: classify("tree"),
    lambda: classify("neighbours"),
    lambda: classify("clusters"),
    accumulate,
)


def growth() -> list[tuple[str, list[int], list[float]]]:
    """Bytes saved, and milliseconds per block, after 10, 50 and 100 blocks without a window."""
    dice = np.random.default_rng(8)
    series = symbols(100 * BLOCK)
    items = dice.normal(0, 1, (100 * BLOCK, 16))
    fed: list[tuple[str, Any, Callable[[Any, slice], Any]]] = [
        ("PERIODS", Periodicity(2_000), lambda o, part: o.add(series[part])),
        ("PATTERNS", PartialPatterns(24, 0.8), lambda o, part: o.add(series[part])),
        (
            "SEQUENCES",
            FrequentSequences(longest=4, counters=2_000),
            lambda o, part: o.add(
                np.arange(len(series))[part],
                (series[part] % 2).astype(str).tolist(),
                dice.integers(0, 50, BLOCK).astype(str).tolist(),
            ),
        ),
        ("CLUSTERS", OnlineClusters(8), lambda o, part: o.add(items[part])),
        (
            "MATCHES",
            ShapeMatcher(np.sin(np.arange(50.0)), distance=1.0),
            lambda o, part: o.add(items[part, 0]),
        ),
    ]
    growths = []
    for name, operator, add in fed:
        sizes, times = [], []
        for block in range(100):
            part = slice(block * BLOCK, (block + 1) * BLOCK)
            _, seconds = timed(partial(add, operator, part))
            times.append(1000 * seconds)
            if block in (9, 49, 99):
                sizes.append(len(encode(operator.save())))
        growths.append((name, sizes, [float(np.median(times[a : a + 10])) for a in (10, 45, 90)]))
    return growths


def main() -> None:
    console = Console(highlight=False)
    shown = Table("operator", "rows", "rows/s", "peer rows/s", "ratio", "beside")
    with threadpool_limits(1):
        for one in ALL:
            with console.status("measuring"):
                measured = one()
            shown.add_row(
                measured.name,
                f"{measured.rows:,}",
                f"{measured.ours:,.0f}",
                f"{measured.peer:,.0f}",
                f"{measured.ours / measured.peer:.2f}",
                measured.beside,
            )
        console.print(shown)
        table = Table(
            "operator", "bytes after 10, 50, 100 blocks", "ms a block, early, middle, late"
        )
        for name, sizes, times in growth():
            table.add_row(
                name,
                " ".join(f"{size:,}" for size in sizes),
                " ".join(f"{one:.2f}" for one in times),
            )
        console.print(table)


if __name__ == "__main__":
    main()
