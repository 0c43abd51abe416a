#!/usr/bin/env bash
# Compiles the pinned requirement files from pyproject.toml: versions and hashes, no hosts.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check uv
compile() {
  "$tools/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 \
    --generate-hashes --no-header --no-annotate pyproject.toml "$@"
}
compile -o requirements/runtime.txt
compile --all-extras --group dev -o requirements/dev.txt
