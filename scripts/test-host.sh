#!/bin/sh
# Gives a Debian machine what `npm run test:all` can use beyond the project itself: the client programs snakemake, batchtools, ipyparallel, tmux and Open MPI, PostgreSQL, MUNGE, the shells zsh and fish, the ordinary
# users pbsuser1..3 of the transcripts. Needs root; without it, or offline, says what is missing and goes on (the tests then skip, aloud).

packages="snakemake r-cran-batchtools python3-ipyparallel tmux openmpi-bin postgresql munge zsh fish debootstrap"

say() { echo "test-host: $*" >&2; }

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

missing=
for package in $packages; do installed "$package" || missing="$missing $package"; done

if [ "$(id -u)" -ne 0 ]; then
  [ -n "$missing" ] && say "not root, so not installed:$missing"
  id pbsuser1 >/dev/null 2>&1 || say "not root, so no users pbsuser1..3"
  exit 0
fi

if [ -n "$missing" ] && command -v apt-get >/dev/null; then
  say "installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  # The tests make databases of their own. Without this, the package makes and starts one that nobody uses.
  if ! installed postgresql && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  fi
  # shellcheck disable=SC2086 -- a list of words
  { apt-get update && apt-get install -y --no-install-recommends $missing; } </dev/null >"$log" 2>&1 || {
    tail -20 "$log" >&2
    say "apt-get failed; without:$missing"
  }
  rm -f "$log"
fi

for user in pbsuser1 pbsuser2 pbsuser3; do
  id "$user" >/dev/null 2>&1 || useradd -m -s /bin/bash "$user" || say "could not add $user"
done
exit 0
