"""What forms of alerts write is read back as what was filled in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.alerts.definition import AlertDefinition
from nilometer.alerts.kept import Notification
from nilometer.alerts.rule import AlertState, Rule
from nilometer.alerts.status import AlertStatus, GroupStatus
from nilometer.errors import InputError
from nilometer.server.console.alert_statements import AlertForm, create_alert, silence_alert
from nilometer.server.console.alerts_page import alert_groups, alert_head, alert_history, alert_rule
from nilometer.sql.ddl.nodes import AlterAlert, CreateAlert
from nilometer.sql.statements import read_one

NAMES = st.text("abz _-9äß'`\"\\", min_size=1, max_size=8).filter(
    lambda one: one.strip() == one and any(c.isalnum() for c in one) and "`" not in one
)


@given(NAMES, NAMES, st.lists(NAMES, max_size=3), st.text(max_size=8), st.booleans())
def test_names_and_texts_are_read_back(
    name: str, source: str, per: list[str], secret: str, is_delivered: bool
) -> None:
    options = {"url": "https://example.org/in", "secret": secret}
    form = AlertForm(name, source, "v > 50", "10 seconds", "v < 45", tuple(per), "1 minute")
    if is_delivered:
        form = AlertForm(
            name, source, "v > 50", "10 s", "v < 45", tuple(per), "", "webhook", options
        )
    statement = read_one(create_alert(form))
    assert isinstance(statement, CreateAlert)
    assert (statement.name, statement.source, [one for one, _ in statement.per]) == (
        name,
        source,
        per,
    )
    assert (statement.condition, statement.clear, statement.hold) == (
        "v > 50",
        "v < 45",
        10_000_000,
    )
    assert (statement.deliver is not None) is is_delivered
    if statement.deliver is not None and secret.strip():
        assert statement.deliver.options["secret"].value == secret.strip()


def test_only_the_condition_is_needed() -> None:
    assert create_alert(AlertForm("a", "q", " v > 5 ")) == "CREATE ALERT a ON q\nWHEN v > 5"
    silent = AlertForm("a", "q", "", per=("room",), no_data="1 minute")
    assert create_alert(silent) == "CREATE ALERT a ON q\nPER (room)\nNO DATA FOR '1 minute'"
    statement = read_one(create_alert(silent))
    assert isinstance(statement, CreateAlert)
    assert (statement.condition, statement.no_data) == (None, 60_000_000)
    for form in (
        AlertForm("", "q", "v"),
        AlertForm("a", "", "v"),
        AlertForm("a", "q", " "),
        AlertForm("a", "q", "", "1 minute", no_data="1 minute"),
        AlertForm("a", "q", "", clear="v < 5", no_data="1 minute"),
    ):
        with pytest.raises(InputError):
            create_alert(form)


@given(NAMES)
def test_silence_is_read_back(name: str) -> None:
    statement = read_one(silence_alert(name, "1 hour"))
    assert isinstance(statement, AlterAlert)
    assert (statement.name, statement.options["silence"].value) == (name, "1 hour")


def test_what_anybody_wrote_is_shown_as_text() -> None:
    evil = '{"room":"<script>alert(1)</script>"}'
    status = AlertStatus(
        AlertDefinition("<b>", "<i>", "v > 5", "v < 1", ("room",), Rule(10, 20)),
        0,
        (GroupStatus(evil, AlertState.FIRING, 5, '{"v":1.23456789}'),),
        9,
        "d",
        "<img>",
    )
    line = Notification(5, "firing", "ok", evil, None, "m", True)
    drawn = [alert_head(status), alert_rule(status), alert_groups(status), alert_history([line])]
    text = str([one.plain for one in drawn])
    assert "'room <script>alert(1)</script>'" in text  # a text, which is never read as HTML
    assert "v 1.23457" in text
    assert "Silenced" in text
    assert "fires when v > 5" in text


def test_what_tells_of_silence_says_so() -> None:
    one = AlertDefinition("a", "q", None, per=("room",), rule=Rule(no_data=60_000_000))
    drawn = str(alert_rule(AlertStatus(one, 0, (), None, None, None)).plain)
    assert "has no data when no rows arrive for 60s · for each room" in drawn
