"""Which Spark a server uses, and what cannot be set of it."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from nilometer.errors import InputError
from nilometer.server.config import read_config
from nilometer.server.spark_settings import SparkSettings, read_spark_settings
from nilometer.spark.ship_package import zip_packages


def write(folder: Path, text: str) -> Path:
    path = folder / "nilometer.toml"
    path.write_text(text)
    return path


def test_the_command_line_comes_first(tmp_path: Path) -> None:
    path = write(tmp_path, '[spark]\nmaster = "yarn"\n"spark.executor.memory" = "4g"\n')
    memory = {"spark.executor.memory": "4g"}
    assert read_spark_settings(path, None) == SparkSettings("yarn", memory)
    assert read_spark_settings(path, "spark://h:7077") == SparkSettings("spark://h:7077", memory)
    assert read_spark_settings(None, None) == SparkSettings()
    read_config(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[spark]\nmemory = '4g'", "the configuration has no spark.memory"),
        ("[spark]\nmaster = 'sc://h'", "cannot use this master of Spark"),
        ("[spark]\nmaster = 'local; rm'", "cannot use this master of Spark"),
        ("[spark]\n'spark.master' = 'yarn'", "spark.master cannot be set"),
        ("[spark]\n'spark.sql.session.timeZone' = 'CET'", "timeZone cannot be set"),
        ("[spark]\n'spark.sql.runSQLOnFiles' = true", "runSQLOnFiles cannot be set"),
        ("[spark]\n'spark.sql.ansi.enabled' = false", "ansi.enabled cannot be set"),
        ("[spark]\n'spark.sql.parser.escapedStringLiterals' = true", "Literals cannot be set"),
        ("[spark]\n'spark.sql.legacy.timeParserPolicy' = 'LEGACY'", "Policy cannot be set"),
        ("[spark]\n'spark.x' = [1]", "spark.x must be a text or a number"),
    ],
)
def test_what_cannot_be_set_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_spark_settings(write(tmp_path, text), None)
    with pytest.raises(InputError, match=message):
        read_config(write(tmp_path, text))


def test_values_are_written_as_spark_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path, "[spark]\n'spark.a' = true\n'spark.b' = 3\n")
    assert read_spark_settings(path, None).config == {"spark.a": "true", "spark.b": "3"}


def test_the_package_is_shipped_as_it_is(tmp_path: Path) -> None:
    with ZipFile(zip_packages(tmp_path)) as archive:
        names = set(archive.namelist())
    assert {"nilometer/__init__.py", "nilometer/engine/bucket.py"} <= names
    assert not any("__pycache__" in one for one in names)
