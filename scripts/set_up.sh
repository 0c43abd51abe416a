#!/usr/bin/env bash
# Sets up .venv from the pinned requirements, Java where there is none, and a broker for sensors.
# With the argument `tests`: what only tests need, a database server and a browser.
# Says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
fail() { printf 'set-up stopped: %s\n' "$*" >&2; exit 1; }

# Runs a command with a line that grows while it works; shows its output only if it fails.
work() { work_if_possible "$@" || exit 1; }

# The same, but a failure is not the end.
work_if_possible() {
  local title=$1 log started
  shift
  log=$(mktemp)
  started=$SECONDS
  printf '%s ' "$title"
  "$@" >"$log" 2>&1 &
  local job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 1
    (( (SECONDS - started) % 3 )) || printf '.'
  done
  if wait "$job"; then
    printf ' done\n'
    rm -f "$log"
  else
    printf ' failed\n'
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
  fi
}

apt_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] || return 1
  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y "$@"
}

# Installs packages without starting what they bring: the tests start their own.
apt_install_idle() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  apt_install "$@"
)

has_mosquitto() {
  PATH=$PATH:/usr/sbin:/usr/local/sbin command -v mosquitto >/dev/null
}

has_postgres() {
  command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

has_browser() {
  command -v chromium >/dev/null || command -v google-chrome >/dev/null
}

# Installs a package that much works without, or says what does not: a check, its package, that.
install_if_possible() {
  "$1" && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    work_if_possible "Installing $2" apt_install_idle "$2" || true
  fi
  "$1" || say "Without $2 $3: install $2"
}

find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      command -v "$candidate"
      return
    fi
  done
  fail "Python 3.11 or later is needed; install it and run make again"
}

has_java() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  command -v "$java" >/dev/null || return 1
  local major
  major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ]
}

mkdir -p build
if [ "${1:-}" = tests ]; then
  install_if_possible has_postgres postgresql "the tests of catalogs in PostgreSQL are skipped"
  install_if_possible has_browser chromium "the tests of the console are skipped"
  touch .venv/ready-for-tests
  exit
fi
python=$(find_python)
if ! has_java; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    work "Installing Java" apt_install default-jre-headless
  fi
  has_java || fail "Java 17 or later is needed: install default-jre-headless and run make again"
fi
install_if_possible has_mosquitto mosquitto "all cameras of the demo speak HTTP, and tests of MQTT are skipped"
if ! "$python" -m venv .venv >/dev/null 2>&1; then
  rm -rf .venv
  work "Installing Python's venv" apt_install python3-venv ||
    fail "Python's venv module is needed: install python3-venv and run make again"
  "$python" -m venv .venv || fail "cannot make a virtual environment"
fi
work "Installing Python packages (some minutes the first time)" \
  .venv/bin/pip install --disable-pip-version-check --no-input --require-hashes \
  -r requirements/dev.txt
work "Installing nilometer" \
  .venv/bin/pip install --disable-pip-version-check --no-input --no-deps \
  --no-build-isolation --editable .
touch .venv/ready
