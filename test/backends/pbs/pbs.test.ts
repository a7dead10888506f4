import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BackendError } from "#backends/contract/fault.ts";
import { qdelFailures, readQstat, runnerId, submittedId } from "#backends/pbs/answer.ts";
import { pbsKind } from "#backends/pbs/faults.ts";
import { pbsEnv, pbsOptions } from "#backends/pbs/options.ts";
import { qalterArgs, qstatArgs, qsubArgs, qsubScript } from "#backends/pbs/request.ts";
import { parseSelect } from "#model/request/select.ts";
import { order, request } from "../order.ts";

const SETTINGS = { name: "b", type: "pbs", complex: "k1", user: null, state_dir: "/s", attributes: {} } as const;
const OF = { complex: "k1", backend: "b", prefix: "" };

test("qsub is asked for one job or for an array, under the name of the tag", () => {
  const rows: readonly (readonly [count: number, attributes: object, parts: Parameters<typeof request>[0], text: string])[] = [
    [1, {}, {}, "-N k1.b.1 -S /bin/sh -m n -r n -R oe -l select=1:ncpus=1 -l walltime=3600"],
    [
      3,
      {},
      { ncpus: 2, mem_kb: 1024, tmp_kb: 5 },
      "-N k1.b.1 -S /bin/sh -m n -J 0-2 -R oe -l select=1:ncpus=2:mem=1024kb -l walltime=3600",
    ],
    [
      1,
      { repo_key: "a:", remote_queue: "workq", account: "acc", tmp_resource: "scratch", output_dir: "/out", backend_opts: "-P prj -p 5" },
      { tmp_kb: 5, resources: { ngpus: 1, arch: "linux" }, options: { q: "other" } },
      "-N a_k1.b.1 -S /bin/sh -m n -r n -j oe -o /out/ -l select=1:ncpus=1:scratch=5kb:ngpus=1:arch=linux -l walltime=3600 -q other -A acc -P prj -p 5",
    ],
  ];
  for (const [count, attributes, parts, text] of rows)
    assert.equal(
      qsubArgs(order({ count, request: request(parts) }), pbsOptions({ ...SETTINGS, attributes: { ...attributes } })).join(" "),
      text,
    );
});

test("P1: whatever a resource is named and worth, the select has one chunk with this resource", () => {
  fc.assert(
    fc.property(fc.string(), fc.oneof(fc.string(), fc.nat()), (name, value) => {
      let args: readonly string[];
      try {
        args = qsubArgs(order({ request: request({ resources: { [name]: value } }) }), pbsOptions(SETTINGS));
      } catch (error) {
        return error instanceof BackendError && error.kind === "impossible";
      }
      const select = args.find((arg) => arg.startsWith("select="))?.slice(7) ?? "";
      return select === `1:ncpus=1:${name}=${value}` && !select.includes("+");
    }),
  );
  assert.equal(parseSelect("1:ncpus=2:mem=1024kb").chunks.length, 1);
});

test("the script of an array counts as the array does; a single job has the index 0", () => {
  assert.match(qsubScript(order({ count: 2 }), "/t"), /INDEX=\$\(\(PBS_ARRAY_INDEX\)\)/);
  assert.match(qsubScript(order(), "/t"), /INDEX=\$\(\(0\)\)/);
  assert.deepEqual(pbsEnv(pbsOptions({ ...SETTINGS, attributes: { config: "/c", cluster: "h" } })), {
    PBS_CONF_FILE: "/c",
    PBS_SERVER: "h",
    PBS_DEFAULT: "h",
  });
  assert.deepEqual(qstatArgs(true), ["-x", "-t", "-f", "-F", "json"]);
});

