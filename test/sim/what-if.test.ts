// A saved complex continues, unchanged and with changes. states/waiting.json: a node of 4 cpus, strict ordering, backfill_depth
// 2. 1 runs (3 cpus, ten minutes), and 4 runs beside it (1 cpu, five minutes); 2 requests 4 cpus, 3 one cpu for half an hour,
// 5[1-3] two each, 6 waits for 2, 7 is in a separate queue, 8 has no walltime, 9 is held.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { AdminError } from "#admin/complex/complex-home.ts";
import type { SimOptions } from "#admin/sim/sim-options.ts";
import { whatIf } from "#admin/sim/what-if.ts";
import type { Outcome } from "#sim/what-if.ts";

const STATE = fileURLToPath(new URL("states/waiting.json", import.meta.url));
const OPTIONS: SimOptions = { algo: "easy", engine: "pool", json: true, state: STATE };

type Told = { readonly saved_s: number; readonly before: Outcome; readonly after: Outcome | null };
const play = async (changes: Partial<SimOptions>): Promise<Told> => JSON.parse(await whatIf({ ...OPTIONS, ...changes })) as Told;

/** `2+9:52 3+19:52 6-`: minutes and seconds after the complex was saved. */
const startsOf = ({ from_s, jobs }: Outcome): string =>
  jobs
    .filter(({ ran }) => !ran)
    .map(({ job, start_s }) => `${job.replace(".n1", "")}${start_s === null ? "-" : `+${minutes(start_s - from_s)}`}`)
    .join(" ");
const minutes = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

const AS_IT_IS = "2+11:52 3+21:52 5[1]+21:52 5[2]+26:52 5[3]+31:52 6+21:52 7+9:52 8+22:52 9-";

test("what if: as it is", async () => {
  const { before, after } = await play({});
  assert.equal(startsOf(before), AS_IT_IS);
  assert.equal(after, null);
  assert.deepEqual(
    before.jobs.filter(({ ran }) => ran).map(({ job, end_s }) => `${job} ${(end_s ?? 0) - before.from_s}`),
    ["1.n1 592", "4.n1 295"],
    "what runs has the rest of its walltime left",
  );
  assert.equal(before.jobs.find(({ job }) => job === "8.n1")?.end_s, null, "without walltime it never ends");
});

// biome-ignore format: a table
const ROWS: readonly (readonly [title: string, changes: Partial<SimOptions>, starts: string])[] = [
  ["no strict ordering: 2 starves",      { schedConfig: ["strict_ordering=False"] },                        "2- 3+4:55 5[1]+11:52 5[2]+16:52 5[3]+21:52 6- 7+9:52 8+9:52 9-"],
  ["of one scheduler, by its name",      { schedConfig: ["default:strict_ordering=False"] },                "2- 3+4:55 5[1]+11:52 5[2]+16:52 5[3]+21:52 6- 7+9:52 8+9:52 9-"],
  ["a queue is stopped",                 { qmgr: ["set queue fast started=False"] },                        "2+9:52 3+19:52 5[1]+19:52 5[2]+24:52 5[3]+29:52 6+19:52 7- 8+20:52 9-"],
  ["another node; several requests",     { qmgr: ["create node n1b", "set node n1b resources_available.ncpus=8; set node n1b comment=later"] }, AS_IT_IS],
  ["a reservation when all is over",     { reserve: ["start=+2:00:00,duration=0:10:00,select=1:ncpus=3"] }, AS_IT_IS],
];
for (const [title, changes, starts] of ROWS)
  test(`what if: ${title}`, async () => {
    const { before, after } = await play(changes);
    assert.equal(startsOf(before), AS_IT_IS);
    assert.ok(after !== null);
    assert.equal(startsOf(after), starts);
  });

type Named = { readonly name: string; readonly data: { readonly order: number; readonly attrs: { [name: string]: unknown } } };

