"""The lengths of streams and windows in Nile's experiments on response times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.nile.queries import Query
from nilometer_papers.experiments.nile.responses import Period, measure_responses
from nilometer_papers.experiments.nile.sales import synthetic_sales
from nilometer_papers.experiments.service import no_garbage_collection
from nilometer_papers.experiments.workloads.exponential import SECOND

PARAMETERS = (
    "synthetic SalesStreams with exponential times between arrivals (Nile section 6). The paper's "
    "Figure 9 with the queries is lost in the text we have: they are made up from what the text "
    "says of them. The join selectivity of Q4 and Q5 is the number of partners that a tuple finds "
    "on average. Windows: 10 minutes, the only one that the paper tells; of Q5 10 and 5 minutes. "
    "Measured over 30 minutes behind the first window (with --quick windows of 2 minutes, "
    "measured over 10; with --smoke 10 s and 15 s). The clock of a pipeline moves by measured CPU "
    "time; a change's response time is the clock when it comes out less the instant from which it "
    "holds. The columnar engine takes micro-batches of 0.5 s, measured over the last 2 minutes "
    "(with --quick 1 minute, with --smoke 8 s). The pipelines have a clock: TPA probes when a "
    "stored tuple expires, W-Expire of NTA puts out a negative tuple then, and nothing is stored "
    "above the top operator; that a row ends with its window is not counted, as nobody puts it "
    "out. Under ITA operators with two inputs wait for tuples of both. The machine is taken to be "
    "as many times slower than this one as makes TPA busy for 70 % of the time at the heaviest "
    "load"
)

BUSY: Final = 0.7


@dataclass(frozen=True)
class Lengths:
    """Windows, and the lengths measured (microseconds)."""

    window: int
    measured: int
    columnar: int

    @classmethod
    def of(cls, setting: Setting) -> Lengths:
        """The lengths for a profile."""
        window, measured, columnar = setting.choose((600, 1800, 120), (120, 600, 60), (10, 15, 8))
        return cls(window * SECOND, measured * SECOND, columnar * SECOND)

    @property
    def two_windows(self) -> tuple[int, int]:
        """The windows of Q5."""
        return self.window, self.window // 2


def measure_synthetic(
    setting: Setting, query: Query, per_second: float, slowed: float, /, **labels: str | float
) -> list[Row]:
    """Response times of a query over synthetic streams of a given rate, on a slower machine."""
    lengths = Lengths.of(setting)
    period = Period(lengths.window, lengths.columnar, slowed)
    return measure_responses(query, _arrivals(setting, query, per_second), period, **labels)


def slowed_to(setting: Setting, query: Query, per_second: float, busy: float = BUSY) -> float:
    """How many times slower a machine must be for TPA to be busy a given share of the time."""
    arrivals = _arrivals(setting, query, per_second)
    running = Pipeline(Output(query.plan()), Approach.TPA, scheduling=Scheduling.CLOCK)
    with no_garbage_collection():
        running.replay(arrivals)
    return busy * arrivals[-1].clock / running.worked


def _arrivals(setting: Setting, query: Query, per_second: float) -> list[Arrival]:
    lengths = Lengths.of(setting)
    seconds = (lengths.window + lengths.measured) / SECOND
    tuples = int(seconds * per_second * query.streams)
    return synthetic_sales(query.streams, per_second, query.items, tuples, setting.seed)
