// A complex of four hosts goes from one release to the next, twice, while jobs flow: the server first, then its moms one by one. No job is lost, none runs twice.
// A host whose programs are too new is refused, and both logs say why. PARTITA_OLD_RELEASE names a built checkout of an earlier release, which is then the first one.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SPOKEN } from "#protocol/wire/versions.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { ROOT } from "../../shared.ts";
import { tokenIn } from "../bed.ts";
import { lackOfMunge, type Munged, startMunged } from "../munged.ts";
import { lackOfNamespaces, makeNet, type Net, type NetHost } from "../namespaces.ts";
import { makeRelease, OF_VERSION_1, SAYS_MORE, speaks } from "../release.ts";

const USER = "pbsuser1";
const skip = lackOfNamespaces() || lackOfUsers(USER) || lackOfMunge();
const NEXT = SPOKEN.newest + 1;

type Job = Readonly<Record<string, unknown>>;

/** Each host has programs of its own, as hosts have. */
class Bed {
  readonly net: Net;
  readonly head: NetHost;
  readonly moms: readonly NetHost[];
  readonly out: string;

  constructor(net: Net) {
    this.net = net;
    [this.head, ...this.moms] = net.hosts as [NetHost, ...NetHost[]];
    this.out = join(net.dir, "out");
    mkdirSync(this.out);
    this.head.must("chmod", "1777", this.out);
  }

  homeOf = ({ name }: NetHost): string => join(this.net.dir, name, "complex");
  execOf = ({ name }: NetHost): string => join(this.net.dir, name, "opt");

  partita(host: NetHost, ...words: readonly string[]): string {
    return host.must(join(this.execOf(host), "bin/partita"), ...words, "--home", this.homeOf(host));
  }

  wordsAt(host: NetHost, [name = "", ...words]: readonly string[], user?: string): readonly string[] {
    const become = user === undefined ? [] : ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups"];
    return [...become, "env", `PBS_CONF_FILE=${this.homeOf(host)}/pbs.conf`, join(this.execOf(host), "bin", name), ...words];
  }

  pbs(words: readonly string[], user?: string): string {
    return this.head.must(...this.wordsAt(this.head, words, user));
  }

  jobs(): ReadonlyMap<string, Job> {
    // Hundreds of jobs are more text than a pipe of spawnSync takes.
    const path = join(this.out, "jobs.json");
    this.head.must("sh", "-c", 'out=$1; shift; "$@" >"$out"', "sh", path, ...this.wordsAt(this.head, ["qstat", "-x", "-f", "-F", "json"]));
    const { Jobs = {} } = JSON.parse(readFileSync(path, "utf8")) as { readonly Jobs?: Record<string, Job> };
    return new Map(Object.entries(Jobs));
  }

  /** The state of a node, with its jobs. */
  node(name: string): { readonly state: string; readonly jobs: readonly string[] } {
    const { nodes } = JSON.parse(this.pbs(["pbsnodes", "-F", "json", name])) as {
      readonly nodes: Record<string, { readonly state: string; readonly jobs?: readonly string[] }>;
    };
    return { state: nodes[name]?.state ?? "", jobs: nodes[name]?.jobs ?? [] };
  }

  /** The releases of the hosts, as `partita hosts` shows them. */
  releases(): Record<string, string | null> {
    const { hosts } = JSON.parse(this.partita(this.head, "hosts", "-F", "json")) as {
      readonly hosts: readonly { readonly host: string; readonly version: string | null }[];
    };
    return Object.fromEntries(hosts.map(({ host, version }) => [host, version]));
  }

  log(host: NetHost, directory: string): string {
    return host.must("sh", "-c", `cat ${join(this.homeOf(host), "pbs", directory)}/*`);
  }
}

