"""The manifests for Kubernetes agree with one another, with the image and with the server."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]

from nilometer.server.config import read_config
from nilometer.server.settings import ServerSettings
from nilometer.server.spark_settings import read_spark_settings
from nilometer.spark.serve_checkpoints import PORT as CHECKPOINT_PORT
from nilometer.spark.serve_engine import PORT
from tests.soak_programs import soak_program
from tests.unit.test_deploy import DEPLOY, STOP_SECONDS, instructions, require_known

Manifest = dict[str, Any]
FILE = DEPLOY / "kubernetes" / "nilometer.yaml"


@pytest.fixture(scope="module")
def manifests() -> dict[tuple[str, str], Manifest]:
    documents = list(yaml.safe_load_all(FILE.read_text()))
    named = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    assert len(named) == len(documents)
    return named


@pytest.fixture
def pod(manifests: dict[tuple[str, str], Manifest]) -> Manifest:
    template: Manifest = manifests["StatefulSet", "nilometer"]["spec"]["template"]
    return template


@pytest.fixture
def settings(manifests: dict[tuple[str, str], Manifest], tmp_path: Path) -> dict[str, str]:
    """Those of Spark, as the server reads them."""
    path = tmp_path / "nilometer.toml"
    path.write_text(manifests["ConfigMap", "nilometer"]["data"]["nilometer.toml"])
    assert read_config(path).settings.host == "0.0.0.0"
    settings = read_spark_settings(path, None)
    assert str(settings.master).startswith("k8s://")
    return dict(settings.config)


def test_all_is_in_one_namespace(manifests: dict[tuple[str, str], Manifest]) -> None:
    for (kind, _), one in manifests.items():
        if kind != "Namespace":
            assert one["metadata"]["namespace"] == "nilometer"


def test_the_server_runs_what_there_is_and_is_asked_where_it_answers(pod: Manifest) -> None:
    [server] = pod["spec"]["containers"]
    require_known([one.split("=")[0] for one in server["args"]])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"]["port"] == ServerSettings().port
    assert pod["spec"]["terminationGracePeriodSeconds"] > 2 * STOP_SECONDS


def test_executors_find_the_driver(
    manifests: dict[tuple[str, str], Manifest], pod: Manifest, settings: dict[str, str]
) -> None:
    service = manifests["Service", "nilometer-driver"]
    host = settings["spark.driver.host"]
    assert host == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    ports = ("spark.driver.port", "spark.driver.blockManager.port", PORT, CHECKPOINT_PORT)
    asked = {int(settings[one]) for one in ports}
    assert len(asked) == len(ports)
    assert asked == {one["port"] for one in service["spec"]["ports"]}
    [server] = pod["spec"]["containers"]
    assert asked < {one["containerPort"] for one in server["ports"]}
    let_in = manifests["NetworkPolicy", "nilometer"]["spec"]["ingress"][1]
    assert asked == {one["port"] for one in let_in["ports"]}
    labels = let_in["from"][0]["podSelector"]["matchLabels"]
    assert labels == executor(manifests)["metadata"]["labels"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]


def test_executors_have_the_image_and_the_rights_of_the_server_but_not_its_folder_and_secrets(
    manifests: dict[tuple[str, str], Manifest], pod: Manifest, settings: dict[str, str]
) -> None:
    [server] = pod["spec"]["containers"]
    template = executor(manifests)
    [worker] = template["spec"]["containers"]
    assert settings["spark.kubernetes.container.image"] == server["image"]
    assert settings["spark.kubernetes.executor.podTemplateContainerName"] == worker["name"]
    assert template["spec"]["securityContext"] == pod["spec"]["securityContext"]
    assert worker["securityContext"] == server["securityContext"]
    [scratch] = worker["volumeMounts"]
    assert scratch == {"name": "scratch", "mountPath": worker["workingDir"]}
    assert {"name": "scratch", "emptyDir": {}} in template["spec"]["volumes"]
    [logs] = [one for one in server["args"] if one.startswith("--logs=")]
    assert urlsplit(logs.partition("=")[2]).scheme == "s3"
    assert {one["secretRef"]["name"] for one in worker["envFrom"]} == {"nilometer-logs"}
    assert worker["envFrom"][0] in server["envFrom"]


def test_the_image_has_what_executors_run(manifests: dict[tuple[str, str], Manifest]) -> None:
    [worker] = executor(manifests)["spec"]["containers"]
    script = Path(worker["command"][-1])
    copied = [rest.split() for word, rest in instructions() if word == "COPY"]
    assert [f"deploy/{script.name}", f"{script.parent}/"] in copied
    assert (DEPLOY / script.name).stat().st_mode & 0o111
    users = [rest for word, rest in instructions() if word == "RUN" and "useradd" in rest]
    user = executor(manifests)["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {user} " in users[0]


@pytest.mark.soak
def test_kubernetes_has_all_of_these_fields(
    manifests: dict[tuple[str, str], Manifest], tmp_path: Path
) -> None:
    template = tmp_path / "executor.yaml"
    named = executor(manifests)
    named["metadata"]["name"] = "executor"  # as Spark does
    template.write_text(yaml.safe_dump(named))
    command = [soak_program("kubernetes-validate"), "--strict", FILE, template]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(" passed for ") == len(manifests) + 1


def executor(manifests: dict[tuple[str, str], Manifest]) -> Manifest:
    data = manifests["ConfigMap", "nilometer"]["data"]
    template: Manifest = yaml.safe_load(data["executor.yaml"])
    return template
