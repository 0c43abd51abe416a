"""Results as the queries of the hazardous-material application write them, from its physics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.upkeep.places import CATALOG_FILE
from nilometer_papers.idhm.boxes import Box, Packing, draw_boxes
from nilometer_papers.idhm.spectrum_model import burst_counts, expected_rates
from tests.console_at_work import ConsoleAtWork

_SECOND = 1_000_000
DETECTORS = {"north": "NaI", "south": "LaBr3"}
_STATED = [
    ("verdict", pa.string()),
    ("class", pa.string()),
    ("material", pa.string()),
    ("confidence", pa.float64()),
    ("lines", pa.string()),
]
_BURST = [("detector", pa.string()), ("box", pa.int64()), ("burst", pa.int32())]
SCHEMAS = {
    "belt": [("box", pa.int64()), ("place", pa.string())],
    "peaks": [
        *_BURST,
        ("energy", pa.float64()),
        ("area", pa.float64()),
        ("significance", pa.float64()),
        ("line", pa.string()),
    ],
    "verdicts": [
        *_BURST,
        ("kind", pa.string()),
        ("exposure", pa.float64()),
        *_STATED,
        ("counts", pa.list_(pa.float64())),
        ("matched", pa.list_(pa.float64())),
    ],
    "fused": [("box", pa.int64()), ("exposure", pa.float64()), *_STATED],
}
FERTILIZER = Box(7, (("ammonium nitrate", 2.0), ("cotton", 0.3)))


class WrittenBelt:
    """Writes what the queries would, as directed by a test."""

    def __init__(self, writers: dict[str, LogWriter]) -> None:
        self._writers = writers
        self._now = 1_800_000_000 * _SECOND

    def write(self, query: str, *rows: dict[str, Any]) -> None:
        """Results of a query, a second after the previous ones."""
        self._now += _SECOND
        schema = _schema(query)
        filled = [{TIME: self._now, **row} for row in rows]
        self._writers[query].append(pa.RecordBatch.from_pylist(filled, schema))

    def move(self, box: int, place: str) -> None:
        self.write("belt", {"box": box, "place": place})

    def burst(self, box: Box, number: int, names: dict[str, str] = DETECTORS, **said: Any) -> None:
        """The counts of detectors in this many one-second bursts, and what they conclude."""
        for name, kind in names.items():
            rates = expected_rates([box], kind)
            counts = burst_counts(rates, float(number), (1, box.number))[0]
            row = {"kind": kind, "exposure": float(number), "counts": counts.tolist()}
            row["matched"] = (rates[0] * number).tolist()
            where = {"detector": name, "box": box.number, "burst": number}
            self.write("verdicts", {**where, **row, **said})

    def peak(self, name: str, box: int, burst: int, energy: float, line: str | None) -> None:
        where = {"detector": name, "box": box, "burst": burst}
        peak = {"energy": energy, "area": 1234.0, "significance": 8.5, "line": line}
        self.write("peaks", {**where, **peak})

    def decide(self, box: int, exposure: float, verdict: str, **said: Any) -> None:
        self.write("fused", {"box": box, "exposure": exposure, "verdict": verdict, **said})


def harmless(number: int) -> Box:
    """A box without anything hazardous."""
    return draw_boxes(Packing(known=True, hazardous=0.0), 5, number, 1)[0]


@contextmanager
def written_belt(console: ConsoleAtWork) -> Iterator[WrittenBelt]:
    """The queries, without results yet."""
    with ExitStack() as stack:
        writers = {
            query: stack.enter_context(console.results(query, _schema(query))) for query in SCHEMAS
        }
        with SensorCatalog.open(console.folder / CATALOG_FILE) as catalog:
            for query in SCHEMAS:
                catalog.create_query(query, "SELECT 1", "append")
        yield WrittenBelt(writers)


def _schema(query: str) -> pa.Schema:
    return pa.schema([*SCHEMAS[query], (TIME, TIMESTAMP)])
