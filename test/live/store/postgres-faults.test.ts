// A PostgreSQL store whose database is away, full, read-only, taken by another server, or killed: nothing acknowledged is
// lost, and a commit takes effect once or not at all.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { markFile } from "#store/mark.ts";
import { POSTGRES_STEPS } from "#store/postgres/postgres-schema.ts";
import type { PostgresStore, PostgresStoreOptions } from "#store/postgres/postgres-store.ts";
import { StoreError } from "#store/store.ts";
import { finished, isFault, job } from "../../store/bed.ts";
import { LACK_OF_POSTGRES, openStore, PASSWORD, type Postgres, startPostgres, until } from "./postgres-bed.ts";
import { type Relay, startRelay } from "./relay.ts";

const how = { skip: LACK_OF_POSTGRES };
const isRoot = process.geteuid?.() === 0;
/** Part of every call that writes a batch. */
const CALL = "commit-me";
const QUICK = ["beat = 0.1", "silence = 0.6", "patience = 60"];

let postgres: Postgres;
let relay: Relay;
before(async () => {
  if (LACK_OF_POSTGRES !== false) return;
  postgres = startPostgres();
  relay = await startRelay(join(postgres.directory, ".s.PGSQL.5432"));
});
// A test that fails leaves no fault to the tests after it.
afterEach(() => relay?.heal());
after(async () => {
  await relay?.close();
  postgres?.remove();
});

let schemas = 0;
const newSchema = (): string => `faults_${++schemas}`;

/** Opens a store whose connections go through the relay. */
function overRelay(schema: string, lines: readonly string[] = QUICK, more: Partial<PostgresStoreOptions> = {}): Promise<PostgresStore> {
  return openStore(postgres, {
    settings: postgres.settings("host = 127.0.0.1", `port = ${relay.port}`, `schema = ${schema}`, ...lines),
    ...more,
  });
}

const batch = (at: number) => ({ jobs: [job(at)], scripts: [{ id: `${at}.svr`, text: CALL }], counters: { at } });
const seqs = async (store: PostgresStore): Promise<string> => (await store.load()).jobs.map(({ seq }) => seq).join(" ");
const commits = (schema: string): number => Number(postgres.sql(`SELECT last_commit FROM ${schema}.leader`));

for (const fault of ["unsent", "unanswered", "held"] as const)
  test(`postgres store: a commit whose connection is lost (${fault}) takes effect once, and is acknowledged then`, how, async () => {
    const schema = newSchema();
    const store = await overRelay(schema);
    await store.commit(batch(1));
    const { term } = store;
    relay.next(CALL, fault);
    await store.commit(batch(2));
    assert.ok(store.term > term, "the connection was lost");
    assert.equal(commits(schema), 2);
    await store.commit({ counters: { at: 3 } });
    // The statement of the lost connection reaches the database only now.
    if (fault === "held") await relay.release();
    const { jobs, counters } = await store.load();
    assert.deepEqual([jobs.map(({ seq }) => seq), counters["at"]], [[1, 2], 3]);
    assert.equal(commits(schema), 3);
    await store.close();
  });

test("postgres store: a statement without an answer is given up, and its commit decided", how, async () => {
  const schema = newSchema();
  const store = await overRelay(schema, [...QUICK, "statement_timeout = 1"]);
  relay.next(CALL, "silent");
  await store.commit(batch(1));
  assert.equal(commits(schema), 1);
  await store.close();
});

test("postgres store: a database that stays away makes commits fail; what it has written is there when it is back", how, async () => {
  for (const fault of ["unsent", "unanswered"] as const) {
    const schema = newSchema();
    const notices: string[] = [];
    const store = await overRelay(schema, ["beat = 0.1", "silence = 0.6", "patience = 1"], { onNotice: (text) => notices.push(text) });
    await store.commit(batch(1));
    // The relay is away as soon as it has cut the connection: a writer that connects again would repeat the commit.
    relay.next(CALL, fault, { stays_away: true });
    await assert.rejects(store.commit(batch(2)), isFault("away", /^PostgreSQL 127\.0\.0\.1:\d+\/partita\.faults_\d+: /));
    assert.equal(commits(schema), fault === "unsent" ? 1 : 2);
    await assert.rejects(store.load(), isFault("away", /./));
    assert.ok(notices.some((text) => text.startsWith("waiting for the database: ")));
    relay.back();
    // R3: load() tells what became of the commit, and the store goes on from there.
    assert.equal(await seqs(store), fault === "unsent" ? "1" : "1 2");
    await store.commit(batch(3));
    assert.equal(await seqs(store), fault === "unsent" ? "1 3" : "1 2 3");
    assert.ok(notices.some((text) => text.endsWith(" answers again")));
    await store.close();
  }
});

