"""/alerts over HTTP, and who may make an alert."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.server.scopes import Scope, scope_needed
from nilometer.sql.statements import read_one
from tests.alerted import Rows, open_home, run, transitions
from tests.patience import wait_for
from tests.served import served


def test_alerts_and_their_history(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    home = open_home(tmp_path / "db")
    rows = Rows(home)
    run(home, "CREATE ALERT hot ON q WHEN v > 50 FOR 0 S CLEAR WHEN v < 45 PER (room)")
    rows.append((1, 60.0), (2, 10.0))
    wait_for(lambda: transitions(home, "hot") == [("firing", '{"room":1}')])
    with served(tmp_path / "server") as server:
        server.database.watched = home.alerts.statuses()
        server.database.alert_history = (  # type: ignore[method-assign]
            lambda name, *, limit: home.alerts.history(name, limit)
        )
        (alert,) = server.ask("GET", "/alerts", "read").json()
        assert (alert["name"], alert["on"], alert["state"]) == ("hot", "q", "firing")
        assert (alert["when"], alert["clear_when"], alert["per"]) == ("v > 50", "v < 45", ["room"])
        assert [(one["key"], one["state"], one["value"]) for one in alert["groups"]] == [
            ({"room": 1}, "firing", {"v": 60.0}),
            ({"room": 2}, "ok", {"v": 10.0}),
        ]
        assert server.ask("GET", "/alerts/HOT", "read").json() == alert
        (line,) = server.ask("GET", "/alerts/hot/history?limit=5", "read").json()
        assert (line["state"], line["previous"], line["key"]) == ("firing", "ok", {"room": 1})
        assert line["message"] == "hot (room 1) is firing: v > 50"
        assert server.ask("GET", "/alerts/cold", "read").status_code == 404
        assert server.ask("GET", "/alerts/cold/history", "read").status_code == 404
        assert server.ask("GET", "/alerts/hot/history?limit=0", "read").status_code == 422
        for path in ("/alerts", "/alerts/hot", "/alerts/hot/history"):
            assert server.ask("GET", path, None).status_code == 401
        assert 'nilometer_alert_firing{alert="hot"} 1.0' in server.ask("GET", "/metrics").text
    home.close()
    rows.close()


@pytest.mark.parametrize(
    ("statement", "scope"),
    [
        ("SHOW ALERTS", Scope.READ),
        ("DESCRIBE a", Scope.READ),
        ("CREATE ALERT a ON q WHEN v > 5", Scope.WRITE),
        ("ALTER ALERT a SET (silence = '1 h')", Scope.WRITE),
        ("DROP ALERT a", Scope.WRITE),
        ("ALTER TABLE t RENAME TO u", Scope.WRITE),
        ("ALTER VIEW v RENAME TO w", Scope.WRITE),
        ("ALTER STREAM s RENAME TO r", Scope.ADMIN),
        ("CREATE ALERT a ON q WHEN v > 5 DELIVER TO webhook WITH (url = 'x')", Scope.ADMIN),
    ],
)
def test_what_statements_need(statement: str, scope: Scope) -> None:
    assert scope_needed(read_one(statement)) is scope
