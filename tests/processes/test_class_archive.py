"""An archive of classes is made, and Java loads Spark from it, without a word about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ELSEWHERE = "import sys; sys.prefix = {prefix!r}\n"
_MAKE = _ELSEWHERE + "from nilometer.spark.class_archive import make_archive; print(make_archive())"
_USE = (
    _ELSEWHERE
    + "import nilometer as nm; print(nm.local_spark().range(1000).groupBy('id').count().count())"
)


@pytest.mark.soak
@pytest.mark.limit(300)
def test_spark_is_loaded_from_an_archive_of_its_classes(tmp_path: Path) -> None:
    made = run(_MAKE, tmp_path).strip()
    assert Path(made).stat().st_size > 50 << 20
    assert sorted(tmp_path.rglob("*")) == sorted([Path(made), *Path(made).parents][:3])
    loaded = tmp_path / "loaded"
    logged = {"SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={loaded}"}
    assert run(_USE, tmp_path, logged) == "1000\n"
    lines = loaded.read_text().splitlines()
    assert sum("shared objects file (top)" in line for line in lines) > len(lines) / 2
    Path(made).chmod(0o600)
    Path(made).write_bytes(b"damaged")
    assert run(_USE, tmp_path) == "1000\n"


def run(script: str, prefix: Path, environment: dict[str, str] | None = None) -> str:
    """What a script writes to standard output, in an environment below another folder."""
    done = subprocess.run(
        [sys.executable, "-c", script.format(prefix=str(prefix))],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
