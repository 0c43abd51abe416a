#!/usr/bin/env bash
# Tests with the lowest version of every package that pyproject.toml names, on Python 3.11.
# What these packages need in turn, and what only tests need, is as new as it may be.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/lowest
python=$folder/bin/python
uv=$(command -v uv || true)

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# The plans, SQL, the server and its console; one test file or more for every other package.
tests=(
  tests/unit/test_*plans.py tests/unit/test_*statements.py tests/unit/test_extras.py
  tests/unit/test_installed_versions.py
  tests/unit/test_server_*.py tests/unit/test_console_*.py tests/unit/test_results_*.py
  tests/unit/test_client.py tests/unit/test_service.py tests/unit/test_deliver*.py
  tests/unit/test_catalog*.py tests/unit/test_cli_*.py
  tests/unit/test_classify.py tests/unit/test_lines.py tests/unit/test_motifs.py
  tests/unit/test_online_clusters.py tests/unit/test_peaks.py tests/unit/test_periodicity.py
  tests/unit/test_claims.py
  tests/browser/test_shell.py tests/browser/test_editor.py tests/browser/test_query_pages.py
)

mkdir -p build
if [ -z "$uv" ]; then
  say "Installing uv"
  python3 -m venv build/uv
  build/uv/bin/pip install --quiet --disable-pip-version-check uv
  uv=build/uv/bin/uv
fi
say "Choosing the lowest versions"
"$uv" venv --quiet --clear --python 3.11 "$folder"
"$python" -c 'import tomllib
with open("papers/pyproject.toml", "rb") as file:
    needed = tomllib.load(file)["project"]["dependencies"]
print(*(one for one in needed if not one.startswith("nilometer")), sep="\n")' > build/papers.in
"$uv" pip compile --quiet --upgrade --resolution lowest-direct --python "$python" --all-extras \
  --no-header --no-annotate pyproject.toml build/papers.in -o build/lowest.txt
say "Installing them, and what the tests need"
"$uv" pip install --quiet --compile-bytecode --python "$python" -r build/lowest.txt
"$uv" pip install --quiet --compile-bytecode --python "$python" --constraint build/lowest.txt --group dev
"$uv" pip install --quiet --compile-bytecode --python "$python" --no-deps --no-build-isolation --editable . --editable papers
# Old packages may warn of what is new in others; only their answers are of interest here.
run() { "$python" -m pytest -q -p no:cacheprovider -W default --disable-warnings "$@"; }
say "Testing plans, SQL, server, console and mining"
run "${tests[@]}"
say "Testing on the oldest Spark"
run tests/spark/test_batch_join.py
(cd tests/smoke && PYTHONPATH='' "$OLDPWD/$python" -m pytest -q -c pytest.ini .)
say "All floors hold: the tests pass with the lowest versions, see build/lowest.txt"
