// The properties that every store has, as tests for any kind of store.

import assert from "node:assert/strict";
import { memoryStore } from "#store/memory-store.ts";
import type { Batch, HistoryRow, Store } from "#store/store.ts";
import { prng } from "#support/prng.ts";
import { finished, ids, job } from "./bed.ts";

/** Calls work with an empty store. reopen: closes the store and opens it again, as after a restart. */
export type WithStore = (work: (store: Store, reopen: (old: Store) => Promise<Store>) => Promise<void>) => Promise<void>;

/** A test of one kind of store: its name, and what it checks. */
export type StoreCase = readonly [name: string, check: (withStore: WithStore) => Promise<void>];

/** What holds for every store. */
export const STORE_CONTRACT: readonly StoreCase[] = [
  [
    "a fresh one is empty and says so",
    async (withStore) => {
      await withStore(async (store, reopen) => {
        const first = await store.load();
        assert.equal(first.fresh, true);
        assert.deepEqual([first.jobs, first.counters, first.objects.queues], [[], {}, []]);
        await store.commit({ counters: { next_seq: 1 } });
        assert.equal((await (await reopen(store)).load()).fresh, false);
      });
    },
  ],

  [
    "rows of every table come back as they were put, after change, deletion and restart",
    async (withStore) => {
      await withStore(async (store, reopen) => {
        const data = {
          text: 'quote " backslash \\ newline \n nul-free ü \u{1f600}',
          list: ["a", "b"],
          nested: { ncpus: 1, mem: "2gb", flag: true },
          none: null,
        };
        await store.commit({
          put: [
            { table: "server", name: "svr", data },
            { table: "queues", name: "workq", data: { order: 1 } },
            { table: "queues", name: "it's; DROP TABLE jobs", data: { order: 2 } },
            { table: "vnodes", name: "n[0]", data },
            { table: "resources", name: "lic", data: {} },
            { table: "scheds", name: "default", data: {} },
            { table: "resvs", name: "R1.svr", data: {} },
          ],
          jobs: [job(2), job(1, data)],
          scripts: [
            { id: "1.svr", text: "#!/bin/sh\ntrue\n" },
            { id: "2.svr", text: "" },
          ],
          counters: { next_seq: 3, next_order: 9 },
        });
        await store.commit({
          put: [{ table: "queues", name: "workq", data: { order: 1, started: true } }],
          drop: [
            { table: "resources", name: "lic" },
            { table: "queues", name: "never was" },
          ],
          jobs: [job(2, { job_state: "R" })],
          counters: { next_seq: 4 },
        });
        const opened = await reopen(store);
        const { objects, jobs, counters } = await opened.load();
        assert.deepEqual(objects.server, [{ name: "svr", data }]);
        assert.deepEqual(objects.queues, [
          { name: "workq", data: { order: 1, started: true } },
          { name: "it's; DROP TABLE jobs", data: { order: 2 } },
        ]);
        assert.deepEqual(objects.vnodes, [{ name: "n[0]", data }]);
        assert.deepEqual([objects.resources, objects.scheds.length, objects.resvs.length], [[], 1, 1]);
        assert.deepEqual(jobs, [job(1, data), job(2, { job_state: "R" })]);
        assert.deepEqual(counters, { next_seq: 4, next_order: 9 });
        assert.deepEqual(Object.fromEntries(await opened.scripts(["1.svr", "2.svr", "3.svr"])), {
          "1.svr": "#!/bin/sh\ntrue\n",
          "2.svr": "",
        });
      });
    },
  ],

  [
    "a job that goes takes its script along; into the history in the same batch",
    async (withStore) => {
      await withStore(async (store, reopen) => {
        await store.commit({
          jobs: [job(1), job(2)],
          scripts: [
            { id: "1.svr", text: "x" },
            { id: "2.svr", text: "y" },
          ],
        });
        await store.commit({ jobs_gone: ["1.svr"], history: [finished(1)] });
        const opened = await reopen(store);
        assert.deepEqual(
          (await opened.load()).jobs.map((row) => row.id),
          ["2.svr"],
        );
        assert.deepEqual([...(await opened.scripts(["1.svr", "2.svr"])).keys()], ["2.svr"]);
        assert.deepEqual(await opened.history.get("1.svr"), finished(1));
        assert.equal(await opened.history.get("2.svr"), null);
      });
    },
  ],

  [
    "a job's second row is told beside the first, changes alone, and goes with the job or before it",
    async (withStore) => {
      await withStore(async (store, reopen) => {
        await store.commit({ jobs: [job(1), job(2), job(3), job(4)] });
        await store.commit({
          runs: [
            { id: "1.svr", data: { substate: 41, 'a name "with" more': "\n" } },
            { id: "2.svr", data: { substate: 41 } },
            { id: "3.svr", data: { substate: 41 } },
          ],
        });
        await store.commit({
          runs: [{ id: "1.svr", data: { substate: 42 } }],
          jobs: [job(2, { Priority: 1 })],
          runs_gone: ["2.svr", "4.svr"],
          jobs_gone: ["3.svr"],
        });
        const opened = await reopen(store);
        assert.deepEqual((await opened.load()).jobs, [{ ...job(1), run: { substate: 42 } }, job(2, { Priority: 1 }), job(4)]);
        await opened.commit({ jobs: [job(3)] });
        assert.deepEqual((await opened.load()).jobs.at(2), job(3), "a job of the same name has nothing of the one before");
      });
    },
  ],

  [
    "the history by id, owner, queue and time, in pages, in the order of submission",
    async (withStore) => {
      await withStore(async (store) => {
        const rows = [5, 3, 1, 4, 2, 10].map((seq) =>
          finished(seq, {
            owner: seq % 2 === 0 ? "bob" : "alice",
            queue: seq > 3 ? "long" : "workq",
            ended_s: 100 - seq,
            state: seq === 4 ? "M" : "F",
          }),
        );
        await store.commit({ history: [...rows, finished(7, { id: "7[1].svr" }), finished(7, { id: "7[0].svr" })] });
        const table: [filter: Parameters<typeof ids>[1], found: string][] = [
          [{}, "1 2 3 4 5 7[0] 7[1] 10"],
          [{ owner: "bob" }, "2 4 10"],
          [{ owner: "nobody" }, ""],
          [{ queue: "long" }, "4 5 10"],
          [{ owner: "bob", queue: "long" }, "4 10"],
          [{ ids: ["3.svr", "10.svr", "99.svr"] }, "3 10"],
          [{ ids: [] }, ""],
          [{ since_s: 97 }, "1 2 3"],
          [{ before_s: 96, since_s: 90 }, "5 10"],
        ];
        for (const [filter, found] of table)
          for (const page of [1, 2, 3, 1000]) assert.equal(await ids(store, filter, page), found, JSON.stringify(filter));
        assert.equal(await store.history.count(), 8);
        assert.deepEqual([await store.history.usesResource("ncpus"), await store.history.usesResource("lic")], [true, false]);
        await store.commit({ history_gone: ["3.svr"] });
        assert.equal(await ids(store, { queue: "workq" }), "1 2 7[0] 7[1]");
      });
    },
  ],

  [
    "subjobs stand behind their array by index, can be left out, and go with it",
    async (withStore) => {
      const subjob = (seq: number, idx: number): HistoryRow => finished(seq, { id: `${seq}[${idx}].svr`, idx });
      await withStore(async (store) => {
        await store.commit({ history: [subjob(2, 10), finished(3), subjob(2, 9), finished(1), subjob(4, 0), subjob(2, 100)] });
        await store.commit({ history: [finished(2, { id: "2[].svr" })] });
        assert.equal(await ids(store, {}, 2), "1 2[] 2[9] 2[10] 2[100] 3 4[0]");
        assert.equal(await ids(store, { subjobs: false }, 2), "1 2[] 3");
        assert.equal(await ids(store, { seqs: [2, 4], subjobs: true }, 2), "2[] 2[9] 2[10] 2[100] 4[0]");
        assert.equal(await ids(store, { ids: ["2[9].svr", "3.svr"] }), "2[9] 3");
        assert.deepEqual(await store.history.get("2[9].svr"), subjob(2, 9));
        await store.commit({ history_gone: ["2[].svr"], history_gone_arrays: [2] });
        assert.equal(await ids(store, {}), "1 3 4[0]");
      });
    },
  ],

  [
    "purging takes the oldest first, as many as asked for, and says what it took",
    async (withStore) => {
      await withStore(async (store) => {
        await store.commit({ history: [1, 2, 3, 4, 5].map((seq) => finished(seq, { ended_s: 60 - seq, queue: `q${seq}` })) });
        const purged = (await store.history.purge(58, 2)).map(({ id, queue, state }) => `${id} ${queue} ${state}`);
        assert.deepEqual(purged.sort(), ["4.svr q4 F", "5.svr q5 F"]);
        assert.deepEqual(
          (await store.history.purge(58)).map(({ id }) => id),
          ["3.svr"],
        );
        assert.deepEqual(await store.history.purge(58), []);
        assert.equal(await ids(store, {}), "1 2");
      });
    },
  ],

  [
    "concurrent commits take effect in the order of their calls, with purges between them",
    async (withStore) => {
      await withStore(async (store) => {
        const work: Promise<unknown>[] = [];
        for (let at = 1; at <= 200; at++) {
          work.push(store.commit({ jobs: [job(1, { at })], counters: { at }, history: [finished(at)] }));
          if (at % 50 === 0) work.push(store.history.purge(at - 10));
        }
        await Promise.all(work);
        const { jobs, counters } = await store.load();
        assert.deepEqual([jobs[0]?.data["at"], counters["at"]], [200, 200]);
        assert.equal(await ids(store, {}), Array.from({ length: 11 }, (_, at) => 190 + at).join(" "));
      });
    },
  ],
];

