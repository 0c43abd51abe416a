"""STEAM section 5: a slow consumer makes a queue spill, and how queries share streams."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nilometer_papers.algorithms.steam.shared_streams import SharedStreams
from nilometer_papers.algorithms.steam.source import TimedSource
from nilometer_papers.algorithms.steam.spilling_queue import SpillingQueue
from nilometer_papers.algorithms.steam.stream_manager import StreamManager
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, mean, select, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.service import WrongResultsError, no_garbage_collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPILL: Final = "slow consumer"
SHARE: Final = "shared"
APART: Final = "apart"
COPIES, REFERENCES = "copies", "references"
QUERIES: Final = (1, 2, 4, 8, 16)
STREAMS: Final = 8
TUPLE_BYTES: Final = 100
REFERENCE_BYTES: Final = 16
"""The identifiers of a stream and of a tuple."""
BLOCK: Final = 1000
"""Rows that a reader of columns reads at once."""


def measure(setting: Setting) -> list[Row]:
    """A burst that a consumer cannot keep up with, then queries with and without shared streams."""
    tuples = setting.choose(40_000, 8_000, 1_000)
    rows = _spill(tuples, limit=tuples // 10)
    for queries in setting.progress.track(QUERIES, "queries"):
        for case in (SHARE, APART):
            rows += _share(case, queries, tuples // 20, setting.choose(3, 2, 1))
    return rows


def _spill(tuples: int, limit: int) -> list[Row]:
    """Two tuples arrive for each one taken, until the burst is over."""
    queue, taken, come = SpillingQueue(limit), 0, 0
    rows: list[Row] = []
    every = max(1, tuples // 40)
    while taken < tuples:
        for _ in range(2):
            if come < tuples:
                queue.put(StreamTuple(come, come % 50, 0, come))
                come += 1
        one = queue.take()
        if one is None or one.number != taken:
            raise WrongResultsError("a queue gave its tuples in another order")
        taken += 1
        if taken % every == 0:
            rows.append(_row(SPILL, "memory", taken, queue.in_memory))
            rows.append(_row(SPILL, "disk", taken, queue.on_disk))
    rows.append(_row(SPILL, "limit", 0, limit))
    rows.append(_row(SPILL, "limit", tuples, limit))
    rows.append(_row(SPILL, "most in memory", tuples, queue.max_in_memory))
    return rows


def _row(case: str, what: str, x: float, y: float, microseconds: float = 0.0) -> Row:
    return {"case": case, "what": what, "x": x, "y": y, "microseconds": microseconds}


def _share(case: str, queries: int, tuples: int, turns: int) -> list[Row]:
    """The most bytes that queues hold when all is read before anything is taken, and the time."""
    shared = case == SHARE
    rows = [_columnar(queries, tuples)] if shared else []
    for scheme in (COPIES, REFERENCES):
        times = []
        for _ in range(turns):
            held, spent = _run(scheme, queries, tuples, shared)
            times.append(spent)
        rows.append(_row(case, scheme, queries, held / 1000, min(times)))
    return rows


def _columnar(queries: int, tuples: int) -> Row:
    """Streams as columns, each stored once; a query has a position in each, and reads blocks."""
    columns = [
        pa.record_batch({name: pa.array(range(tuples)) for name in ("time", "key", "number")})
        for _ in range(STREAMS)
    ]
    positions, read = [[0] * STREAMS for _ in range(queries)], 0
    began = process_time()
    for own in positions:
        for stream, rows in enumerate(columns):
            while own[stream] < len(rows):
                block = rows.slice(own[stream], BLOCK)
                read += sum(len(column.to_numpy()) for column in block.columns) // 3
                own[stream] += len(block)
    spent = process_time() - began
    held = STREAMS * tuples * TUPLE_BYTES + queries * STREAMS * REFERENCE_BYTES
    return _row(SHARE, COLUMNAR, queries, held / 1000, 1e6 * spent / read)


def _run(scheme: str, queries: int, tuples: int, shared: bool) -> tuple[int, float]:
    pool = SharedStreams()
    manager = StreamManager(pool.make_queue) if scheme == REFERENCES else StreamManager()
    lines = STREAMS if shared else STREAMS * queries
    sources = [
        TimedSource([StreamTuple(n, n % 9, stream, n) for n in range(tuples)], lambda: tuples)
        for stream in range(lines)
    ]
    queues = [manager.create_streams_queue() for _ in range(queries)]
    for place, queue in enumerate(queues):
        for source in sources if shared else sources[place * STREAMS : (place + 1) * STREAMS]:
            manager.register(source, queue)
    with no_garbage_collection():
        began = process_time()
        while manager.poll():
            pass
        entries = sum(map(len, queues))
        for queue in queues:
            while queue.take() is not None:
                pass
        spent = process_time() - began
    if scheme == COPIES:
        return entries * TUPLE_BYTES, 1e6 * spent / entries
    return pool.max_tuples * TUPLE_BYTES + entries * REFERENCE_BYTES, 1e6 * spent / entries


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """On the left the queue that spills, then the bytes and the time of both schemes."""
    left, middle, right = figure.subplots(1, 3)
    spill = select(rows, case=SPILL)
    curves = [
        Curve(what, values(spill, "x", what=what), values(spill, "y", what=what), style)
        for what, style in (("memory", "-"), ("disk", "-"), ("limit", "--"))
    ]
    draw_curves(left, curves, Axis("tuples taken"), Axis("tuples"), SPILL)
    for axes, column, label in (
        (middle, "y", "kilobytes at most"),
        (right, "microseconds", "µs per tuple of a queue"),
    ):
        curves = [
            Curve(
                f"{scheme}, {case}",
                values(rows, "x", case=case, what=scheme),
                values(rows, column, case=case, what=scheme),
                "-" if case == SHARE else "--",
            )
            for scheme in (COPIES, REFERENCES, COLUMNAR)
            for case in ((SHARE,) if scheme == COLUMNAR else (SHARE, APART))
        ]
        draw_curves(axes, curves, Axis("queries"), Axis(label), "two schemes", markers=True)
    share_legend(figure, [left, middle])


def _keeps_limit(rows: Sequence[Row]) -> Outcome:
    limit = mean(rows, "y", case=SPILL, what="limit")
    largest = mean(rows, "y", case=SPILL, what="most in memory")
    disk = values(rows, "y", case=SPILL, what="disk")
    figures = f"at most {brief(largest)} of {brief(limit)} in memory, {brief(max(disk))} on disk"
    return Outcome(
        largest <= limit < max(disk) and disk[-1] == 0, f"{figures}, in the end {disk[-1]:g}"
    )


def _held(rows: Sequence[Row], case: str, scheme: str) -> list[float]:
    return values(rows, "y", case=case, what=scheme)


def _copies_multiply(rows: Sequence[Row]) -> Outcome:
    copies, references = (_held(rows, SHARE, one) for one in (COPIES, REFERENCES))
    queries = [float(one) for one in distinct(select(rows, case=SHARE), "x")]
    figures = (
        f"1 and {brief(queries[-1])} queries: copies {brief(copies[0])} and {brief(copies[-1])} "
        f"kB, references {brief(references[0])} and {brief(references[-1])} kB"
    )
    grows = copies[-1] / copies[0] == queries[-1] / queries[0]
    return Outcome(grows and references[-1] < copies[-1], figures)


def _optimal_apart(rows: Sequence[Row]) -> Outcome:
    copies, references = (_held(rows, APART, one) for one in (COPIES, REFERENCES))
    figures = f"copies {brief(copies[-1])} kB, references {brief(references[-1])} kB"
    return Outcome(all(a <= b for a, b in zip(copies, references, strict=True)), figures)


def _references_cost(rows: Sequence[Row]) -> Outcome:
    figures, holds = [], True
    for case in (SHARE, APART):
        one, other = (mean(rows, "microseconds", case=case, what=w) for w in (COPIES, REFERENCES))
        figures.append(f"{case}: {brief(one)} and {brief(other)} µs")
        holds = holds and other > one
    return Outcome(holds, "; ".join(figures))


def _log_is_cheaper(rows: Sequence[Row]) -> Outcome:
    last = select(rows, case=SHARE, x=QUERIES[-1])
    costs = {str(row["what"]): (float(row["y"]), float(row["microseconds"])) for row in last}
    ours = costs.pop(COLUMNAR)
    shown = ", ".join(f"{one} {brief(kb)} kB {brief(us)} µs" for one, (kb, us) in costs.items())
    holds = all(ours[0] < kb and ours[1] < us for kb, us in costs.values())
    return Outcome(holds, f"columnar {brief(ours[0])} kB {brief(ours[1])} µs; {shown}")


CLAIMS = (
    Claim(
        "a queue that overflows keeps to its memory, the tail goes to disk, and nothing is lost",
        "in memory ≤ limit < on disk at some time, 0 on disk in the end, and the order of arrival",
        _keeps_limit,
    ),
    Claim(
        "copies need Q * S in the worst case; references scale with shared streams",
        "kilobytes(copies) grow as the queries do, and kilobytes(references) < kilobytes(copies) "
        "for the most queries",
        _copies_multiply,
    ),
    Claim(
        "copies are optimal in memory where queries share little or nothing",
        "kilobytes(copies) ≤ kilobytes(references) for every number of queries",
        _optimal_apart,
    ),
    Claim(
        "references take more time: a tuple is accessed twice",
        "µs(references) > µs(copies) with streams that are shared, and that are not",
        _references_cost,
    ),
    Claim(
        "ours: readers with positions in one log of columns take less time and memory than both",
        "µs and kilobytes(columnar) < those of both schemes for the most queries that share",
        _log_is_cheaper,
    ),
)

EXPERIMENT = Experiment(
    "steam-stream-manager",
    "STEAM",
    "Section 5",
    "a queue that spills, and two schemes for queries that share streams",
    measure,
    draw,
    CLAIMS,
    "the paper measures nothing: all figures are ours. A burst of 40 000 tuples of which two come "
    f"for each that is taken, a tenth of them fit into memory; {STREAMS} streams of 2000 tuples "
    "each, which all queries share (scheme 1: copies, scheme 2: references) or of which each has "
    "its own, read before any tuple is taken. Times are CPU times; bytes are counted, not "
    f"measured: {TUPLE_BYTES} a tuple, {REFERENCE_BYTES} a reference or a position. With --quick a "
    "fifth, with --smoke a fortieth of the tuples",
)
