"""Alerts: what they tell of rows and answers, once, also after a kill."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from nilometer.alerts import alert as alert_module
from nilometer.alerts import source as source_module
from nilometer.alerts.alert import Alert
from nilometer.alerts.definition import AlertDefinition, AlertLimits
from nilometer.alerts.kept import read_history
from nilometer.alerts.rule import AlertState, Rule
from nilometer.database import alerts
from nilometer.database.home import Home
from nilometer.errors import LimitError, NilometerError, SqlError, TimeLimitError, TooLargeError
from nilometer.log.registrations import registrations
from nilometer.past.sandbox import Sandbox
from nilometer.upkeep.check import check_database
from nilometer.upkeep.restore import restore_backup
from tests.alerted import Clock, Rows, open_home, run, transitions
from tests.delivery_receivers import Receiver, receiver
from tests.forks import FORKS
from tests.mosquitto import start_mosquitto
from tests.patience import wait_for
from tests.unit.alert_children import alert_until_killed


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = open_home(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(256 << 20)
    yield made
    made.close()


@pytest.fixture
def make(home: Home, sandbox: Sandbox) -> Iterator[Callable[..., Alert]]:
    """Makes alerts on q that look when they are told to; `clock` is theirs."""
    made: list[Alert] = []

    def make_alert(clock: Clock, condition: str | None = "v > 50", **said: Any) -> Alert:
        rule = Rule(said.pop("hold", 0), said.pop("no_data", None))
        definition = AlertDefinition("a", "q", condition, rule=rule, **said)
        location = f"{home.folder}/alert-{len(made)}"
        for one in made:
            one.close()
        made.append(Alert(definition, location, home.log_of, lambda: sandbox, clock=clock))
        made[-1].look()
        return made[-1]

    yield make_alert
    for one in made:
        one.close()


def state(alert: Alert) -> AlertState:
    return alert.groups[0].state


def lines(alert: Alert) -> list[tuple[str, str | None, bool]]:
    entries = read_history(alert._location, 10_000)
    return [(one.state, one.key, one.silenced) for one in reversed(entries)]


def test_from_its_creation_to_its_end_with_a_webhook(home: Home) -> None:
    rows = Rows(home)
    rows.append((1, 99.0))  # what came before is not looked at
    with receiver() as hook:
        create = (
            "CREATE ALERT Hot ON Q WHEN v > 50 CLEAR WHEN v < 45 PER (room) "
            f"DELIVER TO webhook WITH (url = '{hook.url}', secret = 's')"
        )
        assert run(home, create).message.startswith(
            "alert Hot created; delivery Hot_delivery created and started"
        )
        rows.append((1, 51.0), (2, 20.0))
        wait_for(lambda: posted(hook) == [("firing", "ok")])
        rows.append((1, 47.0))  # between the conditions
        rows.append((1, 44.0))
        wait_for(lambda: posted(hook) == [("firing", "ok"), ("ok", "firing")])
        first = hook.posts[0].content["rows"][0]
        assert hook.posts[0].content["query"] == "Hot"
        assert json.loads(first["key"]) == {"room": 1}
        assert json.loads(first["value"]) == {"v": 51.0}
        assert first["message"] == "Hot (room 1) is firing: v > 50"
        assert first["_id"]
        shown = run(home, "SHOW ALERTS").rows.to_pylist()  # type: ignore[union-attr]
        assert [(one["name"], one["on"], one["state"], one["groups"]) for one in shown] == [
            ("Hot", "q", "ok", 2)
        ]
        described = dict(
            zip(*run(home, "DESCRIBE hot").rows.to_pydict().values(), strict=True)  # type: ignore[union-attr]
        )
        assert (described["when"], described["clear when"]) == ("v > 50", "v < 45")
        assert described["delivery"] == "Hot_delivery"
        with pytest.raises(NilometerError, match="alert Hot watches q"):
            run(home, "DROP QUERY q")
        assert run(home, "DROP ALERT hot").message == "alert Hot dropped"
        assert (home.catalog.alerts(), home.catalog.deliveries()) == ([], [])
        assert not Path(home.logs, "hot").exists()
    rows.close()


def posted(hook: Receiver) -> list[tuple[str, str]]:
    return [(row["state"], row["previous"]) for post in hook.posts for row in post.content["rows"]]


def test_a_broker_gets_what_an_alert_tells(home: Home, tmp_path: Path) -> None:
    rows = Rows(home)
    with start_mosquitto(tmp_path / "broker") as broker:
        got: list[dict[str, Any]] = []
        client = Client(CallbackAPIVersion.VERSION2)
        client.on_connect = lambda *_: client.subscribe("plant/alerts", 1)
        client.on_message = lambda _, __, message: got.append(json.loads(message.payload))
        subscribed: list[bool] = []
        client.on_subscribe = lambda *_: subscribed.append(True)
        client.connect(broker.host, broker.port)
        client.loop_start()
        wait_for(lambda: subscribed)
        run(
            home,
            "CREATE ALERT hot ON q WHEN v > 50 DELIVER TO mqtt "
            f"WITH (url = '{broker.url}', topic = 'plant/alerts')",
        )
        rows.append((1, 51.0))
        rows.append((1, 49.0))
        wait_for(lambda: [one["state"] for one in got] == ["firing", "ok"])
        client.disconnect()
        client.loop_stop()
    rows.close()


def test_it_waits_for_its_time(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, hold=10_000_000)
    rows.append((1, 60.0))
    alert.look()
    clock.go_on(9.9)
    alert.look()
    assert (state(alert), lines(alert)) == (AlertState.PENDING, [])
    clock.go_on(0.2)
    alert.look()
    assert (state(alert), lines(alert)) == (AlertState.FIRING, [("firing", None, False)])
    rows.close()


def test_silence_of_a_stream_is_reported_and_its_end(
    home: Home, make: Callable[..., Alert]
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, no_data=60_000_000, per=("room",))
    rows.append((1, 60.0), (2, 10.0))
    alert.look()
    clock.go_on(59)
    rows.append((2, 10.0))
    alert.look()
    clock.go_on(2)
    alert.look()
    one = '{"room":1}'
    assert lines(alert) == [("firing", one, False), ("no data", one, False)]
    rows.append((1, 10.0))
    alert.look()
    assert lines(alert)[2:] == [("ok", one, False)]
    rows.close()


def test_silence_alone_can_be_reported(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, None, no_data=60_000_000)
    clock.go_on(61)
    alert.look()
    assert lines(alert) == [("no data", None, False)]  # nothing has ever come
    for _ in range(3):
        rows.append((1, 60.0), (2, 1e9))
        clock.go_on(59)
        alert.look()
    assert lines(alert)[1:] == [("ok", None, False)]
    clock.go_on(61)
    alert.look()
    assert lines(alert)[2:] == [("no data", None, False)]
    assert read_history(alert._location, 1)[0].message == "a has no data for 60s"
    rows.close()


def test_silence_alone_by_statement(home: Home) -> None:
    rows = Rows(home)
    run(home, "CREATE ALERT quiet ON q PER (room) NO DATA FOR '1 second'")
    rows.append((1, 5.0))
    wait_for(lambda: [one.state for one in home.alerts.history("quiet", 9)] == ["no data"])
    description = dict(zip(*run(home, "DESCRIBE quiet").rows.to_pydict().values(), strict=True))  # type: ignore[union-attr]
    assert (description["when"], description["for"], description["no data for"]) == (
        None,
        None,
        "1s",
    )
    assert home.alerts.needing("q", "v") == []
    assert home.alerts.needing("q", "room") == ["quiet"]
    rows.close()


def test_of_an_answer_only_what_holds_now_counts(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home, emits="changelog"), Clock()
    alert = make(clock, per=("room",))
    rows.change((1, 1, 60.0), (1, 1, 10.0), (1, 2, 5.0))
    alert.look()
    firing, ok = ("firing", '{"room":1}', False), ("ok", '{"room":1}', False)
    assert lines(alert) == [firing]
    rows.change((-1, 1, 10.0), (1, 1, 11.0))  # another row of the group still says so
    alert.look()
    assert lines(alert) == [firing]
    rows.change((-1, 1, 60.0))
    alert.look()
    assert lines(alert) == [firing, ok]
    rows.change((1, 1, 70.0))
    alert.look()
    rows.change((-1, 1, 70.0), (-1, 1, 11.0))  # the group is gone
    alert.look()
    assert lines(alert) == [firing, ok, firing, ok]
    rows.close()


def test_a_group_that_left_the_answer_has_no_data(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home, emits="changelog"), Clock()
    alert = make(clock, per=("room",), no_data=10_000_000)
    rows.change((1, 1, 60.0), (1, 2, 60.0))
    alert.look()
    rows.change((-1, 1, 60.0))
    alert.look()
    clock.go_on(9)
    rows.change((1, 2, 61.0))
    alert.look()
    clock.go_on(2)
    alert.look()
    assert lines(alert)[2:] == [("no data", '{"room":1}', False)]
    clock.go_on(9)
    alert.look()  # the whole answer stands still
    assert lines(alert)[3:] == [("no data", '{"room":2}', False)]
    rows.close()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(8))
def test_generated_rows_against_a_naive_reading(
    home: Home, make: Callable[..., Alert], seed: int
) -> None:
    """Rows of three rooms, looked at in parts of any size, with kills in between."""
    chance, clock = random.Random(seed), Clock()
    rows = Rows(home)
    said = {"clear": "v < 4 OR note = 'reset'", "per": ("room",)}
    alert = make(clock, "v > 6", **said)
    firing, expected = dict[int, bool](), list[tuple[str, str | None, bool]]()
    for _ in range(60):
        for _ in range(chance.randrange(4)):
            some = [
                (chance.randrange(3), chance.choice([None, *range(10)]))
                for _ in range(chance.randrange(1, 9))
            ]
            note = chance.choice(["reset", "x", None, "x"])
            rows.append(*some, note=note)
            for room, v in some:
                fires = v is not None and v > 6
                clears = not fires and ((v is not None and v < 4) or note == "reset")
                before = firing.get(room, False)
                firing[room] = fires or (before and not clears)
                if firing[room] is not before:
                    key = json.dumps({"room": room}, separators=(",", ":"))
                    expected.append(("firing" if firing[room] else "ok", key, False))
        clock.go_on(1)
        alert.look()
        if chance.random() < 0.2:
            alert = forget_and_go_on(alert)
    assert lines(alert) == expected
    alert.close()
    rows.close()


def test_what_is_much_is_looked_at_in_parts(
    home: Home, make: Callable[..., Alert], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock)
    monkeypatch.setattr(alert_module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(source_module, "ROWS", 10)
    for _ in range(5):
        rows.append(*([(1, 60.0), (1, 40.0)] * 5))
    alert.look()
    assert len(lines(alert)) == 10
    alert = forget_and_go_on(alert)
    for looks in range(2, 7):
        alert.look()
        assert len(lines(alert)) == min(50, 10 * looks)
    alert.close()
    rows.close()


def test_rows_that_are_gone_are_reported(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock)
    rows.append((1, 60.0), (1, 60.0))
    rows.drop_all()
    rows.append((1, 40.0), (1, 70.0))
    alert.look()
    assert alert.error == "2 rows were deleted before it could read them"
    assert [one for one, _, _ in lines(alert)] == ["firing"]
    rows.close()


def forget_and_go_on(alert: Alert) -> Alert:
    """The same alert as another process would go on with it after a kill."""
    assert alert._log is not None
    alert._log.close()
    alert._log = alert._source = None
    return Alert(
        alert.definition, alert._location, alert._source_of, alert._sandbox, clock=alert._clock
    )


@pytest.mark.parametrize("step", ["state", "log"])
def test_a_kill_between_two_steps_neither_forgets_nor_repeats(
    home: Home, make: Callable[..., Alert], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock)
    rows.append((1, 60.0))
    assert alert._log is not None
    log = alert._log

    def killed(*_: Any, **__: Any) -> None:
        raise OSError("killed")

    if step == "state":
        monkeypatch.setattr(log._storage, "write", killed)
    else:
        monkeypatch.setattr(log._writer, "append_frames", killed)
    with pytest.raises(OSError, match="killed"):
        alert.look()
    monkeypatch.undo()
    rows.append((1, 40.0))
    again = forget_and_go_on(alert)
    again.look()
    assert lines(again) == [("firing", None, False), ("ok", None, False)]
    again.look()
    assert len(lines(again)) == 2
    again.close()
    rows.close()


def test_a_full_disk_delays_what_is_reported(
    home: Home, make: Callable[..., Alert], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock)
    rows.append((1, 60.0))
    assert alert._log is not None

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(alert._log._storage, "write", full)
    for _ in range(3):
        with pytest.raises(OSError, match="no space"):
            alert.look()
    monkeypatch.undo()
    alert.look()
    assert lines(alert) == [("firing", None, False)]
    rows.close()


def test_what_is_silenced_is_reported_when_that_ends(
    home: Home, make: Callable[..., Alert]
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, per=("room",))
    alert.silence(clock.now + 60_000_000)
    rows.append((1, 60.0), (2, 60.0))
    alert.look()
    rows.append((2, 10.0))
    alert.look()
    one, two = '{"room":1}', '{"room":2}'
    assert lines(alert) == [("firing", one, True), ("firing", two, True), ("ok", two, True)]
    clock.go_on(61)
    alert.look()
    assert lines(alert)[3:] == [("firing", one, False)]
    clock.go_on(61)
    alert.look()
    assert len(lines(alert)) == 4
    rows.close()


def test_silence_by_statement_and_its_end(home: Home) -> None:
    rows = Rows(home)
    with receiver() as hook:
        run(
            home,
            "CREATE ALERT hot ON q WHEN v > 50 DELIVER TO webhook "
            f"WITH (url = '{hook.url}', secret = 's')",
        )
        assert "is silenced until" in run(home, "ALTER ALERT hot SET (silence = '1 h')").message
        rows.append((1, 60.0))
        wait_for(lambda: transitions(home, "hot") == [("firing", None)])
        assert home.alerts.status("hot").silenced_until is not None
        assert run(home, "ALTER ALERT hot SET (silence = 'off')").message == (
            "alert hot is not silenced"
        )
        wait_for(lambda: posted(hook) == [("firing", "ok")])
        assert [one.silenced for one in home.alerts.history("hot", 9)] == [False, True]
    rows.close()


HOSTILE = (
    ("v > (SELECT 1)", "the condition of an alert must be an expression over one row"),
    ("max(v) > 3", "the condition of an alert must be an expression over one row"),
    ("sum(v) OVER () > 3", "the condition of an alert must be an expression over one row"),
    ("w > 3", "there is no column w"),
    ("v", "must be true or false"),
    ("v > 'abc'", "abc"),
    ("read_text('/etc/passwd') = 'x'", "there is no function read_text"),
    ("getvariable('x') = 1", "there is no function getvariable"),
    ("v > 3; DROP TABLE x", "expected one statement"),
    ("explode(array(1, 2)) > 1", "over one row"),
    ("v > :least", "least"),
    ("length(repeat(note, 2000000000)) > 5", "there is no function repeat"),
)


@pytest.mark.parametrize(("condition", "said"), HOSTILE)
def test_conditions_that_are_refused(home: Home, condition: str, said: str) -> None:
    rows = Rows(home)
    with pytest.raises(NilometerError) as refused:
        run(home, f"CREATE ALERT a ON q WHEN {condition}")
    assert said in str(refused.value)
    assert home.catalog.alerts() == []
    rows.close()


def test_there_are_not_too_many(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(home)
    monkeypatch.setattr(alerts, "MOST_ALERTS", 1)
    run(home, "CREATE ALERT a ON q WHEN v > 1")
    with pytest.raises(LimitError, match="there are 1 alerts already"):
        run(home, "CREATE ALERT b ON q WHEN v > 1")
    rows.close()


def test_clauses_that_are_refused(home: Home) -> None:
    rows = Rows(home)
    for text, said in (
        ("ON q WHEN v > 1 PER (nothing)", "q has no column nothing"),
        ("ON q WHEN v > 1 FOR '1s' FOR '2s'", "FOR is given twice"),
        ("ON q WHEN v > 1 CLEAR WHEN u < 3", "there is no column u"),
        ("ON nothing WHEN v > 1", "there is no stream, sensor table or query nothing"),
        ("ON q WHEN v > 1 WITH (colour = 'red')", "an alert has no option 'colour'"),
        ("ON q WHEN v > 1 DELIVER TO webhook WITH (url = 'x', secret = 's')", "url"),
        ("ON q WHEN v > 1 NO DATA FOR 0 SECONDS", "greater than zero"),
        ("ON q", "WHEN and a condition, or NO DATA FOR"),
        ("ON q PER (room)", "NO DATA FOR and a time, as there is no WHEN"),
        ("ON q NO DATA FOR '1s' FOR '2s'", "FOR needs a condition"),
        ("ON q NO DATA FOR '1s' CLEAR WHEN v < 1", "CLEAR needs a condition"),
        ("ON q NO DATA FOR '1s' NO DATA FOR '2s'", "NO is given twice"),
    ):
        with pytest.raises(NilometerError) as refused:
            run(home, f"CREATE ALERT a {text}")
        assert said in str(refused.value), text
        assert (home.catalog.alerts(), home.catalog.deliveries()) == ([], [])
    rows.close()


def test_rows_that_cannot_be_evaluated_are_left_out(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, "room * 4611686018427387904 > 5")
    rows.append((4, 0.0), (1, 0.0), (9, 0.0))
    alert.look()
    assert lines(alert) == [("firing", None, False)]
    assert alert.failed_rows == 2
    assert "the condition failed for 2 rows" in (alert.error or "")
    rows.close()


def test_a_condition_that_takes_too_much_is_stopped(
    home: Home, make: Callable[..., Alert], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock)
    rows.append((1, 60.0), (1, 60.0))
    for error in (TimeLimitError("it took too long"), TooLargeError("it needs too much")):

        def stopped(*_: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(sandbox, "run", stopped)
        alert.look()
        assert (alert.failed_rows, lines(alert)) == (2, [])
        assert alert.error == f"the condition failed for 2 rows: {error}"
        monkeypatch.undo()
        alert.failed_rows = 0
        rows.append((1, 10.0))
        alert.look()
        rows.append((1, 60.0), (1, 60.0))
    rows.close()


def test_groups_are_bounded(home: Home, make: Callable[..., Alert]) -> None:
    rows, clock = Rows(home), Clock()
    alert = make(clock, per=("room",), limits=AlertLimits(groups=10))
    rows.append((1, 60.0), *((room, 1.0) for room in range(2, 100)))
    alert.look()
    assert len(alert.groups) <= 10
    assert alert.groups[0].key == '{"room":1}'
    assert "more than 10 groups" in (alert.error or "")
    rows.append((1, 1.0))
    alert.look()
    assert lines(alert)[-1][0] == "ok"
    rows.close()


def test_a_query_that_is_renamed_keeps_its_alerts(home: Home) -> None:
    rows = Rows(home)
    run(home, "CREATE ALERT hot ON q WHEN v > 50")
    run(home, "ALTER QUERY q RENAME TO r")
    assert [one.definition.source for one in home.alerts.statuses()] == ["r"]
    rows.append((1, 60.0))
    wait_for(lambda: transitions(home, "hot") == [("firing", None)])
    rows.close()


def test_an_alert_that_is_renamed_goes_on_where_it_was(home: Home) -> None:
    rows = Rows(home)
    with receiver() as hook:
        to = f"DELIVER TO webhook WITH (url = '{hook.url}', secret = 's')"
        run(home, f"CREATE ALERT hot ON q WHEN v > 50 {to}")
        rows.append((1, 60.0))
        wait_for(lambda: posted(hook) == [("firing", "ok")])
        assert run(home, "ALTER ALERT hot RENAME TO Warm").message == "alert hot is now Warm"
        rows.append((1, 40.0))
        wait_for(lambda: posted(hook) == [("firing", "ok"), ("ok", "firing")])
        assert hook.posts[-1].content["query"] == "Warm"
        assert [one.state for one in home.alerts.history("warm", 9)] == ["ok", "firing"]
        readers = [one.reader for one in registrations(home.log_of("q"))]
        assert [one for one in readers if one.startswith("alert")] == ["alert Warm"]
        run(home, "CREATE ALERT hot ON q WHEN v > 99")
        with pytest.raises(NilometerError, match="hot"):
            run(home, "ALTER ALERT warm RENAME TO hot")
        rows.append((1, 70.0))
        wait_for(lambda: len(posted(hook)) == 3)  # refused, it goes on as it was
        run(home, "DROP ALERT warm")
        assert home.catalog.deliveries() == []
    rows.close()


def test_a_database_goes_on_with_its_alerts_and_a_backup_has_them(tmp_path: Path) -> None:
    home = open_home(tmp_path / "db")
    rows = Rows(home)
    run(home, "CREATE ALERT hot ON q WHEN v > 50")
    rows.append((1, 60.0))
    wait_for(lambda: transitions(home, "hot") == [("firing", None)])
    home.back_up(str(tmp_path / "backups"))
    home.close()
    again = open_home(tmp_path / "db")
    assert again.alerts.status("hot").state is AlertState.FIRING  # though nobody looks yet
    rows.append((1, 40.0))
    assert again.alerts.resume() == ["hot"]
    wait_for(lambda: transitions(again, "hot") == [("firing", None), ("ok", None)])
    again.close()
    rows.close()
    restore_backup(str(tmp_path / "backups"), tmp_path / "restored")
    for folder in ("db", "restored"):
        assert check_database(tmp_path / folder).problems == ()
    restored = open_home(tmp_path / "restored")
    assert transitions(restored, "hot") == [("firing", None)]
    assert restored.alerts.status("hot").state is AlertState.FIRING
    assert restored.alerts.resume() == ["hot"]
    restored.close()


def test_sensors_are_read_for_an_alert_on_their_table(home: Home) -> None:
    run(
        home,
        "CREATE SENSOR TABLE T (room INT, reading STREAM(v DOUBLE) FROM synthetic "
        "WITH (rate = 50, values = 'v=uniform(60,70)'))",
    )
    run(home, "INSERT INTO T VALUES (1, 'seed=1'), (2, 'seed=2')")
    run(home, "CREATE ALERT hot ON T WHEN reading.v > 50 PER (room)")
    wait_for(
        lambda: (
            sorted(transitions(home, "hot")) == [("firing", '{"room":1}'), ("firing", '{"room":2}')]
        )
    )
    run(home, "ALTER SENSOR TABLE T ADD COLUMN floor INT")
    run(home, "INSERT INTO T VALUES (3, 'seed=3', 9)")  # it goes on with what was altered
    wait_for(lambda: ("firing", '{"room":3}') in transitions(home, "hot"))
    with pytest.raises(NilometerError, match="is read by alert hot"):
        run(home, "ALTER SENSOR TABLE T DROP COLUMN room")
    with pytest.raises(NilometerError, match="alert hot watches T"):
        run(home, "DROP SENSOR TABLE T")
    run(home, "DROP ALERT hot")
    run(home, "DROP SENSOR TABLE T")


def test_kills_while_alerts_are_delivered(tmp_path: Path) -> None:
    """Whatever process is killed, a receiver that remembers ids gets each change once."""
    folder = tmp_path / "db"
    home = open_home(folder)
    rows = Rows(home)
    with receiver() as hook:
        create = "CREATE ALERT hot ON q WHEN v > 50 DELIVER TO webhook"
        run(home, f"{create} WITH (url = '{hook.url}', secret = 's', rows = 3)")
        home.close()
        chance, expected = random.Random(5), 0
        for _ in range(4):
            ours, theirs = FORKS.Pipe()
            process = FORKS.Process(target=alert_until_killed, args=(str(folder), theirs))
            process.start()
            assert ours.recv() == "ready"
            for _ in range(6):
                rows.append((1, 60.0))
                rows.append((1, 40.0))
                expected += 2
            least = chance.randrange(expected + 1)
            wait_for(lambda least=least: len(by_id(hook)) >= least)  # type: ignore[misc]
            process.kill()
            process.join()
        home = open_home(folder)
        home.deliveries.resume()
        home.alerts.resume()
        wait_for(lambda: len(by_id(hook)) == expected)
        states = [state for _, state in sorted(by_id(hook).items())]
        assert states == ["firing", "ok"] * (expected // 2)
        home.close()
    rows.close()


def by_id(hook: Receiver) -> dict[int, str]:
    """The states that came, by the numbers of their rows."""
    rows = [row for post in list(hook.posts) for row in post.content["rows"]]
    return {int(row["_id"].rsplit(".")[-1]): row["state"] for row in rows}


def test_an_unknown_column_is_underlined_where_it_stands(home: Home) -> None:
    Rows(home)
    statement = "CREATE ALERT a ON q WHEN nothing > 5"
    with pytest.raises(SqlError, match="there is no column nothing") as refused:
        run(home, statement)
    place = refused.value.place
    assert place is not None
    assert statement[place.start : place.end] == "nothing > 5"
