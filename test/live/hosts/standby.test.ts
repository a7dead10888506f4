// Two servers of one complex on the loopback interface, in user mode, with their store in PostgreSQL: the standby takes over when
// the primary is killed or stopped, and the primary takes the lead back (docs/standby.md). The same with hosts of their own:
// long/standby*.test.ts. Meanwhile `partita hosts`, `status` and `doctor` say which server is active and whether a standby waits.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "../../protocol/wire/tls-bed.ts";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "../store/postgres-bed.ts";
import { tokenIn } from "./bed.ts";

const how = { skip: LACK_OF_POSTGRES };
let postgres: Postgres;
let complex: Complex;
/** a host of the complex that runs jobs, and the host of the standby */
let node: string;
let spare: string;

function partita(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(join(ROOT, "bin/partita"), args, { encoding: "utf8", cwd: "/", timeout: 300_000 });
  assert.equal(status, 0, `partita ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** What doctor says on the primary's host. Its exit status is 1, because the database of the test does not sync its files. */
const examined = (): string =>
  spawnSync(join(ROOT, "bin/partita"), ["doctor", "--home", complex.home], { encoding: "utf8", cwd: "/", timeout: 300_000 }).stdout;

/** A command of PBS on one of the hosts. */
function pbs(home: string, name: string, ...args: readonly string[]): string {
  const env = { ...process.env, PBS_CONF_FILE: join(home, "pbs.conf"), PARTITA_RESIDENT: "no" };
  const { status, stdout, stderr } = spawnSync(join(ROOT, "bin", name), args, { encoding: "utf8", cwd: home, timeout: 300_000, env });
  assert.equal(status, 0, `${name} ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout.trim();
}

const pidOf = (home: string, lock = "server.lock"): number =>
  Number.parseInt(readFileSync(join(home, "pbs/server_priv", lock), "utf8"), 10);
const leads = (): string => postgres.sql("SELECT host || ' ' || pid FROM partita.leader WHERE holder IS NOT NULL");
const pidThatLeads = (): number => Number(leads().split(" ")[1]);
const stateOf = (id: string): string => /job_state = (\w)/.exec(pbs(node, "qstat", "-x", "-f", id))?.[1] ?? "";
const isConnected = (): boolean => /state = (free|job-busy)/.test(pbs(node, "pbsnodes", "node7"));
const logs = (home: string, directory = "server_logs"): string =>
  readdirSync(join(home, "pbs", directory))
    .map((name) => readFileSync(join(home, "pbs", directory, name), "utf8"))
    .join("");

before(async () => {
  if (LACK_OF_POSTGRES !== false) return;
  postgres = startPostgres();
  const [first, second] = [await freePort(), await freePort()];
  complex = await startComplex({
    conf: {
      PARTITA_STORE: "postgres",
      PBS_BATCH_SERVICE_PORT: String(first),
      PBS_PRIMARY: `localhost:${first}`,
      PBS_SECONDARY: `localhost:${second}`,
      PBS_START_MOM: "0",
    },
    files: { "server_priv/database.conf": postgres.conf() },
  });
  const work = mkdtempSync(join(tmpdir(), "partita-pair-"));
  node = join(work, "node7");
  spare = join(work, "spare");
  const token = (host: string): string => tokenIn(partita("cert", "token", "--host", host, "--home", complex.home));
  const joins = (home: string, name: string, ...more: readonly string[]): string =>
    partita("join", "localhost", "--port", String(first), "--token", token(name), "--name", name, "--home", home, ...more);
  joins(node, "node7");
  joins(spare, "localhost", "--standby");
  complex.qmgr("set server job_history_enable = True", "create node node7", "set node node7 resources_available.ncpus = 4");
  partita("start", "--home", node);
  await until("node7 is free", () => pbs(node, "pbsnodes", "node7").includes("state = free"));
});
after(async () => {
  for (const home of [node, spare].filter((each) => each !== undefined))
    spawnSync(join(ROOT, "bin/partita"), ["stop", "--home", home], { encoding: "utf8", cwd: "/" });
  await complex?.stop();
  if (node !== undefined) rmSync(join(node, ".."), { recursive: true, force: true, maxRetries: 5 });
  postgres?.remove();
});

test("standby: waits, takes over from a killed primary, jobs go on, and the primary takes the lead back", how, async () => {
  partita("start", "--home", spare);
  const waiting = pidOf(spare, "server.lock.secondary");
  assert.ok(isAlive(waiting));
  assert.match(logs(spare), /waiting: the server on \S+ \(pid \d+\) leads/);
  assert.ok(!existsSync(join(spare, "pbs/sock/server.sock")), "the standby takes no commands");

  const shown = (): string => partita("hosts", "--home", complex.home);
  await until("the primary has seen the standby", () => /^standby: \S+ \(secondary, pid \d+\) waits, last seen /m.test(shown()));
  assert.match(shown(), /^active server: \S+ \(primary\)$/m);
  assert.match(
    partita("status", "--home", spare),
    /the server on this host stands by: the server on \S+ leads\n {2}active server: \S+ \(primary\)$/m,
  );
  const seen = JSON.parse(partita("status", "--home", complex.home, "-F", "json"));
  assert.equal(seen.stands_by, false);
  assert.partialDeepStrictEqual(seen.servers, {
    active: { role: "primary" },
    standbys: [{ role: "secondary", pid: waiting, waits: true }],
  });
  assert.match(examined(), /^ok +active server: .*; standby: \S+ \(secondary/m);

  const reached = (): string => postgres.sql("SELECT reach FROM partita.servers WHERE host IS NOT NULL");
  await until("the standby reaches the mom", () => reached() === '[["node7"],["node7"]]');
  assert.doesNotMatch(logs(node, "mom_logs"), /handshake|connection ended/, "the mom does not mind that its port is tried");

  const running = pbs(node, "qsub", "--", "/bin/sleep", "600");
  await until("the job runs", () => stateOf(running) === "R");
  const held = pbs(spare, "qsub", "-h", "--", "/bin/true");
  const primary = pidOf(complex.home);
  process.kill(primary, "SIGKILL");
  await until("the standby leads", () => pidThatLeads() === waiting);

  assert.equal(stateOf(running), "R", "a command that was called during the take-over finds the other server");
  await until("the mom is connected", isConnected);
  pbs(node, "qrls", held);
  await until("a held job runs under the new server", () => stateOf(held) === "F");
  assert.match(pbs(spare, "qstat", "-f", running), /run_count = 1/);
  assert.ok(existsSync(join(spare, "pbs/server_priv/svrlive")));

  complex.start();
  await until("the primary leads again", () => pidThatLeads() === pidOf(complex.home));
  await until(
    "the secondary waits again",
    () => pidOf(spare, "server.lock.secondary") !== waiting && isAlive(pidOf(spare, "server.lock.secondary")),
  );
  assert.equal(stateOf(running), "R");
  await until("the mom is connected to the primary", isConnected);
  pbs(complex.home, "qdel", running);
  await until("the job has ended", () => stateOf(running) === "F");
});

test("standby: a command beside a server that was stopped finds the other one", how, async () => {
  const primary = pidOf(complex.home);
  process.kill(primary, "SIGSTOP");
  try {
    const begin_ms = performance.now();
    const shown = pbs(complex.home, "qstat", "-Bf");
    assert.match(shown, /server_host = /);
    assert.equal(pidThatLeads(), pidOf(spare, "server.lock.secondary"), `answered after ${performance.now() - begin_ms} ms`);
  } finally {
    process.kill(primary, "SIGCONT");
  }
  await until("the replaced server waits, and leads again", () => !isAlive(primary) && pidThatLeads() === pidOf(complex.home));
  await until(
    "the secondary waits again",
    () => isAlive(pidOf(spare, "server.lock.secondary")) && !existsSync(join(spare, "pbs/sock/server.sock")),
  );
  await until("the mom is connected to the primary", isConnected);
});

test("standby: qterm ends the secondary alone, leaves it idle, or ends both servers", how, async () => {
  const waits = (): number => pidOf(spare, "server.lock.secondary");
  const first = waits();
  await until("the primary has seen the standby", () =>
    /^standby: \S+ \(secondary, pid \d+\) waits, /m.test(partita("hosts", "--home", complex.home)),
  );
  pbs(complex.home, "qterm", "-F");
  await until("the secondary has ended", () => !isAlive(first));
  assert.equal(pidThatLeads(), pidOf(complex.home), "the primary goes on");
  await until("doctor says that no standby waits", () => /^warning active server: .*no standby waits/m.test(examined()));
  assert.throws(() => pbs(complex.home, "qterm", "-F"), /no secondary server waits: there is none to end/);

  partita("start", "--home", spare);
  const second = waits();
  const primary = pidOf(complex.home);
  pbs(complex.home, "qterm", "-i");
  await until("the primary has ended", () => !isAlive(primary));
  await until("the secondary is idle", () => logs(spare).includes("this server is idle until the primary leads again"));
  assert.equal(leads(), "", "nobody leads");
  complex.start();
  assert.equal(pidThatLeads(), pidOf(complex.home));
  assert.equal(postgres.sql("SELECT count(*) FROM partita.servers WHERE orders IS NOT NULL"), "0", "the secondary may take over again");

  const last = pidOf(complex.home);
  pbs(complex.home, "qterm", "-s", "-f");
  await until("both servers have ended", () => !isAlive(last) && !isAlive(second));
  assert.equal(leads(), "");
});