/** Hosts with the programs of the first release, all connected. */
async function begin(net: Net, release: string, { socket }: Munged): Promise<Bed> {
  const bed = new Bed(net);
  const { head, moms } = bed;
  head.must(join(release, "bin/partita"), "init", "--system", "--prefix", bed.execOf(head), "--home", bed.homeOf(head));
  appendFileSync(join(bed.homeOf(head), "pbs.conf"), `PARTITA_RESIDENT=no\nPBS_START_MOM=0\nPARTITA_MUNGE_SOCKET=${socket}\n`);
  bed.partita(head, "start");
  bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
  for (const host of moms) {
    const token = tokenIn(bed.partita(head, "cert", "token", "--host", host.name));
    const words = ["join", head.name, "--token", token, "--prefix", bed.execOf(host), "--home", bed.homeOf(host)];
    host.must(join(release, "bin/partita"), "init", "--system", "--prefix", bed.execOf(host), "--home", join(net.dir, host.name, "unused"));
    host.must(join(bed.execOf(host), "bin/partita"), ...words);
    appendFileSync(join(bed.homeOf(host), "pbs.conf"), `PARTITA_RESIDENT=no\nPARTITA_MUNGE_SOCKET=${socket}\n`);
    bed.partita(host, "start");
    bed.pbs(["qmgr", "-c", `create node ${host.name}`]);
  }
  for (const { name } of moms) {
    await until(`${name} is free`, () => bed.node(name).state === "free");
    bed.pbs(["qmgr", "-c", `set node ${name} resources_available.ncpus = 4`]);
  }
  return bed;
}

type Flow = { readonly ids: () => readonly string[]; stop(): Promise<void> };

/**
 * A user who submits jobs of one and of two hosts on the head, one after the other, until the flow is stopped. Each job writes
 * its id into a file. A submission that fails because the server is away is repeated; only ids that were printed count.
 */
function flow(bed: Bed, name: string): Flow {
  const ids = join(bed.out, `${name}.ids`);
  const stop = join(bed.out, `${name}.stop`);
  const script = join(bed.out, `${name}.sh`);
  const wide = "select=2:ncpus=1 -l place=scatter";
  const body = `-R oe -- /bin/sh -c 'echo $PBS_JOBID >>${bed.out}/${name}.runs; sleep 1'`;
  const [program] = bed.wordsAt(bed.head, ["qsub"]).slice(-1);
  writeFileSync(
    script,
    [
      `while [ ! -e ${stop} ]; do`,
      `  ${program} ${body} >>${ids}`,
      `  ${program} -l ${wide} ${body} >>${ids}`,
      "  sleep 1",
      "done",
      "",
    ].join("\n"),
  );
  const words = bed.wordsAt(bed.head, ["x"], USER).slice(0, -1);
  const [enter = "", ...within] = bed.head.within;
  const child = spawn(enter, [...within, ...words, "sh", script], { stdio: "ignore", cwd: "/" });
  const ended = new Promise<void>((resolve) => void child.once("close", () => resolve()));
  const linesIn = (path: string): readonly string[] => (existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : []);
  return {
    ids: () => linesIn(ids),
    async stop() {
      writeFileSync(stop, "");
      await ended;
    },
  };
}

/** Waits until that many more jobs of the flow have been acknowledged. */
async function goesOn({ ids }: Flow, count: number): Promise<void> {
  const { length } = ids();
  await until("the flow goes on", () => ids().length >= length + count);
}

/** Upgrades the server's host, and then each mom as docs/upgrade.md says: offline, without jobs, upgraded, back. */
async function upgrade(bed: Bed, release: string, version: string, jobs: Flow): Promise<void> {
  const { head, moms } = bed;
  const by = (host: NetHost): string => host.must(join(release, "bin/partita"), "upgrade", "--home", bed.homeOf(host));
  const before = bed.releases();
  assert.match(by(head), /Restarted .*pbs_server\./);
  for (const { name } of moms) await until(`${name} is back`, () => /^(free|job-busy)/.test(bed.node(name).state));
  assert.deepEqual(bed.releases(), before, "a new server with the moms of before");
  await goesOn(jobs, 6);
  for (const host of moms) {
    bed.pbs(["pbsnodes", "-o", host.name]);
    await until(`${host.name} has no jobs`, () => bed.node(host.name).jobs.length === 0);
    await until(`${host.name} is upgraded`, () => /Restarted pbs_mom\./.test(by(host)));
    bed.pbs(["pbsnodes", "-r", host.name]);
    await until(`${host.name} is back`, () => /^(free|job-busy)/.test(bed.node(host.name).state));
    assert.equal(bed.releases()[host.name], version);
    await goesOn(jobs, 4);
  }
}

