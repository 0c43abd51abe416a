"""Some boxes in front of the demo's detectors, and the expected results of its queries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from nilometer_papers.idhm.classification import METHODS, classifier, find_suspicions
from nilometer_papers.idhm.decision import Limits
from nilometer_papers.idhm.declare import DETECTORS, Reach, statements
from nilometer_papers.idhm.knowledge import find_lines, line_rows, rows, template_rows
from nilometer_papers.idhm.knowledge_rows import background_table, of_kind
from nilometer_papers.idhm.site import SEED, box_of
from nilometer_papers.idhm.spectrum_model import burst_events

BOXES = (0, 1, 2)
BURSTS = 4
LIVE = 4.0
KNOWN = 60
KINDS = tuple(dict.fromkeys(DETECTORS.values()))
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_READING = pa.struct(
    [
        ("box", pa.int64()),
        ("burst", pa.int32()),
        ("live", pa.float64()),
        ("counts", pa.list_(pa.float64())),
    ]
)


def query(name: str) -> str:
    """The SELECT of a query of `pipeline.sql`."""
    texts = (re.match(rf"CREATE QUERY {name} AS\s+(.*)", s, re.S) for s in all_statements())
    return next(match[1] for match in texts if match is not None)


def all_statements() -> list[str]:
    return list(statements(Reach(8700, None, "a secret")))


def counts_of(detector: int, kind: str, box: int, burst: int) -> np.ndarray[Any, Any]:
    events = burst_events(box_of(box), kind, burst, LIVE, SEED + detector)
    return np.bincount(events.channels, minlength=1024).astype(np.float64)


def readings(detectors: Iterable[int]) -> pa.Table:
    """Rows of a sensor table with these detectors."""
    rows = [
        {
            "detector": detector,
            "kind": DETECTORS[str(detector)],
            "Reading": {
                "box": box,
                "burst": burst,
                "live": LIVE,
                "counts": counts_of(detector, DETECTORS[str(detector)], box, burst).tolist(),
            },
            "at": (100 * box + burst) * 1_000_000,
        }
        for box in BOXES
        for burst in range(1, BURSTS + 1)
        for detector in detectors
    ]
    fields = [("detector", pa.int32()), ("kind", pa.string()), ("Reading", _READING)]
    return pa.Table.from_pylist(rows, pa.schema([*fields, ("at", _TIMESTAMP)]))


def tables() -> dict[str, pa.Table]:
    """The static tables, with few known boxes."""
    return {
        "Lines": line_rows(),
        "Templates": pa.concat_tables(of_kind(kind, template_rows(kind)) for kind in KINDS),
        "Backgrounds": pa.concat_tables(of_kind(kind, background_table(kind)) for kind in KINDS),
        "Library": pa.concat_tables(of_kind(kind, rows(kind, KNOWN)) for kind in KINDS),
    }


def expected_verdicts() -> dict[tuple[int, int, int], tuple[float, str, float, str]]:
    """By detector, box and burst: exposure, verdict, suspicion and lines, from operators alone."""
    expected = {}
    for name, kind in DETECTORS.items():
        worker = classifier("neighbours", rows(kind, KNOWN))
        for box in BOXES:
            counts = [counts_of(int(name), kind, box, burst) for burst in range(1, BURSTS + 1)]
            exposures = LIVE * np.arange(1, BURSTS + 1)
            lines = find_lines(kind, np.cumsum(counts, axis=0), exposures)
            suspicion = find_suspicions(worker, lines["pattern"])
            seen = lines["significance"].to_numpy(zero_copy_only=False)
            verdicts = Limits().verdicts(suspicion, exposures, seen)
            decisions = zip(exposures, verdicts, suspicion, lines["lines"].to_pylist(), strict=True)
            for burst, (seconds, verdict, suspected, texts) in enumerate(decisions, 1):
                key = (int(name), box, burst)
                expected[key] = (float(seconds), str(verdict), float(suspected), texts)
    assert METHODS["neighbours"] == {"neighbours": 15}  # as in pipeline.sql
    return expected


def verdicts_of(answer: list[dict[str, Any]]) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """The same from rows of the query `verdicts`."""
    return {
        (row["detector"], row["box"], row["burst"]): (
            row["exposure"],
            row["verdict"],
            row["suspicion"],
            row["lines"],
        )
        for row in answer
    }
