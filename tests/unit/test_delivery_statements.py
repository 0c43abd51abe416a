"""CREATE, START, STOP, DROP, SHOW and DESCRIBE of deliveries, and processes that are killed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.database.statements import run_statement
from nilometer.database.units import Units
from nilometer.deliveries.reading import read_progress
from nilometer.deliveries.status import DeliveryState
from nilometer.errors import InputError, NilometerError
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sensors.catalog.stored_deliveries import KeptState
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.statements import read_one
from tests.delivery_receivers import Receiver, Results, receiver
from tests.forks import FORKS
from tests.patience import LONG, wait_for
from tests.unit.delivery_children import deliver_log_until_killed, deliver_until_killed


def open_home(folder: Path, units: Units | None = None) -> Home:
    return Home(folder, None, None, lambda rows, where: set(), units)


def run(home: Home, sql: str) -> Outcome:
    read = read_one(sql)
    assert not isinstance(read, Statement)
    return run_statement(read, home, RunningQueries(home, _no_plans, 1))


def _no_plans(*_: object) -> NoReturn:
    raise AssertionError("no query is planned here")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = open_home(tmp_path)
    made.catalog.create_query("q", "SELECT v FROM A", "append")
    yield made
    made.close()


@pytest.fixture
def results(home: Home) -> Results:
    return Results(Path(home.log_of("q")).parent)


def status(home: Home) -> Any:
    return home.deliveries.statuses()[0]


def refusal(home: Home, sql: str) -> str:
    with pytest.raises(NilometerError) as refused:
        run(home, sql)
    return str(refused.value)


def test_a_delivery_from_its_creation_to_its_end(home: Home, results: Results) -> None:
    got: list[Any] = []
    home.units.register("take", got.extend)
    results.append(5)
    create = "CREATE DELIVERY D FROM Q TO python WITH (function = 'take')"
    assert run(home, create).message == "delivery D created and started"
    wait_for(lambda: len(got) == 5 and status(home).delivered == 5)
    delivery = status(home)
    assert (delivery.name, delivery.query, delivery.unit) == ("D", "q", "python")
    assert (delivery.state, delivery.lag, delivery.position) == (DeliveryState.RUNNING, 0, 5)
    assert "already" in run(home, create.replace("DELIVERY", "DELIVERY IF NOT EXISTS")).message
    assert run(home, "START DELIVERY d").message == "delivery d is already running"
    assert run(home, "STOP DELIVERY d").message == "delivery d stopped"
    assert run(home, "STOP DELIVERY d").message == "delivery d was not running"
    results.append(3)
    assert (status(home).state, status(home).lag) == (DeliveryState.STOPPED, 3)
    assert run(home, "START DELIVERY d").message == "delivery d started"
    wait_for(lambda: len(got) == 8)
    shown = run(home, "SHOW DELIVERIES")
    assert shown.message == "1 delivery"
    assert shown.rows is not None
    assert shown.rows.column("name").to_pylist() == ["D"]
    assert "delivery D delivers the results of q" in refusal(home, "DROP QUERY q")
    assert run(home, "DROP DELIVERY d").message == "delivery d dropped"
    assert run(home, "DROP DELIVERY IF EXISTS d").message == "there is no delivery d"
    assert home.deliveries.statuses() == []
    assert run(home, "SHOW READERS").message == "0 readers"


def test_it_goes_on_when_the_database_is_opened_again(tmp_path: Path) -> None:
    got: list[Any] = []
    home = open_home(tmp_path)
    home.catalog.create_query("q", "SELECT v FROM A", "append")
    home.units.register("take", got.extend)
    results = Results(Path(home.log_of("q")).parent)
    run(home, "CREATE DELIVERY d FROM q TO python WITH (function = take)")
    run(home, "CREATE DELIVERY e FROM q TO python WITH (function = take)")
    run(home, "STOP DELIVERY e")
    results.append(2)
    wait_for(lambda: len(got) == 2 and status(home).delivered == 2)
    home.close()
    results.append(2)
    units = Units()
    home = open_home(tmp_path, units)
    try:
        assert status(home).state is DeliveryState.STOPPED
        assert home.deliveries.resume() == ["d"]
        wait_for(lambda: status(home).state is DeliveryState.RETRYING)
        assert status(home).last_error.startswith("there is no unit take; none is registered")
        units.register("take", got.extend)  # which wakes it
        wait_for(lambda: len(got) == 4)
        assert [one["k"] for one in got] == [0, 1, 2, 3]
    finally:
        home.close()


def test_what_has_failed_stays_so_until_it_is_started(home: Home, results: Results) -> None:
    results.append(1)
    with receiver() as webhook:
        webhook.answer = lambda _: (410, {}, b"")
        run(home, f"CREATE DELIVERY d FROM q TO webhook WITH (url = '{webhook.url}', secret = s)")
        wait_for(lambda: home.catalog.deliveries()[0].state is KeptState.FAILED)
        assert status(home).last_error == "the receiver answered 410"
        home.deliveries.close()
        assert home.deliveries.resume() == []
        assert status(home).last_error == "the receiver answered 410"
        webhook.answer = lambda _: (200, {}, b"")
        assert run(home, "START DELIVERY d").message == "delivery d started"
        wait_for(lambda: status(home).delivered == 1)


def test_secrets_are_not_shown(home: Home) -> None:
    options = "url = 'https://h/key-9?a=9', secret = 'key-9', rows = 5"
    run(home, f"CREATE DELIVERY d FROM q TO webhook WITH ({options})")
    for sql in ("DESCRIBE d", "SHOW DELIVERIES"):
        outcome = run(home, sql)
        assert outcome.rows is not None
        assert "key-9" not in str(outcome.rows.to_pylist()) + outcome.message
    assert "key-9" not in repr(home.catalog.deliveries())
    rows = run(home, "DESCRIBE d").rows
    assert rows is not None
    assert {"property": "rows", "value": "5"} in rows.to_pylist()


CREATE = "CREATE DELIVERY d FROM q TO"
REFUSALS = [
    (
        "CREATE DELIVERY d FROM p TO webhook",
        "there is no query or alert p",
        "did you mean q?|there are q",
        "p",
    ),
    (f"{CREATE} webhok", "there is no delivery unit 'webhok'", "did you mean webhook?", "webhok"),
    (f"{CREATE} webhook", "a webhook needs a url", "write WITH (url", "webhook"),
    (
        f"{CREATE} webhook WITH (url = 'https://h')",
        "a webhook needs a secret",
        "write WITH (url",
        "webhook",
    ),
    (
        f"{CREATE} webhook WITH (url = 'ftp://h', secret = s)",
        "the url cannot be posted to",
        "write WITH (url",
        "url = 'ftp://h'",
    ),
    (
        f"{CREATE} webhook WITH (ulr = 'https://h')",
        "unit webhook has no option 'ulr'",
        "did you mean url?",
        "ulr = 'https://h'",
    ),
    (
        f"{CREATE} parquet WITH (rows = many)",
        "option rows of unit parquet cannot be 'many'",
        "write a whole number",
        "rows = many",
    ),
    (
        f"{CREATE} parquet WITH (folder = '../up')",
        "files may not be written to '../up'",
        "name a folder",
        "folder = '../up'",
    ),
    (f"{CREATE} mqtt WITH (topic = t)", "mqtt needs the url of a broker", "write WITH", "mqtt"),
    (
        f"{CREATE} mqtt WITH (url = 'mqtt://h', topic = 'a/#')",
        "mqtt needs a topic to publish to",
        "write WITH",
        "topic = 'a/#'",
    ),
    (
        f"{CREATE} python WITH (function = f)",
        "there is no unit f",
        "register it",
        "function = f",
    ),
    (
        f"{CREATE} python WITH (function = f, start = soon)",
        "option start of unit python cannot be 'soon'",
        "write one of start, now",
        "start = soon",
    ),
    ("START DELIVERY x", "there is no delivery x", "SHOW DELIVERIES", "x"),
    ("DROP DELIVERY q", "q is a query, not a delivery", "", "q"),
    ("CREATE DELIVERY q FROM q TO parquet", "query q already exists", "choose", "q"),
    ("CREATE STREAM s (v INT) FROM http WITH (unit = u)", "there is no unit u", "register it", "s"),
]


@pytest.mark.parametrize(
    ("sql", "message", "hint", "underlined"), REFUSALS, ids=[one[0] for one in REFUSALS]
)
def test_what_cannot_be(home: Home, sql: str, message: str, hint: str, underlined: str) -> None:
    with pytest.raises(NilometerError) as refused:
        run(home, sql)
    error: Any = refused.value
    assert error.message == message
    assert any(one in (error.hint or "") for one in hint.split("|"))
    assert error.place.sql[error.place.start : error.place.end] == underlined
    assert home.deliveries.statuses() == []


def test_temporary_queries_are_not_delivered(home: Home) -> None:
    home.catalog.create_query("run_1", "SELECT v FROM A", "append", options={"temporary": True})
    assert "is temporary" in refusal(home, "CREATE DELIVERY d FROM run_1 TO parquet")


def test_units_are_functions() -> None:
    async def later(_: object) -> None: ...

    units = Units()
    for bad in (later, 5):
        with pytest.raises(InputError):
            units.register("u", bad)  # type: ignore[arg-type]
    units.register("Celsius", str)
    assert units.find("celsius") is str
    with pytest.raises(InputError) as refused:
        units.find("celsus")
    assert refused.value.hint == "did you mean celsius?"


def _kill_some(results: Results, kills: int, seed: int, work: Any, *given: str) -> None:
    """Let processes do the work, one after the other; each is killed while rows come."""
    chance = random.Random(seed)
    for _ in range(kills):
        here, there = FORKS.Pipe(duplex=False)
        process = FORKS.Process(target=work, args=(*given, there))
        process.start()
        there.close()
        assert here.poll(LONG)
        for _ in range(3):
            results.append(chance.randrange(200))
            time.sleep(chance.random() * 0.15)
        process.kill()
        process.join()
        assert process.exitcode == -9, "it ended by itself"
        process.close()
        here.close()


def _check_delivered(webhook: Receiver, files: Path, rows: int) -> None:
    """What came again came with the same id; without that, every row came once."""
    by_id = {post.headers["Nilometer-Id"]: post for post in webhook.posts}
    for post in webhook.posts:
        assert post.body == by_id[post.headers["Nilometer-Id"]].body
    once = sorted(number for post in by_id.values() for number in post.numbers)
    assert once == list(range(rows))
    assert pq.read_table(files).column("k").to_pylist() == list(range(rows))


def test_killed_processes_deliver_everything(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with receiver() as webhook:
        work = (deliver_log_until_killed, str(tmp_path), webhook.url)
        _kill_some(results, 4, 1, *work)
        here, there = FORKS.Pipe(duplex=False)
        last = FORKS.Process(target=work[0], args=(*work[1:], there))
        last.start()
        wait_for(lambda: all(_delivered(results, one) for one in ("webhook", "parquet")))
        last.kill()
        last.join()
        here.close()
        there.close()
        _check_delivered(webhook, tmp_path / "parquet", results.rows)


def _delivered(results: Results, name: str) -> bool:
    progress = read_progress(results.location, name)
    return progress is not None and progress.delivered == results.rows


@pytest.mark.soak
@pytest.mark.limit(1800)
@pytest.mark.parametrize("seed", range(5))
def test_killed_databases_deliver_everything(tmp_path: Path, seed: int) -> None:
    home = open_home(tmp_path)
    home.catalog.create_query("q", "SELECT v FROM A", "append")
    results = Results(Path(home.log_of("q")).parent)
    with receiver() as webhook:
        options = f"url = '{webhook.url}', secret = s, rows = 20"
        run(home, f"CREATE DELIVERY w FROM q TO webhook WITH ({options})")
        run(home, "CREATE DELIVERY p FROM q TO parquet WITH (rows = 30, every = '0s')")
        home.close()
        _kill_some(results, 20, seed, deliver_until_killed, str(tmp_path))
        home = open_home(tmp_path)
        home.deliveries.resume()
        wait_for(lambda: all(one.delivered == results.rows for one in home.deliveries.statuses()))
        home.close()
        _check_delivered(webhook, tmp_path / "deliveries" / "p", results.rows)