const JOBS = {
  "12.vm": { Job_Name: "k1.b.1", Job_Owner: "anna@vm", job_state: "R", exec_host: "n1/0*2", comment: "Job run at Wed" },
  "13[].vm": { Job_Name: "k1.b.2", Job_Owner: "anna@vm", job_state: "B" },
  "13[0].vm": { Job_Name: "k1.b.2", Job_Owner: "anna@vm", job_state: "X", Exit_status: 0 },
  "13[1].vm": { Job_Name: "k1.b.2", Job_Owner: "anna@vm", job_state: "X", Exit_status: 271 },
  "13[2].vm": {
    Job_Name: "k1.b.2",
    Job_Owner: "anna@vm",
    job_state: "Q",
    comment: "Can Never Run: Insufficient amount of resource: ncpus",
  },
  "13[3].vm": { Job_Name: "k1.b.2", Job_Owner: "anna@vm", job_state: "H" },
  "14.vm": { Job_Name: "STDIN", Job_Owner: "anna@vm", job_state: "Q" },
  "15.vm": { Job_Name: 77, Job_Owner: "anna@vm", job_state: "Q" },
  "16.vm": "x",
};

test("qstat's list in JSON", () => {
  assert.deepEqual(
    readQstat(JSON.stringify({ timestamp: 1, Jobs: JOBS }), OF).map(({ id, index, state, ending, user, host, fault }) => [
      id,
      index,
      state,
      ending,
      user,
      host,
      fault?.kind ?? null,
    ]),
    [
      ["12.vm", 0, "running", null, "anna", "n1", null],
      ["13[0].vm", 0, "ended", "done", "anna", null, null],
      ["13[1].vm", 1, "ended", "error", "anna", null, null],
      ["13[2].vm", 2, "queued", null, "anna", null, "impossible"],
      ["13[3].vm", 3, "queued", null, "anna", null, "configuration"],
    ],
  );
  assert.deepEqual(readQstat('{"timestamp":1}', OF), []);
  assert.deepEqual(readQstat("", OF), []);
  // A runner that cannot be read must not look as if it had ended; jobs of others are no concern.
  const strange = (Job_Name: unknown): string => JSON.stringify({ Jobs: { "7.h": { Job_Name, job_state: 5 } } });
  assert.throws(() => readQstat(strange("k1.b.1"), OF), BackendError);
  for (const name of ["k1.other.1", "theirs", null]) assert.deepEqual(readQstat(strange(name), OF), []);
  for (const text of ['{"Jobs":', "[]", "qstat: error"]) assert.throws(() => readQstat(text, OF), BackendError, text);
  const [runner] = readQstat(JSON.stringify({ Jobs: { "13[2].vm": JOBS["13[2].vm"] } }), OF);
  assert.ok(runner !== undefined);
  assert.deepEqual(qalterArgs([runner, { ...runner, id: "13[3].vm" }], { start_s: null, priority: 5000 }), ["-p", "1023", "13[].vm"]);
});

test("ids of jobs and failures of qdel", () => {
  assert.equal(submittedId("12.vm.example\n"), "12.vm.example");
  assert.equal(submittedId("13[].vm\n"), "13[].vm");
  assert.equal(submittedId("qsub: x"), null);
  assert.equal(runnerId("13[].vm", 4), "13[4].vm");
  assert.equal(runnerId("12.vm", 0), "12.vm");
  assert.equal(qdelFailures("qdel: Unknown Job Id 99.vm\nqdel: Job has finished 98.vm\n"), "");
  assert.match(qdelFailures("qdel: Unauthorized Request  12.vm\n"), /Unauthorized/);
});

test("the errors of another complex by kind", () => {
  const rows: readonly (readonly [text: string, kind: string])[] = [
    ["qsub: cannot connect to server vm (errno=15010)", "transient"],
    ["qsub: Unknown queue", "configuration"],
    ["qsub: Queue is not enabled", "configuration"],
    ["qsub: Unknown resource: ngpus", "impossible"],
    ["qsub: Job violates queue and/or server resource limits", "impossible"],
    ["qsub: would exceed queue workq's per-user limit", "limit"],
    ["qsub: Maximum number of jobs already in queue workq", "limit"],
    ["qsub: Unauthorized Request", "configuration"],
  ];
  for (const [text, kind] of rows) assert.equal(pbsKind(text), kind, text);
});
