// Rows of a complex over many hosts (docs/bench.md): server, login host and eight moms are network namespaces, joined by a bridge. All links are TLS over TCP. The hosts
// share the machine's processors, so the rows show what the links cost, not what more machines bring.

import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../test/live/complex.ts";
import { type Bed, closeBed, joins, type Mode, makeBed } from "../test/live/hosts/bed.ts";
import { lackOfMunge, type Munged, startMunged } from "../test/live/hosts/munged.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../test/live/hosts/namespaces.ts";
import { lackOfUsers } from "../test/live/needed-users.ts";
import { untilRecorded } from "./accounting-records.ts";
import { removeAtEnd } from "./leftovers.ts";
import { CPUS, SHORT_JOBS } from "./live.ts";
import { median, type Row } from "./row.ts";

const USER = "pbsuser1";
const MOMS = 8;
const ROUNDS = 3;
const COMMANDS = 101;
/** A tick (USER_HZ) */
const MS_IN_TICK = 10;
const LIMITS = { system: 200, user: 300, command_ms: 12 } as const;

export async function hostRows(say: (text: string) => void): Promise<Row[]> {
  const lack = lackOfNamespaces() || lackOfUsers(USER) || lackOfMunge();
  if (lack !== false) return [{ work: `complexes over many hosts: not measured, ${lack}`, value: Number.NaN, unit: "ms", limit: null }];
  const munged = await startMunged();
  try {
    return [...(await modeRows("system", munged, say)), ...(await modeRows("user", munged, say))];
  } finally {
    await munged.close();
  }
}

async function modeRows(mode: Mode, munged: Munged, say: (text: string) => void): Promise<Row[]> {
  say(`a complex of ${MOMS + 2} hosts in ${mode} mode`);
  const net = makeNet(["head", "login1", ...Array.from({ length: MOMS }, (_, at) => `node${at + 1}`)], { home: true });
  const [head, login, ...moms] = net.hosts as readonly [NetHost, NetHost, ...NetHost[]];
  try {
    const bed = makeBed(net, head, mode);
    appendFileSync(join(bed.homeOf(head), "pbs.conf"), `PARTITA_MUNGE_SOCKET=${munged.socket}\n`);
    bed.partita(head, "start");
    bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
    joins(bed, login, "--login");
    appendFileSync(join(bed.homeOf(login), "pbs.conf"), `PARTITA_MUNGE_SOCKET=${munged.socket}\n`);
    for (const mom of moms) {
      joins(bed, mom);
      const priv = join(bed.homeOf(mom), "pbs/mom_priv");
      mkdirSync(priv, { recursive: true });
      appendFileSync(join(priv, "config"), "$usecp *:/tmp/ /tmp/\n");
      bed.partita(mom, "start");
      bed.pbs(["qmgr", "-c", `create node ${mom.name}`]);
      bed.pbs(["qmgr", "-c", `set node ${mom.name} resources_available.ncpus = ${CPUS / MOMS}`]);
    }
    for (const { name } of moms) await until(`${name} is free`, () => bed.state(name) === "free");
    const rows: Row[] = [];
    if (mode === "system") {
      say("commands of the login host");
      rows.push(...commandRows(bed, login));
    }
    say(`${SHORT_JOBS} short jobs, ${ROUNDS} times`);
    const values: number[] = [];
    const costs_ms: number[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      const before = processorTicks(net.hosts);
      values.push(await shortJobs(bed, round));
      costs_ms.push(((processorTicks(net.hosts) - before) * MS_IN_TICK) / SHORT_JOBS);
    }
    const work = `${SHORT_JOBS.toLocaleString("en")} /bin/true over ${MOMS} hosts in ${mode} mode, submission to last end, output copied`;
    return [
      ...rows,
      { work: `${work}: best of ${ROUNDS}`, value: Math.max(...values), unit: "/s", limit: LIMITS[mode] },
      { work: `${work}: median`, value: median(values), unit: "/s", limit: null },
      { work: `${work}: processor time of all daemons and jobs for one job`, value: Math.min(...costs_ms), unit: "ms", limit: null },
    ];
  } finally {
    closeBed(net);
  }
}

/** Processor time of the processes of the hosts, and of those that they have waited for, in ticks (proc(5)). */
function processorTicks(hosts: readonly NetHost[]): number {
  let ticks = 0;
  for (const pid of hosts.flatMap((host) => host.pids())) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
      for (const field of fields.slice(11, 15)) ticks += Number(field);
    } catch {
      // The process has ended; its parent has its time.
    }
  }
  return ticks;
}

/** Runs a command many times on this host, and prints the ms that each took. The first ones start the resident. */
const TIMER = `
const { spawnSync } = require("node:child_process");
const [count, ...words] = process.argv.slice(1);
const took = [];
for (let at = 0; at < 30 + Number(count); at++) {
  const begin = performance.now();
  const { status, stderr } = spawnSync(words[0], words.slice(1), { stdio: ["ignore", "ignore", "pipe"] });
  if (status !== 0) { process.stderr.write(String(stderr)); process.exit(1); }
  if (at >= 30) took.push(performance.now() - begin);
}
console.log(JSON.stringify(took));`;

/** The best of many calls shows what a call costs when no other work of the machine comes between. */
function commandRows(bed: Bed, host: NetHost): Row[] {
  const words = bed.wordsAt(host, ["qsub", "-h", "--", "/bin/true"], USER);
  const at = words.findIndex((word) => word.endsWith("/qsub"));
  const become = words.slice(0, at).map((word) => (word === "PARTITA_RESIDENT=no" ? "PARTITA_RESIDENT=yes" : word));
  const taken = JSON.parse(host.must(...become, process.execPath, "-e", TIMER, String(COMMANDS), ...words.slice(at))) as number[];
  bed.pbs(["qdel", ...bed.pbs(["qselect"]).split("\n").filter(Boolean)]);
  const work = "one qsub from a login host in system mode, through the resident";
  return [
    { work: `${work}: median`, value: median(taken), unit: "ms", limit: LIMITS.command_ms },
    { work: `${work}: best of ${COMMANDS}`, value: Math.min(...taken), unit: "ms", limit: null },
  ];
}

async function shortJobs(bed: Bed, round: number): Promise<number> {
  const { head, homeOf, mode } = bed;
  const place = mkdtempSync(join(tmpdir(), "partita-bench-"));
  removeAtEnd(place);
  chmodSync(place, 0o777);
  const file = join(bed.net.dir, `jobs${round}`);
  writeFileSync(file, `-o ${place}/ -e ${place}/ -l select=1:ncpus=1 -- /bin/true\n`.repeat(SHORT_JOBS));
  const user = mode === "system" ? USER : undefined;
  const begin_ms = performance.now();
  head.must("sh", "-c", 'exec "$@" <"$0"', file, ...bed.wordsAt(head, ["qsub", "--batch", "-"], user));
  await untilRecorded(join(homeOf(head), "pbs"), "E", SHORT_JOBS * round);
  const seconds = (performance.now() - begin_ms) / 1000;
  const files = readdirSync(place).length;
  if (files !== 2 * SHORT_JOBS) throw new Error(`${files} output files instead of ${2 * SHORT_JOBS}`);
  return SHORT_JOBS / seconds;
}
