"""What the server promises about who may do what, and how much: a test for each promise."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nilometer.database.query_status import QueryLimits
from nilometer.errors import InputError, LimitError
from nilometer.sensors.types.allowed_files import allow_files
from nilometer.server import statement_runner
from nilometer.server.limits import Followers, Shares
from nilometer.server.serve import require_safe
from nilometer.server.settings import ServerSettings
from tests.served import Served, served

FILE = "CREATE STREAM F (v INT) FROM file WITH (address = '{}')"
CAMERAS = "CREATE SENSOR TABLE Cameras (id INT, seen STREAM (v INT) FROM tcp)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


def error_of(answer: object) -> dict[str, object]:
    error: dict[str, object] = answer.json()["error"]  # type: ignore[attr-defined]
    assert set(error) == {"message", "detail", "hint", "kind", "position"}
    return error


def operations(server: Served) -> Iterator[tuple[str, str]]:
    for path, methods in server.app.openapi()["paths"].items():
        for method in methods:
            yield method.upper(), re.sub(r"\{\w+\}", "x", path)


# Tokens


def test_everything_but_the_probes_needs_a_token(server: Served) -> None:
    asked = [one for one in operations(server) if one[1] not in ("/health", "/ready")]
    assert len(asked) > 18
    for method, path in asked:
        answer = server.ask(method, path, None, json={"statement": "SHOW STREAMS"})
        assert answer.status_code == 401, (method, path)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert error_of(answer)["kind"] == "UnauthorizedError"


def test_probes_need_no_token_and_tell_nothing(server: Served) -> None:
    assert server.ask("GET", "/health", None).json()["status"] == "alive"
    answer = server.ask("GET", "/ready", None)  # there is no Spark in this test
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "missing": ["spark"]})


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer nm_wrong", "Basic YTpi", "x y z"])
def test_a_wrong_token_is_none(server: Served, header: str) -> None:
    answer = server.ask("GET", "/queries", None, headers={"Authorization": header})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("statement", "scope", "status"),
    [
        ("SHOW STREAMS", "read", 200),
        ("SELECT v FROM T", "read", 200),
        ("CREATE TABLE T (v INT)", "read", 403),
        ("CREATE TABLE T (v INT)", "write", 200),
        ("CREATE STREAM S (v INT) FROM tcp WITH (address = 'h:1')", "write", 403),
        ("CREATE STREAM S (v INT) FROM tcp WITH (address = 'h:1')", "admin", 200),
        (CAMERAS, "write", 403),
        ("DROP STREAM S", "write", 403),
        ("ALTER STREAM S SET (address = 'h:2')", "write", 403),
        ("ALTER SENSOR TABLE Cameras ADD COLUMN c INT", "write", 403),
        ("ALTER STREAM S RENAME TO T", "write", 403),
        ("ALTER QUERY q RENAME TO r", "read", 403),
        ("CREATE OR REPLACE QUERY q AS SELECT v FROM T", "read", 403),
        ("CREATE DELIVERY d FROM q TO webhook WITH (url = 'http://h')", "write", 403),
        ("INSERT INTO Cameras VALUES (1, 'h:1')", "write", 403),
        ("UPDATE Cameras SET seen = 'h:2'", "write", 403),
        ("DELETE FROM Cameras", "write", 403),
        ("INSERT INTO Cameras VALUES (1, 'h:1')", "admin", 200),
    ],
)
@pytest.mark.parametrize("is_watched", [True, False], ids=["watched", "not watched"])
def test_what_a_statement_needs(
    server: Served, statement: str, scope: str, status: int, is_watched: bool
) -> None:
    server.database.is_watched = is_watched
    if "Cameras V" in statement or "Cameras" in statement.split()[1:3]:
        assert server.sql(CAMERAS).status_code == 200
    answer = server.sql(statement, scope)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert error_of(answer)["kind"] == "ForbiddenError"


@pytest.mark.parametrize(
    ("body", "scope", "status"),
    [
        ({"statement": "CREATE STREAM S (v INT) FROM tcp WITH (address = 'h:1')"}, "write", 403),
        ({"statement": "CREATE STREAM S (v INT) FROM tcp WITH (address = 'h:1')"}, "admin", 200),
        ({"statement": "INSERT INTO Cameras VALUES (7, 'h:1')"}, "write", 403),
        ({"statement": "INSERT INTO Cameras VALUES (7, 'h:1')"}, "admin", 200),
        ({"statement": "DROP SENSOR TABLE Cameras"}, "admin", 400),
        ({"statement": "SELECT 1"}, "admin", 400),
        ({"stream": "Cameras", "sensor": "1"}, "read", 403),
        ({"stream": "Cameras", "sensor": "1"}, "write", 200),
        ({"stream": "Cameras", "sensor": "9"}, "write", 400),
        ({"stream": "Nothing"}, "write", 404),
        ({}, "admin", 400),
        ({"stream": "Cameras", "statement": "SELECT 1"}, "admin", 400),
        ({"stream": "Cameras", "seconds": 3600}, "admin", 422),
    ],
)
def test_who_may_let_the_server_read_a_sensor(
    server: Served, body: dict[str, Any], scope: str, status: int
) -> None:
    assert server.sql(CAMERAS).status_code == 200
    assert server.sql("INSERT INTO Cameras VALUES (1, 'h:1')").status_code == 200
    answer = server.ask("POST", "/sensors/try", scope, json=body)
    assert answer.status_code == status, answer.text
    assert len(server.database.catalog.sensors("Cameras")) == 1  # nothing is kept
    assert server.database.catalog.declaration("S") is None


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/queries", "read"),
        ("DELETE", "/queries/q", "read"),
        ("POST", "/queries/q/stop", "read"),
        ("GET", "/tokens", "write"),
        ("POST", "/tokens", "write"),
        ("DELETE", "/tokens/admin", "write"),
    ],
)
def test_what_a_route_needs(server: Served, method: str, path: str, scope: str) -> None:
    body = {"statement": "SELECT v FROM S", "name": "q", "scope": "admin"}
    if path == "/queries":
        body = {"statement": "SELECT v FROM S"}
    assert server.ask(method, path, scope, json=body).status_code in (403, 422)
    assert server.ask("GET", "/tokens").json()  # nothing was revoked
    if path == "/queries":
        assert server.ask(method, path, scope, json=body).status_code == 403


def test_tokens_are_made_and_revoked_by_an_admin(server: Served) -> None:
    made = server.ask("POST", "/tokens", json={"name": "ann", "scope": "read"})
    assert made.status_code == 201
    secret = made.json()["token"]
    assert re.fullmatch(r"nm_[\w-]{43}", secret)
    assert server.ask("GET", "/queries", secret).status_code == 200
    assert secret not in server.ask("GET", "/tokens").text
    assert server.ask("POST", "/tokens", json={"name": "ann", "scope": "read"}).status_code == 409
    assert server.ask("DELETE", "/tokens/ann").status_code == 204
    assert server.ask("GET", "/queries", secret).status_code == 401
    assert server.ask("DELETE", "/tokens/ann").status_code == 404


# How much


def test_a_long_body_is_not_read(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_body_bytes=1000)) as server:
        answer = server.sql("SELECT '" + "x" * 2000 + "'")
        assert answer.status_code == 413
        assert error_of(answer)["kind"] == "TooLargeError"


def test_nor_one_that_does_not_say_how_long_it_is(tmp_path: Path) -> None:
    sent = []

    async def endless() -> AsyncIterator[bytes]:
        while len(sent) < 1000:
            sent.append(1)
            yield b"x" * 100

    with served(tmp_path, ServerSettings(max_body_bytes=1000)) as server:
        answer = server.ask("POST", "/sql", content=endless())
        assert answer.status_code == 413
        assert error_of(answer)["kind"] == "TooLargeError"
        assert len(sent) < 20


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    with served(tmp_path, ServerSettings(body_seconds=0.1)) as server:
        assert server.ask("POST", "/sql", content=slow()).status_code == 408


def test_a_long_statement_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_statement_characters=20)) as server:
        for path in ("/sql", "/explain", "/queries"):
            answer = server.ask("POST", path, json={"statement": "SELECT v FROM S WHERE v > 0"})
            assert answer.status_code == 413


def test_no_statement_is_longer_than_can_be_read(server: Served) -> None:
    answer = server.sql("SELECT v FROM S -- " + "x" * ServerSettings().max_statement_characters)
    assert (answer.status_code, error_of(answer)["message"]) == (413, "the statement is too long")


def test_long_statements_are_not_read_between_answers(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []

    for name in ("read_one", "read_each", "read_query"):
        read = getattr(statement_runner, name)

        def noted(*given: object, read: Callable[..., Any] = read) -> Any:
            readers.append(threading.current_thread())
            return read(*given)

        monkeypatch.setattr(statement_runner, name, noted)
    for path in ("/sql", "/check", "/explain", "/queries"):
        server.ask("POST", path, json={"statement": "SELECT v FROM S"})
    assert len(readers) >= 4
    assert threading.main_thread() not in readers


def test_more_statements_than_may_wait_are_refused(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_statements=2)) as server:

        async def many() -> list[int]:
            server.database.gate.clear()
            body = {"statement": "SHOW TABLES"}
            first = [asyncio.create_task(server.ask_async("POST", "/sql", json=body)) for _ in "ab"]
            while server.service.statements_taken < 2:
                await asyncio.sleep(0.01)
            refused = await server.ask_async("POST", "/sql", json=body)
            assert int(refused.headers["Retry-After"]) > 0
            looked = await server.ask_async("GET", "/queries")  # who looks does not wait
            server.database.gate.set()
            done = await asyncio.gather(*first)
            return [refused.status_code, looked.status_code, *(one.status_code for one in done)]

        assert asyncio.run(many()) == [429, 200, 200, 200]


def test_followers_are_counted_and_bounded() -> None:
    now = [0.0]
    followers = Followers(1, 1, clock=lambda: now[0])
    with followers.one("Q", "a"):
        assert (followers.count("q"), followers.lonely({"q"}, 5)) == (1, set())
        with pytest.raises(LimitError), followers.one("q", "b"):
            pass
        now[0] = 100
    assert followers.lonely({"q"}, 5) == set()
    now[0] = 106
    assert followers.lonely({"q"}, 5) == {"q"}


# What browsers can be tricked into


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example"])
def test_another_name_for_this_machine_is_refused(server: Served, host: str) -> None:
    answer = server.ask("GET", "/queries", headers={"Host": host})
    assert answer.status_code == 400
    assert "does not answer to this host name" in str(error_of(answer)["message"])


@pytest.mark.parametrize("host", ["localhost:8642", "127.0.0.1", "[::1]:8642"])
def test_names_of_this_machine(server: Served, host: str) -> None:
    assert server.ask("GET", "/queries", headers={"Host": host}).status_code == 200


def test_names_that_are_allowed(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(allowed_hosts=("plant.example",))) as server:
        headers = {"Host": "plant.example:443"}
        assert server.ask("GET", "/queries", headers=headers).status_code == 200
        assert server.ask("GET", "/queries").status_code == 400


def test_no_page_of_another_site_may_read_answers(server: Served) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method in ("GET", "OPTIONS"):
        answer = server.ask(method, "/queries", headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_script_in_a_value_is_data(server: Served) -> None:
    answer = server.sql("SELECT v FROM T")
    assert answer.json()["rows"] == [{"v": "<script>alert(1)</script>"}]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_of_the_api_loads_nothing_from_elsewhere(server: Served) -> None:
    page = server.ask("GET", "/docs", None)
    assert "POST" in page.text
    assert not re.findall(r"(?:src|href)=.?https?:", page.text)
    assert "default-src 'self'" in page.headers["content-security-policy"]


# Names and errors


@pytest.mark.parametrize(
    "name",
    ["..%2f..%2fetc%2fpasswd", "%2e%2e", "a%00b", "%ff", "x" * 5000, "a;DROP"],
)
def test_tricks_in_names(server: Served, name: str) -> None:
    for path in (f"/queries/{name}", f"/streams/{name}", f"/queries/{name}/results"):
        answer = server.ask("GET", path)
        assert answer.status_code == 404, path
        assert error_of(answer)["kind"] == "NotFoundError"


def test_a_query_can_be_found_by_its_name(server: Served) -> None:
    body = {"statement": "SELECT v FROM S", "name": "../../evil"}
    assert server.ask("POST", "/queries", json=body).status_code == 400
    made = server.ask("POST", "/queries", json=body | {"name": "a ?#é"})
    assert made.status_code == 201
    assert server.ask("GET", made.headers["Location"]).json()["name"] == "a ?#é"


def test_unforeseen_errors_are_reported_by_an_id(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server.database.failure = ZeroDivisionError("secret words")
    answer = server.sql("SHOW TABLES")
    assert answer.status_code == 500
    error = error_of(answer)
    assert re.fullmatch(r"error [0-9a-f]{12}", str(error["detail"]))
    assert "secret words" not in answer.text
    assert "Traceback" not in answer.text
    assert str(error["detail"]) in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", None, 404),
        ("PUT", "/queries", None, 405),
        ("POST", "/sql", {}, 422),
        ("POST", "/sql", {"statement": "SHOW STREAMS", "more": 1}, 422),
        ("POST", "/sql", {"statement": "SELEC"}, 400),
        ("POST", "/sql", {"statement": "SELECT v FROM STREAM_S"}, 400),
    ],
)
def test_every_refusal_has_one_shape(
    server: Served, method: str, path: str, body: object, status: int
) -> None:
    answer = server.ask(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert error_of(answer)["message"]


def test_an_error_says_where(server: Served) -> None:
    error = error_of(server.sql("SHOW\n  NOTHING"))
    assert error["kind"] == "SqlSyntaxError"
    assert error["position"] == {"line": 2, "column": 3, "start": 7, "end": 14}


# Files and secrets


def test_a_server_reads_no_file_that_it_was_not_told(server: Served, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link").symlink_to("/etc")
    try:
        allow_files([])
        assert server.sql(FILE.format(allowed / "a.csv")).status_code == 400
        allow_files([allowed])
        for path in (
            "/etc/passwd",
            f"{allowed}/../x.csv",
            f"{allowed}/link/passwd",
            "a.csv",
            "/**",
        ):
            answer = server.sql(FILE.format(path))
            assert answer.status_code == 400, path
            assert "does not read files there" in str(error_of(answer)["message"])
        assert server.sql(FILE.format(allowed / "*.csv")).status_code == 200
        table = "CREATE SENSOR TABLE T (id INT, seen STREAM (v INT) FROM file)"
        assert server.sql(table).status_code == 200
        for cell in ("/etc/passwd", '{"address": "/etc/passwd"}'):
            answer = server.sql(f"INSERT INTO T VALUES (1, '{cell}')")
            assert answer.status_code == 400
    finally:
        allow_files(None)


def test_secrets_are_not_shown(server: Served) -> None:
    made = server.sql(
        "CREATE STREAM M (v INT) FROM mqtt WITH"
        " (address = 'mqtt://ann:hunter2@h/t', password = 'hunter3')"
    )
    assert made.status_code == 200, made.text
    for answer in (
        server.sql("DESCRIBE M"),
        server.sql("SHOW STREAMS"),
        server.ask("GET", "/streams/M"),
        server.ask("GET", "/streams"),
    ):
        assert answer.status_code == 200, answer.text
        assert "hunter" not in answer.text


# Where it listens


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "plant.example"])
def test_it_listens_elsewhere_only_encrypted_or_when_told(host: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unencrypted"):
        require_safe(ServerSettings(host=host))
    require_safe(ServerSettings(host=host, allow_insecure=True))
    pem = tmp_path / "x.pem"
    pem.touch()
    require_safe(ServerSettings(host=host, certificate=pem, key=pem))
    with pytest.raises(InputError, match="belong together"):
        require_safe(ServerSettings(host=host, certificate=pem))


def test_on_this_machine_it_listens_as_it_is() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        require_safe(ServerSettings(host=host))


# Limits of one token


@pytest.mark.parametrize(
    ("statement", "scope", "status"),
    [
        ("CREATE QUERY q AS SELECT v FROM T", "write", 200),
        ("CREATE QUERY q WITH (results = '1MB') AS SELECT v FROM T", "write", 200),
        ("CREATE QUERY q WITH (results = '1GB') AS SELECT v FROM T", "write", 403),
        ("CREATE QUERY q WITH (results = none) AS SELECT v FROM T", "write", 403),
        ("CREATE QUERY q WITH (results = none) AS SELECT v FROM T", "admin", 200),
        ("CREATE QUERY q WITH (state = none) AS SELECT v FROM T", "write", 200),
        ("ALTER QUERY q SET (results = none)", "write", 403),
        ("ALTER QUERY q SET (results = '11MB')", "write", 403),
        ("ALTER QUERY q SET (results = '10MB')", "write", 200),
        ("ALTER QUERY q SET (state = '1TB')", "write", 200),
        ("ALTER QUERY q SET (results = none)", "admin", 200),
    ],
)
def test_only_admin_may_go_beyond_the_limits_of_the_configuration(
    server: Served, statement: str, scope: str, status: int
) -> None:
    server.database.limits = QueryLimits(results=10 << 20)
    answer = server.sql(statement, scope)
    assert answer.status_code == status, answer.text
    if status == 403:
        detail = str(error_of(answer)["detail"])
        assert detail == (
            "the limits of a query may be at most results = '10 MB'; its results would be more"
        )


@pytest.mark.parametrize(("results", "status"), [(1 << 20, 201), (1 << 30, 403), (None, 201)])
def test_limits_of_a_query_that_is_posted_are_bounded_too(
    server: Served, results: int | None, status: int
) -> None:
    server.database.limits = QueryLimits(results=10 << 20, state=5)
    limits = {"results": results, "state": None}
    given = {"statement": "SELECT v FROM T", "name": "q", "limits": limits}
    answer = server.ask("POST", "/queries", "write", json=given)
    assert answer.status_code == status, answer.text
    if status == 201:
        query_limits = server.database.kept["q"].limits
        assert query_limits == QueryLimits(results=results or 10 << 20, state=5)


def test_a_token_has_its_share_of_queries(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_queries_each=2)) as server:
        for number in range(2):
            assert server.sql(f"CREATE QUERY q{number} AS SELECT v FROM T", "write").is_success
        given = {"statement": "SELECT v FROM T", "name": "r"}
        refused = [
            server.sql("CREATE QUERY q3 AS SELECT v FROM T", "write"),
            server.ask("POST", "/queries", "write", json=given),
        ]
        for answer in refused:
            assert answer.status_code == 429
            assert error_of(answer)["message"] == "write has 2 queries already"
        for number in range(4):
            assert server.sql(f"CREATE QUERY a{number} AS SELECT v FROM T", "admin").is_success


def test_alerts_and_dashboards_are_bounded(tmp_path: Path) -> None:
    settings = ServerSettings(max_alerts=2, max_dashboards=1)
    with served(tmp_path, settings) as server:
        server.database.watched = [None, None]
        answer = server.sql("CREATE ALERT a ON s WHEN v > 1", "write")
        assert answer.status_code == 429
        assert error_of(answer)["message"] == "there are 2 alerts already"
        assert server.sql("CREATE ALERT a ON s WHEN v > 1", "admin").status_code != 429
        body = {"title": "x", "panels": []}
        statuses = [
            server.ask("PUT", f"/dashboards/{name}", scope, json=body).status_code
            for name, scope in (("a", "write"), ("A", "write"), ("b", "write"), ("b", "admin"))
        ]
        assert statuses == [200, 200, 429, 200]


def test_a_token_has_its_share_of_statements_and_followers() -> None:
    shares = Shares(1, "statements of one token run or wait")
    with shares.one("a"), shares.one("b"):
        with pytest.raises(LimitError, match="1 statements of one token") as error, shares.one("a"):
            pass
        assert error.value.detail == "that is the maximum for a"
    with shares.one("a"):
        pass
    followers = Followers(10, 2)
    with followers.one("q", "a"), followers.one("r", "a"), followers.one("q", "b"):
        with pytest.raises(LimitError), followers.one("q", "a"):
            pass
        assert followers.count("q") == 2


def test_statements_of_one_token_do_not_take_the_room_of_others(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_statements=8, max_statements_each=2)) as server:

        async def many() -> list[int]:
            server.database.gate.clear()
            body = {"statement": "SHOW TABLES"}
            own = [
                asyncio.create_task(server.ask_async("POST", "/sql", "write", json=body))
                for _ in "ab"
            ]
            while server.service.statements_taken < 2:
                await asyncio.sleep(0.01)
            refused = await server.ask_async("POST", "/sql", "write", json=body)
            other = asyncio.create_task(server.ask_async("POST", "/sql", "read", json=body))
            while server.service.statements_taken < 3:
                await asyncio.sleep(0.01)
            server.database.gate.set()
            done = await asyncio.gather(*own, other)
            return [refused.status_code, *(one.status_code for one in done)]

        assert asyncio.run(many()) == [429, 200, 200, 200]
