import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BackendError } from "#backends/contract/fault.ts";
import { bkillFailures, readBjobs, readBqueues, submittedJob } from "#backends/lsf/answer.ts";
import { lsfKind, pendingFault } from "#backends/lsf/faults.ts";
import { lsfOptions } from "#backends/lsf/options.ts";
import { bjobsArgs, bsubArgs, bsubScript, FIELDS } from "#backends/lsf/request.ts";
import { order, request } from "../order.ts";

const SETTINGS = { name: "b", type: "lsf", complex: "k1", user: null, state_dir: "/s", attributes: {} } as const;
const OF = { complex: "k1", backend: "b", prefix: "r:" };

test("bsub is asked for an array under the name of the tag, with units for memory", () => {
  const rows: readonly (readonly [attributes: object, parts: Parameters<typeof request>[0], words: readonly string[]])[] = [
    [{}, {}, ["-R", "span[hosts=1]"]],
    [
      { remote_queue: "normal", account: "prj" },
      { ncpus: 4, mem_kb: 2_097_152, tmp_kb: 10_240 },
      ["-M", "2048MB", "-R", "select[mem>2048MB && tmp>10MB] rusage[mem=2048MB:tmp=10MB] span[hosts=1]", "-q", "normal", "-P", "prj"],
    ],
    [
      { mem_resource: "mymem", backend_opts: "-q low -app big" },
      { mem_kb: 1, resources: { ngpus: 2, lic: 3, model: "xeon" }, options: { q: "high", R: "select[x]" } },
      [
        "-M",
        "1MB",
        "-R",
        "select[mymem>1MB && model==xeon] rusage[mymem=1MB:lic=3] span[hosts=1]",
        "-gpu",
        "num=2",
        "-q",
        "high",
        "-app",
        "big",
        "-R",
        "select[x]",
      ],
    ],
  ];
  for (const [attributes, parts, words] of rows) {
    const args = bsubArgs(order({ count: 3, request: request(parts) }), lsfOptions({ ...SETTINGS, attributes: { ...attributes } }));
    assert.deepEqual(args.slice(0, 11), [
      "-J",
      "k1.b.1[1-3]",
      "-n",
      String(parts?.ncpus ?? 1),
      "-W",
      "60",
      "-rn",
      "-cwd",
      "/",
      "-o",
      "/dev/null",
    ]);
    assert.deepEqual(args.slice(11), words);
  }
  assert.match(bsubScript(order(), "/t"), /INDEX=\$\(\(LSB_JOBINDEX - 1\)\)/);
  assert.deepEqual(bjobsArgs("anna"), ["-a", "-u", "anna", "-o", FIELDS, "-json"]);
});

test("L1: a resource cannot leave its place in the requirement", () => {
  fc.assert(
    fc.property(fc.string(), fc.oneof(fc.string(), fc.nat()), (name, value) => {
      try {
        const args = bsubArgs(order({ request: request({ resources: { [name]: value } }) }), lsfOptions(SETTINGS));
        const requirement = args[args.indexOf("-R") + 1] ?? "";
        return /^(?:select\[[A-Za-z]\w*==[\w.-]+\] |rusage\[[A-Za-z]\w*=\d+\] )?span\[hosts=1\]$/.test(requirement);
      } catch (error) {
        return error instanceof BackendError;
      }
    }),
  );
});

const record = (parts: object): object => ({
  JOBID: "7",
  JOBINDEX: "1",
  STAT: "RUN",
  USER: "anna",
  EXEC_HOST: "host1",
  PEND_REASON: "",
  EXIT_REASON: "",
  JOB_NAME: "r:k1.b.1[1]",
  ...parts,
});
const list = (...records: readonly object[]): string => JSON.stringify({ COMMAND: "bjobs", JOBS: records.length, RECORDS: records });

