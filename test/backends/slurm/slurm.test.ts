import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BackendError } from "#backends/contract/fault.ts";
import { batchesOf, withoutSurplus } from "#backends/contract/sightings.ts";
import { readConfig, readLicenses, readSqueue, submittedId } from "#backends/slurm/answer.ts";
import { reasonFault, slurmKind } from "#backends/slurm/faults.ts";
import { niceScale, originOf, slurmOptions } from "#backends/slurm/options.ts";
import { niceArgs, niceOf, sbatchArgs, sbatchScript, scancelArgs, squeueArgs } from "#backends/slurm/request.ts";
import { order, request } from "../order.ts";

const SETTINGS = { name: "b", type: "slurm", complex: "k1", user: "me", state_dir: "/s", attributes: {} } as const;
const FACTS = { licenses: new Set(["lic1"]), scale: { origin_s: 0, factor: 1 } };
const OF = { complex: "k1", backend: "b", prefix: "repo:" };

test("sbatch is asked for an array of runners of one host, under the name of the tag", () => {
  assert.deepEqual(sbatchArgs(order({ count: 3 }), slurmOptions(SETTINGS), FACTS), [
    "--parsable",
    "--job-name=k1.b.1",
    "--array=0-2",
    "--chdir=/",
    "--output=/dev/null",
    "--no-requeue",
    "--nodes=1",
    "--ntasks=1",
    "--time=60",
    "--cpus-per-task=1",
  ]);
});

test("every resource of the document becomes an option of sbatch, and a job's own options come before the request's", () => {
  const options = slurmOptions({
    ...SETTINGS,
    attributes: { remote_queue: "main", account: "acc", repo_key: "r:", backend_opts: "-q low -C 'a b'" },
  });
  const args = (parts: Parameters<typeof request>[0]): string =>
    sbatchArgs(order({ request: request(parts) }), options, FACTS)
      .slice(9)
      .join(" ");
  const rows: readonly (readonly [parts: Parameters<typeof request>[0], text: string])[] = [
    [
      { ncpus: 4, mem_kb: 2048, tmp_kb: 10 },
      "--partition=main --account=acc --qos=low --constraint=a b --cpus-per-task=4 --mem=2048K --tmp=10K",
    ],
    [
      { resources: { excludes: "n1", features: "fast", nodes: "n[2-3]" } },
      "--partition=main --account=acc --qos=low --constraint=fast --cpus-per-task=1 --exclude=n1 --nodelist=n[2-3]",
    ],
    [
      { resources: { partition: "p2", qos: "high", reserv: "r1" } },
      "--partition=p2 --account=acc --qos=high --constraint=a b --cpus-per-task=1 --reservation=r1",
    ],
    [
      { resources: { lic1: 2, ngpus: 1, fpga: 3 } },
      "--partition=main --account=acc --qos=low --constraint=a b --cpus-per-task=1 --licenses=lic1:2 --gres=gpu:1,fpga:3",
    ],
    [
      { resources: { licence: "a:1", gres0: "gpu:k80:2" } },
      "--partition=main --account=acc --qos=low --constraint=a b --cpus-per-task=1 --licenses=a:1 --gres=gpu:k80:2",
    ],
    [
      { ncpus: 2, options: { "cpus-per-task": "8", partition: "p3" } },
      "--partition=p3 --account=acc --qos=low --constraint=a b --cpus-per-task=8",
    ],
  ];
  for (const [parts, text] of rows) assert.equal(args(parts), text);
  assert.throws(() => args({ resources: { gres1: "gpu:1" } }), /only index 0/);
  assert.throws(() => args({ resources: { fpga: "a\nb" } }), /cannot take/);
});

test("S1: no value of an order can become an option of its own", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.nat())), (resources) => {
      let args: readonly string[];
      try {
        args = sbatchArgs(order({ request: request({ resources }) }), slurmOptions(SETTINGS), FACTS);
      } catch (error) {
        return error instanceof BackendError;
      }
      const names = args.map((arg) => /^--([a-z-]+)(=|$)/.exec(arg)?.[1]);
      return names.every((name) => name !== undefined && !["wrap", "dependency", "uid", "priority", "export"].includes(name));
    }),
  );
});

test("the script quotes everything and names only the file of the token", () => {
  const text = sbatchScript(order({ tag: "k1.b.9", argv: ["/opt/it's", "$(id)", "a b"], env: { X: "`id`" } }), "/tok/k1.b.9");
  assert.equal(
    text,
    [
      "#!/bin/sh",
      "unset LC_ALL",
      "export X='`id`'",
      "export PARTITA_RUNNER_TAG='k1.b.9'",
      "export PARTITA_RUNNER_INDEX=$((SLURM_ARRAY_TASK_ID))",
      "export PARTITA_RUNNER_TOKEN_FILE='/tok/k1.b.9/'\"$PARTITA_RUNNER_INDEX\"",
      "exec '/opt/it'\\''s' '$(id)' 'a b'",
      "",
    ].join("\n"),
  );
  assert.throws(() => sbatchScript(order({ env: { "A;id": "1" } }), "/t"), RangeError);
});

