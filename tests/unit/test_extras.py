"""Without extras: everything that needs one says which, in one line."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import nilometer as nm
from nilometer.deliveries.find_units import unit_class
from nilometer.errors import InstallationError
from nilometer.extras import PACKAGES, require_extras
from tests.without_packages import run_without

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
ABSENT = {
    *(package for packages in PACKAGES.values() for package in packages),
    *("matplotlib", "py4j"),
}

ASKED_BEFORE = (
    "nilometer.commands.",  # imported by the command
    "nilometer.deliveries.units.",  # found by find_units
    "nilometer.sensors.types.kafka",  # found by find_types
    "nilometer.notebook",  # loaded by IPython
    "nilometer.mining.",  # found by its registry
)
"""Modules that import packages of an extra, after somebody else has asked for it."""

IMPORT_ALL = """
import importlib, pkgutil
import nilometer
from nilometer.errors import InstallationError
said = {}
for one in pkgutil.walk_packages(nilometer.__path__, "nilometer.", onerror=lambda name: None):
    if ".migrations" in one.name:
        continue
    try:
        importlib.import_module(one.name)
    except InstallationError as error:
        said[one.name] = str(error)
    except ImportError as error:
        said[one.name] = f"unsaid: {error}"
print(json.dumps(said))
"""

COMMANDS = {
    "serve --db x": "nilometer[server]",
    "demo": "nilometer[server]",
    "demo idhm": "nilometer[server]",
    "sql --engine=spark SELECT(1)": "nilometer[spark]",
    "explain --db=plant SELECT(1)": "nilometer[spark]",
    "sql --server=http://h SELECT(1)": "nilometer[client]",
    "sensors list --server=http://h": "nilometer[client]",
    "shell --server=http://h -f x.sql": "nilometer[client]",
    "shell --db=plant -f x.sql": "nilometer[spark]",
    "tokens create me --scope read --db x": "nilometer[server]",
    "sensors list --db x": "nilometer[spark]",
    "sensors watch --db x": "nilometer[spark]",
    "sensors test S --db x": "nilometer[spark]",
}

RUN_ALL = f"""
import io
from contextlib import redirect_stderr
from nilometer.cli import main
said = {{}}
for command in {list(COMMANDS)!r}:
    sys.argv = ["nilometer", *command.split()]
    with redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as end:
            assert end.code == 1, end.code
    said[command] = errors.getvalue()
print(json.dumps(said))
"""


def brought_by(extra: str) -> set[str]:
    """The distributions that an extra names, also by way of others."""
    names = set()
    for requirement in EXTRAS[extra]:
        name, others = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == "nilometer":
            names |= {one for other in others.split(",") for one in brought_by(other)}
        else:
            names.add(name.lower())
    return names


@pytest.mark.parametrize("extra", PACKAGES)
def test_what_is_asked_for_comes_with_the_extra(extra: str) -> None:
    distributions = packages_distributions()
    for package in PACKAGES[extra]:
        names = {one.lower().replace("_", "-") for one in distributions[package]}
        assert names & brought_by(extra), package


def test_the_client_brings_no_spark() -> None:
    assert brought_by("client") == {"httpx"}
    assert not any(one.startswith("pyspark") for one in PROJECT["dependencies"])


def test_no_module_fails_otherwise() -> None:
    said: dict[str, str] = run_without(ABSENT, IMPORT_ALL)
    unsaid = {
        module: text
        for module, text in said.items()
        if not module.startswith(ASKED_BEFORE) and not text.endswith("]'")
    }
    assert not unsaid
    assert said["nilometer.server"].startswith("the server needs duckdb, fastapi, ")
    assert said["nilometer.client"] == "this needs httpx: pip install 'nilometer[client]'"


def test_commands_say_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = run_without(ABSENT, RUN_ALL)
    for command, extra in COMMANDS.items():
        assert re.fullmatch(
            rf"error: .* needs [\w, ]+: pip install '{re.escape(extra)}'\n(  detail: .*\n)?",
            said[command],
        ), command


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Client", "nm.Client needs httpx: pip install 'nilometer[client]'"),
        ("AsyncClient", "nm.AsyncClient needs httpx: pip install 'nilometer[client]'"),
        ("Database", "nm.Database needs pyspark: pip install 'nilometer[spark]'"),
        ("window_join", "nm.window_join needs pyspark: pip install 'nilometer[spark]'"),
    ],
)
def test_names_say_which(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("httpx", "pyspark"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InstallationError) as caught:
        getattr(nm, name)
    assert str(caught.value) == said


def test_deliveries_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("httpx", "paho"):
        monkeypatch.setitem(sys.modules, package, None)
    for unit, package in (("webhook", "httpx"), ("MQTT", "paho")):
        with pytest.raises(InstallationError) as caught:
            unit_class(unit)
        assert str(caught.value) == (
            f"delivery unit {unit.lower()} needs {package}: pip install 'nilometer[deliveries]'"
        )
    assert unit_class("parquet")


def test_it_is_an_import_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match="this needs httpx"):
        require_extras("this", "client")


def test_what_is_there_is_not_refused() -> None:
    require_extras("this", *PACKAGES)
