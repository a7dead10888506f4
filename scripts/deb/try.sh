#!/bin/sh
# Installs, upgrades under running jobs, removes and purges the Debian package in a fresh Debian root, in namespaces of its own:
#   scripts/deb/try.sh DIR PACKAGE NEWER      DIR: where the root is made, or was made by an earlier call; NEWER: the same package with a higher version
# Exit status 0 when all steps passed, 3 when debootstrap made no root. Needs root, debootstrap and a Debian mirror.
set -eu
dir=${1:?} package=${2:?} newer=${3:?}
root=$dir/root
if [ ! -e "$dir/made" ]; then
  mkdir -p "$dir"
  debootstrap --variant=minbase bookworm "$root" >"$dir/debootstrap.log" 2>&1 </dev/null || { tail -5 "$dir/debootstrap.log" >&2; exit 3; }
  touch "$dir/made"
fi
cp "$package" "$root/old.deb"
cp "$newer" "$root/new.deb"
cat >"$root/steps" <<'END'
set -eu
fail() { echo "FAILED: $*"; exit 1; }
hostname packagehost
grep -q packagehost /etc/hosts || echo "127.0.0.1 localhost packagehost" >>/etc/hosts
id worker >/dev/null 2>&1 || useradd -m -s /bin/sh worker
export DEBIAN_FRONTEND=noninteractive
# The root of an earlier call may have the package.
! dpkg -s partita >/dev/null 2>&1 || dpkg --purge partita
dpkg -i /old.deb
for path in /opt/pbs/bin/qsub /etc/profile.d/pbs.sh /lib/systemd/system/pbs.service /etc/logrotate.d/partita /opt/pbs/share/man/man1/qsub.1B /opt/pbs/share/completion/partita.bash /etc/pbs.conf /var/spool/pbs/server_priv; do
  [ -e $path ] || fail "$path is missing"
done
if grep -rlI partita-deb- /opt/pbs/libexec /opt/pbs/sbin /opt/pbs/etc /etc/init.d/pbs /lib/systemd/system/pbs.service; then fail "paths of the build"; fi
. /etc/profile.d/pbs.sh
/opt/pbs/libexec/pbs_init.d start
qmgr -c "set server job_history_enable = True"
qmgr -c "set node packagehost resources_available.ncpus = 50"
tries=0
until pbsnodes -v packagehost | grep -q "state = free"; do tries=$((tries + 1)); [ $tries -lt 600 ] || fail "the node is not free"; sleep 0.2; done
cat >/tmp/job <<'JOB'
while [ ! -e /tmp/go-on ]; do sleep 0.5; done
JOB
chmod 755 /tmp/job
rm -f /tmp/go-on
count=0
while [ $count -lt 50 ]; do setpriv --reuid worker --regid worker --init-groups --reset-env /opt/pbs/bin/qsub -l select=1:ncpus=1 -o /dev/null -e /dev/null -- /bin/sh /tmp/job >>/tmp/ids; count=$((count + 1)); done
tries=0
until [ "$(qselect -s R | wc -l)" -eq 50 ]; do tries=$((tries + 1)); [ $tries -lt 1500 ] || fail "only $(qselect -s R | wc -l) jobs run"; sleep 0.2; done
server=$(head -n 1 /var/spool/pbs/server_priv/server.lock)
dpkg -i /new.deb
[ "$(head -n 1 /var/spool/pbs/server_priv/server.lock)" != "$server" ] || fail "the server was not restarted"
[ "$(qselect -s R | wc -l)" -eq 50 ] || fail "after the upgrade $(qselect -s R | wc -l) jobs run"
touch /tmp/go-on
tries=0
until [ "$(qselect | wc -l)" -eq 0 ]; do tries=$((tries + 1)); [ $tries -lt 1500 ] || fail "$(qselect | wc -l) jobs have not ended"; sleep 0.2; done
# grep -c ends with 1 when it counts 0; the next line judges the count.
ended=$(qstat -x -f -F dsv | grep "|Exit_status=0|" | grep -c "|run_count=1|" || true)
[ "$ended" -eq 50 ] || fail "$ended of 50 jobs have run once and ended with 0"
dpkg --remove partita
[ ! -e /opt/pbs ] || fail "left in /opt/pbs: $(find /opt/pbs | head)"
[ -e /var/spool/pbs/server_priv ] && [ -e /etc/pbs.conf ] || fail "a removal must keep state and configuration"
for process in /proc/[0-9]*; do case $(tr '\0' ' ' <$process/cmdline 2>/dev/null) in *pbs_server* | *pbs_mom* | *pbs_sched* | *pbs_comm*) fail "still runs: $process" ;; esac; done
dpkg --purge partita
for path in /var/spool/pbs /etc/pbs.conf /etc/profile.d/pbs.sh /etc/init.d/pbs /etc/logrotate.d/partita; do [ ! -e $path ] || fail "$path is left"; done
echo "all steps passed"
END
exec unshare --mount --uts --ipc --pid --fork --kill-child sh -eu -c '
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount -t tmpfs tmpfs "$1/run"
  mount -t tmpfs tmpfs "$1/tmp"
  exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /steps
' sh "$root"