test("postgres store: a database whose answers come too late to prove anything makes commits fail, not wait for ever", how, async () => {
  const store = await overRelay(newSchema(), ["beat = 0.1", "silence = 2", "patience = 2"]);
  relay.slow(1500);
  await assert.rejects(store.commit(batch(1)), isFault("away", /the database answers too slowly/));
  relay.slow(0);
  assert.equal(await seqs(store), "1", "the batch was written, which load() tells");
  await store.commit(batch(2));
  await store.close();
});

test("postgres store: a server that closes does not wait for its database", how, async () => {
  const store = await overRelay(newSchema(), ["beat = 0.1", "silence = 0.6", "patience = 3600"]);
  relay.away();
  const failing = assert.rejects(store.commit(batch(1)), isFault("away", /./));
  store.hurry?.();
  await failing;
  await store.close();
  relay.back();
});

test("postgres store: a leader shows that it is alive while it loads for a long time", how, async () => {
  const schema = newSchema();
  // The silence is longer than any pause of a slow machine.
  const store = await overRelay(schema, ["beat = 0.1", "silence = 300"]);
  const beats = (): number => Number(postgres.sql(`SELECT beat FROM ${schema}.leader`));
  await store.commit(batch(1));
  relay.slow(150);
  try {
    const before = beats();
    const { jobs } = await store.load();
    // Every statement of the load takes longer than the interval of beats. Without beats of its own, a beat before the load and one after it were counted.
    const during = beats() - before;
    assert.ok(during >= 5, `${during} beats`);
    assert.equal(jobs.length, 1);
  } finally {
    relay.slow(0);
    await store.close();
  }
});

/** Opens a store, and lets the network lose all packets until several beats have tried to connect. A beat is much shorter than an attempt. */
async function cutOff(lines: readonly string[]): Promise<PostgresStore> {
  const store = await overRelay(newSchema(), ["beat = 0.1", "silence = 0.6", "statement_timeout = 1", "connect_timeout = 1", ...lines]);
  const before = relay.connections;
  relay.swallow(true);
  await until("several beats have tried to connect", () => relay.connections >= before + 3);
  return store;
}

test("postgres store: close() makes no attempt to connect, however many beats the database has not answered", how, async () => {
  const store = await cutOff(["patience = 3600"]);
  try {
    const before = relay.connections;
    await store.close();
    // The relay may see the attempt that was under way only now.
    assert.ok(relay.connections <= before + 1, `${relay.connections - before} attempts`);
  } finally {
    relay.swallow(false);
  }
});

test("postgres store: the time of patience contains the wait for beats and for other commits", how, async () => {
  const store = await cutOff(["patience = 1"]);
  try {
    const before = relay.connections;
    const refused = Array.from({ length: 10 }, (_none, at) => assert.rejects(store.commit({ counters: { at } }), isFault("away", /./)));
    await Promise.all([...refused, assert.rejects(store.load(), isFault("away", /./))]);
    // Each attempt takes a second: that of a beat, that of the first commit, and those between which the patience ends.
    assert.ok(relay.connections <= before + 4, `${relay.connections - before} attempts`);
  } finally {
    relay.swallow(false);
  }
  await until("the database answers again", () =>
    store.commit(batch(1)).then(
      () => true,
      () => false,
    ),
  );
  assert.equal(await seqs(store), "1");
  await store.close();
});

test("postgres store: a start waits for its database, and says so", how, async () => {
  const notices: string[] = [];
  relay.away();
  const schema = newSchema();
  await assert.rejects(overRelay(schema), isFault("away", /the database cannot be reached|connection to the database was lost/));
  const opening = overRelay(schema, QUICK, { waits: true, onNotice: (text) => notices.push(text) });
  await until("the wait is told", () => notices.some((text) => text.startsWith("waiting for the database: PostgreSQL 127.0.0.1")));
  relay.back();
  await (await opening).close();
});

test(
  "postgres store: a second server is refused while the first lives; one of the same PBS_HOME takes its place at once",
  how,
  async () => {
    const schema = newSchema();
    // The silence is longer than any pause of a slow machine: only signs of life count here.
    const patient = ["beat = 0.1", "silence = 300"];
    const first = await overRelay(schema, patient);
    const ends: StoreError[] = [];
    await assert.rejects(
      overRelay(schema, patient, { holder: "elsewhere", host: "other", waits: true }),
      isFault("locked", new RegExp(`the server on here \\(pid ${process.pid}\\) uses this database`)),
    );
    const heir = await overRelay(schema, patient, { onEnd: (error) => ends.push(error) });
    assert.ok(heir.term > first.term);
    await assert.rejects(first.commit(batch(1)), isFault("deposed", /./));
    await heir.close();
    // A leader that has ended properly is waited for by nobody.
    const next = await overRelay(schema, patient, { holder: "elsewhere", host: "other" });
    await next.close();
    assert.deepEqual(ends, []);
    await first.close();
  },
);

