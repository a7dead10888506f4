// A store whose PostgreSQL has a standby that follows it over a stream, and is promoted when the primary is gone; and a
// second server that stands by for the first.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { markFile } from "#store/mark.ts";
import type { StoreError } from "#store/store.ts";
import { isFault, job } from "../../store/bed.ts";
import { LACK_OF_POSTGRES, openStore, type Postgres, type Standby, startPostgres, startStandby, until } from "./postgres-bed.ts";

const how = { skip: LACK_OF_POSTGRES };
const QUICK = ["beat = 0.1", "silence = 0.6", "patience = 300"];

/** Calls work with a primary and its standby. */
async function withStandby(work: (primary: Postgres, standby: Standby) => Promise<void>): Promise<void> {
  const primary = startPostgres();
  let standby: Standby | undefined;
  try {
    standby = startStandby(primary);
    await work(primary, standby);
  } finally {
    standby?.remove();
    primary.remove();
  }
}

const streaming = (primary: Postgres, state: string): boolean => primary.sql("SELECT sync_state FROM pg_stat_replication") === state;
const both = (primary: Postgres, standby: Postgres) => primary.settings(`host = ${primary.directory},${standby.directory}`, ...QUICK);

test("postgres store: a synchronous standby that is promoted has every acknowledged commit, and the store goes on there", how, async () => {
  await withStandby(async (primary, standby) => {
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*';\nSELECT pg_reload_conf();");
    await until("the standby is synchronous", () => streaming(primary, "sync"));
    const notices: string[] = [];
    const store = await openStore(primary, { settings: both(primary, standby), onNotice: (text) => notices.push(text) });
    let acknowledged = 0;
    let going = true;
    const commits = (async () => {
      for (let at = 1; going; at++) {
        await store.commit({ jobs: [job(at)], counters: { at } });
        acknowledged = at;
      }
    })();
    await until("commits flow", () => acknowledged > 50);
    const { term } = store;
    primary.kill();
    await until("the loss is noticed", () =>
      notices.some((text) => text.startsWith("waiting for the database") && text.includes("is a standby")),
    );
    const before = acknowledged;
    standby.promote();
    await until("commits flow on the former standby", () => acknowledged > before + 50);
    going = false;
    await commits;
    assert.ok(store.term > term);
    const { jobs, counters } = await store.load();
    assert.deepEqual([jobs.length, counters["at"]], [acknowledged, acknowledged]);
    assert.equal(standby.sql("SELECT last_commit FROM partita.leader"), String(acknowledged));
    await store.close();
  });
});

test("postgres store: a promoted standby that lacks acknowledged commits is refused, in service and at the next start", how, async () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-pg-mark-"));
  const mark = markFile(join(directory, "partita.db"));
  try {
    await withStandby(async (primary, standby) => {
      await until("the standby follows", () => streaming(primary, "async"));
      const ends: StoreError[] = [];
      const store = await openStore(primary, { settings: both(primary, standby), mark, onEnd: (error) => ends.push(error) });
      await store.commit({ jobs: [job(1)] });
      // The standby may be so far behind that it does not even have the table.
      await until("the standby has the table", () => standby.sql("SELECT to_regclass('partita.jobs') IS NOT NULL") === "t");
      await until("the standby has it", () => standby.sql("SELECT count(*) FROM partita.jobs") === "1");
      standby.sql("ALTER SYSTEM SET primary_conninfo = '';\nSELECT pg_reload_conf();");
      await until("the stream has ended", () => streaming(primary, ""));
      for (let at = 2; at <= 4; at++) await store.commit({ jobs: [job(at)] });
      primary.kill();
      standby.promote();
      await assert.rejects(
        store.commit({ jobs: [job(5)] }),
        isFault("lost", /has 1 commits, but 4 were acknowledged \(was a standby without them promoted\?\)/),
      );
      assert.equal(ends.length, 1);
      await store.close();
      await assert.rejects(
        openStore(primary, { settings: both(primary, standby), mark }),
        isFault("lost", /the last 3 of its commits are missing/),
      );
      assert.equal(standby.sql("SELECT count(*) FROM partita.jobs"), "1", "nothing was written");
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("postgres store: a second server stands by while the first lives, and takes over when it ends", how, async () => {
  const postgres = startPostgres();
  try {
    const open = (holder: string, more = {}) =>
      openStore(postgres, { settings: postgres.settings("beat = 0.1", "silence = 300"), holder, host: holder, ...more });
    const first = await open("one");
    let leads = false;
    const standing = open("two", { waits: true, stands_by: true }).then((store) => {
      leads = true;
      return store;
    });
    // It has seen signs of life for several times the silence.
    const beat = (): number => Number(postgres.sql("SELECT beat FROM partita.leader"));
    const seen = beat();
    await until("the first server has shown often that it lives", () => beat() > seen + 20);
    assert.equal(leads, false);
    await first.commit({ jobs: [job(1)] });
    await first.close();
    const second = await standing;
    assert.equal((await second.load()).jobs.length, 1);
    const stop = new AbortController();
    const third = open("three", { waits: true, stands_by: true, stop: stop.signal });
    stop.abort();
    await assert.rejects(third, isFault("locked", /the server on two .* uses this database/));
    await second.close();
  } finally {
    postgres.remove();
  }
});
