"""The clock of arriving readings: jumps of the system's clock do not hold what comes later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nilometer.log.clock import SteadyClock, now_micros

SECOND = 1_000_000
HOUR = 3600 * SECOND


class Machine:
    """A machine whose clock is set by hand, while time goes on."""

    def __init__(self) -> None:
        self.true = 1_000 * HOUR
        self.off = 0
        self.said: list[str] = []
        self.clock = SteadyClock(lambda: self.true + self.off, lambda: self.true, self.said.append)

    def after(self, seconds: float) -> int:
        """What the clock says after so many seconds, having been looked at each second."""
        for _ in range(int(seconds)):
            self.true += SECOND
            now = self.clock()
        return now

    @property
    def error(self) -> int:
        return self.clock() - self.true


def test_it_is_the_systems_clock() -> None:
    assert abs(SteadyClock()() - now_micros()) < HOUR
    machine = Machine()
    machine.after(100)
    assert machine.error == 0
    machine.off = 3 * SECOND
    assert machine.after(1) == machine.true + machine.off
    assert machine.said == []


def test_a_jump_ahead_that_is_taken_back_holds_nothing() -> None:
    machine = Machine()
    machine.off = 50 * HOUR
    machine.after(50)
    assert machine.error == 0
    assert machine.said[0].startswith("the system clock has jumped ahead by 180000s")
    machine.off = 0
    machine.after(50)
    assert machine.error == 0
    assert machine.said[1:] == ["the system clock has jumped back to where it was"]


def test_a_jump_ahead_that_lasts_is_right() -> None:
    machine = Machine()
    machine.off = 50 * HOUR
    machine.after(59)
    assert machine.error == 0
    machine.after(5)
    assert machine.error == machine.off
    assert "has persisted" in machine.said[-1]


def test_after_a_jump_back_time_goes_on_and_is_right_again() -> None:
    machine = Machine()
    machine.off = -30 * SECOND
    before = machine.clock()
    times = [machine.after(1) for _ in range(70)]
    assert [before, *times] == sorted({before, *times})
    assert times[-1] == machine.true + machine.off
    assert len(machine.said) == 1
    assert "jumped back by 30s" in machine.said[0]


@given(st.lists(st.tuples(st.integers(-90, 90), st.integers(1, 200)), max_size=12))
def test_it_never_goes_back_nor_far_from_what_it_was(
    changes: list[tuple[int, int]],
) -> None:
    machine = Machine()
    last = machine.clock()
    for off, seconds in changes:
        machine.off = off * SECOND
        for _ in range(seconds):
            now = machine.after(1)
            assert now > last
            last = now
    machine.off = 0
    machine.after(400)
    assert machine.error == 0
