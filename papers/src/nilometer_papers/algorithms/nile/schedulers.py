"""Which operator runs next: the input triggered scheduler, and that of TPA (Nile section 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from nilometer.model.time import FOREVER
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.stateful import Stateful


class InputTriggered:
    """ITA, and with negative tuples NTA: an operator runs when a tuple is in its queue.

    A scheduled operator processes its queue; one that must wait for the order of time stays
    scheduled.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        """A scheduler for the operators of a plan, from scans to the answer."""
        self._parents: Mapping[Operator, Operator] = {
            child: operator for operator in operators for child in operator.children
        }
        self._scheduled: deque[Operator] = deque()

    def schedule(self, operator: Operator) -> None:
        """Schedule an operator."""
        if operator not in self._scheduled:
            self._scheduled.append(operator)

    def step(self) -> bool:
        """Run the next operator that can; return whether there was one."""
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
        """Schedule the parent of an operator if it has received tuples; return whether it has."""
        if not operator.output:
            return False
        self.schedule(self._parents[operator])
        return True


class ExpiryTriggered(InputTriggered):
    """As in the paper, with a clock: an operator also runs when a tuple that it stores expires.

    The stateful ones expire and then probe (TPA), or the scans, in which W-Expire emits negative
    tuples (NTA).
    """

    def __init__(self, operators: Sequence[Operator], expiring: Sequence[Operator]) -> None:
        super().__init__(operators)
        self._expiring = expiring

    def next_end(self, after: int) -> int:
        """The next instant after `after` at which a stored tuple expires."""
        return min(
            (one.next_end for one in self._expiring if one.next_end > after), default=FOREVER
        )

    def expire(self, now: int) -> None:
        """Let the operators probe whose stored tuples expire now, lower ones first."""
        for operator in self._expiring:
            if operator.next_end <= now:
                operator.probe()
                self.pass_on(operator)


class SelfScheduling(InputTriggered):
    """STEAM's way (its section 6.1): no scheduler; the top asks for tuples, and so on down.

    An operator that is asked takes what its children have; one that has nothing returns control, so
    that another is asked.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        super().__init__(operators)
        self._top = operators[-1]

    def step(self) -> bool:
        return self._ask(self._top)

    def _ask(self, operator: Operator) -> bool:
        """Whether it, or an operator below it, had something to do.

        What waits for the order of time needs later tuples, so children are asked even if some of
        their tuples are left.
        """
        asked = [self._ask(child) for child in operator.children]
        return operator.step() or any(asked)


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
