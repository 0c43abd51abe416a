"""Select and Project as plan operators (STEAM section 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nilometer_papers.algorithms.m_tuple import MTuple
from nilometer_papers.algorithms.steam.plan_operator import End, PlanOperator, Pulled
from nilometer_papers.algorithms.stream_tuple import Result


class Select(PlanOperator):
    """Returns the tuples that satisfy a predicate.

    A tuple that does not is no reason for a NULL tuple: it pulls until its input has none.
    """

    def __init__(self, child: PlanOperator, predicate: Callable[[Result], bool]) -> None:
        super().__init__(child)
        self._predicate = predicate

    def pull(self) -> Pulled:
        while True:
            pulled = self.children[0].get_next()
            if pulled is None or isinstance(pulled, End) or self._predicate(pulled.members):
                return pulled

    @property
    def newest(self) -> Sequence[int]:
        return self.children[0].newest


class Project(PlanOperator):
    """Returns what a function makes of the members of each tuple."""

    def __init__(self, child: PlanOperator, function: Callable[[Result], Result]) -> None:
        super().__init__(child)
        self._function = function

    def pull(self) -> Pulled:
        pulled = self.children[0].get_next()
        if pulled is None or isinstance(pulled, End):
            return pulled
        return MTuple(pulled.time, pulled.key, pulled.last, self._function(pulled.members))

    @property
    def newest(self) -> Sequence[int]:
        return self.children[0].newest
