// Sums of accounting records: who has used what, and how well it was used.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Grouping, type UsageFilter, UsageTable } from "#report/usage-table.ts";
import { usageCsv, usageObjects, usageTable } from "#report/usage-text.ts";

const ALL: UsageFilter = { from: null, to: null, users: null };

type Facts = {
  day?: string;
  type?: string;
  id?: string;
  user?: string;
  hosts?: string;
  exit?: number;
  start?: number;
  walltime?: string;
  more?: string;
};

function record({
  day = "11/26/2026",
  type = "E",
  id = "1.svr",
  user = "ann",
  hosts = "h1/0*2",
  exit = 0,
  start = 1100,
  walltime = "01:00:00",
  more = "",
}: Facts): string {
  const items = [
    `user=${user} group=staff project=p1 jobname=j queue=workq ctime=1000 qtime=1000 etime=1000 start=${start} exec_host=${hosts} exec_vnode=(v1:ncpus=2)`,
    "Resource_List.mem=2gb Resource_List.ncpus=2 Resource_List.walltime=02:00:00 session=7",
    `end=9000 Exit_status=${exit} resources_used.cput=01:00:00 resources_used.mem=1048576kb resources_used.ncpus=2 resources_used.walltime=${walltime}`,
  ];
  return `${day} 08:00:00;${type};${id};${items.join(" ")}${more}\n`;
}

function rowsOf(by: readonly Grouping[], text: string, filter: UsageFilter = ALL) {
  const usage = new UsageTable(by, filter, (vnode) => `part-${vnode}`);
  assert.equal(usage.add(text), text.length);
  return usage.rows();
}

test("sums jobs, failures, reruns, cpu time and waits of a user", () => {
  const text = record({}) + record({ id: "2.svr", exit: 1, start: 1300 }) + record({ id: "3.svr", type: "R" }) + record({ user: "bob" });
  const [ann, bob] = rowsOf(["user"], text);
  assert.deepEqual([ann?.key, ann?.jobs, ann?.failed, ann?.reruns, ann?.cpu_s], [["ann"], 2, 1, 1, 3 * 2 * 3600]);
  assert.deepEqual([ann?.wait_mean_s, ann?.wait_max_s], [200, 300]);
  assert.deepEqual([ann?.cpu_efficiency, ann?.walltime_efficiency, ann?.mem_efficiency], [0.5, 0.5, 0.5]);
  assert.equal(bob?.jobs, 1);
});

test("does not count arrays as a whole, reservations, or other records", () => {
  const text = record({ id: "4[].svr" }) + record({ id: "R5.svr" }) + record({ type: "Q" }) + record({ id: "4[1].svr" });
  assert.deepEqual(
    rowsOf(["user"], text).map(({ jobs }) => jobs),
    [1],
  );
});

test("divides a job by the cpus on each host", () => {
  const rows = rowsOf(["host"], record({ hosts: "h1/0+h2/0*3" }));
  assert.deepEqual(
    rows.map(({ key, jobs, cpu_s }) => [key[0], jobs, cpu_s]),
    [
      ["h1", 1, 1800],
      ["h2", 1, 5400],
    ],
  );
});

test("groups by partition, month and day, also by several at once", () => {
  const text = record({ day: "10/31/2026" }) + record({ day: "11/01/2026" });
  assert.deepEqual(
    rowsOf(["partition", "month"], text).map(({ key }) => key),
    [
      ["part-v1", "2026-10"],
      ["part-v1", "2026-11"],
    ],
  );
  assert.deepEqual(
    rowsOf(["day"], text, { ...ALL, from: "2026-11-01" }).map(({ key }) => key),
    [["2026-11-01"]],
  );
  assert.deepEqual(rowsOf(["day"], text, { ...ALL, users: new Set(["bob"]) }), []);
});

test("survives damaged values", () => {
  const text =
    record({ hosts: "+/x*+", walltime: "soon", more: " resources_used.mem=much" }) +
    "11/26/2026 08:00:00;E;5.svr;\n11/26/2026 08:00:00;E;6.svr;=\n";
  const [row] = rowsOf(["queue"], text.split("\n").slice(1).join("\n"));
  assert.deepEqual([row?.jobs, row?.cpu_s, row?.wait_mean_s, row?.mem_efficiency], [2, 0, null, null]);
  assert.ok(rowsOf(["host"], text).length > 0);
});

test("writes the rows for people and programs", () => {
  const rows = rowsOf(["user"], `${record({ user: 'a"b' })}11/26/2026 08:00:00;E;5.svr;queue=q\n`);
  assert.deepEqual(usageTable(["user"], rows)[1], ["-", "1", "0", "0", "0.0", "-", "-", "-", "-", "-"]);
  assert.equal(usageCsv(["user"], rows).split("\r\n")[2], '"a""b",1,0,0,2,100,100,0.5,0.5,0.5');
  assert.deepEqual(usageObjects(["user"], rows)[1], {
    user: 'a"b',
    jobs: 1,
    failed: 0,
    reruns: 0,
    wait_mean_s: 100,
    wait_max_s: 100,
    cpu_efficiency: 0.5,
    walltime_efficiency: 0.5,
    mem_efficiency: 0.5,
    cpu_hours: 2,
  });
});
