// The effects of `set`, `unset`, += and -= on values: recorded sessions as tables of steps.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttributeValue } from "#model/attribute.ts";
import { attributeOf } from "#model/attribute.ts";
import { builtinResources, customResource } from "#model/resource-table.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { resourceLimitLines } from "#model/values/entity-limit.ts";
import { type AttributeChange, alterValue, renderValue } from "#model/values/index.ts";
import { refusal } from "../refusal.ts";

const resources = builtinResources();
resources.set("r_float", customResource("r_float", "float", "q"));
resources.set("r_arr", customResource("r_arr", "string_array", "h"));
resources.set("r_str", customResource("r_str", "string", "h"));
resources.set("r_bool", customResource("r_bool", "boolean", "h"));

/** Runs steps `[resource] OP value` on one attribute. Each step yields the value shown afterwards, or the refusal. */
function session(object: keyof typeof ATTRIBUTE_TABLES, name: string, steps: readonly (readonly [step: string, shown: string])[]): void {
  const def = attributeOf(ATTRIBUTE_TABLES[object], name);
  let value: AttributeValue | undefined;
  for (const [step, shown] of steps) {
    const match = /^(?:\.(\S+) )?(=|\+=|-=|unset) ?(.*)$/s.exec(step);
    assert.ok(match !== null, step);
    const op = match[2] as AttributeChange["op"];
    const change = { op, value: match[3] ?? "", ...(match[1] === undefined ? {} : { resource: match[1] }) };
    const outcome = refusal(() => {
      value = alterValue(def, value, change, resources);
    });
    const now = value === undefined ? "-" : renderValue(def, value, resources);
    assert.equal(
      outcome.startsWith("accepted") ? (typeof now === "string" ? now : JSON.stringify(now)) : outcome,
      shown,
      `${name} ${step}`,
    );
  }
}

const BAD = "15014 Illegal attribute or resource value";

test("texts: = replaces, += concatenates, empty unsets", () => {
  session("server", "comment", [
    ['= say "no"', 'say "no"'],
    ["+=  and more", 'say "no" and more'],
    ["-=  and more", 'say "no"'],
    ["= ", "-"],
    ["+= x", "x"],
    ["= a\u0000b", BAD],
    ["unset", "-"],
  ]);
});

test("access lists: += appends, a duplicate is refused, -= of an absent one does nothing", () => {
  session("server", "managers", [
    ["+= alice@*", "alice@*"],
    ["+= bob@*.example.org,carol@*", "alice@*,bob@*.example.org,carol@*"],
    ["+= alice@*", "15055 Duplicate entry in list  managers"],
    ["-= bob@*.example.org", "alice@*,carol@*"],
    ["-= nobody@*", "alice@*,carol@*"],
    ["= dave", "15008 Access from host not allowed, or unknown host"],
    ["-= alice@*,carol@*", "-"],
  ]);
});

test("numbers: += and -= count, bounds hold", () => {
  session("queue", "Priority", [
    ["= 10", "10"],
    ["+= 5", "15"],
    ["-= 20", "-5"],
    ["= 2000", BAD],
    ["-= 1023", BAD],
    ["= 1023", "1023"],
    ["+= 1", BAD],
    ["= 1.5", BAD],
    [".ncpus = 1", `${BAD} Priority.ncpus`],
  ]);
  session("server", "resend_term_delay", [
    ["= 1800", "1800"],
    ["= 1801", BAD],
    ["= -1", BAD],
  ]);
  session("server", "max_job_sequence_id", [
    ["= 5", "15225 Cannot set max_job_sequence_id < 9999999, or > 999999999999"],
    ["= 999999999999", "999999999999"],
    ["= 1000000000000", "15225 Cannot set max_job_sequence_id < 9999999, or > 999999999999"],
  ]);
  session("server", "pbs_license_min", [["= -1", "15118 pbs_license_min is < 0, or > pbs_license_max"]]);
  session("server", "log_events", [
    ["= 2047", "2047"],
    ["= abc", BAD],
    ["unset", "511"],
  ]);
  session("server", "scheduler_iteration", [
    ["= 0", "0"],
    ["= 120", "120"],
    ["unset", "600"],
  ]);
  session("server", "node_fail_requeue", [
    ["= -5", "-5"],
    ["unset", "-"],
  ]);
  session("server", "max_array_size", [
    ["= 0", "0"],
    ["unset", "10000"],
  ]);
});

