#!/usr/bin/env bash
# Runs the smoke suite on every supported Spark, on every Python that is found:
#
#   spark_versions.sh                                all of them
#   SPARKS="4.0 4.3" PYTHONS="3.11 3.13" spark_versions.sh    some of them
#
# Each gets an environment under build/spark-versions with the package as pip would install it
# beside that Spark: a wheel of this tree without extras. A Spark is built once, to a wheel, and uv
# links its files, so that a second environment with it takes little room.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/spark-versions
sparks=${SPARKS:-4.0 4.1 4.2 4.3}
pythons=${PYTHONS:-3.11 3.12 3.13 3.14}
uv=$(command -v uv || true)
results=()
failed=0

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
fail() { printf 'spark versions: %s\n' "$*" >&2; exit 1; }

if [ -z "$uv" ]; then
  say "Installing uv"
  tools=$(mktemp -d)
  trap 'rm -rf "$tools"' EXIT
  python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check uv ||
    fail "uv could not be installed"
  uv=$tools/bin/uv
fi

mkdir -p "$folder"
say "Building the wheel"
rm -rf "$folder/wheel"
"$uv" build --quiet --wheel --out-dir "$folder/wheel" . || fail "the wheel could not be built"
wheel=$(echo "$folder"/wheel/*.whl)

# The wheel of one Spark, of its newest patch.
spark_wheel() {
  compgen -G "$folder/wheels/pyspark-$1.*.whl" && return
  "$uv" tool run --quiet pip wheel --quiet --no-deps --wheel-dir "$folder/wheels" "pyspark==$1.*" >&2 &&
    compgen -G "$folder/wheels/pyspark-$1.*.whl"
}

# Installs one Spark for one Python.
install() {
  local found
  found=$(spark_wheel "$1") &&
    "$uv" venv --quiet --clear --python "$2" "$folder/$1-$2" &&
    "$uv" pip install --quiet --compile-bytecode --python "$folder/$1-$2/bin/python" "$wheel" "$found" pytest
}

# The suite stands apart from the tree, so that only what is installed can be imported.
suite() {
  (cd tests/smoke && PYTHONPATH='' "$folder/$1-$2/bin/python" -m pytest -q -c pytest.ini .)
}

for python in $pythons; do
  if ! "$uv" python find --no-python-downloads "$python" >/dev/null 2>&1; then
    say "Python $python is not here"
    continue
  fi
  for spark in $sparks; do
    log=$folder/$spark-$python.log
    version=$spark
    started=$SECONDS
    say "Spark $spark on Python $python: installing"
    if ! install "$spark" "$python" >"$log" 2>&1; then
      state="does not install"
    else
      version=$("$folder/$spark-$python/bin/python" -c 'import pyspark; print(pyspark.__version__)')
      say "Spark $version on Python $python: testing"
      started=$SECONDS
      if suite "$spark" "$python" >>"$log" 2>&1; then
        state=$(tail -n 1 "$log" | grep -o '[0-9]* passed')
      else
        state="FAILS: build/spark-versions/$(basename "$log")"
      fi
    fi
    [[ $state == *passed ]] || failed=1
    results+=("$(printf '%-8s %-8s %6d s   %s' "$python" "$version" $((SECONDS - started)) "$state")")
  done
done

printf '\n%-8s %-8s %8s   %s\n' Python Spark Suite ''
printf '%s\n' "${results[@]}"
exit "$failed"
