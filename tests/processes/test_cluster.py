"""A real cluster, whose executors see other files in /tmp than the driver does."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.spark_cluster import require_namespaces, run_on_cluster, spark_cluster


@pytest.mark.soak
@pytest.mark.limit(600)
def test_executors_that_do_not_share_a_folder_are_refused_and_lose_nothing(tmp_path: Path) -> None:
    require_namespaces()
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder, spark_cluster(Path(folder)) as cluster:
        run_on_cluster(cluster.url, "tests.spark.separate_disks_process", folder, str(tmp_path))
        answer = json.loads((Path(folder) / "answer.json").read_text())
    refusal = answer["refused"]
    assert "this executor cannot find the log that it should write to" in refusal, refusal
    assert "all executors find the same files" in answer["refused"]
    assert answer["lost"] == []
    assert answer["kept"] == [None, True]
    refused = f"executors do not share the folder {tmp_path}/plant"
    assert answer["query refused"].startswith(refused)
    assert answer["query"] == list(range(0, 40, 2))
