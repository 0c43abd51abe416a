"""Tokens, sessions of the console, and the command that makes tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.errors import ClosedError, InputError, NameTakenError
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.console.access import Visitor
from nilometer.server.scopes import EVERYTHING, Scope
from nilometer.server.sessions import CODE_SECONDS, SESSION_SECONDS, Sessions
from nilometer.server.tokens import FRESH_SECONDS, Tokens, hash_of, scopes_of

SECOND = 1_000_000


class Clocks:
    """The time of day and a clock that counts, both set by hand."""

    def __init__(self) -> None:
        self.micros = 1_000 * SECOND
        self.seconds = 50.0


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def tokens(catalog: SensorCatalog, clocks: Clocks) -> Tokens:
    return Tokens(catalog, lambda: clocks.micros, lambda: clocks.seconds)


def test_a_token_is_found_by_itself_alone(tokens: Tokens) -> None:
    secret = tokens.create("ann", Scope.WRITE)
    assert re.fullmatch(r"nm_[A-Za-z0-9_-]{43}", secret)
    token = tokens.find(secret)
    assert token is not None
    assert (token.name, scopes_of(token)) == ("ann", {Scope.WRITE})
    assert token.hash == hash_of(secret) != secret
    for other in ("", secret[:-1], secret + "x", secret.lower(), "nm_", "\udc80", token.hash):
        assert tokens.find(other) is None


def test_names_are_taken_once(tokens: Tokens) -> None:
    tokens.create("ann", Scope.READ)
    with pytest.raises(NameTakenError):
        tokens.create("ann", Scope.READ)
    for name in ("", " ", "a\nb", "x" * 101):
        with pytest.raises(InputError):
            tokens.create(name, Scope.READ)


def test_a_token_expires(tokens: Tokens, clocks: Clocks) -> None:
    secret = tokens.create("ann", Scope.READ, expires=clocks.micros + SECOND)
    assert tokens.find(secret) is not None
    clocks.micros += SECOND
    assert tokens.find(secret) is None
    with pytest.raises(InputError, match="expire"):
        tokens.create("bob", Scope.READ, expires=clocks.micros)


def test_others_revoke_within_seconds(
    tokens: Tokens, catalog: SensorCatalog, clocks: Clocks
) -> None:
    secret = tokens.create("ann", Scope.READ)
    assert Tokens(catalog).revoke("ann")
    assert tokens.is_fresh
    assert tokens.find(secret) is not None  # for so long it is remembered
    clocks.seconds += FRESH_SECONDS
    assert not tokens.is_fresh
    tokens.refresh()
    assert tokens.find(secret) is None
    assert not tokens.revoke("ann")


def test_without_the_catalog_nobody_is_let_in_for_long(tokens: Tokens, clocks: Clocks) -> None:
    secret = tokens.create("ann", Scope.READ)
    clocks.seconds += 31
    with pytest.raises(ClosedError):
        tokens.find(secret)


def test_the_first_token_is_made_once(tokens: Tokens) -> None:
    first = tokens.create_first()
    assert first is not None
    token = tokens.find(first)
    assert token is not None
    assert scopes_of(token) == {Scope.ADMIN}
    assert tokens.create_first() is None


def test_only_a_hash_is_kept(tmp_path: Path) -> None:
    with SensorCatalog.open(tmp_path / "catalog.sqlite") as catalog:
        secret = Tokens(catalog).create("ann", Scope.READ)
    content = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert hash_of(secret).encode() in content
    assert secret.encode() not in content


# Sessions


def test_a_code_opens_one_session_in_time(tokens: Tokens, clocks: Clocks) -> None:
    sessions = Sessions(tokens, lambda: clocks.seconds)
    code = sessions.code_for(EVERYTHING)
    session = sessions.redeem(code)
    assert session is not None
    assert sessions.scopes(session) == EVERYTHING
    assert sessions.redeem(code) is None
    late = sessions.code_for(EVERYTHING)
    clocks.seconds += CODE_SECONDS
    assert sessions.redeem(late) is None
    assert sessions.redeem("") is None
    clocks.seconds += SESSION_SECONDS
    assert sessions.scopes(session) == set()


def test_a_session_ends_with_its_token(tokens: Tokens, clocks: Clocks) -> None:
    sessions = Sessions(tokens, lambda: clocks.seconds)
    session = sessions.open(tokens.create("ann", Scope.READ))
    assert sessions.scopes(session) == {Scope.READ}
    assert sessions.open("nm_wrong") is None
    tokens.revoke("ann")
    assert sessions.scopes(session) == set()


def test_a_page_shows_no_more_when_nobody_can_tell_who_looks(
    tokens: Tokens, clocks: Clocks
) -> None:
    sessions = Sessions(tokens, lambda: clocks.seconds)
    visitor = Visitor(sessions, sessions.open(tokens.create("ann", Scope.READ)) or "")
    assert not visitor.has_ended
    clocks.seconds += 31
    assert visitor.has_ended
    tokens.refresh()
    assert not visitor.has_ended
    tokens.revoke("ann")
    assert visitor.has_ended


def test_a_session_that_was_closed(tokens: Tokens) -> None:
    sessions = Sessions(tokens)
    session = sessions.redeem(sessions.code_for({Scope.READ}))
    sessions.close(session)
    assert sessions.scopes(session) == set()
    assert sessions.scopes(None) == set()


# The command line


def test_the_command_makes_lists_and_revokes(tmp_path: Path) -> None:
    runner, db = CliRunner(), ["--db", str(tmp_path)]
    made = runner.invoke(
        app, ["tokens", "create", "ann", "--scope", "write", "--expires", "30d", *db]
    )
    assert made.exit_code == 0, made.output
    with SensorCatalog.open(tmp_path / "catalog.sqlite") as catalog:
        tokens = Tokens(catalog)
        tokens.refresh()
        token = tokens.find(made.output.strip())
        assert token is not None
        assert token.expires is not None
        assert token.expires - token.created == pytest.approx(30 * 86400 * SECOND, abs=60 * SECOND)
    listed = runner.invoke(app, ["tokens", "list", *db])
    assert "ann" in listed.output
    assert "write" in listed.output
    assert made.output.strip() not in listed.output
    assert "revoked" in runner.invoke(app, ["tokens", "revoke", "ann", *db]).output
    again = runner.invoke(app, ["tokens", "revoke", "ann", *db])
    assert isinstance(again.exception, InputError)


@pytest.mark.parametrize("what", [["list"], ["revoke", "ann"]])
def test_a_database_is_not_made_by_looking_for_its_tokens(tmp_path: Path, what: list[str]) -> None:
    missing = tmp_path / "plnat"
    result = CliRunner().invoke(app, ["tokens", *what, "--db", str(missing)])
    assert "there is no database in" in str(result.exception)
    assert not missing.exists()
