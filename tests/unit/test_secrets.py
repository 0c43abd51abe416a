"""Passwords in addresses are not shown, however they are written."""

from __future__ import annotations

import pytest

from nilometer.model.secrets import shown_options, shown_text


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