test("durations and sizes of the server", () => {
  session("server", "job_requeue_timeout", [
    ["= 0", BAD],
    ["= 4:00:00", "04:00:00"],
    ["+= 60", "04:01:00"],
  ]);
  session("server", "jobscript_max_size", [
    ["= 3gb", "15176 jobscript max size exceeds 2GB"],
    ["= 2gb", "2gb"],
    ["= 1mb", "1mb"],
    ["+= 1kb", "1025kb"],
    ["-= 2mb", BAD],
    ["= x", BAD],
  ]);
});

test("lists of names", () => {
  session("server", "node_group_key", [
    ["= host,vnode", "host,vnode"],
    ["+= arch", "host,vnode,arch"],
    ["-= vnode", "host,arch"],
    ["-= nosuch", "host,arch"],
    ["-= arch,host", "-"],
  ]);
});

test("partitions of a scheduler are kept once, in order of addition", () => {
  session("sched", "partition", [
    ["= p1", "p1"],
    ["+= p2", "p1,p2"],
    ["+= p1", "p1,p2"],
    ["-= p1", "p2"],
    ["= p3,p4,p3", "p3,p4"],
    ["= a b", BAD],
    ["= ", "-"],
  ]);
});

test("resource lists: each resource by its own type", () => {
  session("queue", "resources_max", [
    [".mem = 8gb", '{"mem":"8gb"}'],
    [".mem += 512mb", '{"mem":"8704mb"}'],
    [".walltime = 1:00:00", '{"mem":"8704mb","walltime":"01:00:00"}'],
    [".ncpus = 4", '{"mem":"8704mb","ncpus":"4","walltime":"01:00:00"}'],
    [".ncpus -= 1", '{"mem":"8704mb","ncpus":"3","walltime":"01:00:00"}'],
    [".mem unset", '{"ncpus":"3","walltime":"01:00:00"}'],
    [".ncpus = lots", `${BAD} resources_max.ncpus`],
    [".nosuch = 1", "15035 Unknown resource resources_max.nosuch"],
    ["= 1", "15035 Unknown resource"],
    [".r_float = 2.5", '{"ncpus":"3","r_float":"2.5","walltime":"01:00:00"}'],
    [".r_float += 0.1", '{"ncpus":"3","r_float":"2.6","walltime":"01:00:00"}'],
    [".ncpus = ", '{"r_float":"2.6","walltime":"01:00:00"}'],
    ["unset", "-"],
    [".r_arr = a,b", '{"r_arr":"a,b"}'],
    [".r_arr += c", '{"r_arr":"a,b,c"}'],
    [".r_arr -= a", '{"r_arr":"b,c"}'],
    [".r_arr -= b,c", "-"],
    [".r_bool = t", '{"r_bool":"True"}'],
    [".r_bool = maybe", `${BAD} resources_max.r_bool`],
    [".r_str = a, b", '{"r_bool":"True","r_str":"a, b"}'],
    [".ncpus = -1", `${BAD} resources_max.ncpus`],
  ]);
  session("job", "Resource_List", [
    [".walltime = -5", `${BAD} Resource_List.walltime`],
    [".walltime = 1:2:3:4", `${BAD} Resource_List.walltime`],
    [".mem = 12xx", `${BAD} Resource_List.mem`],
    [".nosuch = 1", "15035 Unknown resource Resource_List.nosuch"],
    [".r_float = -1", `${BAD} Resource_List.r_float`],
  ]);
});

test("limits of entities as a recorded session sets them", () => {
  session("server", "max_queued", [
    ["= [u:PBS_GENERIC=10]", '["[u:PBS_GENERIC=10]"]'],
    ["+= [u:alice=20]", '["[u:PBS_GENERIC=10]","[u:alice=20]"]'],
    ["+= [g:staff=5],[p:apollo=3]", '["[g:staff=5]","[p:apollo=3]","[u:PBS_GENERIC=10]","[u:alice=20]"]'],
    ["+= [u:alice=30]", '["[g:staff=5]","[p:apollo=3]","[u:PBS_GENERIC=10]","[u:alice=30]"]'],
    ["-= [u:alice=20]", '["[g:staff=5]","[p:apollo=3]","[u:PBS_GENERIC=10]","[u:alice=30]"]'],
    ["-= [u:alice=30]", '["[g:staff=5]","[p:apollo=3]","[u:PBS_GENERIC=10]"]'],
    ["= [o:PBS_ALL=1]", '["[o:PBS_ALL=1]"]'],
    ["= [u:PBS_GENERIC=x]", `${BAD} max_queued`],
    ["= [u:a=-1]", `${BAD} max_queued`],
    ["= 5", `${BAD} max_queued`],
    ["unset", "-"],
  ]);
});

