#!/usr/bin/env bash
# Runs the steps of deploy/Dockerfile in a plain Debian root, without Docker, and then the server in
# it as the container would, until it is ready; it is stopped, and that is timed. What is committed is
# copied.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/container/root
given=$PWD/build/container/given
file=$given/deploy/Dockerfile

fail() { printf 'container: %s\n' "$*" >&2; exit 1; }

# Runs a command as a user inside the root, with processes and mounts of its own.
inside() {
  local user=$1
  shift
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 user=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot --userspec="$user" "$root" env -i LANG=C.UTF-8 HOME=/data DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash -euc "$*"
  ' inside "$root" "$user" "$@"
}

# One line for each instruction of the Dockerfile.
instructions() { grep -v '^#' "$file" | sed -e ':a' -e '/\\$/N; s/\\\n//; ta' | grep -v '^$'; }

[ "$(id -u)" = 0 ] || fail "root is needed to make a root folder: run it with sudo"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is needed: apt-get install mmdebstrap"
rm -rf --one-file-system "$root" "$given"
mkdir -p "$root" "$given"
git archive HEAD | tar -x -C "$given"
mmdebstrap --quiet --variant=minbase trixie "$root"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
# How this machine reaches package indexes: certificates that it trusts.
mkdir -p "$root/etc/ssl/certs" "$root/source"
folder=/
while IFS= read -r line; do
  word=${line%% *} rest=${line#* }
  case $word in
    WORKDIR) folder=$rest ;;
    COPY)
      case $rest in
        --from*) ;; # both stages share this root
        *)
          read -ra words <<<"$rest"
          case ${words[-1]} in
            /*) to=$root${words[-1]} ;;
            *) to=$root$folder/${words[-1]} ;;
          esac
          mkdir -p "$to"
          for one in "${words[@]:0:${#words[@]}-1}"; do
            if [ -d "$given/$one" ]; then cp -r "$given/$one/." "$to"; else cp "$given/$one" "$to"; fi
          done ;;
      esac ;;
    RUN)
      printf '== %s\n' "$rest"
      cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
      inside root "cd $folder; $rest" || fail "a step failed: $rest" ;;
    USER) user=$rest ;;
    ENTRYPOINT) entry=$(python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' "$rest") ;;
    CMD) command=$(python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' "$rest") ;;
    HEALTHCHECK)
      check=$(python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' "[${rest#*[}") ;;
  esac
done < <(instructions)

printf '== %s %s\n' "$entry" "$command"
inside "$user" "cd $folder; $entry $command & server=\$!
  for _ in \$(seq 180); do $check 2>/dev/null && break; sleep 1; done
  $check && echo 'the health check succeeds' || exit 1
  began=\$SECONDS; kill -TERM \$server; wait \$server
  echo \"stopped with \$? within \$((SECONDS - began)) s\""
