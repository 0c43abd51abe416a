"""Families and materials: CLASSIFY over the knowledge base, as the application's queries do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.mining.classify import FUNCTION
from nilometer.mining.table_function import CheckedCall, RowWorker
from nilometer_papers.idhm.decision import suspicions
from nilometer_papers.idhm.knowledge import numbered
from nilometer_papers.idhm.materials import Family

METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "neighbours": {"neighbours": 15},
    "tree": {"leaf": 10},
    "clusters": {"clusters": 200},
}
"""The options of CLASSIFY, by its method."""


def classifier(method: str, knowledge: pa.Table) -> RowWorker:
    """CLASSIFY by families, with rows of the knowledge base."""
    return _worker(knowledge, "family", {"method": method, **METHODS[method]})


def material_classifier(knowledge: pa.Table) -> RowWorker:
    """CLASSIFY by hazardous materials, with rows of the knowledge base."""
    hazardous = knowledge.filter(pc.not_equal(knowledge["family"], Family.NONE.value))
    return _worker(hazardous, "material", {"neighbours": 5})


def _worker(knowledge: pa.Table, label: str, chosen: Mapping[str, Any]) -> RowWorker:
    options = {option.name: option.default for option in FUNCTION.options}
    table = numbered(knowledge.select(["pattern", label]))
    call = CheckedCall({"pattern": table.schema.field(0).type}, {**options, **chosen})
    return FUNCTION.row_worker(call, {"knowledge": table})


def find_suspicions(worker: RowWorker, patterns: pa.Array) -> npt.NDArray[np.float64]:
    """The likelihood that each box contains something hazardous, by its pattern."""
    first, confidence, second, second_confidence, _ = worker.look({"pattern": patterns}).columns
    return suspicions(
        first.to_numpy(zero_copy_only=False),
        confidence.to_numpy(zero_copy_only=False),
        second.to_numpy(zero_copy_only=False),
        second_confidence.to_numpy(zero_copy_only=False),
    )
