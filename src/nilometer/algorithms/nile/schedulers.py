"""Which operator runs next: the input triggered scheduler, and that of TPA (Nile section 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from nilometer.algorithms.nile.operator import Operator
from nilometer.algorithms.nile.stateful import Stateful


class InputTriggered:
    """ITA, and with negative tuples NTA: an operator runs when a tuple is in its queue.

    A scheduled operator works off its queue; one that has to wait for the order of time stays
    scheduled.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        """A scheduler for the operators of a plan, from scans to the answer."""
        self._parents: Mapping[Operator, Operator] = {
            child: operator for operator in operators for child in operator.children
        }
        self._scheduled: deque[Operator] = deque()

    def schedule(self, operator: Operator) -> None:
        """Let an operator run when it is its turn."""
        if operator not in self._scheduled:
            self._scheduled.append(operator)

    def step(self) -> bool:
        """Let the next operator run that can; whether there was one."""
        scheduled = self._scheduled
        for _ in range(len(scheduled)):
            operator = scheduled.popleft()
            done = operator.step()
            if operator.has_input:
                scheduled.append(operator)
            if done:
                self.pass_on(operator)
                return True
        return False

    def pass_on(self, operator: Operator) -> bool:
        """Schedule the parent of an operator if it has been given tuples; whether it has."""
        if not operator.output:
            return False
        self.schedule(self._parents[operator])
        return True


class TimeProbing(InputTriggered):
    """TPA: when no operator has input, the stateful ones probe for the time."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        super().__init__(operators)
        self._stateful = [one for one in operators if isinstance(one, Stateful)]
        self._has_probed = False

    def step(self) -> bool:
        if super().step():
            self._has_probed = False
            return True
        if self._has_probed:
            return False
        self._has_probed = True
        return self.probe()

    def probe(self) -> bool:
        """Let all stateful operators look for expired tuples, lower ones first."""
        for operator in self._stateful:
            operator.probe()
            self.pass_on(operator)
        return True