/** Every acknowledged job ran once, and ended well. */
async function nothingIsLost(bed: Bed, name: string, jobs: Flow): Promise<number> {
  await jobs.stop();
  const ids = jobs.ids();
  await until("all jobs have ended", () => [...bed.jobs().values()].every((job) => job["job_state"] === "F"));
  const known = bed.jobs();
  const wrong = ids.filter((id) => {
    const job = known.get(id);
    return job === undefined || job["Exit_status"] !== 0 || job["run_count"] !== 1;
  });
  assert.deepEqual(
    wrong.map((id) => [id, known.get(id)?.["Exit_status"], known.get(id)?.["run_count"], known.get(id)?.["comment"]]),
    [],
  );
  const runs = readFileSync(join(bed.out, `${name}.runs`), "utf8")
    .split("\n")
    .slice(0, -1);
  assert.deepEqual([...runs].sort(), [...new Set(runs)].sort(), "no job ran twice");
  assert.deepEqual(
    ids.filter((id) => !runs.includes(id)),
    [],
    "every acknowledged job ran",
  );
  return ids.length;
}

/** A job on two hosts, of which one has the new programs, with a task on the other host. */
function spanning(bed: Bed, name: string, hosts: readonly string[]): string {
  const select = hosts.map((host) => `1:host=${host}`).join("+");
  const script = join(bed.out, `${name}-span.sh`);
  writeFileSync(script, "pbsdsh -- cat /proc/sys/kernel/hostname\n");
  return bed.pbs(["qsub", "-l", `select=${select}`, "-j", "oe", "-o", `${hosts[0]}:${bed.out}/${name}.span`, script], USER).trim();
}

test("a complex goes to the next release and to the one after while jobs flow, and none is lost; a host that is too new is refused", {
  skip,
}, async () => {
  const munged = await startMunged();
  const net = makeNet(["head", "n1", "n2", "n3"]);
  try {
    const old = process.env["PARTITA_OLD_RELEASE"] ?? makeRelease(join(net.dir, "old"), "0.0.9", OF_VERSION_1);
    const next = makeRelease(join(net.dir, "next"), "0.2.0", [speaks(SPOKEN.newest, NEXT), SAYS_MORE]);
    const far = makeRelease(join(net.dir, "far"), "9.0.0", [speaks(NEXT + 1, NEXT + 2)]);
    const bed = await begin(net, old, munged);
    const before = bed.releases()["n1"];

    // A job that begins with the old server and the old mom, and ends with the new server.
    const gate = join(bed.out, "gate");
    const long = bed
      .pbs(["qsub", "-l", "select=1:host=n3", "-k", "oe", "--", "/bin/sh", "-c", `until [ -e ${gate} ]; do sleep 0.2; done`], USER)
      .trim();
    const first = flow(bed, "first");
    await goesOn(first, 4);
    await until("the long job runs", () => bed.jobs().get(long)?.["job_state"] === "R");
    await upgradeServerFirst(bed, before ?? null, first, gate, long);
    const counted = await nothingIsLost(bed, "first", first);

    const second = flow(bed, "second");
    await goesOn(second, 4);
    await upgrade(bed, next, "0.2.0", second);
    const more = await nothingIsLost(bed, "second", second);
    console.log(`# ${before} -> ${PARTITA_VERSION} -> 0.2.0: ${counted} and ${more} jobs, each ran once and ended with 0`);
    await isTooNew(bed, far, next);
  } finally {
    for (const host of [...net.hosts].reverse())
      host.run([join(net.dir, host.name, "opt/bin/partita"), "stop", "--home", join(net.dir, host.name, "complex")]);
    net.close();
    await munged.close();
  }
});

