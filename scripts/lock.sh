#!/usr/bin/env bash
# Compiles the pinned requirement files from pyproject.toml: versions and hashes, no hosts.
# Refuses versions without wheels for a supported architecture or Python, and says which.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check uv packaging
made=$tools/requirements
mkdir "$made"

compile() {
  "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 \
    --no-header --no-annotate pyproject.toml "$@"
}

everything=(--all-extras --group dev)
compile "${everything[@]}" --upgrade --generate-hashes -o "$made/dev.txt"
# The others have the same versions of less.
compile --extra server --generate-hashes -c "$made/dev.txt" -o "$made/demo.txt"
compile --extra server --extra mining --generate-hashes -c "$made/dev.txt" -o "$made/mining.txt"
compile "${everything[@]}" -c "$made/dev.txt" --format pylock.toml -o "$tools/pylock.toml"
"$tools/bin/python" scripts/check_lock.py "$made" --write "$tools/pylock.toml" || {
  echo "the lock is refused, and the old one is kept: bound these versions in pyproject.toml" >&2
  exit 1
}
rm -f requirements/*.txt
mv "$made"/*.txt requirements/
