"""The known class that a pattern belongs to, and how certain that is (STEAM section 7.3).

The three methods of the paper use scikit-learn: decision tree induction, nearest neighbours, and
clusters. Each gives every class a share between 0 and 1; the largest is the confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController

from nilometer.kernels.arrays import Int64s
from nilometer.mining.classifier_options import ClassifierOptions
from nilometer.mining.table_function import MiningError, Numbers

Texts: TypeAlias = npt.NDArray[np.object_]
_OfPatterns: TypeAlias = Callable[[Numbers], Numbers]
_Neighbours: TypeAlias = tuple[Numbers, Int64s]
"""For each pattern, the distances to the nearest known ones, nearest first, and their rows."""

_THREADS: Final = ThreadpoolController()
"""A single thread is used: with one per processor, sums would be in a different order."""
_LARGEST: Final = 1e38
"""Larger numbers are not compared: a tree stores numbers in four bytes."""
_ADDED: Final = 2.0
"""Patterns added to each leaf of a tree."""
_RATES: Final = (-5.0, 3.0)
"""The range of powers of e for the rate at which shares fall over mean square distances."""


@dataclass(frozen=True)
class Classified:
    """For each pattern, the likeliest class and the second, with confidence; None is unknown."""

    names: Texts
    confidence: Numbers
    seconds: Texts
    second_confidence: Numbers
    nearest: Numbers
    """The distance to the nearest known pattern."""


class PatternClassifier:
    """Learns from patterns of known classes; the same rows in the same order give the same model.

    >>> known = PatternClassifier([[0, 1], [0, 2], [5, 0], [6, 0]], ["a", "a", "b", "b"])
    >>> classified = known.classify([[0, 1.5], [6, 0]])
    >>> classified.names.tolist(), classified.nearest.tolist()
    (['a', 'b'], [0.5, 0.0])
    """

    def __init__(
        self,
        patterns: npt.ArrayLike,
        classes: Sequence[str],
        weights: npt.ArrayLike | None = None,
        options: ClassifierOptions | None = None,
    ) -> None:
        self._options = options or ClassifierOptions()
        raw = np.asarray(patterns, np.float64)
        _check(raw, classes, self._options)
        self._names, codes = np.unique(np.asarray(classes, np.str_), return_inverse=True)
        sample_weights = np.ones(len(raw)) if weights is None else np.asarray(weights, np.float64)
        with _THREADS.limit(limits=1):
            self._scale = _scaling(self._options.scale, raw)
            known = self._scale(raw)
            count = self._options.neighbours if self._options.method == "neighbours" else 1
            # A search tree: the distances of a pattern are exact, whatever else is in the batch.
            self._known = NearestNeighbors(
                n_neighbors=min(count, len(known)), algorithm="kd_tree"
            ).fit(known)
            self._shares = _learn(known, codes, sample_weights, self._options)

    @property
    def length(self) -> int:
        """The length of a pattern."""
        return int(self._known.n_features_in_)

    def classify(self, patterns: npt.ArrayLike) -> Classified:
        """The classes of patterns, each by itself; None for those that cannot be compared."""
        raw = np.asarray(patterns, np.float64).reshape(-1, self.length)
        if not len(raw):
            none, texts = np.zeros(0), np.zeros(0, object)
            return Classified(texts, none, texts, none, none)
        with _THREADS.limit(limits=1), np.errstate(over="ignore", invalid="ignore"):
            scaled = self._scale(raw)
            usable = np.all(np.abs(scaled) <= _LARGEST, axis=1)
            scaled = np.where(usable[:, None], scaled, 0.0)
            neighbours = self._known.kneighbors(scaled)
            shares = self._shares(scaled, neighbours)
        return self._rank(shares, np.where(usable, neighbours[0][:, 0], np.nan))

    def _rank(self, shares: Numbers, nearest: Numbers) -> Classified:
        order = np.argsort(-shares, axis=1, kind="stable")
        every = np.arange(len(shares))
        first, second = shares[every, order[:, 0]], shares[every, order[:, 1]]
        names = self._names.astype(object)
        firsts, seconds = names[order[:, 0]], names[order[:, 1]]
        seconds[second == 0] = None
        largest = np.inf if self._options.unknown is None else self._options.unknown
        far = ~(nearest <= largest)
        firsts[far] = seconds[far] = None
        first[far] = second[far] = np.nan
        return Classified(firsts, first, seconds, second, nearest)


def _learn(
    known: Numbers, codes: Int64s, weights: Numbers, options: ClassifierOptions
) -> Callable[[Numbers, _Neighbours], Numbers]:
    """The function by which the method assigns shares to all classes, one column each."""
    if options.method == "neighbours":
        return lambda _, neighbours: _vote(neighbours, codes, weights)
    if options.method == "tree":
        shares = _tree(known, codes, weights, options)
    else:
        shares = _clusters(known, codes, weights, options.clusters)
    return lambda scaled, _: shares(scaled)


def _check(patterns: Numbers, classes: Sequence[str], options: ClassifierOptions) -> None:
    if patterns.ndim != 2 or 0 in patterns.shape or not (np.abs(patterns) <= _LARGEST).all():
        raise MiningError(
            "the knowledge base has no patterns that can be learned",
            detail="a pattern is an array of numbers, at least one, and none beyond 1e38",
        )
    if len(classes) != len(patterns):
        raise MiningError(f"there are {len(patterns)} patterns and {len(classes)} classes")
    if len(set(classes)) < 2:
        raise MiningError(
            f"the knowledge base has one class only, {next(iter(classes))!r}",
            hint="a class can only be distinguished from others: give rows of at least two classes",
        )
    if options.method == "tree" and len(patterns) < 2 * options.leaf:
        raise MiningError(
            f"{len(patterns)} patterns are too few for a tree with {options.leaf} in each leaf",
            hint="leaf => 1, or method => 'neighbours'",
            argument="leaf",
        )


def _scaling(scale: str, patterns: Numbers) -> _OfPatterns:
    scaler: Any = {
        "none": FunctionTransformer,
        "standard": StandardScaler,
        "shares": lambda: Normalizer("l1"),
        "unit": lambda: Normalizer("l2"),
    }[scale]()
    transform: _OfPatterns = scaler.fit(patterns).transform
    return transform


def _tree(
    known: Numbers, codes: Int64s, weights: Numbers, options: ClassifierOptions
) -> _OfPatterns:
    """The share of each class in the leaf, shrunk towards its share in all known patterns.

    A leaf of few patterns would be too certain: two average patterns are added to each
    (the m-estimate; Cestnik: Estimating Probabilities, ECAI 1990).
    """
    tree = DecisionTreeClassifier(
        max_depth=options.depth, min_samples_leaf=options.leaf, random_state=0
    ).fit(known, codes, weights)
    of_all, rows = tree.tree_.value[0], tree.tree_.n_node_samples

    def shares(scaled: Numbers) -> Numbers:
        size = rows[tree.apply(scaled)][:, None]
        shrunk: Numbers = (size * tree.predict_proba(scaled) + _ADDED * of_all) / (size + _ADDED)
        return shrunk

    return shares


def _vote(neighbours: _Neighbours, codes: Int64s, weights: Numbers) -> Numbers:
    """The share of each class in the neighbours' weights, divided by their distances.

    If a neighbour is equal to the pattern, only such neighbours count.
    """
    distances, rows = neighbours
    equal = distances == 0
    votes = np.where(equal, 1.0, 0.0)
    apart = ~equal.any(axis=1)
    # Relative to the nearest one, so that no distance is too small to divide by.
    votes[apart] = distances[apart, :1] / distances[apart]
    votes *= weights[rows]
    shares = np.zeros((len(rows), int(codes.max()) + 1))
    np.add.at(shares, (np.arange(len(rows))[:, None], codes[rows]), votes)
    return _parts(shares)


def _clusters(known: Numbers, codes: Int64s, weights: Numbers, count: int) -> _OfPatterns:
    """Shares that fall exponentially with the square of the distance to a class.

    The patterns of each class are split into clusters by k-means; the distance is that to the
    nearest centre. The rate at which shares fall is chosen to fit the known classes best (as in
    temperature scaling; Guo et al.: On Calibration of Modern Neural Networks, 2017).
    """
    centres: list[Numbers] = []
    for code in range(int(codes.max()) + 1):
        mine = known[codes == code]
        distinct = len(np.unique(mine, axis=0))
        means = KMeans(min(count, distinct), n_init=10, random_state=0)
        centres.append(means.fit(mine, sample_weight=weights[codes == code]).cluster_centers_)

    def squares(scaled: Numbers) -> Numbers:
        each = [cdist(scaled, mine, "sqeuclidean").min(axis=1) for mine in centres]
        return np.stack(each, axis=1)

    rate = _best_rate(squares(known), codes, weights)
    return lambda scaled: np.exp(log_softmax(-rate * squares(scaled), axis=1))


def _best_rate(squares: Numbers, codes: Int64s, weights: Numbers) -> float:
    """The rate of decrease of shares that makes the known classes likeliest."""
    unit = float(squares.mean()) or 1.0

    def loss(power: float) -> float:
        shares = log_softmax(-np.exp(power) * squares / unit, axis=1)
        return -float(np.average(shares[np.arange(len(codes)), codes], weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_RATES, method="bounded").x)) / unit


def _parts(shares: Numbers) -> Numbers:
    """Each row divided by its sum."""
    total = shares.sum(axis=1, keepdims=True)
    parts: Numbers = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    return parts