test("what if: a scheduler on another host decides as a local one", async () => {
  const saved = JSON.parse(readFileSync(STATE, "utf8"));
  const { queues, vnodes, scheds } = saved.rows.objects as Readonly<Record<"queues" | "vnodes" | "scheds", Named[]>>;
  for (const { data } of [...queues, ...vnodes]) data.attrs["partition"] = "p2";
  const own = structuredClone(scheds[0]?.data.attrs ?? {});
  scheds.push({ name: "s2", data: { order: 2, attrs: { ...own, partition: ["p2"], sched_host: "Node7.cluster.org" } } });
  saved.scheds.s2 = saved.scheds.default;
  const dir = mkdtempSync(join(tmpdir(), "partita-far-"));
  try {
    writeFileSync(join(dir, "far.json"), JSON.stringify(saved));
    assert.equal(startsOf((await play({ state: join(dir, "far.json") })).before), AS_IT_IS);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("what if: a reservation is kept free, jobs go around it", async () => {
  const { after } = await play({ reserve: ["start=+0:32:00,duration=0:10:00,select=1:ncpus=2"], until: "2:00:00" });
  assert.ok(after !== null);
  assert.deepEqual(
    after.resvs.map(({ start_s, end_s, exec_vnode }) => [start_s - after.from_s, end_s - start_s, exec_vnode]),
    [[1920, 600, "(n1:ncpus=2)"]],
  );
  for (const { start_s, end_s, exec_vnode } of after.resvs) {
    const beside = after.jobs.filter(
      (job) => job.start_s !== null && job.start_s < end_s && (job.end_s ?? Number.POSITIVE_INFINITY) > start_s,
    );
    assert.ok(beside.reduce((sum, { ncpus }) => sum + ncpus, 0) <= 2, `${exec_vnode}: ${beside.map(({ job }) => job)}`);
  }
});

// biome-ignore format: a table
const REFUSED: readonly (readonly [changes: Partial<SimOptions>, text: RegExp])[] = [
  [{ qmgr: ["set queue nosuch enabled=False"] },                    /^--qmgr set queue nosuch enabled=False\nqmgr obj=nosuch svr=default: Unknown queue/],
  [{ qmgr: ["set qeue x"] },                                        /Illegal object type: qeue/],
  [{ schedConfig: ["strict_ordring=True"] },                        /^sched_config of default: Unknown config parameter$/],
  [{ schedConfig: ["backfill.matcher=worst_fit"] },                 /^sched_config of default: Invalid backfill.matcher worst_fit/],
  [{ schedConfig: ["strict"] },                                     /not \[SCHEDULER:\]KEY=VALUE$/],
  [{ schedConfig: ["s9:backfill=False"] },                          /^there is no scheduler s9$/],
  [{ reserve: ["start=+0:05:00,duration=0:10:00,select=1:ncpus=4"] }, /no scheduler confirms it$/],
  [{ reserve: ["start=+0:05:00,select=1:ncpus=4"] },                /it wants start=, duration= and select=$/],
  [{ reserve: ["start=soon,duration=60,select=1:ncpus=4"] },        /start is \+DURATION/],
  [{ until: "later" },                                              /^--until later: not a duration|^--until later/],
  [{ live: true },                                                  /not both/],
];
for (const [changes, text] of REFUSED)
  test(`what if: refused: ${JSON.stringify(changes)}`, async () => {
    await assert.rejects(play(changes), (error) => error instanceof AdminError && text.test(error.message));
  });

test("what if: tables, a picture, a file that is no saved state", async () => {
  const place = mkdtempSync(join(tmpdir(), "partita-what-if-"));
  try {
    const text = await whatIf({ ...OPTIONS, json: false, schedConfig: ["strict_ordering=False"], picture: join(place, "p.svg") });
    assert.match(text, /^Complex n1 as of .*: 2 running, 9 waiting\n/);
    assert.match(text, /^started +8 +6$/m);
    assert.match(text, /^3\.n1 +alice +workq +\+00:21:52 +\+00:04:55 +-00:16:57$/m);
    assert.match(text, /^2\.n1 +alice +workq +\+00:11:52 +-$/m);
    const picture = readFileSync(join(place, "p.svg"), "utf8");
    assert.match(picture, /^<svg[\s\S]*>before<[\s\S]*5\[1\]\.n1[\s\S]*>after<[\s\S]*5\[1\]\.n1/);
    assert.match(picture, />queue:<[\s\S]*>workq<[\s\S]*>fast</, "one user: the queues tell jobs apart");
    await whatIf({ ...OPTIONS, picture: join(place, "q.svg"), colour: "job", to: 600 });
    const asItIs = readFileSync(join(place, "q.svg"), "utf8");
    assert.match(asItIs, />4\.n1</);
    assert.doesNotMatch(asItIs, />queue:<|>3\.n1</, "ten minutes, coloured by job");
    for (const [content, fault] of [
      ["{}", /was not written by partita sim --save/],
      ["jobs", /no JSON text/],
      ['{"format":"partita-state","version":9}', /version 9, this release reads version 1/],
    ] as const) {
      writeFileSync(join(place, "other"), content);
      await assert.rejects(
        whatIf({ ...OPTIONS, state: join(place, "other") }),
        (error) => error instanceof AdminError && fault.test(error.message),
      );
    }
  } finally {
    rmSync(place, { recursive: true });
  }
});
