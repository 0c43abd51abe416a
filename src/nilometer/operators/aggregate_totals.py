"""Totals of groups in every state, from which counts, sums and variances are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s, validity
from nilometer.kernels.exact_sums import Digits, add_digits, digits_of
from nilometer.kernels.gather import take
from nilometer.kernels.group_instants import GroupInstants
from nilometer.kernels.order_keys import order_keys
from nilometer.kernels.running_extremes import Extremes, running_extremes
from nilometer.operators.aggregate_arguments import ArgumentEvents, ArgumentRef, GroupedChanges

ROWS = "rows"
POWERS: Final = ("sum", "squares", "cubes", "fourths")
"""The names of sums of powers."""


def extreme_name(ref: ArgumentRef, *, largest: bool) -> str:
    """The total that is the smallest or largest value so far, as an integer of the same order."""
    return f"{ref.label} {'largest' if largest else 'smallest'}"


def _nulls(ref: ArgumentRef) -> str:
    return f"{ref.label} nulls"


@dataclass(frozen=True)
class Totals:
    """Totals in every state, by name; a missing name is zero."""

    size: int
    values: Mapping[str, Int64s]

    def __getitem__(self, name: str) -> Int64s:
        column = self.values.get(name)
        return np.zeros(self.size, np.int64) if column is None else column

    def count(self, ref: ArgumentRef) -> Int64s:
        """The number of values of an argument."""
        if ref.distinct:
            return self[f"{ref.label} values"]
        nulls = self.values.get(_nulls(ref))
        return self[ROWS] if nulls is None else self[ROWS] - nulls

    def digits(self, ref: ArgumentRef, what: str) -> dict[int, Int64s]:
        """The digits of a sum, by place."""
        prefix = f"{ref.label} {what} "
        return {
            int(name[len(prefix) :]): values
            for name, values in self.values.items()
            if name.startswith(prefix)
        }


class RunningTotals:
    """Named totals: the groups' totals before a period, and what its states add."""

    def __init__(self, instants: GroupInstants, initial: Mapping[str, Int64s]) -> None:
        self._instants = instants
        self._initial = initial
        self._changes: dict[str, Int64s] = {}
        self._extremes: dict[str, Int64s] = {}

    def add_counts(self, ref: ArgumentRef, events: ArgumentEvents, period: GroupedChanges) -> None:
        """Add what is needed to count the values of an argument."""
        if ref.distinct:
            self.add(f"{ref.label} values", events.states, events.diffs)
            return
        valid = validity(period.columns[ref.column])
        if valid is not None:
            self.add(_nulls(ref), period.states[~valid], period.diffs[~valid])

    def add(self, name: str, states: Int64s, changes: Int64s) -> None:
        """Add the amounts by which a total changes."""
        if len(states):
            self._changes[name] = self._instants.add_up(states, changes)

    def add_numbers(self, ref: ArgumentRef, events: ArgumentEvents, *, power: int) -> None:
        """Add numbers to be summed, with the sums of their powers up to this one."""
        finite = np.ones(len(events.states), np.bool_)
        if pat.is_floating(events.values.type):
            numbers = events.values.to_numpy()
            finite = np.isfinite(numbers)
            if not finite.all():
                self._add_some(f"{ref.label} nan", events, np.isnan(numbers))
                self._add_some(f"{ref.label} inf", events, np.isposinf(numbers))
                self._add_some(f"{ref.label} -inf", events, np.isneginf(numbers))
        states, diffs, values = events.states, events.diffs, events.values
        if not finite.all():
            places = np.flatnonzero(finite)
            states, diffs, values = states[places], diffs[places], take(values, places)
        digits = powers = digits_of(values)
        for place, name in enumerate(POWERS[:power]):
            powers = digits if place == 0 else powers.times(digits)
            self._add_digits(f"{ref.label} {name}", powers, diffs, states)

    def add_pairs(self, ref: ArgumentRef, events: ArgumentEvents) -> None:
        """Add pairs of doubles to be summed, with the sum of their products."""
        one, other = events.values.flatten()
        finite = np.isfinite(one.to_numpy()) & np.isfinite(other.to_numpy())
        self._add_some(f"{ref.label} nan", events, ~finite)
        places = np.flatnonzero(finite)
        first, second = (digits_of(take(values, places)) for values in (one, other))
        by_name = {"first": first, "second": second, "product": first.times(second)}
        for name, digits in by_name.items():
            self._add_digits(
                f"{ref.label} {name}", digits, events.diffs[places], events.states[places]
            )

    def add_extreme(self, ref: ArgumentRef, events: ArgumentEvents, *, largest: bool) -> None:
        """Add values, none of them ever removed, of which the smallest or largest is needed."""
        name = extreme_name(ref, largest=largest)
        none_yet = np.zeros(len(self._instants.firsts), np.int64)
        counts = self._initial.get(ROWS, none_yet) - self._initial.get(_nulls(ref), none_yet)
        before = Extremes(self._initial.get(name, none_yet), counts > 0)
        keys = order_keys(events.values)
        self._extremes[name] = running_extremes(
            self._instants, events.states, keys, before, largest=largest
        )

    def _add_some(self, name: str, events: ArgumentEvents, chosen: Bools) -> None:
        self.add(name, events.states[chosen], events.diffs[chosen])

    def _add_digits(self, prefix: str, digits: Digits, diffs: Int64s, states: Int64s) -> None:
        for place, sums in add_digits(digits, diffs, states, len(self._instants)).items():
            self._changes[f"{prefix} {place}"] = sums

    def totals(self) -> Totals:
        """Return all totals in every state."""
        none_yet = np.zeros(len(self._instants.firsts), np.int64)
        values = {name: value[self._instants.groups] for name, value in self._initial.items()}
        values |= self._extremes
        for name, changes in self._changes.items():
            values[name] = self._instants.running(changes, self._initial.get(name, none_yet))
        return Totals(len(self._instants), values)