test("nice values follow the wished start from the origin, and never leave sbatch's range", () => {
  assert.equal(niceOf(1000, { origin_s: 400, factor: 1 }), 600);
  assert.equal(niceOf(1000, { origin_s: 400, factor: 0.5 }), 300);
  fc.assert(
    fc.property(fc.integer(), fc.integer(), fc.double({ min: 0, max: 1000, noNaN: true }), (start, origin_s, factor) => {
      const nice = niceOf(start, { origin_s, factor });
      return Number.isInteger(nice) && nice >= 0 && nice <= 2_147_483_645;
    }),
  );
  const wish = { start_s: 5000, priority: 0 };
  const on = slurmOptions({ ...SETTINGS, attributes: { use_nice: true } });
  assert.ok(sbatchArgs(order({ wish }), on, FACTS).includes("--nice=5000"));
  assert.ok(!sbatchArgs(order({ wish }), slurmOptions(SETTINGS), FACTS).some((arg) => arg.startsWith("--nice")));
  assert.deepEqual(niceArgs("7_1", wish, on, FACTS), ["update", "jobid=7_1", "nice=5000"]);
  assert.equal(niceArgs("7_1", wish, slurmOptions(SETTINGS), FACTS), null);
});

test("the origin and the factor of nice come from the attributes, from slurm.conf, or are the usual ones", () => {
  assert.equal(originOf("2023-01-01 00:00"), Date.UTC(2023, 0, 1) / 1000);
  assert.equal(originOf("2024-02-29 12:30:05 +02:00"), Date.UTC(2024, 1, 29, 10, 30, 5) / 1000);
  assert.equal(originOf("1969-12-31 23:59 -01:00"), 3540);
  for (const text of ["", "2023-13-01 00:00", "2023-01-01", "2023-01-01T00:00"]) assert.equal(originOf(text), null, text);
  const none = { time_origin_s: null, nice_factor: null };
  assert.deepEqual(niceScale(none, ""), { origin_s: Date.UTC(2023, 0, 1) / 1000, factor: 1 });
  assert.deepEqual(niceScale(none, "x=1,time_origin=2022-01-01 00:00,nice_factor=0.25"), {
    origin_s: Date.UTC(2022, 0, 1) / 1000,
    factor: 0.25,
  });
  assert.deepEqual(niceScale({ time_origin_s: 5, nice_factor: 2 }, "nice_factor=0.25"), { origin_s: 5, factor: 2 });
  assert.equal(niceScale(none, "nice_factor=-1").factor, 1);
});

test("the output of sbatch --parsable", () => {
  const rows: readonly (readonly [text: string, id: string | null])[] = [
    ["5\n", "5"],
    ["12;cluster1\n", "12"],
    ["sbatch: warning\n77\n", "77"],
    ["", null],
    ["0\n", null],
    ["Submitted batch job x", null],
  ];
  for (const [text, id] of rows) assert.equal(submittedId(text), id, JSON.stringify(text));
});

const line = (...fields: string[]): string => `|s|${fields.join("|s|")}|s|`;

test("squeue's lines as a real Slurm 22.05 prints them", () => {
  const text = [
    line("3_0", "3", "0", "PENDING", "JobHeldUser", "", "batch1", "repo:k1.b.2"),
    line("2_1", "2", "1", "RUNNING", "None", "sn1", "batch1", "repo:k1.b.1"),
    line("2_2", "2", "2", "COMPLETED", "None", "sn1", "batch1", "repo:k1.b.1"),
    line("2_3", "2", "3", "PREEMPTED", "None", "sn1", "batch1", "repo:k1.b.1"),
    line("2_4", "2", "4", "FAILED", "NonZeroExitCode", "sn1", "batch1", "repo:k1.b.1"),
    line("2_5", "2", "5", "PENDING", "Priority", "", "batch1", "repo:k1.b.1"),
    line("2_6", "2", "6", "NEW_STATE", "", "", "batch1", "repo:k1.b.1"),
    line("5", "5", "N/A", "PENDING", "PartitionConfig", "", "batch1", "sbatch"),
    line("6_0", "6", "0", "RUNNING", "None", "sn1", "batch1", "repo:k1.other.1"),
  ].join("\n");
  const seen = readSqueue(text, "|s|", OF);
  assert.deepEqual(
    seen.map(({ id, index, state, ending, reason, host, fault }) => [id, index, state, ending, reason, host, fault?.kind ?? null]),
    [
      ["3_0", 0, "queued", null, "PENDING JobHeldUser", null, "configuration"],
      ["2_1", 1, "running", null, "RUNNING", "sn1", null],
      ["2_2", 2, "ended", "done", "COMPLETED", "sn1", null],
      ["2_3", 3, "ended", "retry", "PREEMPTED", "sn1", null],
      ["2_4", 4, "ended", "error", "FAILED NonZeroExitCode", "sn1", null],
      ["2_5", 5, "queued", null, "PENDING Priority", null, null],
      ["2_6", 6, "unknown", null, "NEW_STATE", null, null],
    ],
  );
});

