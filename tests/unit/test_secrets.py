"""Passwords in addresses are not shown, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.errors import InputError, SqlError, SqlSyntaxError
from nilometer.model.secrets import (
    options_with_secrets,
    shown_options,
    shown_text,
    with_secrets,
)
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
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


def test_names_of_files_are_shown() -> None:
    assert shown_options({"key": "tls/client.key"}) == {"key": "tls/client.key"}


# References to secrets


def run(catalog: SensorCatalog, text: str) -> None:
    statement = read_one(text)
    assert not isinstance(statement, Statement)
    execute(catalog, statement)


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
    ],
)
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
    with pytest.raises(InputError, match="there is no secret OTHER") as found:
        with_secrets("secret('OTHER')")
    assert found.value.detail == "the environment variable NILOMETER_SECRET_OTHER is not set"


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


def test_a_secret_that_is_not_set_is_told_at_once(tmp_path: Path) -> None:
    text = "CREATE STREAM S (v INT) FROM http WITH (token = secret('NOWHERE'))"
    with (
        SensorCatalog.open(tmp_path / "c.db") as catalog,
        pytest.raises(SqlError, match="there is no secret NOWHERE"),
    ):
        run(catalog, text)
