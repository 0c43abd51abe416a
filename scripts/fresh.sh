#!/usr/bin/env bash
# Runs the two commands of a newcomer in minimal Debian roots, from a clone of what is committed:
#
#   fresh.sh                    on Debian 12 and 13
#   fresh.sh trixie             on one of them
#   COMMANDS=demo fresh.sh      only some of: demo, test, user (the demo by somebody without root),
#                               versions (make spark-versions, on the Python of that Debian)
#   APT='Acquire::Check-Valid-Until "false"' fresh.sh forky
#                               an option for apt, here and in the root
#
# A root has python3, python3-venv, make and git. Prints seconds and megabytes of every step.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
folder=$here/build/fresh
commands=${COMMANDS:-demo user test}
results=()

fail() { printf 'fresh: %s\n' "$*" >&2; exit 1; }

# Runs a command as a user inside a root, with processes and mounts of its own and a plain
# environment.
inside() {
  local root=$1 user=$2
  shift 2
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 user=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    exec chroot --userspec="$user" "$root" env -i CI=true LANG=C.UTF-8 HOME="/home/$user" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
      bash -lc "$*"
  ' inside "$root" "$user" "$@"
}

# Times a step, and notes how much a root has grown.
step() {
  local root=$1 title=$2 started=$SECONDS before after state=green
  shift 2
  before=$(du -smx "$root" 2>/dev/null | cut -f 1)
  printf '\n== %s\n' "$title"
  "$@" || state=RED
  after=$(du -smx "$root" 2>/dev/null | cut -f 1)
  results+=("$(printf '%-34s %-6s %5d s %6d MB' "$title" "$state" $((SECONDS - started)) $((after - ${before:-0})))")
  [ "$state" = green ]
}

# Deletes a root. One whose making was interrupted may still have /proc, /sys or /dev of this machine
# mounted below it: they are let go first, and nothing on another file system is ever deleted.
remove_root() {
  local root=$1 mounted
  while read -r mounted; do
    umount --lazy "$mounted"
  done < <(cut -d ' ' -f 2 /proc/mounts | awk -v below="$root/" 'index($0, below) == 1' | sort -r)
  rm -rf --one-file-system "$root"
}

build_root() {
  mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,make,git,ca-certificates \
    ${APT:+--aptopt="$APT"} "$2" "$1"
  # How this machine reaches package indexes: names of hosts, and certificates that it trusts.
  cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
}

clone() {
  local root=$1 user=$2
  mkdir -p "$root/home/$user"
  git clone --quiet "$here" "$root/home/$user/nilometer"
  if [ "$user" != root ]; then
    chroot "$root" useradd --home-dir "/home/$user" "$user" 2>/dev/null || true
    chroot "$root" chown -R "$user" "/home/$user"
  fi
}

try_debian() {
  local suite=$1 root=$folder/$1
  remove_root "$root"
  mkdir -p "$root"
  step "$root" "$suite: minimal root" build_root "$root" "$suite" || return 1
  clone "$root" root
  clone "$root" newcomer
  # Without root comes first: whatever root has installed would be there.
  case " $commands " in *" user "*)
    step "$root" "$suite: make demo, without root" \
      inside "$root" newcomer "cd ~/nilometer && make demo SECONDS=20" || return 1
    rm -rf --one-file-system "$root/home/newcomer"
  esac
  case " $commands " in *" demo "*)
    step "$root" "$suite: make demo" \
      inside "$root" root "cd ~/nilometer && make demo SECONDS=20" || return 1
    step "$root" "$suite: make demo again" \
      inside "$root" root "cd ~/nilometer && make demo SECONDS=20" || return 1
  esac
  case " $commands " in *" test "*)
    step "$root" "$suite: make test" inside "$root" root "cd ~/nilometer && make test" || return 1
  esac
  case " $commands " in *" versions "*)
    # Java 21 where there is one: that of the newest Debian is too new for the oldest Spark.
    step "$root" "$suite: make spark-versions" inside "$root" root \
      "java=openjdk-21-jre-headless; apt-get -qq update && \
      { apt-cache show \$java >/dev/null 2>&1 || java=default-jre-headless; } && \
      apt-get -qq install -y --no-install-recommends \$java >/dev/null && \
      cd ~/nilometer && make spark-versions SPARKS='${SPARKS:-}'" || return 1
  esac
  remove_root "$root"
}

[ "$(id -u)" = 0 ] || fail "root is needed to make a root folder: run it with sudo"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is needed: apt-get install mmdebstrap"
status=0
for suite in ${*:-bookworm trixie}; do
  try_debian "$suite" || status=1
done
printf '\n%s (%s)\n' "What it took" "$(uname -m)"
printf '  %s\n' "${results[@]}"
exit "$status"