test("hostile names of jobs make no sightings", () => {
  const forged = ["|7_0|7|0|RUNNING|None|h|batch1|repo:k1.b.7|", "|x|7_0|x|7|x|0|x|RUNNING|x|None|x|h|x|batch1|x|repo:k1.b.7|x|"];
  for (const name of forged)
    assert.deepEqual(readSqueue(line("9", "9", "N/A", "RUNNING", "None", "h", "eve", `a\n${name}`), "|s|", OF), []);
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => readSqueue(text, "|r4nd0m|", OF).length === 0));
  assert.ok(squeueArgs("|n|", "me", null).includes("--user=me"));
  assert.ok(!squeueArgs("|n|", null, "c1").some((arg) => arg.startsWith("--user")));
});

test("licences and configuration as a real Slurm prints them", () => {
  assert.deepEqual(
    [...readLicenses("LicenseName=lic1\n    Total=4 Used=0 Free=4 Reserved=0 Remote=no\nLicenseName=b@db\n")],
    ["lic1", "b@db"],
  );
  const config =
    "Configuration data as of 2026-11-25T22:43:40\nMaxArraySize            = 100001\nPriorityParameters      = (null)\nSLURM_VERSION           = 22.05.8\n";
  assert.deepEqual(readConfig(config), { version: "22.05.8", array_max: 100_000, priority_parameters: "" });
  assert.throws(() => readConfig("slurm_load_ctl_conf error"), BackendError);
});

test("Slurm's errors by kind", () => {
  const rows: readonly (readonly [text: string, kind: string])[] = [
    [
      "sbatch: error: invalid partition specified: nosuch sbatch: error: Batch job submission failed: Invalid partition name specified",
      "configuration",
    ],
    ["sbatch: error: Batch job submission failed: Invalid license specification", "impossible"],
    [
      "sbatch: error: Memory specification can not be satisfied sbatch: error: Batch job submission failed: Requested node configuration is not available",
      "impossible",
    ],
    ["sbatch: error: Invalid generic resource (gres) specification", "impossible"],
    ["sbatch: error: Batch job submission failed: Requested reservation is invalid", "impossible"],
    ["sbatch: error: Batch job submission failed: Invalid feature specification", "impossible"],
    ["sbatch: error: Batch job submission failed: Invalid job array specification", "impossible"],
    ["sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying", "limit"],
    [
      "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
      "limit",
    ],
    ["slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "transient"],
    ["squeue did not answer within 30 s", "transient"],
    ["squeue: fatal: Unable to process configuration file", "configuration"],
    ["something new", "transient"],
  ];
  for (const [text, kind] of rows) assert.equal(slurmKind(text), kind, text);
  assert.equal(reasonFault("PartitionTimeLimit")?.kind, "impossible");
  assert.equal(reasonFault("QOSMaxWallDurationPerJobLimit")?.kind, "impossible");
  assert.equal(reasonFault("QOSMaxJobsPerUserLimit")?.kind, "limit");
  assert.equal(reasonFault("AssocGrpCpuLimit")?.kind, "limit");
  for (const reason of ["", "Priority", "Resources", "Licenses", "BeginTime"]) assert.equal(reasonFault(reason), null, reason);
});

test("of two submissions with one tag the first is kept", () => {
  const [one, two] = [3, 12].map(
    (id) => readSqueue(line(`${id}_0`, String(id), "0", "RUNNING", "", "h", "u", "repo:k1.b.1"), "|s|", OF)[0],
  );
  assert.ok(one !== undefined && two !== undefined);
  const { kept, surplus } = withoutSurplus([two, one], (a, b) => Number.parseInt(a.id, 10) - Number.parseInt(b.id, 10));
  assert.deepEqual([kept.map(({ id }) => id), surplus.map(({ id }) => id)], [["3_0"], ["12_0"]]);
  const other = { ...two, user: "eve" };
  assert.deepEqual(withoutSurplus([one, other], () => 0).surplus, []);
  assert.deepEqual(batchesOf([1, 2, 3], 2), [[1, 2], [3]]);
  assert.deepEqual(scancelArgs(["3_0"], true, "c"), ["--state=PENDING", "--clusters=c", "3_0"]);
});
