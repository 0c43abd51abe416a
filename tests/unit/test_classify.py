"""CLASSIFY against scikit-learn called by hand, and against what the data were made of."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.tree import DecisionTreeClassifier

from nilometer.mining.classifier_options import METHODS, SCALES, ClassifierOptions
from nilometer.mining.classify import FUNCTION
from nilometer.mining.pattern_classifier import PatternClassifier
from nilometer.mining.registry import find_function
from nilometer.mining.table_function import CheckedCall, MiningError, RowWorker

LISTS = pa.list_(pa.float64())
NAMES = ("iron", "sugar", "water")


def draw(rows: int, seed: int, apart: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Patterns of three classes around two middles each, and the numbers of the classes."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(0, apart, (3, 2, 6))
    codes, parts = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    return middles[codes, parts] + rng.normal(0, 1, (rows, 6)), codes


def names_of(codes: np.ndarray) -> list[str]:
    return [NAMES[code] for code in codes]


def call(**options: Any) -> CheckedCall:
    defaults = {one.name: one.default for one in FUNCTION.options}
    return CheckedCall({"pattern": LISTS}, {**defaults, **options}, None, {"knowledge": (LISTS,)})


def worker(knowledge: list[tuple[Any, ...]], **options: Any) -> RowWorker:
    columns = list(zip(*knowledge, strict=True)) or [[], []]
    kinds = (LISTS, pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=False)]
    names = [f"c{i}" for i in range(len(arrays))]
    tables = {"knowledge": pa.RecordBatch.from_arrays(arrays, names=names)}
    return FUNCTION.row_worker(call(**options), tables)


def look(one: RowWorker, patterns: list[Any]) -> list[tuple[Any, ...]]:
    result = one.look({"pattern": pa.array(patterns, LISTS)})
    assert result.rows.tolist() == list(range(len(patterns)))
    return list(zip(*(column.to_pylist() for column in result.columns), strict=True))


def by_hand(scale: str, known: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if scale == "standard":
        scaler = StandardScaler().fit(known)
        return scaler.transform(known), scaler.transform(new)
    if scale in ("shares", "unit"):
        norm = "l1" if scale == "shares" else "l2"
        return normalize(known, norm), normalize(new, norm)
    return known, new


def check(classes: Any, shares: np.ndarray) -> None:
    """The classes are those of the largest shares, and of the second largest."""
    ranked = np.sort(shares, axis=1)
    np.testing.assert_allclose(classes.confidence, ranked[:, -1], atol=1e-9)
    np.testing.assert_allclose(classes.second_confidence, ranked[:, -2], atol=1e-9)
    for row, (name, second) in enumerate(zip(classes.names, classes.seconds, strict=True)):
        assert shares[row, NAMES.index(name)] == pytest.approx(ranked[row, -1])
        if second is None:
            assert ranked[row, -2] == 0
        else:
            assert second != name
            assert shares[row, NAMES.index(second)] == pytest.approx(ranked[row, -2])


@pytest.mark.parametrize("scale", SCALES)
def test_the_tree_is_scikit_learns(scale: str) -> None:
    (known, codes), (new, _) = draw(300, 1), draw(100, 2)
    options = ClassifierOptions(method="tree", scale=scale, depth=4, leaf=7)
    classes = PatternClassifier(known, names_of(codes), options=options).classify(new)
    scaled, asked = by_hand(scale, known, new)
    tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=7, random_state=0)
    in_leaf = tree.fit(scaled, codes).predict_proba(asked)
    size = np.array([(tree.apply(scaled) == leaf).sum() for leaf in tree.apply(asked)])[:, None]
    check(classes, (in_leaf * size + 2 * np.bincount(codes) / 300) / (size + 2))


@pytest.mark.parametrize("scale", SCALES)
def test_the_neighbours_are_scikit_learns(scale: str) -> None:
    (known, codes), (new, _) = draw(300, 3), draw(100, 4)
    new[:10] = known[:10]
    options = ClassifierOptions(method="neighbours", scale=scale, neighbours=9)
    classes = PatternClassifier(known, names_of(codes), options=options).classify(new)
    scaled, asked = by_hand(scale, known, new)
    library = KNeighborsClassifier(9, weights="distance", algorithm="brute").fit(scaled, codes)
    shares = library.predict_proba(asked)
    if scale == "none":  # else rounding decides which distances are 0
        check(classes, shares)
    check_all_but_the_known = slice(10, None)
    np.testing.assert_allclose(
        classes.confidence[check_all_but_the_known],
        shares.max(axis=1)[check_all_but_the_known],
        atol=1e-6,
    )
    apart = np.sqrt(((asked[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2)).min(axis=1)
    np.testing.assert_allclose(classes.nearest, apart, atol=1e-9)


def test_clusters_are_scikit_learns_and_fall_at_the_best_of_all_rates() -> None:
    (known, codes), (new, _) = draw(300, 5), draw(100, 6)
    options = ClassifierOptions(method="clusters", clusters=2)
    classes = PatternClassifier(known, names_of(codes), options=options).classify(new)
    of_known, of_new = np.zeros((300, 3)), np.zeros((100, 3))
    for code in range(3):
        means = KMeans(2, n_init=10, random_state=0).fit(known[codes == code])
        of_known[:, code] = means.transform(known).min(axis=1) ** 2
        of_new[:, code] = means.transform(new).min(axis=1) ** 2
    rates = np.geomspace(1e-3, 10, 4000)
    likelihoods = [
        np.log(softmax(-rate * of_known, axis=1)[np.arange(300), codes]).mean() for rate in rates
    ]
    shares = softmax(-rates[np.argmax(likelihoods)] * of_new, axis=1)
    np.testing.assert_allclose(classes.confidence, shares.max(axis=1), atol=2e-3)
    assert classes.names.tolist() == names_of(shares.argmax(axis=1))


@pytest.mark.parametrize("method", METHODS)
def test_patterns_it_has_not_seen_are_told_apart_and_confidence_means_something(
    method: str,
) -> None:
    (known, codes), (new, true) = draw(900, 7, apart=1.5), draw(900, 8, apart=1.5)
    classes = PatternClassifier(
        known, names_of(codes), options=ClassifierOptions(method=method, neighbours=15)
    ).classify(new)
    right = np.array(names_of(true)) == classes.names
    assert right.mean() > {"tree": 0.8, "neighbours": 0.89, "clusters": 0.89}[method]
    assert abs(right.mean() - classes.confidence.mean()) < 0.06
    sure = classes.confidence >= np.median(classes.confidence)
    assert right[sure].mean() > right[~sure].mean()
    assert (classes.confidence >= 1 / 3).all()
    assert (classes.confidence <= 1).all()
    assert (classes.second_confidence <= classes.confidence).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", SCALES)
def test_each_pattern_is_seen_by_itself(method: str, scale: str) -> None:
    known, codes = draw(60, 9)
    rows = list(zip(known.tolist(), names_of(codes), strict=True))
    patterns = [*draw(38, 10)[0].tolist(), None, [1.0]]
    one, other = (worker(rows, method=method, scale=scale) for _ in range(2))
    at_once = look(one, patterns)
    for step in (1, 7, 39):
        bounds = [*range(0, len(patterns), step), len(patterns)]
        parts = [look(other, patterns[begin:end]) for begin, end in pairwise(bounds)]
        assert [row for part in parts for row in part] == at_once


extremes = st.sampled_from([0.0, -0.0, 1.0, 1e-320, 1e30, -1e37, 1e39, 1e200, 1.7e308, -1.7e308])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", SCALES)
def test_no_number_is_an_error(method: str, scale: str) -> None:
    one = worker(KNOWLEDGE, method=method, scale=scale, leaf=1)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.lists(extremes, min_size=2, max_size=2), max_size=3))
    def check_patterns(patterns: list[list[float]]) -> None:
        for name, confidence, _, second, nearest in look(one, patterns):
            assert (name is None) == (confidence is None) == (nearest is None)
            assert name is None or 0 <= second <= confidence <= 1

    check_patterns()


KNOWLEDGE = [([0.0, 1.0], "a"), ([0.0, 2.0], "a"), ([5.0, 0.0], "b"), ([6.0, 0.0], "b")]
NULLS = (None, None, None, None, None)


def test_patterns_that_cannot_be_used_have_no_class() -> None:
    unusable = [None, [1.0], [1.0, 2.0, 3.0], [1.0, None], [1.0, np.nan], [np.inf, 0.0], []]
    answers = look(worker(KNOWLEDGE), [*unusable, [6.0, 0.0], None])
    assert answers == [*[NULLS] * 7, ("b", 1.0, None, 0.0, 0.0), NULLS]
    assert look(worker(KNOWLEDGE), []) == []
    assert look(worker(KNOWLEDGE), [None]) == [NULLS]


def test_what_is_far_from_all_that_is_known_has_no_class() -> None:
    near, far = look(worker(KNOWLEDGE, unknown=1.0), [[0.0, 3.0], [0.0, 3.01]])
    assert near[0] == "a"
    assert near[4] == 1.0
    assert far[:4] == (None, None, None, None)
    assert far[4] == pytest.approx(1.01)


def test_weights_count() -> None:
    rows = [([0.0], "a", 1.0), ([2.0], "b", 3.0)]
    assert look(worker(rows), [[1.0]]) == [("b", 0.75, "a", 0.25, 1.0)]
    (first, *_), (*_, last) = look(worker(rows, method="tree", leaf=1), [[0.0], [2.0]])
    assert (first, last) == ("a", 0.0)


def test_equal_patterns_of_several_classes_share() -> None:
    rows = [([0.0], "b"), ([0.0], "a"), ([0.0], "b"), ([9.0], "a")]
    ((name, confidence, second, other, nearest),) = look(worker(rows), [[0.0]])
    assert (name, second, nearest) == ("b", "a", 0.0)
    assert (confidence, other) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert look(worker(rows, method="clusters"), [[0.0]])[0][:4] == ("a", 0.5, "b", 0.5)


@pytest.mark.parametrize(
    ("knowledge", "options", "message"),
    [
        ([], {}, "the knowledge base is empty"),
        ([([1.0], "a"), ([2.0], "a")], {}, "the knowledge base has one class only, 'a'"),
        ([([1.0], "a"), ([1.0, 2.0], "b")], {}, "patterns that do not fit together"),
        ([([1.0], "a"), (None, "b")], {}, "row 2 has another length, or a NULL"),
        ([([1.0], "a"), ([np.nan], "b")], {}, "patterns that do not fit together"),
        ([([], "a"), ([], "b")], {}, "no patterns that can be learned"),
        ([([1.0], "a"), ([2.0], None)], {}, "patterns without a class"),
        ([([1.0], "a", 1.0), ([2.0], "b", -1.0)], {}, "a weight that is not a positive number"),
        (KNOWLEDGE, {"method": "tree"}, "4 patterns are too few for a tree with 5 in each leaf"),
    ],
)
def test_a_knowledge_base_that_teaches_nothing_is_refused(
    knowledge: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(MiningError) as refusal:
        worker(knowledge, **options)
    assert message in str(refusal.value)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_few_patterns_need_no_more_neighbours_or_clusters_than_there_are() -> None:
    for method in METHODS:
        answers = look(worker(KNOWLEDGE, method=method, neighbours=50, leaf=1), [[0.0, 1.0]])
        assert answers[0][0] == "a"


def test_the_columns_are_those_that_were_announced() -> None:
    announced = find_function("CLASSIFY").results(call())
    assert [one.name for one in announced] == [
        "class",
        "confidence",
        "second",
        "second_confidence",
        "nearest",
    ]
    for patterns in ([], [[0.0, 1.0], None]):
        result = worker(KNOWLEDGE).look({"pattern": pa.array(patterns, LISTS)})
        assert [column.type for column in result.columns] == [one.kind for one in announced]
