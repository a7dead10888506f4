#!/bin/sh
# Runs the README's two commands on a fresh Debian machine: a root made by debootstrap with Node, npm, python3, make and g++ and nothing else, once as root and
# once as an ordinary user. Exit status 0 when all of it passed.
#
#   scripts/fresh-machine.sh DIR [COMMAND...]     DIR: where the root is made, or was made by an earlier call
#                                                 COMMAND: instead of the README's, for example: npm test -- test/live/jobs/smoke.test.ts
#
# Needs root, debootstrap and a Debian mirror. The Node is this machine's own, since Debian 12 has an older one than the project asks for.
set -eu

dir=${1:?usage: fresh-machine.sh DIR [COMMAND...]}
shift
checkout=$(cd "$(dirname "$0")/.." && pwd)
say() { echo "fresh-machine: $*" >&2; }
[ "$(id -u)" -eq 0 ] || { say "needs root"; exit 1; }
command -v debootstrap >/dev/null || { say "needs debootstrap (Debian: apt-get install debootstrap)"; exit 1; }

root=$dir/root
if [ ! -e "$dir/made" ]; then
  say "making a Debian root in $root"
  mkdir -p "$dir"
  debootstrap --variant=minbase --include=python3,make,g++,ca-certificates,git bookworm "$root" >"$dir/debootstrap.log" 2>&1 || { tail -5 "$dir/debootstrap.log" >&2; exit 1; }
  node=$(readlink -f "$(command -v node)")
  npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
  cp "$node" "$root/usr/bin/node"
  mkdir -p "$root/usr/lib/node_modules" "$root/usr/include"
  cp -r "$npm" "$root/usr/lib/node_modules/npm"
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
  # node-gyp compiles sqlite3 against the headers that come with Node.
  headers=$(dirname "$(dirname "$node")")/include/node
  [ -d "$headers" ] && cp -r "$headers" "$root/usr/include/node"
  chroot "$root" useradd -m -s /bin/bash newcomer
  # A site may reach the registry through a proxy whose certificate only its own machines trust: npm's settings of the whole machine say so.
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  settings=$(npm config get globalconfig 2>/dev/null)
  if [ -e "$settings" ]; then
    mkdir -p "$root$(dirname "$settings")"
    cp "$settings" "$root$settings"
  fi
  touch "$dir/made"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# Many machines greet whoever logs in, so the login profile of this one prints a line: a test must not take it for the output of a job.
echo 'echo "Welcome to this machine"' >"$root/etc/profile.d/greeting.sh"

status=0
for user in root newcomer; do
  home=$(chroot "$root" getent passwd "$user" | cut -d: -f6)
  rm -rf "$root$home/partita"
  git clone -q "$checkout" "$root$home/partita"
  chroot "$root" chown -R "$user:" "$home/partita"
  cat >"$root/run-$user" <<END
cd "$home/partita" || exit 1
$(if [ $# -gt 0 ]; then echo "$*"; else printf 'npm run demo </dev/null || exit 1\nnpm test </dev/null\n'; fi)
END
  say "as $user"
  # Namespaces of its own: what stays behind ends with the first process, and mounts go with it.
  unshare --mount --pid --fork --kill-child sh -eu -c '
    root=$1 user=$2 home=$3
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    exec chroot "$root" setpriv --reuid "$user" --regid "$user" --init-groups --reset-env sh "/run-$user"
  ' sh "$root" "$user" "$home" || { say "as $user: exit status $?"; status=1; }
done
exit $status