test("postgres store: a leader that was cut off is deposed after its silence, and can write nothing more", how, async () => {
  const schema = newSchema();
  const ends: StoreError[] = [];
  const deposed = await overRelay(schema, QUICK, { onEnd: (error) => ends.push(error) });
  await deposed.commit(batch(1));
  relay.away();
  const notices: string[] = [];
  const successor = await openStore(postgres, {
    settings: postgres.settings(`schema = ${schema}`, ...QUICK),
    holder: "elsewhere",
    waits: true,
    onNotice: (text) => notices.push(text),
  });
  assert.match(notices.join(), /waiting up to 0.6 s for a sign of life/);
  await successor.commit(batch(2));
  relay.back();
  await assert.rejects(deposed.commit(batch(3)), isFault("deposed", /the server on here .* has taken this database/));
  await assert.rejects(deposed.history.purge(100), isFault("deposed", /./));
  await assert.rejects(deposed.load(), isFault("deposed", /./));
  assert.deepEqual(
    ends.map(({ fault }) => fault),
    ["deposed"],
    "the server is told once",
  );
  assert.equal(await seqs(successor), "1 2");
  await deposed.close();
  await successor.close();
});

test("postgres store: an idle leader notices by its beat that it was deposed", how, async () => {
  const schema = newSchema();
  const ends: StoreError[] = [];
  const store = await overRelay(schema, QUICK, { onEnd: (error) => ends.push(error) });
  postgres.sql(`UPDATE ${schema}.leader SET term = term + 1, holder = 'x', instance = 'y', host = 'other', pid = 7`);
  await until("the end is told", () => ends.length > 0);
  assert.match(String(ends[0]?.message), /the server on other \(pid 7\) has taken this database/);
  await store.close();
  assert.equal(postgres.sql(`SELECT holder FROM ${schema}.leader`), "x", "the deposed leader has not touched the row");
});

