// Accounting records that are in the store only: after a kill, and after a commit whose fault left open whether it was written.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { prepareStart } from "#server/core/first-start.ts";
import { recoverAccounting } from "#server/driver/accounting-recovery.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts } from "#server/driver/immediate-ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import { atOnce, loadFromStore, storePort } from "#server/driver/store-port.ts";
import { memoryStore } from "#store/memory-store.ts";
import { type Store, StoreError } from "#store/store.ts";
import { openAccounting } from "#support/accounting-log.ts";
import { ALICE, CONFIG, HOST } from "../harness.ts";

const AT_S = 1795166788;
const due = [
  { at_s: AT_S, type: "Q", id: "1.svr", text: "user=alice " },
  { at_s: AT_S, type: "S", id: "1.svr", text: "user=alice start=1 " },
  { at_s: AT_S + 1, type: "E", id: "1.svr", text: "user=alice project=two\nlines end=2" },
];

for (const kept of [0, 1, 2, 3]) {
  test(`after a kill with ${kept} of 3 records in the file the others are written, and nothing twice`, (t) => {
    const dir = mkdtempSync(join(tmpdir(), "partita-acct-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const before = openAccounting({ dir });
    before.record("Q", "0.svr", "an earlier one", AT_S - 5);
    for (const { type, id, text, at_s } of due.slice(0, kept)) before.record(type, id, text, at_s);
    before.close();
    const after = openAccounting({ dir });
    assert.equal(recoverAccounting(due, after), 3 - kept);
    assert.equal(recoverAccounting(due, after), 0);
    after.close();
    const [file = ""] = readdirSync(dir);
    const lines = readFileSync(join(dir, file), "utf8").trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => line.split(";")[1]),
      ["Q", "Q", "S", "E"],
    );
  });
}

/** A driver with a store, a hand clock and the accounting files of a directory. */
async function world(t: TestContext, store: Store, dir: string) {
  const accounting = openAccounting({ dir });
  t.after(() => accounting.close());
  const clock = new HandClock(AT_S * 1000);
  const answers = new Map<number, string>();
  const ports = immediatePorts(clock, {
    links: {
      toSched: () => undefined,
      toMoms: () => undefined,
      end: () => undefined,
      dropDaemons: () => undefined,
      setLimits: () => undefined,
      close: (done) => done(),
    },
    clients: {
      answer(frames) {
        for (const frame of frames) if (frame.kind !== "part") answers.set(frame.token, frame.kind === "ok" ? "ok" : (frame.text ?? ""));
      },
      taken: (_token, then) => then(),
      of: (token) => (answers.has(token) ? undefined : { uid: 0, link: token }),
      open: () => [],
    },
    accounting,
    onBug: () => undefined,
  });
  const { state, due } = await loadFromStore(store, HOST);
  const fresh = state.scheds.size === 0;
  const driver = new ServerDriver({ ...ports, store: storePort(store, HOST, atOnce) }, CONFIG, state, due);
  prepareStart(driver.core, { start: "warm", fresh, node: null });
  driver.start();
  /** Lets everything happen that is due, until the driver has nothing to write. */
  const settle = async (): Promise<void> => {
    do {
      clock.settle();
      await setImmediate();
    } while (!driver.isIdle);
  };
  await settle();
  let tokens = 0;
  const submit = (): number => {
    driver.request(ALICE, { kind: "queue-job", destination: "", attrs: [{ name: "Job_Name", value: "x" }], script: "" }, ++tokens);
    return tokens;
  };
  /** Lets time pass until the state was loaded again and the store can be written. */
  const reload = async (): Promise<void> => {
    const { core } = driver;
    while (driver.core === core || !driver.takesDaemons) {
      clock.settle();
      await setImmediate();
      clock.now_ms = Math.min(clock.next_ms, clock.now_ms + 1000);
      clock.ring();
    }
    await settle();
  };
  return { driver, answers, settle, submit, reload };
}

/** The records of jobs in the files of a directory: type and id. */
const recordsIn = (dir: string): string[] =>
  readdirSync(dir)
    .sort()
    .flatMap((file) => readFileSync(join(dir, file), "utf8").trimEnd().split("\n"))
    .map((line) => line.split(";").slice(1, 3).join(" "))
    .filter((record) => /^[A-Z] \d/.test(record));

/** A store whose next commit fails with `away`, after it was written or without. */
function storeThatGoesAway(): { readonly store: Store; next: "works" | "away, written" | "away, not written" } {
  const under = memoryStore();
  const planted: ReturnType<typeof storeThatGoesAway> = {
    next: "works",
    store: {
      ...under,
      async commit(batch) {
        const { next } = planted;
        planted.next = "works";
        if (next !== "away, not written") await under.commit(batch);
        if (next !== "works") throw new StoreError("away", "the database does not answer");
      },
    },
  };
  return planted;
}

function newDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "partita-acct-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

for (const next of ["away, written", "away, not written"] as const)
  test(`a commit fails (${next}): after the next load the accounting file has the records of what the store has`, async (t) => {
    const dir = newDir(t);
    const planted = storeThatGoesAway();
    const { driver, answers, submit, settle, reload } = await world(t, planted.store, dir);
    const accepted = submit();
    await settle();
    assert.equal(answers.get(accepted), "ok");
    assert.deepEqual(recordsIn(dir), ["Q 1.svr"]);
    planted.next = next;
    const refused = submit();
    await reload();
    assert.match(answers.get(refused) ?? "", /the database does not answer/);
    const ids = [...driver.core.state.jobs.keys()];
    assert.deepEqual(ids, next === "away, written" ? ["1.svr", "2.svr"] : ["1.svr"]);
    assert.deepEqual(
      recordsIn(dir),
      ids.map((id) => `Q ${id}`),
    );
    submit();
    await settle();
    assert.deepEqual(
      recordsIn(dir),
      [...driver.core.state.jobs.keys()].map((id) => `Q ${id}`),
    );
  });

test("a load after an error of the program writes no record twice; a server that is started writes the records of a kill", async (t) => {
  const dir = newDir(t);
  const store = memoryStore();
  const { driver, submit, settle, reload } = await world(t, store, dir);
  submit();
  await settle();
  driver.do(() => {
    throw new Error("planted");
  });
  await reload();
  assert.deepEqual(recordsIn(dir), ["Q 1.svr"]);
  const other = newDir(t);
  await world(t, store.clone(), other);
  assert.deepEqual(recordsIn(other), ["Q 1.svr"]);
});
