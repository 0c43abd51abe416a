"""Stream types by name, those of other packages among them, and their options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nilometer.errors import InputError
from nilometer.model.options import Option, parse_size, yes_or_no
from nilometer.sensors.find_types import check_options, known_types, stream_class
from nilometer.sensors.stream_type import ENTRY_POINTS
from nilometer.sensors.types.address import read_address
from nilometer.sensors.types.options import read_options
from tests.installed_package import install

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "stream_type_package"
BUILT_IN = ["file", "http", "kafka", "mqtt", "python", "synthetic", "tcp"]


def test_built_in_types_are_stream_types() -> None:
    assert [
        name for name in known_types() if known_types().package(name) == "nilometer"
    ] == BUILT_IN
    for name in BUILT_IN:
        stream = stream_class(name.upper())()
        for function in ("init_stream", "read_stream", "close_stream", "can_wait"):
            assert hasattr(stream, function)


def test_an_unknown_type_is_refused_with_what_it_may_have_been() -> None:
    with pytest.raises(InputError, match="there is no stream type 'htttp'") as refused:
        stream_class("htttp")()
    assert refused.value.hint == "did you mean http?"
    assert "file, http, kafka, mqtt" in str(refused.value.detail)


def test_a_broken_package_matters_only_to_who_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "broken_types",
        ENTRY_POINTS,
        "broken = broken_types:X\nhttp = broken_types:X",
        "1 / 0",
    )
    install(
        tmp_path, "odd_types", ENTRY_POINTS, "odd = odd_types:X", "class X:\n    can_wait = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert {"broken", "odd"} < set(known_types())
    assert known_types().package("broken") == "broken_types"
    assert type(stream_class("http")()).__name__ == "HttpStream"
    with pytest.raises(InputError, match="stream type broken cannot be loaded") as refused:
        stream_class("broken")()
    assert "ZeroDivisionError" in str(refused.value.detail)
    with pytest.raises(InputError, match="stream type odd is not a stream type") as refused:
        stream_class("odd")()
    assert "init_stream, read_stream, close_stream" in str(refused.value.detail)


def test_the_example_package_is_found_once_it_is_installed(tmp_path: Path) -> None:
    """Installed as a user would, but without its dependencies and without a network."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--disable-pip-version-check", "--target", tmp_path, EXAMPLE],
        check=True,
        capture_output=True,
    )  # fmt: skip
    program = (
        "from nilometer.sensors.find_types import check_options, known_types, stream_class\n"
        "print(known_types().package('machine'), type(stream_class('machine')()).__name__,\n"
        "      check_options('machine', {'interval': '2s'}))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "nilometer-machine MachineStream {'interval': 2.0}\n"


def test_the_example_package_passes_its_own_test() -> None:
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
         "--rootdir", EXAMPLE, EXAMPLE / "tests"],
        env={"PYTHONPATH": str(EXAMPLE / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_option_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "stream_types.md").read_text()
    section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
    rows = {
        cells[1].strip().strip("`"): cells[2].strip()
        for line in section.splitlines()
        if len(cells := line.split("|")) == 5 and cells[1].strip().startswith("`")
    }
    options = known_types()[name].options  # type: ignore[attr-defined]
    assert list(rows) == [option.name for option in options]
    assert rows == {option.name: option.meaning for option in options}


def test_options_are_checked() -> None:
    known = (Option("size", "how much", parse_size, 7), Option("fast", "whether", yes_or_no, False))
    given = {"SIZE": "2KB", "address": "a stream's, which has no row"}
    assert read_options("x", known, given) == {"size": 2048, "fast": False}
    with pytest.raises(InputError, match="stream type x has no option 'sise'") as refused:
        read_options("x", known, {"sise": "1"})
    assert refused.value.hint == "did you mean size?"
    with pytest.raises(InputError, match="option fast of stream type x cannot be 'often'"):
        read_options("x", known, {"fast": "often"})
    with pytest.raises(InputError, match="option interval of stream type http"):
        check_options("http", {"interval": "-1s"})


def test_an_address_or_options() -> None:
    assert read_address(" mqtt://h/a/# ") == ("mqtt://h/a/#", {})
    assert read_address('{"topic": "a", "QoS": 2, "tls": true, "headers": {"a": "b"}}') == (
        "",
        {"topic": "a", "qos": "2", "tls": "true", "headers": '{"a": "b"}'},
    )
    with pytest.raises(InputError, match="the options of a sensor are not a JSON object"):
        read_address('{"topic": ')
    with pytest.raises(InputError, match="option 'topic' of a sensor has no value"):
        read_address('{"topic": null}')
