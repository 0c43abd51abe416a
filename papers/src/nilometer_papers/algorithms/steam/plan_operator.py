"""The interface of plan operators: Open, GetNext, Close (STEAM sections 4 and 6.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

from nilometer_papers.algorithms.m_tuple import MTuple


class End(Enum):
    """What an operator returns when all streams below it have ended."""

    END = "END"


END: Final = End.END

Pulled: TypeAlias = MTuple | End | None
"""A tuple; None, the paper's NULL tuple, if there is none now; END if there will be no more."""


class PlanOperator(ABC):
    """An operator that is asked for its next tuple, and asks its children for theirs.

    Nobody else schedules it: it has no queue, and it never waits.
    """

    def __init__(self, *children: PlanOperator) -> None:
        self.children = children
        self.emitted = 0
        """How many tuples it has returned."""
        self.nulls = 0
        """How often it had none, and returned control."""

    def open(self) -> None:
        """Open, children first."""
        for child in self.children:
            child.open()

    def get_next(self) -> Pulled:
        """The next tuple; None if all inputs are empty, END if all have ended."""
        pulled = self.pull()
        if pulled is None:
            self.nulls += 1
        elif pulled is not END:
            self.emitted += 1
        return pulled

    @abstractmethod
    def pull(self) -> Pulled:
        """The value that GetNext returns."""

    def close(self) -> None:
        """Close, children last."""
        for child in self.children:
            child.close()

    @property
    @abstractmethod
    def newest(self) -> Sequence[int]:
        """The vector V: the largest timestamp that has come from each source below."""


def below(root: PlanOperator) -> list[PlanOperator]:
    """An operator and all below it, children first."""
    return [*(one for child in root.children for one in below(child)), root]