test("bjobs -json as it is documented", () => {
  const rows: readonly (readonly [parts: object, seen: readonly unknown[] | null])[] = [
    [{}, ["7[1]", 0, "running", null, "host1", null]],
    [{ JOBID: "7[3]", JOB_NAME: "r:k1.b.1[3]", EXEC_HOST: "4*host2:host3" }, ["7[3]", 2, "running", null, "host2", null]],
    [
      { JOBINDEX: "5", JOB_NAME: "r:k1.b.1", STAT: "PEND", EXEC_HOST: "-", PEND_REASON: "New job is waiting for scheduling;" },
      ["7[5]", 4, "queued", null, null, null],
    ],
    [
      { STAT: "PEND", PEND_REASON: "Not specified in job submission; There are no hosts that can be used" },
      ["7[1]", 0, "queued", null, "host1", "impossible"],
    ],
    [
      { STAT: "PEND", PEND_REASON: "User has reached the per-user job slot limit of the queue" },
      ["7[1]", 0, "queued", null, "host1", "limit"],
    ],
    [{ STAT: "PSUSP" }, ["7[1]", 0, "queued", null, "host1", "configuration"]],
    [{ STAT: "DONE" }, ["7[1]", 0, "ended", "done", "host1", null]],
    [
      { STAT: "EXIT", EXIT_REASON: "TERM_RUNLIMIT: job killed after reaching LSF run time limit" },
      ["7[1]", 0, "ended", "error", "host1", null],
    ],
    [{ STAT: "EXIT", EXIT_REASON: "TERM_PREEMPT: job killed after preemption" }, ["7[1]", 0, "ended", "retry", "host1", null]],
    [{ STAT: "UNKWN" }, ["7[1]", 0, "unknown", null, "host1", null]],
    [{ STAT: "NEW" }, ["7[1]", 0, "unknown", null, "host1", null]],
    [{ JOB_NAME: "other[1]" }, null],
    [{ JOB_NAME: "r:k2.b.1[1]" }, null],
    [{ JOB_NAME: "r:k1.b.1[0]", JOBINDEX: "0" }, null],
    [{ JOBID: "x" }, null],
  ];
  for (const [parts, seen] of rows) {
    const shown = readBjobs(list(record(parts)), OF).map(({ id, index, state, ending, host, fault }) => [
      id,
      index,
      state,
      ending,
      host,
      fault?.kind ?? null,
    ]);
    assert.deepEqual(shown, seen === null ? [] : [seen], JSON.stringify(parts));
  }
});

test("a list of bjobs that is not whole is no list", () => {
  assert.deepEqual(readBjobs("", OF), []);
  for (const text of ["{", "[]", '{"COMMAND":"bjobs","JOBS":2,"RECORDS":[]}', "No job found", list(record({})).slice(0, -1)])
    assert.throws(() => readBjobs(text, OF), BackendError, text);
  // A runner that cannot be read must not look as if it had ended.
  assert.throws(() => readBjobs(list({ JOBID: "7[1]", JOB_NAME: "r:k1.b.1[1]" }), OF), BackendError);
  assert.deepEqual(readBjobs(list({ JOBID: "7[1]", JOB_NAME: "theirs[1]" }), OF), []);
  assert.deepEqual(readBjobs(list({ JOBID: {} }, record({ JOB_NAME: "r:k1.b.1[1]\nx" })), OF), []);
});

test("the other outputs of LSF", () => {
  assert.equal(submittedJob("Job <12> is submitted to queue <normal>.\n"), "12");
  assert.equal(submittedJob("Job <12> is submitted to default queue <normal>.\n"), "12");
  assert.equal(submittedJob("Job not submitted"), null);
  assert.deepEqual(readBqueues("QUEUE_NAME      PRIO STATUS          MAX JL/U\nnormal           30  Open:Active       -    -\n"), [
    { name: "normal", status: "Open:Active" },
  ]);
  assert.throws(() => readBqueues("LSF is down"), BackendError);
  assert.equal(
    bkillFailures("Job <1[1]> is being terminated\n", "Job <2[1]>: Job has already finished\nJob <3[1]>: No matching job found\n"),
    "",
  );
  assert.match(bkillFailures("", "Job <1[1]>: User permission denied\n"), /permission/);
});

test("LSF's errors by kind", () => {
  const rows: readonly (readonly [text: string, kind: string])[] = [
    ["nosuch: No such queue. Job not submitted.", "configuration"],
    ["shut: Queue has been closed. Job not submitted.", "configuration"],
    ["RUNLIMIT: Cannot exceed queue's hard limit(s). Job not submitted.", "impossible"],
    ["Bad resource requirement syntax. Job not submitted.", "impossible"],
    ["Pending job threshold reached. Retrying in 60 seconds...", "limit"],
    ["LSF is down. Please wait ...", "transient"],
    ["bjobs did not answer within 30 s", "transient"],
  ];
  for (const [text, kind] of rows) assert.equal(lsfKind(text), kind, text);
  assert.equal(pendingFault("New job is waiting for scheduling"), null);
});