/** What holds for every store with many rows; these tests take seconds. */
export const STORE_PROPERTIES: readonly StoreCase[] = [
  [
    "after random batches it agrees with the memory store, whenever it is opened again",
    async (withStore) => {
      await withStore(async (first, reopen) => {
        const memory = memoryStore();
        let disk = first;
        const random = prng("store");
        for (let round = 0; round < 150; round++) {
          const some = (): number[] => Array.from(new Set(Array.from({ length: random.int(0, 5) }, () => random.int(1, 30))));
          const batch: Batch = {
            put: some().map((at) => ({ table: random.pick(["queues", "vnodes", "server"] as const), name: `o${at}`, data: { round } })),
            drop: some().map((at) => ({ table: random.pick(["queues", "vnodes"] as const), name: `o${at}` })),
            jobs: some().map((at) => job(at, { round })),
            jobs_gone: some().map((at) => `${at}.svr`),
            scripts: some().map((at) => ({ id: `${at}.svr`, text: String(round) })),
            history: some().map((at) => finished(at, { ended_s: round })),
            history_gone: some().map((at) => `${at}.svr`),
            counters: { round },
          };
          await memory.commit(batch);
          await disk.commit(batch);
          if (round % 30 !== 0) continue;
          disk = await reopen(disk);
          const byName = (rows: readonly { readonly name: string }[]) => [...rows].sort((a, b) => (a.name < b.name ? -1 : 1));
          const shape = async (store: Store) => {
            const { objects, jobs, counters } = await store.load();
            const scripts = await store.scripts(Array.from({ length: 30 }, (_, at) => `${at}.svr`));
            const tables = Object.entries(objects).map(([table, rows]) => [table, byName(rows)]);
            return { tables, jobs, counters, scripts: [...scripts].sort(), history: await ids(store, {}) };
          };
          assert.deepEqual(await shape(disk), await shape(memory));
        }
      });
    },
  ],

  [
    "thousands of jobs, alike and not, short and long, come back as they were put and in the order of seq",
    async (withStore) => {
      await withStore(async (store, reopen) => {
        const random = prng(7);
        const rows = Array.from({ length: 4500 }, (_, at) =>
          job(5000 - at, {
            Job_Name: `j${at % 3}`,
            ...(at % 7 === 0 ? { comment: 'a "quoted" \\ one,\n{ü \u{1f600}' } : {}),
            ...(at % 1500 === 0 ? { long: "x,y{".repeat(5000 + random.int(0, 10_000)) } : {}),
            Variable_List: ["A=1", `B=${at % 2}`],
            Resource_List: { ncpus: 1, mem: `${at % 5}gb` },
            ctime: 1e9 + at,
          }),
        );
        const runs = rows
          .filter(({ seq }) => seq % 2 === 0)
          .map(({ id, seq }) => ({ id, data: { comment: `c${seq % 11}`, s: "s".repeat(seq % 3 === 0 ? 1 : 17_000) } }));
        await store.commit({ jobs: rows, runs });
        const opened = await reopen(store);
        const run = new Map(runs.map(({ id, data }) => [id, { run: data }]));
        assert.deepEqual(
          (await opened.load()).jobs,
          rows.toReversed().map((row) => ({ ...row, ...run.get(row.id) })),
        );
        const kept: unknown[] = [];
        const { jobs } = await opened.load((name, value) => {
          if (name === "Variable_List") kept.push(value);
          return name === "Job_Name" ? "kept" : value;
        });
        assert.equal(
          jobs.every(({ data }) => data["Job_Name"] === "kept" && kept.includes(data["Variable_List"])),
          true,
        );
      });
    },
  ],
];