/** From the old release to this one, with a look at jobs that span moms of both. */
async function upgradeServerFirst(bed: Bed, before: string | null, jobs: Flow, gate: string, long: string): Promise<void> {
  const n1 = bed.moms[0] as NetHost;
  const busy = bed.moms[2] as NetHost;
  const refused = busy.must(join(ROOT, "bin/partita"), "upgrade", "--home", bed.homeOf(busy));
  assert.match(refused, /pbs_mom has jobs and goes on with the program of before/);
  assert.equal(bed.releases()["n3"], before);
  assert.match(bed.head.must(join(ROOT, "bin/partita"), "upgrade", "--home", bed.homeOf(bed.head)), /Restarted .*pbs_server\./);
  await until("the long job is known again", () => bed.jobs().get(long)?.["job_state"] === "R");
  bed.pbs(["pbsnodes", "-o", "n1"]);
  await until("n1 has no jobs", () => bed.node("n1").jobs.length === 0);
  await until("n1 is upgraded", () => /Restarted pbs_mom\./.test(n1.must(join(ROOT, "bin/partita"), "upgrade", "--home", bed.homeOf(n1))));
  bed.pbs(["pbsnodes", "-r", "n1"]);
  await until("n1 is back", () => /^(free|job-busy)/.test(bed.node("n1").state));
  const spans = [spanning(bed, "new-old", ["n1", "n2"]), spanning(bed, "old-new", ["n2", "n1"])];
  await until("jobs over both have ended", () => spans.every((id) => bed.jobs().get(id)?.["job_state"] === "F"));
  for (const name of ["new-old", "old-new"])
    assert.deepEqual(
      readFileSync(join(bed.out, `${name}.span`), "utf8")
        .split("\n")
        .sort(),
      ["", "n1", "n2"],
      name,
    );
  writeFileSync(gate, "");
  await until("the long job has ended", () => bed.jobs().get(long)?.["job_state"] === "F");
  assert.deepEqual([bed.jobs().get(long)?.["Exit_status"], bed.jobs().get(long)?.["run_count"]], [0, 1]);
  await upgrade(bed, ROOT, PARTITA_VERSION, jobs);
}

/** A mom and a command whose release shares no version with the server: both sides say so, and with the right programs the host is back. */
async function isTooNew(bed: Bed, far: string, right: string): Promise<void> {
  const n3 = bed.moms[2] as NetHost;
  n3.must(join(far, "bin/partita"), "upgrade", "--home", bed.homeOf(n3));
  const text = `no common protocol version: partita 0.2.0 speaks protocol versions ${SPOKEN.newest} to ${NEXT}, the other program speaks protocol versions ${NEXT + 1} to ${NEXT + 2}; upgrade partita 0.2.0`;
  await until("the server's log says why", () => bed.log(bed.head, "server_logs").includes(text));
  await until("the mom's log says why", () => bed.log(n3, "mom_logs").includes(text));
  await until("n3 is down", () => /down|state-unknown/.test(bed.node("n3").state));
  const ran = n3.run(bed.wordsAt(n3, ["qselect"]));
  assert.equal(ran.status, 15031 % 256, `${ran.stdout}${ran.stderr}`);
  assert.ok(ran.stderr.startsWith(`${text}\nqselect: cannot connect to server head (errno=15031)`), ran.stderr);
  assert.equal(bed.node("n1").state, "free", "others are served");
  assert.match(n3.must(join(right, "bin/partita"), "upgrade", "--home", bed.homeOf(n3)), /Restarted pbs_mom\./);
  await until("n3 is back", () => bed.node("n3").state === "free");
}
