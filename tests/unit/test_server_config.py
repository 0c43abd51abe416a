"""The configuration of a server: what it reads, and how it names what is wrong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from nilometer.errors import InputError
from nilometer.server.config import ServerConfig, read_config
from nilometer.server.settings import ServerSettings

WHOLE = """
[server]
port = 9000
allowed_hosts = ["plant.example"]
certificate = "tls/cert.pem"
temporary_after = 5

[limits]
results = "1GB"
history = "1 day"

[streams]
history = "7 days"
disk = "20GB"
when_full = "drop_oldest"
durability = "disk"
ship_every = "5s"

[functions]
near = "math:isclose"
[functions.root]
function = "math:sqrt"
returns = "double"
by_row = true
cost = 50
[functions.total]
function = "math:fsum"
returns = "double"
aggregate = true

[units]
celsius = "math:floor"

[files]
allowed = ["recordings"]

[deliveries]
folders = ["out"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "nilometer.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, WHOLE))
    settings = config.settings
    assert (settings.port, settings.allowed_hosts) == (9000, ("plant.example",))
    assert settings.certificate == tmp_path / "tls/cert.pem"
    assert settings.temporary_after == 5.0
    assert settings.host == "127.0.0.1"
    assert (config.limits.results, config.limits.history) == (1 << 30, 86_400_000_000)
    assert config.streams.history == 7 * 86_400_000_000
    assert config.streams.options == {
        "disk": "20GB",
        "when_full": "drop_oldest",
        "durability": "disk",
        "ship_every": "5s",
    }
    assert config.functions["near"].returns == "boolean"
    assert config.functions["root"].function(9) == 3
    assert config.functions["root"].by_row
    assert [config.functions[name].cost for name in ("root", "near")] == [50, None]
    assert [name for name, one in config.functions.items() if one.aggregate] == ["total"]
    assert config.units["celsius"](1.5) == 1
    assert config.files == (tmp_path / "recordings",)
    assert config.delivery_folders == (tmp_path / "out",)


def test_without_a_file_the_defaults_hold() -> None:
    assert read_config(None) == ServerConfig()


def test_every_setting_can_be_given(tmp_path: Path) -> None:
    usual = ServerSettings()
    lines = []
    for one in fields(ServerSettings):
        value = getattr(usual, one.name)
        missing = "5432" if "int" in str(one.type) else '"x"'
        shown = {"None": missing, "()": "[]", "False": "false"}.get(str(value), repr(value))
        lines.append(f"{one.name} = {shown}")
    read_config(write(tmp_path, "[server]\n" + "\n".join(lines).replace("'", '"')))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sever]", "the configuration has no sever"),
        ("[server]\nprot = 1", "the configuration has no server.prot"),
        ('[server]\nport = "x"', "server.port cannot be 'x'"),
        ("[server]\nport = true", "server.port cannot be True"),
        ("[server]\nmax_rows = 0", "server.max_rows cannot be 0"),
        ("[server]\nallowed_hosts = 'x'", "server.allowed_hosts cannot be 'x'"),
        ("server = 1", "server is not a table"),
        ("[limits]\nresults = 'much'", "limits.results: cannot read a size"),
        ("[streams]\ndisk = 'much'", "streams.disk: option disk cannot be used"),
        ("[streams]\nsegment = '1MB'", "the configuration has no streams.segment"),
        ("[limits]\nrows = 1", "the configuration has no limits.rows"),
        ("[functions.f]\nfunction = 'math:sqrt'\ncost = 0", "functions.f.cost cannot be 0"),
        ("[functions]\nf = 'math'", "functions.f names nothing of a module"),
        ("[functions]\nf = 'math:nothing'", "functions.f: math:nothing cannot be loaded"),
        ("[functions]\nf = 'math:pi'", "functions.f: math:pi is not a function"),
        ("[functions.f]\nreturn = 'int'", "the configuration has no functions.f.return"),
        ("[units]\nu = 'no_such_module_x:f'", "units.u: no_such_module_x:f cannot be loaded"),
        ("[files]\nallowed = 'x'", "files.allowed must be a list of folders"),
        ("[deliveries]\nfolder = []", "the configuration has no deliveries.folder"),
        ("[server", "is not a TOML file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(write(tmp_path, text))
    assert said in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_config(tmp_path / "none.toml")


def test_where_secrets_lie(tmp_path: Path) -> None:
    file = tmp_path / "plant.toml"
    file.write_text('[secrets]\nfolder = "kept"\n')
    with pytest.raises(InputError, match="secrets.folder is not a folder"):
        read_config(file)
    (tmp_path / "kept").mkdir()
    assert read_config(file).secrets == tmp_path / "kept"
    file.write_text("[secrets]\nfolder = 5\n")
    with pytest.raises(InputError, match="secrets.folder cannot be 5"):
        read_config(file)
    file.write_text('[secrets]\nfile = "kept"\n')
    with pytest.raises(InputError, match="the configuration has no secrets.file"):
        read_config(file)
