"""Which of the known classes a pattern belongs to, and how sure that is (STEAM section 7.3).

The three ways of the paper are scikit-learn's: decision tree induction, nearest neighbours, and
clusters. Each gives every class a share between 0 and 1; the largest is the confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from nilometer.kernels.arrays import Int64s
from nilometer.mining.classifier_options import ClassifierOptions
from nilometer.mining.table_function import MiningError, Numbers

Texts: TypeAlias = npt.NDArray[np.object_]
_Shares: TypeAlias = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Classified:
    """For each pattern the likeliest class and the second, with confidence; None is unknown."""

    names: Texts
    confidence: Numbers
    seconds: Texts
    second_confidence: Numbers
    nearest: Numbers
    """The distance to the nearest known pattern."""


class PatternClassifier:
    """Learns from patterns of known classes; the same rows in the same order, the same model.

    >>> known = PatternClassifier([[0, 1], [0, 2], [5, 0], [6, 0]], ["a", "a", "b", "b"])
    >>> found = known.classify([[0, 1.5], [6, 0]])
    >>> found.names.tolist(), found.nearest.tolist()
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
        given = np.ones(len(raw)) if weights is None else np.asarray(weights, np.float64)
        # One thread: as many as there are processors would give sums in another order elsewhere.
        with threadpool_limits(1):
            self._scale = _scaling(self._options.scale, raw)
            known = self._scale(raw)
            # A tree has the exact distances of each pattern by itself, whatever comes with it.
            self._known = NearestNeighbors(algorithm="kd_tree").fit(known)
            self._shares = self._learn(known, codes, given)

    @property
    def length(self) -> int:
        """The length of a pattern."""
        return int(self._known.n_features_in_)

    @property
    def classes(self) -> tuple[str, ...]:
        """All that are known, in order of their names."""
        return tuple(self._names.tolist())

    def classify(self, patterns: npt.ArrayLike) -> Classified:
        """The classes of some patterns, each by itself."""
        raw = np.asarray(patterns, np.float64).reshape(-1, self.length)
        if not len(raw):
            none, texts = np.zeros(0), np.zeros(0, object)
            return Classified(texts, none, texts, none, none)
        with threadpool_limits(1):
            scaled = self._scale(raw)
            nearest = self._known.kneighbors(scaled, 1)[0][:, 0]
            shares = self._shares(scaled)
        return self._rank(shares, nearest)

    def _rank(self, shares: Numbers, nearest: Numbers) -> Classified:
        order = np.argsort(-shares, axis=1, kind="stable")
        every = np.arange(len(shares))
        first, second = shares[every, order[:, 0]], shares[every, order[:, 1]]
        names = self._names.astype(object)
        firsts, seconds = names[order[:, 0]], names[order[:, 1]]
        seconds[second == 0] = None
        if self._options.unknown is not None:
            far = nearest > self._options.unknown
            firsts[far] = seconds[far] = None
            first[far] = second[far] = np.nan
        return Classified(firsts, first, seconds, second, nearest)

    def _learn(self, known: Numbers, codes: Int64s, weights: Numbers) -> _Shares:
        options = self._options
        if options.method == "tree":
            return _tree(known, codes, weights, options)
        if options.method == "neighbours":
            count = min(options.neighbours, len(known))
            return lambda scaled: _vote(self._known.kneighbors(scaled, count), codes, weights)
        return _clusters(known, codes, weights, options.clusters)


def _check(patterns: Numbers, classes: Sequence[str], options: ClassifierOptions) -> None:
    if patterns.ndim != 2 or 0 in patterns.shape or not np.isfinite(patterns).all():
        raise MiningError(
            "the knowledge base has no patterns that can be learned",
            detail="a pattern is an array of numbers, at least one, without NULL, NaN and infinity",
        )
    if len(classes) != len(patterns):
        raise MiningError(f"there are {len(patterns)} patterns and {len(classes)} classes")
    if len(set(classes)) < 2:
        raise MiningError(
            f"the knowledge base has one class only, {next(iter(classes))!r}",
            hint="a pattern can be told from others: give rows of at least two classes",
        )
    if options.method == "tree" and len(patterns) < 2 * options.leaf:
        raise MiningError(
            f"{len(patterns)} patterns are too few for a tree with {options.leaf} in each leaf",
            hint="leaf => 1, or method => 'neighbours'",
            argument="leaf",
        )


def _scaling(scale: str, patterns: Numbers) -> _Shares:
    scaler: Any = {
        "none": FunctionTransformer,
        "standard": StandardScaler,
        "shares": lambda: Normalizer("l1"),
        "unit": lambda: Normalizer("l2"),
    }[scale]()
    transform: _Shares = scaler.fit(patterns).transform
    return transform


def _tree(known: Numbers, codes: Int64s, weights: Numbers, options: ClassifierOptions) -> _Shares:
    """The share of each class in the leaf; leaves of one row would be sure of everything."""
    tree = DecisionTreeClassifier(
        max_depth=options.depth, min_samples_leaf=options.leaf, random_state=0
    )
    shares: _Shares = tree.fit(known, codes, weights).predict_proba
    return shares


def _vote(found: tuple[Numbers, Int64s], codes: Int64s, weights: Numbers) -> Numbers:
    """The share of each class in the neighbours' weights, each divided by its distance.

    Where a neighbour is equal to the pattern only such neighbours count.
    """
    distances, rows = found
    equal = distances == 0
    votes = np.where(equal, 1.0, 0.0)
    apart = ~equal.any(axis=1)
    # Relative to the nearest one, so that no distance is too small to be divided by.
    votes[apart] = distances[apart, :1] / distances[apart]
    votes *= weights[rows]
    shares = np.zeros((len(rows), int(codes.max()) + 1))
    np.add.at(shares, (np.arange(len(rows))[:, None], codes[rows]), votes)
    return _parts(shares)


def _clusters(known: Numbers, codes: Int64s, weights: Numbers, count: int) -> _Shares:
    """The membership in classes, by the nearest of the centres of each.

    The patterns of each class are cut into clusters (k-means). The membership is that of fuzzy
    c-means with exponent 2: inverse to the square of the distance (Bezdek 1981).
    """
    centres: list[Numbers] = []
    for code in range(int(codes.max()) + 1):
        mine = known[codes == code]
        distinct = len(np.unique(mine, axis=0))
        means = KMeans(min(count, distinct), n_init=10, random_state=0)
        centres.append(means.fit(mine, sample_weight=weights[codes == code]).cluster_centers_)

    def shares(scaled: Numbers) -> Numbers:
        squares = np.stack([_nearest_square(scaled, mine) for mine in centres], axis=1)
        least = squares.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            near = np.where(squares == 0, 1.0, least / squares)
        return _parts(near)

    return shares


def _nearest_square(scaled: Numbers, centres: Numbers) -> Numbers:
    """The square of the distance to the nearest of the centres."""
    found = np.full(len(scaled), np.inf)
    for centre in centres:
        np.minimum(found, ((scaled - centre) ** 2).sum(axis=1), out=found)
    return found


def _parts(shares: Numbers) -> Numbers:
    """Each row divided by its sum."""
    total = shares.sum(axis=1, keepdims=True)
    parts: Numbers = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    return parts
