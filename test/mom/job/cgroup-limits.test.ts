import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMomConfig } from "#mom/config/config.ts";
import { hierarchiesOf } from "#mom/host/cgroup-hierarchy.ts";
import { type CgroupSettings, jobLimits, parseCpuList, pickCpus } from "#mom/job/cgroup-limits.ts";

const settings = (line: string): CgroupSettings => {
  const { settings, errors } = parseMomConfig(line);
  assert.deepEqual(errors, [], line);
  return settings.cgroups;
};

test("$cgroups: what is enforced for a job, from its request", () => {
  const MB = 1024 * 1024;
  const ask = { Resource_List: { mem: "100mb", ncpus: 2 } };
  const rows: readonly (readonly [line: string, attrs: object, limits: unknown])[] = [
    ["", ask, { memory_bytes: null, pids_max: null, cpus: null, ncpus: null }],
    ["$cgroups track", ask, { memory_bytes: null, pids_max: null, cpus: null, ncpus: null }],
    ["$cgroups off", ask, null],
    ["$cgroups memory", ask, { memory_bytes: 100 * MB, pids_max: null, cpus: null, ncpus: null }],
    ["$cgroups memory", { Resource_List: { mem: "1kb" } }, { memory_bytes: 4 * MB, pids_max: null, cpus: null, ncpus: null }],
    ["$cgroups memory", { Resource_List: { ncpus: 1 } }, { memory_bytes: null, pids_max: null, cpus: null, ncpus: null }],
    ["$cgroups cpuset,cpu", ask, { memory_bytes: null, pids_max: null, cpus: "0,3", ncpus: 2 }],
    ["$cgroups all\n$cgroups_pids_max 50", ask, { memory_bytes: 100 * MB, pids_max: 50, cpus: "0,3", ncpus: 2 }],
  ];
  for (const [line, attrs, limits] of rows) assert.deepEqual(jobLimits(attrs as never, settings(line), [0, 3]), limits, line);
  for (const line of ["$cgroups", "$cgroups disk", "$cgroups off,memory", "$cgroups_pids_max 0", "$cgroups_pids_max many"])
    assert.equal(parseMomConfig(line).errors.length, 1, line);
});

test("cpus of a job's own: the lowest free ones, or none when there are not enough", () => {
  const rows: readonly (readonly [online: string, taken: readonly number[], ncpus: number, cpus: readonly number[] | null])[] = [
    ["0-3", [], 2, [0, 1]],
    ["0-3", [0, 2], 2, [1, 3]],
    ["0-1,4", [0], 2, [1, 4]],
    ["0-3", [0, 1, 2], 2, null],
    ["0-3", [], 16, null],
    ["0-3", [], 0, null],
    ["", [], 1, null],
  ];
  for (const [online, taken, ncpus, cpus] of rows) assert.deepEqual(pickCpus(parseCpuList(online), new Set(taken), ncpus), cpus, online);
});

test("hierarchies by mounts and the groups we are in: versions 1, 2 and both", () => {
  const both = `cgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /cg/memory cgroup rw,relatime,memory 0 0
cgroup /cg/systemd cgroup rw,name=systemd 0 0
cgroup2 /cg/unified cgroup2 rw 0 0
proc /proc proc rw 0 0
`;
  const show = (mounts: string, groups: string): unknown =>
    hierarchiesOf(mounts, groups, "partita.x").map(({ version, controllers, top }) => [version, [...controllers].join("+"), top]);
  assert.deepEqual(show(both, "3:name=systemd:/\n2:memory:/\n1:cpu,cpuacct:/a\n0::/\n"), [
    [1, "cpu+cpuacct", "/cg/cpu,cpuacct/partita.x"],
    [1, "memory", "/cg/memory/partita.x"],
    [1, "name=systemd", "/cg/systemd/partita.x"],
    [2, "", "/cg/unified/partita.x"],
  ]);
  assert.deepEqual(show("cgroup2 /cg cgroup2 rw 0 0\n", "0::/not/there\n"), [[2, "", "/cg/partita.x"]]);
  assert.deepEqual(show("tmpfs / tmpfs rw 0 0\n", ""), []);
});
