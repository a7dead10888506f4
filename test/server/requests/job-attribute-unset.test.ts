// Every attribute of a job that a user may change, set and then unset by qalter. The values after unset are listed here
// independently of the table of attributes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttributeDef } from "#model/attribute.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import type { AttrOp } from "#protocol/messages.ts";
import { addHost, apply, type Harness, harness, jobAttrs, outcome, ROOT, runOn, START_S, stateOf } from "../harness.ts";
import { qsub } from "./qsub.ts";

/** Attributes that always have a value: unset restores this one. All others have none after unset. */
const COMES_BACK: { readonly [attribute: string]: unknown } = {
  Checkpoint: "u",
  Hold_Types: "n",
  Join_Path: "n",
  Keep_Files: "n",
  Mail_Points: "a",
  Priority: 0,
  Rerunable: true,
  project: "_pbs_project_default",
};
/** Attributes that a job must have: unset leaves the present value. */
const STAYS: ReadonlySet<string> = new Set(["Job_Name", "Error_Path", "Output_Path"]);
/** Refused for this job, or refused as a whole. */
const REFUSED: { readonly [attribute: string]: RegExp } = {
  Resource_List: /^15035/,
  eligible_time: /^15138/,
  max_run_subjobs: /^15231/,
};
const VALUES: { readonly [attribute: string]: string } = {
  Checkpoint: "s",
  Error_Path: "svr:/tmp/e9",
  Execution_Time: String(START_S + 100),
  group_list: "users",
  Hold_Types: "o",
  Join_Path: "oe",
  Keep_Files: "oe",
  Mail_Points: "be",
  Output_Path: "svr:/tmp/o9",
  Priority: "9",
  Remove_Files: "o",
  Rerunable: "False",
  Shell_Path_List: "/bin/sh",
  stagein: "a@svr:/b",
  stageout: "a@svr:/b",
  User_List: "alice",
  umask: "27",
  depend: "on:1",
  run_count: "0",
  sandbox: "PRIVATE",
  override: "higher",
  backend_opts: "-C fast",
  tolerate_node_failures: "all",
  argument_list: "<jsdl-hpcpa:Argument>x</jsdl-hpcpa:Argument>",
};

function sample(def: AttributeDef): string {
  const given = VALUES[def.name];
  if (given !== undefined) return given;
  if (def.type === "boolean") return "True";
  return ["integer", "long64", "time", "duration"].includes(def.type) ? "1" : "x9";
}

async function world(): Promise<{ readonly h: Harness; readonly job: string; readonly link: number }> {
  const h = harness();
  const link = addHost(h, "n1");
  apply(h, { kind: "created", object: "backend", name: "sl", attrs: { type: "slurm" } });
  return { h, link, job: await qsub(h, "-- /bin/true") };
}

const alter = (h: Harness, job: string, op: AttrOp): string => outcome(h, ROOT, { kind: "modify-job", job, attrs: [op] });

for (const def of JOB_ATTRIBUTES.rows) {
  const { name } = def;
  if (def.set === "pbs" || name === "forward_x11_cookie" || name === "estimated") continue;
  test(`qalter: ${name} set, then unset`, async () => {
    for (const unset of [
      { name, op: "unset", value: "" },
      { name, op: "=", value: "" },
    ] as const) {
      const { h, job, link } = await world();
      const set = alter(h, job, { name, op: "=", value: sample(def) });
      const refused = REFUSED[name];
      if (refused !== undefined) {
        assert.match(set, refused);
        assert.match(alter(h, job, unset), refused);
        continue;
      }
      assert.equal(set, "ok");
      const given = jobAttrs(h, job)[name];
      assert.notEqual(given, undefined);
      assert.equal(alter(h, job, unset), "ok");
      assert.deepEqual(jobAttrs(h, job)[name], STAYS.has(name) ? given : COMES_BACK[name]);
      assert.equal(stateOf(h, job), "Q 10", "nothing keeps it from running");
      runOn(h, job, "n1", link);
    }
  });
}
