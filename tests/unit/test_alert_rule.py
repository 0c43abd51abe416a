"""The machine of an alert's states, against a timeline that is computed instant by instant."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from nilometer.alerts.rule import AlertState, Group, Rule, Sign, advance

FIRES, BAND, CLEARS = Sign(True, False), Sign(False, False), Sign(False, True)
OK, PENDING, FIRING, NO_DATA = AlertState


@dataclass
class Naive:
    """What is so at every instant, by the words of the documentation."""

    rule: Rule
    last: int = 0
    holds_since: int | None = None
    is_firing: bool = False
    was_silent: bool = False

    def at(self, now: int, sign: Sign | None) -> AlertState:
        silence = self.rule.no_data
        if sign is not None:
            if self.was_silent:
                self.holds_since = None  # what held before its data ended holds no longer
            self.last = now
            if sign.clears:
                self.is_firing = False
            if not sign.fires:
                self.holds_since = None
            elif self.holds_since is None:
                self.holds_since = now
        is_silent = silence is not None and now - self.last >= silence
        if self.holds_since is not None and now - self.holds_since >= self.rule.hold:
            late = silence is not None and self.holds_since + self.rule.hold > self.last + silence
            self.is_firing = self.is_firing or not late
        self.was_silent = is_silent
        if is_silent:
            return NO_DATA
        if self.is_firing:
            return FIRING
        return PENDING if self.holds_since is not None else OK


def last_of(group: Group, rule: Rule, sign: Sign | None, now: int) -> Group:
    for after in advance(group, rule, sign, now):
        group = after
    return group


SIGNS = st.lists(st.sampled_from([None, None, FIRES, BAND, CLEARS]), max_size=60)
RULES = st.builds(Rule, st.integers(0, 5), st.one_of(st.none(), st.integers(1, 6)))


@given(SIGNS, RULES)
def test_it_is_what_the_timeline_says(signs: list[Sign | None], rule: Rule) -> None:
    group, naive = Group.new(0), Naive(rule)
    for now, sign in enumerate(signs):
        group = last_of(group, rule, sign, now)
        assert group.state is naive.at(now, sign), (now, sign)


@given(SIGNS, RULES, st.integers(0, 40))
def test_time_may_pass_in_one_step(signs: list[Sign | None], rule: Rule, later: int) -> None:
    group = Group.new(0)
    for now, sign in enumerate(signs):
        group = last_of(group, rule, sign, now)
    step_by_step, end = group, len(signs) + later
    for now in range(len(signs), end + 1):
        step_by_step = last_of(step_by_step, rule, None, now)
    assert last_of(group, rule, None, end).state is step_by_step.state


@given(SIGNS, RULES)
def test_a_group_is_kept_as_it_is(signs: list[Sign | None], rule: Rule) -> None:
    group = Group.new(0)
    for now, sign in enumerate(signs):
        group = last_of(group, rule, sign, now)
        assert Group.from_json(group.to_json()) == group


def test_it_fires_after_its_time_holds_within_the_band_and_clears() -> None:
    rule, group, states = Rule(hold=10), Group.new(0), []
    for now, sign in ((0, FIRES), (9, None), (10, None), (11, BAND), (12, FIRES), (13, CLEARS)):
        group = last_of(group, rule, sign, now)
        states.append(group.state)
    assert states == [PENDING, PENDING, FIRING, FIRING, FIRING, OK]


def test_what_fired_before_its_data_ended_fires_again_within_the_band() -> None:
    rule, group, states = Rule(no_data=5), Group.new(0), []
    for now, sign in ((0, FIRES), (5, None), (6, BAND), (12, None), (13, CLEARS)):
        group = last_of(group, rule, sign, now)
        states.append(group.state)
    assert states == [FIRING, NO_DATA, FIRING, NO_DATA, OK]
