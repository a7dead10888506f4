// docs/hosts.md, typed line by line on hosts in network namespaces, each with its own /etc, /opt and /var/spool. Three programs of a machine are played: there is no
// systemd, so `systemctl` runs what the unit says; no sshd, so `scp` copies between the directories of the hosts; and `apt-get` only looks whether the package is
// there, and makes what it makes at its installation.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { lackOfUsers } from "../../needed-users.ts";
import { ROOT } from "../../shared.ts";
import { LACK_OF_POSTGRES } from "../../store/postgres-bed.ts";
import { tokenIn } from "../bed.ts";
import { lackOfMunge } from "../munged.ts";
import { lackOfNamespaces, makeNet, type Net, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const MOMS = ["node1", "node2", "node3", "node4", "node5", "node6"];
const ANY_MOM = "nodeN";
const OWN = ["/opt", "/var/spool", "/var/backups", "/run/munge", "/var/lib/munge", "/var/log/munge"];
const OWN_OF_POSTGRES = ["/run/postgresql", "/var/lib/postgresql", "/var/log/postgresql"];
const PASSWORD = "the password";
const skip = lackOfNamespaces() || lackOfUsers(USER) || lackOfMunge() || LACK_OF_POSTGRES;

const PLAYED = {
  systemctl: `#!/bin/sh
for unit; do :; done
case "$*" in enable\\ --now\\ *|start\\ *|restart\\ *) ;; *) exit 0 ;; esac
case $unit in
  munge)
    if [ -s /run/munge/munged.pid ]; then kill "$(cat /run/munge/munged.pid)"; while kill -0 "$(cat /run/munge/munged.pid 2>/dev/null)" 2>/dev/null; do sleep 0.1; done; fi
    exec setpriv --reuid=munge --regid=munge --init-groups /usr/sbin/munged ;;
  postgresql) exec pg_ctlcluster "$(ls /usr/lib/postgresql | tail -1)" main restart ;;
esac
file=/etc/systemd/system/$unit.service
line=$(sed -n 's/^ExecStart=//p' "$file") && [ -n "$line" ] || exit 5
if grep -q '^Type=forking' "$file"; then exec $line; fi
grep -q '^Restart=always' "$file" && line="sh -c 'while :; do $line; sleep 1; done'"
(exec </dev/null >/dev/null 2>&1; eval "setsid $line") &
`,
  scp: `#!/bin/sh
[ "$1" = -p ] && shift
place() { case $1 in *:*) echo "NET/\${1%%:*}\${1#*:}" ;; *) echo "$1" ;; esac; }
exec cp --preserve=mode,timestamps "$(place "$1")" "$(place "$2")"
`,
  "apt-get": `#!/bin/sh
shift
dpkg -s "$@" >/dev/null || exit 100
[ "$1" = postgresql ] || exit 0
version=$(ls /usr/lib/postgresql | tail -1)
rm -rf "/etc/postgresql/$version"
exec pg_createcluster "$version" main --start
`,
} as const;

type Step = { readonly kind: "line"; readonly host: string; readonly user: "root" | "user"; readonly command: string };
type Happening = { readonly kind: "happening"; readonly what: string };

/** The lines of the page, with those for each mom once for each. */
function steps(): readonly (Step | Happening)[] {
  const all: (Step | Happening)[] = [];
  const lines = readFileSync(join(ROOT, "docs/hosts.md"), "utf8").split("\n");
  let group: Step[] = [];
  const endGroup = (): void => {
    for (const mom of group.length === 0 ? [] : MOMS)
      for (const step of group)
        all.push({ ...step, host: step.host.replace(ANY_MOM, mom), command: step.command.replaceAll(ANY_MOM, mom) });
    group = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const happening = /^<!-- (.*) -->$/.exec(lines[at] ?? "")?.[1];
    const [, host = "", prompt, first = ""] = /^ {4}(\w+)([#$]) (.*)$/.exec(lines[at] ?? "") ?? [];
    let command = first;
    if (/<<END$/.test(first)) while (!command.endsWith("\nEND")) command += `\n${(lines[++at] ?? "END").replace(/^ {4}/, "")}`;
    const step: Step | null = host === "" ? null : { kind: "line", host, user: prompt === "#" ? "root" : "user", command };
    if (step !== null && (host === ANY_MOM || command.includes(ANY_MOM))) group.push(step);
    else {
      endGroup();
      if (step !== null) all.push(step);
      else if (happening !== undefined) all.push({ kind: "happening", what: happening });
    }
  }
  endGroup();
  return all;
}

let net: Net;
before(() => {
  if (skip !== false) return;
  net = makeNet(["head", ...MOMS, "login1", "sched1", "db1", "spare"], { home: true, own: [...OWN, ...OWN_OF_POSTGRES] });
  const programs = join(net.dir, "programs");
  mkdirSync(programs);
  for (const [name, text] of Object.entries(PLAYED)) {
    writeFileSync(join(programs, name), text.replaceAll("NET", net.dir));
    chmodSync(join(programs, name), 0o755);
  }
  // The machine may have another batch system, with commands of the same names.
  for (const { name } of net.hosts)
    writeFileSync(
      join(net.dir, name, "etc/profile.d/zz-played.sh"),
      `PATH=${programs}:/opt/pbs/bin:$PATH\nPARTITA_RESIDENT=no\nexport PARTITA_RESIDENT\n`,
    );
});
after(() => {
  if (skip === false) net?.close();
});

const hostOf = (name: string): NetHost => {
  const found = net.hosts.find((host) => host.name === name);
  if (found === undefined) throw new Error(`the page names no host ${name} in its first section`);
  return found;
};

function killAll(host: NetHost): void {
  const munged = readFileSync(join(net.dir, host.name, "run/munge/munged.pid"), { encoding: "utf8", flag: "a+" }).trim();
  for (const pid of host.pids()) if (String(pid) !== munged) process.kill(pid, "SIGKILL");
}

/** A machine without anything of Partita takes the place of the host. */
function replace(host: NetHost): void {
  killAll(host);
  for (const path of ["opt", "var/spool"]) {
    rmSync(join(net.dir, host.name, path), { recursive: true });
    mkdirSync(join(net.dir, host.name, path), { mode: 0o755 });
  }
  for (const path of ["pbs.conf", "profile.d/pbs.sh", "systemd/system/pbs.service"])
    rmSync(join(net.dir, host.name, "etc", path), { force: true });
}

const HAPPENINGS: { readonly [what: string]: () => void } = {
  "node6 loses its power": () => replace(hostOf("node6")),
  "the server is killed": () => killAll(hostOf("head")),
  "head is lost": () => replace(hostOf("head")),
};

/** Runs a line in a login shell of the host. */
async function type({ host, user, command }: Step, token: string): Promise<string> {
  const input = command.includes("--token -") ? `${token}\n` : command.includes("--pwprompt") ? `${PASSWORD}\n`.repeat(2) : "";
  const shell = ["bash", "-lc", `${user === "root" ? `cd ${ROOT}` : "cd"} && ${command}`];
  const become = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--init-groups", "env", `HOME=/home/${USER}`, `USER=${USER}`];
  // Without a terminal, as in a service: createuser then reads the password from its input.
  return hostOf(host).later(["setsid", "-w", ...(user === "root" ? [] : become), ...shell], { input });
}

/** What lines must print. */
const SAYS: readonly (readonly [command: RegExp, says: RegExp])[] = [
  [/^partita status$/, /the server answers/],
  [/^partita hosts$/, /^host +connected since/m],
  [/^cat first\.out$/, /^node\d\nnode\d\n$/],
  [/^qstat -x$/, /pbsuser1 .* F /],
  [/^qmgr -c "list sched s1"$/, /sched_host = sched1[\s\S]*state = (idle|scheduling)|state = (idle|scheduling)[\s\S]*sched_host = sched1/],
  [/^partita store status$/, /db1/],
  [/^pbsnodes -l$/, /node6 .*down/],
];

test("docs/hosts.md: every line works, from ten empty hosts to a cluster that survives the loss of a host and of its server", {
  skip,
}, async () => {
  let token = "";
  const told: string[] = [];
  const all = steps();
  assert.ok(all.filter(({ kind }) => kind === "line").length > 100, "the lines of the page are found");
  for (const step of all) {
    if (step.kind === "happening") {
      const happen = HAPPENINGS[step.what];
      assert.ok(happen, `nothing happens at: ${step.what}`);
      happen();
      told.push(`-- ${step.what}`);
      continue;
    }
    const begin_ms = performance.now();
    try {
      const said = await type(step, token);
      told.push(`${step.host} ${step.command} (${((performance.now() - begin_ms) / 1000).toFixed(1)} s)\n${said}`);
      token = tokenIn(said) || token;
      for (const [command, says] of SAYS) if (command.test(step.command)) assert.match(said, says, step.command);
    } catch (error) {
      throw new Error(`${told.slice(-8).join("\n")}\n${step.host}: ${step.command}\n${(error as Error).message}`);
    }
  }
});
