"""Any join algorithm of the papers as a plan operator: MW-join, BEW-join, Golab's and others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.steam.plan_operator import END, End, PlanOperator, Pulled
from nilometer_papers.algorithms.stream_tuple import Result


class MultiwayJoin(PlanOperator):
    """Pulls from its streams in turn; those without a tuple are skipped."""

    def __init__(self, children: Sequence[PlanOperator], algorithm: JoinAlgorithm) -> None:
        super().__init__(*children)
        self._algorithm = algorithm
        self._output: deque[Result] = deque()
        self._open = deque(range(len(children)))
        """The streams that have not ended, the one whose turn is next first."""

    @property
    def newest(self) -> Sequence[int]:
        return [time for child in self.children for time in child.newest]

    def pull(self) -> Pulled:
        empty = 0
        while not self._output:
            if not self._open:
                return END
            if empty >= len(self._open):
                return None
            stream = self._open[0]
            self._open.rotate(-1)
            pulled = self.children[stream].get_next()
            empty = empty + 1 if pulled is None else 0
            if isinstance(pulled, End):
                self._open.remove(stream)
                self._output.extend(self._algorithm.reach(stream, FOREVER))
            elif pulled is not None:
                (one,) = pulled.members
                self._output.extend(self._algorithm.process(one))
        return _joined(self._output.popleft())


def _joined(result: Result) -> MTuple:
    times = [one.time for one in result]
    return MTuple(min(times), result[0].key, max(times), result)
