#!/usr/bin/env bash
# Sets up .venv from the pinned requirements, and the programs that are needed beside it.
#
#   set_up.sh demo     what the demo needs: a Java where there is none, a broker for sensors
#   set_up.sh mining   the papers' package, for the demo of boxes on a belt, and what mining needs
#   set_up.sh tests    everything else: packages for tests, a database server, a browser
#   set_up.sh soak     what only the long tests need: linters, another server of S3
#
# Says what takes long, how large it is, and what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
fail() { printf 'set-up stopped: %s\n' "$*" >&2; exit 1; }

# Runs a command with a line that grows while it works; shows its output only if it fails.
work() { work_if_possible "$@" || exit 1; }

# The same, but a failure is not the end.
work_if_possible() {
  local title=$1 log started size
  shift
  log=$(mktemp)
  started=$SECONDS
  size=$(megabytes)
  printf '%s ' "$title"
  "$@" >"$log" 2>&1 &
  local job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 1
    (( (SECONDS - started) % 3 )) || printf '.'
  done
  if wait "$job"; then
    printf ' %d s, %d MB\n' $((SECONDS - started)) $(($(megabytes) - size))
    rm -f "$log"
  else
    printf ' failed\n'
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
  fi
}

# How large the environment and the installed programs are.
megabytes() {
  local programs
  programs=$(dpkg-query -W -f '${Installed-Size}\n' 2>/dev/null | awk '{n += $1} END {print n + 0}')
  du -sk .venv 2>/dev/null | awk -v n="$programs" '{n += $1} END {printf "%d\n", n / 1024}'
}

can_use_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
  can_use_apt || return 1
  apt-get -qq update || true # an old list may do
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends "$@"
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

has_jdbc() { [ -e /usr/share/java/postgresql.jar ]; }

# A browser, and a library that Playwright's own program needs and a minimal Debian lacks.
has_browser() {
  { command -v chromium-headless-shell || command -v chromium || command -v google-chrome; } \
    >/dev/null &&
    .venv/bin/python -c 'import ctypes; ctypes.CDLL("libatomic.so.1")' 2>/dev/null
}

# Installs a program that much works without, or says what does not: a check, the program's name,
# what does not work, and packages that it needs to be of use.
install_if_possible() {
  local check=$1 name=$2 missing=$3
  shift 3
  "$check" && return
  if can_use_apt; then
    work_if_possible "Installing $name" apt_install_idle "$name" "$@" || true
  fi
  "$check" || say "Without $name $missing: install $name"
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
  case $major in 17 | 21 | 25) ;; *) return 1 ;; esac # those that are tested
}

# Installs one of the lock files, in another environment if one is named.
install_packages() {
  local count
  count=$(grep -c '==' "requirements/$1.txt")
  work "Installing $count Python package$([ "$count" = 1 ] || printf s)${2:-}" \
    "${3:-.venv}/bin/pip" install --disable-pip-version-check --no-input --require-hashes \
    -r "requirements/$1.txt"
}

# Installs one of the repository's two packages from its folder.
install_own() {
  work "Installing $1" \
    .venv/bin/pip install --disable-pip-version-check --no-input --no-deps \
    --no-build-isolation --editable "$2"
  .venv/bin/python -m compileall -q "$2/src" || true # or many processes would do it at the same time
}

make_venv() {
  local python
  python=$(find_python)
  "$python" -m venv .venv >/dev/null 2>&1 && return
  rm -rf .venv
  work "Installing Python's venv" apt_install python3-venv ||
    fail "Python's venv module is needed: install python3-venv and run make again"
  "$python" -m venv .venv || fail "cannot make a virtual environment"
}

set_up_demo() {
  find_python >/dev/null
  if ! has_java && can_use_apt; then
    work_if_possible "Installing Java" apt_install default-jre-headless || true
  fi
  install_if_possible has_mosquitto mosquitto \
    "all cameras of the demo speak HTTP, and tests of MQTT are skipped"
  make_venv
  install_packages demo " (half of it is Spark)"
  has_java || install_packages java " (a Java, because none was found)"
  install_own nilometer .
}

set_up_mining() {
  install_packages mining
  install_own nilometer-papers papers
}

set_up_tests() {
  install_packages dev
  install_own nilometer-papers papers
  # Tests start Java many times: it is worth half a minute. Without it they only take longer.
  work_if_possible "Making an archive of Spark's classes" \
    .venv/bin/python -m nilometer.spark.class_archive || true
  install_if_possible has_postgres postgresql "the tests of catalogs in PostgreSQL are skipped"
  install_if_possible has_jdbc libpostgresql-jdbc-java "PostgreSQL's protocol is not tested from Java"
  install_if_possible has_browser chromium-headless-shell "the tests of the console are skipped" \
    fonts-liberation libatomic1
}

set_up_soak() {
  .venv/bin/python -m venv .venv/soak
  install_packages soak "" .venv/soak
}

mkdir -p build
case ${1:-} in
  demo) set_up_demo ;;
  mining) set_up_mining ;;
  tests) set_up_tests ;;
  soak) set_up_soak ;;
  *) fail "say what to set up: demo, mining, tests or soak" ;;
esac
touch ".venv/ready-$1"