test("postgres store: a leader that was stopped confirms its term before it acts on a commit", how, async () => {
  const schema = newSchema();
  const script = `
    import { openPostgresStore } from ${JSON.stringify(new URL("../../../src/store/postgres/postgres-store.ts", import.meta.url).href)};
    let settings = "";
    for await (const part of process.stdin) settings += part;
    const store = await openPostgresStore({ settings: JSON.parse(settings), holder: "stopped", host: "here", mark: null, onEnd: () => console.log("ended") });
    console.log("open");
    for (let at = 1; ; at++) {
      await store.commit({ counters: { at } });
      console.log("acted " + at);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "ignore"] });
  let told = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    told += text;
  });
  child.stdin.end(JSON.stringify(postgres.settings(`schema = ${schema}`, ...QUICK)));
  const acted = (): number =>
    Number(
      told
        .trimEnd()
        .split("\n")
        .findLast((line) => line.startsWith("acted"))
        ?.slice(6) ?? 0,
    );
  await until("commits flow", () => acted() > 20);
  child.kill("SIGSTOP");
  const successor = await openStore(postgres, {
    settings: postgres.settings(`schema = ${schema}`, ...QUICK),
    holder: "elsewhere",
    waits: true,
  });
  const { counters } = await successor.load();
  const before = told;
  child.kill("SIGCONT");
  await until("the deposed leader has ended", () => told.includes("ended"));
  child.kill("SIGKILL");
  // It may have written the last commit and been stopped before it learned so: then it did not act on it.
  assert.ok(acted() <= (counters["at"] ?? 0));
  assert.equal(
    told
      .slice(before.length)
      .replace(/^\d*\n/, "")
      .includes("acted"),
    false,
    `acted after it was deposed: ${told.slice(-200)}`,
  );
  assert.equal((await successor.load()).counters["at"], counters["at"]);
  await successor.close();
});

test("postgres store: a lock of another session makes a commit fail in time, and nothing of it is written", how, async () => {
  const schema = newSchema();
  const store = await overRelay(schema, [...QUICK, "statement_timeout = 1"]);
  await store.commit(batch(1));
  const holder = spawn("psql", ["-h", postgres.directory, "-U", "partita", "-d", "partita", "-qAtX"], {
    env: { ...process.env, PGPASSWORD: PASSWORD },
    stdio: ["pipe", "pipe", "inherit"],
  });
  holder.stdin.write(`BEGIN; LOCK TABLE ${schema}.jobs; SELECT 'locked';\n`);
  await new Promise((resolve) => holder.stdout.once("data", resolve));
  await assert.rejects(store.commit(batch(2)), isFault("io", /taken too long/));
  holder.stdin.end("COMMIT;\n");
  await new Promise((resolve) => holder.once("close", resolve));
  await store.commit(batch(3));
  assert.equal(await seqs(store), "1 3");
  await store.close();
});

test("postgres store: a database that turns read-only refuses commits, and is waited for", how, async () => {
  const schema = newSchema();
  const store = await overRelay(schema, ["beat = 0.1", "silence = 0.6", "patience = 1"]);
  await store.commit(batch(1));
  const readOnly = (value: string): void =>
    void postgres.sql(`ALTER SYSTEM SET default_transaction_read_only = ${value};\nSELECT pg_reload_conf();`);
  readOnly("on");
  try {
    await assert.rejects(
      async () => {
        for (;;) await store.commit({ counters: { x: 1 } });
      },
      isFault("permission", /accepts no writes/),
    );
    await assert.rejects(store.commit(batch(2)), isFault("away", /accepts no writes/));
  } finally {
    postgres.sql(
      "SET default_transaction_read_only = off; SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;\nALTER SYSTEM RESET default_transaction_read_only;\nSELECT pg_reload_conf();",
    );
  }
  await until("it accepts writes again", () =>
    store.commit(batch(3)).then(
      () => true,
      () => false,
    ),
  );
  assert.equal(await seqs(store), "1 3");
  await store.close();
});

test("postgres store: a full disk of the database refuses a batch as a whole", {
  skip: LACK_OF_POSTGRES || (!isRoot && "needs root"),
}, async () => {
  const disk = mkdtempSync(join(tmpdir(), "partita-pg-disk-"));
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m,mode=777", "none", disk], { encoding: "utf8" });
  assert.equal(mount.status, 0, mount.stderr);
  try {
    spawnSync("chown", ["nobody", disk]);
    const schema = newSchema();
    postgres.sql(`CREATE TABLESPACE small LOCATION '${disk}'`);
    const store = await openStore(postgres, { settings: postgres.settings(`schema = ${schema}`, ...QUICK) });
    postgres.sql(`ALTER TABLE ${schema}.scripts SET TABLESPACE small`);
    let done = 0;
    // Noise, which cannot be compressed.
    const noise = (): string => Array.from({ length: 20_000 }, () => String.fromCharCode(32 + Math.floor(Math.random() * 90))).join("");
    await assert.rejects(
      async () => {
        for (;;) {
          await store.commit({ jobs: [job(done + 1)], scripts: [{ id: `${done + 1}.svr`, text: noise() }] });
          done++;
        }
      },
      isFault("disk-full", /the disk of the database is full: make room there/),
    );
    const { jobs } = await store.load();
    assert.equal(jobs.length, done);
    assert.ok(done > 10);
    await store.commit({ jobs_gone: jobs.map(({ id }) => id), counters: { at: 1 } });
    await store.close();
    postgres.sql(`DROP SCHEMA ${schema} CASCADE; DROP TABLESPACE small`);
  } finally {
    spawnSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  }
});

test("postgres store: commits go on over kills of PostgreSQL, and none that was acknowledged is lost", how, async () => {
  const own = startPostgres({ durable: true });
  try {
    const store = await openStore(own, { settings: own.settings(...QUICK) });
    let acknowledged = 0;
    let going = true;
    const commits = (async () => {
      for (let at = 1; going; at++) {
        await store.commit({ ...batch(at), history: [finished(at)] });
        acknowledged = at;
      }
    })();
    for (let round = 0; round < 3; round++) {
      const before = acknowledged;
      await until("commits flow", () => acknowledged > before + 20);
      own.kill();
      own.start();
    }
    const before = acknowledged;
    await until("commits flow again", () => acknowledged > before + 20);
    going = false;
    await commits;
    const { jobs, counters } = await store.load();
    assert.equal(jobs.length, acknowledged);
    assert.equal(counters["at"], acknowledged);
    assert.equal(await store.history.count(), acknowledged);
    assert.equal((await store.scripts(jobs.map(({ id }) => id))).size, acknowledged);
    assert.equal(own.sql("SELECT last_commit FROM partita.leader"), String(acknowledged));
    await store.close();
  } finally {
    own.remove();
  }
});

test("postgres store: a database without acknowledged commits is refused, at the start and in service", how, async () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-pg-mark-"));
  const mark = markFile(join(directory, "partita.db"));
  try {
    const schema = newSchema();
    const open = (more: Partial<PostgresStoreOptions> = {}) => overRelay(schema, QUICK, { mark, ...more });
    const first = await open();
    for (let at = 1; at <= 5; at++) await first.commit(batch(at));
    await first.close();
    postgres.sql(`UPDATE ${schema}.leader SET last_commit = 3`);
    await assert.rejects(open(), isFault("lost", /the last 2 of its commits are missing.*Nothing has been changed/));
    assert.equal(postgres.sql(`SELECT holder IS NULL FROM ${schema}.leader`), "t");
    const ends: StoreError[] = [];
    const accepted = await open({ accept_loss: true, onEnd: (error) => ends.push(error) });
    await accepted.commit(batch(6));
    postgres.sql(`UPDATE ${schema}.leader SET last_commit = 1`);
    relay.away();
    relay.back();
    await assert.rejects(accepted.commit(batch(7)), isFault("lost", /has 1 commits, but 4 were acknowledged/));
    assert.equal(ends.length, 1);
    await accepted.close();
    await assert.rejects(overRelay(newSchema(), QUICK, { mark }), isFault("lost", /there is no store, and this PBS_HOME had one/));
    const other = newSchema();
    await (await overRelay(other)).close();
    await assert.rejects(overRelay(other, QUICK, { mark }), isFault("lost", /the store of another complex/));
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("postgres store: older tables are migrated, newer and foreign ones refused and left alone", how, async () => {
  const schema = newSchema();
  const old = await overRelay(schema);
  await old.commit(batch(1));
  await old.close();
  const notices: string[] = [];
  const steps = [...POSTGRES_STEPS, ["ALTER TABLE scripts ADD COLUMN lang text", "UPDATE counters SET value = value * 10"]];
  await assert.rejects(
    overRelay(schema, QUICK, { steps: [...POSTGRES_STEPS, ["UPDATE counters SET value = 2", "UPDATE nothing SET x = 1"]] }),
    StoreError,
  );
  const migrated = await overRelay(schema, QUICK, { steps, onNotice: (text) => notices.push(text) });
  assert.equal((await migrated.load()).counters["at"], 10);
  await migrated.commit(batch(2));
  await migrated.close();
  assert.match(notices.join(), new RegExp(`changed from version ${POSTGRES_STEPS.length} to version ${steps.length}`));
  await assert.rejects(
    overRelay(schema),
    isFault("newer", new RegExp(`is of version ${steps.length}, this program knows versions up to ${POSTGRES_STEPS.length}`)),
  );
  const foreign = newSchema();
  postgres.sql(`CREATE SCHEMA ${foreign}; CREATE TABLE ${foreign}.mine (x int)`);
  await assert.rejects(overRelay(foreign), isFault("corrupt", /tables of another program/));
  assert.equal(postgres.sql(`SELECT count(*) FROM pg_tables WHERE schemaname = '${foreign}'`), "1");
});

test("postgres store: the password is in no message, and a wrong one is refused", how, async () => {
  const wrong = postgres.settings('password = "not the right one"', `schema = ${newSchema()}`);
  await assert.rejects(openStore(postgres, { settings: wrong, waits: true }), (error) => {
    assert.ok(isFault("permission", /the database refuses the login: check user, password/)(error));
    assert.doesNotMatch(JSON.stringify(error, Object.getOwnPropertyNames(error)), /not the right one/);
    return true;
  });
});

test("postgres store: texts that PostgreSQL cannot have as they are make no batch fail", how, async () => {
  const store = await overRelay(newSchema());
  const odd = "nul \0, half a character \ud800, a separator \x1e";
  await store.commit({
    jobs: [job(1, { odd, Resource_List: { [odd]: odd } })],
    scripts: [{ id: "1.svr", text: odd }],
    history: [finished(2, { data: { odd, Resource_List: { ncpus: 1, [odd]: odd } } }), finished(3, { owner: odd })],
    put: [{ table: "queues", name: odd, data: {} }],
  });
  const { jobs, objects } = await store.load();
  assert.deepEqual(jobs, [job(1, { odd, Resource_List: { [odd]: odd } })]);
  assert.equal(objects.queues.length, 1);
  assert.equal((await store.scripts(["1.svr"])).get("1.svr"), odd);
  assert.deepEqual((await store.history.get("2.svr"))?.data["odd"], odd);
  assert.deepEqual([await store.history.usesResource("ncpus"), await store.history.usesResource("lic")], [true, false]);
  await store.close();
});
