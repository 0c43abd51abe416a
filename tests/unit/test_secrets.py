"""Passwords in addresses are not shown, however they are written."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nilometer.errors import InputError, SqlError, SqlSyntaxError
from nilometer.model.secrets import (
    options_with_secrets,
    read_secrets_in,
    shown_options,
    shown_text,
    with_secrets,
)
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.server.error_shape import shape_of
from nilometer.server.log_lines import Lines
from nilometer.sql.statements import Statement, read_one


@pytest.mark.parametrize(
    "text",
    [
        "got 'tcp://ann:hunter2@h'",
        "mqtt://ann:hunter2@h:99999/x",
        "http://ann:a@hunter2@h/x",
        "http://h/?token=hunter2",
        "http://h/?n=1&api-key=hunter2",
        "http://h/?key=hunter2&n=1",
        "http://h/?sig=hunter2#x",
    ],
)
def test_passwords_are_left_out(text: str) -> None:
    assert "hunter2" not in shown_text(text)
    assert "…" in shown_text(text)


@pytest.mark.parametrize("text", ["http://h:80/x?keyword=1&n=2", "mqtt://h/a", "see a@b.example"])
def test_the_rest_is_shown(text: str) -> None:
    assert shown_text(text) == text


def test_hostile_texts_are_shown_while_one_waits() -> None:
    """What takes the square of their length would take hours."""
    for text in ("?", "://", "://a:", "?a=", "&#;", "@:", "?a"):
        assert shown_text(text * 1_000_000)


def test_names_of_files_are_shown() -> None:
    assert shown_options({"key": "tls/client.key"}) == {"key": "tls/client.key"}


# References to secrets


def run(catalog: SensorCatalog, text: str) -> str:
    statement = read_one(text)
    assert not isinstance(statement, Statement)
    return execute(catalog, statement).message


@pytest.mark.parametrize(
    "text",
    [
        "https://h/x?sig=abc",
        "https://h/x?x-amz-signature=abc",
        "https://h/x?sas=abc",
        "https://h/x?subscription-key=abc",
        "https://h/x?JWT=abc",
        "https://h/x?sessionid=abc",
        "https://h/x?a=1&api-key=abc",
        *(
            f"https://h/x?n=1&{name}=abc"
            for name in (
                "token", "key", "apikey", "api_key", "access_token", "sig", "signature",
                "password", "pwd", "secret", "auth", "appid", "app_id", "client_secret", "hmac",
                "pw", "ticket", "license", "Api-Key", "%74oken", "X-Amz-Credential",
            )
        ),
        "https://h/x?a=1;token=abc",
        "https://h/x#access_token=abc",
    ],
)  # fmt: skip
def test_parameters_that_prove_who_asks_are_hidden(text: str) -> None:
    assert "abc" not in shown_text(text)
    assert shown_text("https://h/x?room=abc&signal=abc") == "https://h/x?room=abc&signal=abc"


def test_a_secret_is_read_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "hunter2")
    assert with_secrets("secret('PLANT')") == "hunter2"
    assert with_secrets("mqtt://ann:secret('PLANT')@host/x") == "mqtt://ann:hunter2@host/x"
    assert options_with_secrets({"a": "secret('PLANT')", "b": "1"}) == {"a": "hunter2", "b": "1"}
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "a/b'c@d")
    assert with_secrets("secret('PLANT')") == "a/b'c@d"
    assert with_secrets("mqtt://ann:secret('PLANT')@host") == "mqtt://ann:a%2Fb%27c%40d@host"
    assert shown_text("cannot reach a/b'c@d or a%2Fb%27c%40d") == "cannot reach … or …"
    with pytest.raises(InputError, match="there is no secret OTHER") as error:
        with_secrets("secret('OTHER')")
    assert error.value.detail == "the environment variable NILOMETER_SECRET_OTHER is not set"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "secrets"
    made.mkdir(mode=0o700)
    read_secrets_in(made)
    yield made
    read_secrets_in(None)


def test_a_secret_may_lie_in_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "PLANT_2"
    with pytest.raises(InputError, match="there is no secret PLANT_2") as error:
        with_secrets("secret('PLANT_2')")
    assert error.value.detail == (
        "the environment variable NILOMETER_SECRET_PLANT_2 is not set, "
        f"and {file} cannot be read: No such file or directory"
    )
    file.write_text("hunter4\n")
    file.chmod(0o640)
    with pytest.raises(InputError, match="other users can read the secret PLANT_2"):
        with_secrets("secret('PLANT_2')")
    file.chmod(0o600)
    assert with_secrets("mqtt://ann:secret('PLANT_2')@host") == "mqtt://ann:hunter4@host"
    assert shown_text("no hunter4 here") == "no … here"
    monkeypatch.setenv("NILOMETER_SECRET_PLANT_2", "other")
    assert with_secrets("secret('PLANT_2')") == "other"
    file.write_bytes(b"\xff\xfe")
    monkeypatch.delenv("NILOMETER_SECRET_PLANT_2")
    with pytest.raises(InputError, match="there is no secret"):
        with_secrets("secret('PLANT_2')")


CLEAR = "is stored in the catalog in plain text: secret('NAME') in its place keeps it elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE STREAM S (v INT) FROM http WITH (address = 'http://h/')", "created stream S"),
        (
            "CREATE STREAM S (v INT) FROM http WITH (address = 'http://h/', token = 'x')",
            f"created stream S; what token holds {CLEAR}",
        ),
        (
            "CREATE STREAM S (v INT) FROM http WITH (address = 'http://ann:x@h/')",
            f"created stream S; what address holds {CLEAR}",
        ),
        (
            "CREATE STREAM S (v INT) FROM http WITH (address = 'http://h/?key=x')",
            f"created stream S; what address holds {CLEAR}",
        ),
        (
            """CREATE STREAM S (v INT) FROM http WITH
               (address = 'http://a:secret(''PLANT'')@h/?key=secret(''PLANT'')',
                token = secret('PLANT'))""",
            "created stream S",
        ),
        ("INSERT INTO T VALUES (1, 'http://h/')", "inserted 1 row into T"),
        (
            """INSERT INTO T VALUES (1, '{"address": "http://h/", "token": "x"}'),
               (2, 'http://a:b@h/')""",
            f"inserted 2 rows into T; what s holds {CLEAR}",
        ),
        ("""INSERT INTO T VALUES (1, '{"address":"http://h/","interval":"5s"}')""",
         "inserted 1 row into T"),
        (
            """INSERT INTO T VALUES
               (1, '{"address": "http://h/", "token": "secret(''PLANT'')"}')""",
            "inserted 1 row into T",
        ),
        (
            "UPDATE T SET s = 'http://a:b@h/' WHERE id = 0",
            f"updated 1 row of T; what s holds {CLEAR}",
        ),
    ],
)  # fmt: skip
def test_a_secret_in_the_clear_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "hunter2")
    with SensorCatalog.open(tmp_path / "c.db") as catalog:
        run(catalog, "CREATE SENSOR TABLE T (id INT, s STREAM (v INT) FROM http)")
        run(catalog, "INSERT INTO T VALUES (0, 'http://h/')")
        assert run(catalog, text) == said


def test_lines_of_the_log_and_answers_have_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "hunter5")
    with_secrets("secret('PLANT')")
    try:
        raise ValueError("got hunter5 at http://h/?token=abc")
    except ValueError:
        record = logging.LogRecord(
            "n", logging.ERROR, "p", 1, "no %s", ("hunter5",), sys.exc_info()
        )
    for form in ("text", "json"):
        line = Lines(form).format(record)
        assert "hunter5" not in line
        assert "abc" not in line
    error = InputError("no hunter5", detail="http://a:b@h", hint="not ?key=abc")
    assert shape_of(error)["error"] | {"kind": "", "position": None} == {
        "message": "no …",
        "detail": "http://a:…@h",
        "hint": "not ?key=…",
        "kind": "",
        "position": None,
    }


def test_the_catalog_keeps_the_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NILOMETER_SECRET_PLANT", "hunter2")
    with SensorCatalog.open(tmp_path / "c.db") as catalog:
        for text in (
            "CREATE STREAM S (v INT) FROM http "
            "WITH (address = 'http://h/', token = secret('PLANT'), interval = 5 SECONDS)",
            "CREATE SENSOR TABLE T (id INT, s STREAM (v INT) FROM http)",
            """INSERT INTO T VALUES
               (1, '{"address": "http://h/", "token": "secret(''PLANT'')"}')""",
        ):
            run(catalog, text)
        assert catalog.require_declaration("S").options["token"] == "secret('PLANT')"
    assert b"hunter2" not in (tmp_path / "c.db").read_bytes()


@pytest.mark.parametrize("value", ["secret()", "secret(PLANT)", "secret('a b')", "secret('A'"])
def test_a_reference_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(SqlSyntaxError):
        read_one(f"CREATE STREAM S (v INT) FROM http WITH (token = {value})")


def test_a_secret_that_is_not_set_is_reported_at_once(tmp_path: Path) -> None:
    text = "CREATE STREAM S (v INT) FROM http WITH (token = secret('NOWHERE'))"
    with (
        SensorCatalog.open(tmp_path / "c.db") as catalog,
        pytest.raises(SqlError, match="there is no secret NOWHERE"),
    ):
        run(catalog, text)
