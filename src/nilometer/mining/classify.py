"""CLASSIFY in FROM: the class of a pattern, learned from a knowledge base."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from nilometer.mining.classifier_options import METHODS, SCALES, ClassifierOptions
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    MiningError,
    Numbers,
    OptionArgument,
    OptionKind,
    ResultColumn,
    RowFunction,
    RowResults,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
)
from nilometer.mining.vectors import as_matrix, as_numbers

if TYPE_CHECKING:
    from nilometer.mining.pattern_classifier import PatternClassifier


class Classifying:
    """One model for all rows."""

    def __init__(self, classifier: PatternClassifier) -> None:
        self._classifier = classifier

    def look(self, columns: Columns) -> RowResults:
        patterns, usable = as_matrix(columns["pattern"], self._classifier.length)
        classified = self._classifier.classify(patterns[usable])
        places = pa.array(np.where(usable, np.cumsum(usable) - 1, 0), mask=~usable)
        results = (
            pa.array(classified.names, pa.string()),
            pa.array(classified.confidence, from_pandas=True),
            pa.array(classified.seconds, pa.string()),
            pa.array(classified.second_confidence, from_pandas=True),
            pa.array(classified.nearest, from_pandas=True),
        )
        return RowResults(np.arange(len(usable)), tuple(one.take(places) for one in results))


def _learn(rows: pa.RecordBatch, options: ClassifierOptions) -> PatternClassifier:
    """Learn the model of a knowledge base; raises an error if it is unusable."""
    from nilometer.mining.pattern_classifier import PatternClassifier  # noqa: PLC0415  slow to load

    if not rows.num_rows:
        raise MiningError(
            "the knowledge base is empty",
            detail="the table of knowledge => (…) has no rows",
            hint="insert patterns of known classes before the query is started",
            argument="knowledge",
        )
    patterns, usable = as_matrix(rows["c0"])
    if not usable.all():
        row = int(np.flatnonzero(~usable)[0])
        raise MiningError(
            "the knowledge base has patterns that do not fit together",
            detail=f"the first has {patterns.shape[1]} numbers; row {row + 1} has another length, "
            "or a NULL, NaN or infinity",
            hint="leave such rows out with WHERE",
            argument="knowledge",
        )
    if rows["c1"].null_count:
        raise MiningError(
            "the knowledge base has patterns without a class",
            hint="leave such rows out with WHERE class IS NOT NULL",
            argument="knowledge",
        )
    weights = _weights(rows) if rows.num_columns > 2 else None
    return PatternClassifier(patterns, rows["c1"].cast(pa.string()).to_pylist(), weights, options)


def _weights(rows: pa.RecordBatch) -> Numbers:
    weights = as_numbers(rows["c2"])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise MiningError(
            "the knowledge base has a weight that is not a positive number", argument="knowledge"
        )
    return weights


class Classify:
    """Assigns a pattern to one of the classes of a knowledge base (STEAM section 7.3)."""

    name = "CLASSIFY"
    about = "the class of a pattern, with confidence, learned from a knowledge base"
    columns = (
        ColumnArgument(
            "pattern",
            Takes.NUMBERS,
            "the pattern; results are NULL where it is NULL, has another length than those of the "
            "knowledge base, or a NULL, NaN or infinity",
        ),
    )
    options = (
        OptionArgument(
            "method",
            OptionKind.TEXT,
            "tree: a decision tree; neighbours: the vote of the nearest patterns; clusters: the "
            "nearest of the centres of each class",
            default="neighbours",
            choices=METHODS,
        ),
        OptionArgument(
            "scale",
            OptionKind.TEXT,
            "what is done to patterns before they are compared; standard: each place to mean 0 "
            "and deviation 1 in the knowledge base; shares: each pattern to the sum 1 of absolute "
            "values; unit: each to the length 1",
            default="none",
            choices=SCALES,
        ),
        OptionArgument(
            "neighbours", OptionKind.INTEGER, "how many neighbours vote", default=5, minimum=1
        ),
        OptionArgument("depth", OptionKind.INTEGER, "the maximum depth of the tree", minimum=1),
        OptionArgument(
            "leaf", OptionKind.INTEGER, "the fewest patterns in a leaf of the tree", 5, minimum=1
        ),
        OptionArgument("clusters", OptionKind.INTEGER, "the clusters of each class", 4, minimum=1),
        OptionArgument(
            "unknown",
            OptionKind.NUMBER,
            "the class is NULL if no known pattern is as near as this, in the scale chosen",
            minimum=0,
        ),
    )
    tables = (
        TableArgument(
            "knowledge",
            (
                ColumnArgument("pattern", Takes.NUMBERS, "a known pattern"),
                ColumnArgument("class", Takes.PLAIN, "its class"),
                ColumnArgument("weight", Takes.NUMBER, "how much it counts; 1 if left out", False),
            ),
            "patterns of known classes",
        ),
    )
    window = WindowUse.NONE
    needs = ("sklearn",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        return (
            ResultColumn("class", pa.string()),
            ResultColumn("confidence", pa.float64()),
            ResultColumn("second", pa.string()),
            ResultColumn("second_confidence", pa.float64()),
            ResultColumn("nearest", pa.float64()),
        )

    def row_worker(self, call: CheckedCall, tables: Tables) -> Classifying:
        options = ClassifierOptions(
            **{one.name: call.options[one.name] for one in fields(ClassifierOptions)}
        )
        return Classifying(_learn(tables["knowledge"], options))


FUNCTION: Final[RowFunction] = Classify()