test("limits of entities by resource: = replaces those of that resource, output is by entity and then by resource", () => {
  session("server", "max_run_res", [
    [".ncpus = [u:PBS_GENERIC=8], [o:PBS_ALL=64]", '{"ncpus":["[o:PBS_ALL=64]","[u:PBS_GENERIC=8]"]}'],
    [".mem = [u:PBS_GENERIC=16gb]", '{"mem":["[u:PBS_GENERIC=16gb]"],"ncpus":["[o:PBS_ALL=64]","[u:PBS_GENERIC=8]"]}'],
    [".nosuch = [u:PBS_GENERIC=8]", "15035 Unknown resource max_run_res.nosuch"],
    [".arch = [u:PBS_GENERIC=8]", '15109 "-lresource=" cannot be used with "select" or "place", resource is max_run_res.arch'],
    [".ncpus = [u:a=1gb]", `${BAD} max_run_res.ncpus`],
    [".ncpus unset", '{"mem":["[u:PBS_GENERIC=16gb]"]}'],
    [".walltime += [g:x=1:00:00]", '{"mem":["[u:PBS_GENERIC=16gb]"],"walltime":["[g:x=01:00:00]"]}'],
    ["unset", "-"],
  ]);
  assert.deepEqual(resourceLimitLines({ mem: ["[u:PBS_GENERIC=16gb]"], ncpus: ["[o:PBS_ALL=64]", "[u:PBS_GENERIC=8]"] }), [
    { resource: "ncpus", text: "[o:PBS_ALL=64]" },
    { resource: "mem", text: "[u:PBS_GENERIC=16gb]" },
    { resource: "ncpus", text: "[u:PBS_GENERIC=8]" },
  ]);
});

test("words: queue types by prefix, policies of schedulers in their own forms", () => {
  session("queue", "queue_type", [
    ["= e", "Execution"],
    ["= r", "Route"],
    ["= ROUTE", "Route"],
    ["= x", BAD],
    ["= executionn", BAD],
  ]);
  session("sched", "preempt_order", [
    ["= SCR 80 SC 50 S", "SCR 80 SC 50 S"],
    ["= SXC", BAD],
    ["= SS", BAD],
    ["= S 50 C 80 R", BAD],
    ["= S 50", BAD],
    ["= D", "D"],
  ]);
  session("sched", "preempt_prio", [
    ["= express_queue, normal_jobs", "express_queue, normal_jobs"],
    ["= express_queue, nonsense", BAD],
    ["= express_queue+fairshare, normal_jobs", "express_queue+fairshare, normal_jobs"],
  ]);
  session("sched", "preempt_sort", [
    ["= oldest", BAD],
    ["= min_time_since_start", "min_time_since_start"],
  ]);
  session("sched", "job_run_wait", [
    ["= always", BAD],
    ["= none", "none"],
    ["unset", "runjob_hook"],
  ]);
  session("sched", "opt_backfill_fuzzy", [
    ["= maybe", BAD],
    ["= 300", "300"],
    ["= high", "high"],
  ]);
  session("sched", "log_events", [
    ["= x", BAD],
    ["unset", "767"],
  ]);
  session("queue", "enabled", [
    ["= maybe", BAD],
    ["= t", "True"],
  ]);
  session("server", "require_cred", [
    ["= krb5", "krb5"],
    ["= x", BAD],
  ]);
});

test("attributes of jobs are named when a value is bad", () => {
  session("job", "Priority", [
    ["= 1023", "1023"],
    ["= 1024", `${BAD} Priority`],
    ["= x", `${BAD} Priority`],
  ]);
  session("job", "Job_Name", [
    ["= ok", "ok"],
    ["= a b", `${BAD} Job_Name`],
    [`= ${"x".repeat(231)}`, "15173 name is too long"],
  ]);
  session("job", "umask", [
    ["= 027", "27"],
    ["= 999", "999"],
  ]);
  session("job", "Hold_Types", [
    ["= u", "u"],
    ["+= s", "su"],
    ["-= u", "s"],
    ["= z", `${BAD} Hold_Types`],
    ["= n", "n"],
  ]);
  session("job", "Variable_List", [
    ["= A= x ,B=1\\,2", "A= x ,B=1\\,2"],
    ["+= C=", "A= x ,B=1\\,2,C="],
  ]);
  session("job", "Keep_Files", [
    ["= oe", "oe"],
    ["= ee", "ee"],
    ["= x", `${BAD} Keep_Files`],
  ]);
  session("job", "Checkpoint", [
    ["= c=5", "c=5"],
    ["= zz", `${BAD} Checkpoint`],
  ]);
  session("job", "Execution_Time", [
    ["= 1795166788", "1795166788"],
    ["= soon", `${BAD} Execution_Time`],
  ]);
});
