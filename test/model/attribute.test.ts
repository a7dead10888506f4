import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AttributeDef,
  attributeOf,
  attributeTable,
  checkSettable,
  defaultAttributes,
  mayRead,
  maySet,
  valueAfterUnset,
} from "#model/attribute.ts";
import { builtinResources } from "#model/resource-table.ts";
import { freshSched, SCHED_ATTRIBUTES } from "#model/tables/sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { encodeAttrs, parseValue, renderValue } from "#model/values/index.ts";
import { refusal } from "./refusal.ts";

const resources = builtinResources();
const row = (name: string): AttributeDef => attributeOf(SERVER_ATTRIBUTES, name);

test("names are found in any case, by alias, and written as the table has them", () => {
  assert.equal(SERVER_ATTRIBUTES.byName("SCHEDULING")?.name, "scheduling");
  assert.equal(SCHED_ATTRIBUTES.byName("Partitions")?.name, "partition");
  assert.equal(SERVER_ATTRIBUTES.byName("port"), undefined);
  assert.equal(SERVER_ATTRIBUTES.byName("__proto__"), undefined);
  assert.equal(
    refusal(() => attributeOf(SERVER_ATTRIBUTES, "nosuch")),
    "15002 Undefined attribute ",
  );
  assert.throws(
    () =>
      attributeTable("server", [
        ["a", "string", "all", "op", "x"],
        ["A", "string", "all", "op", "x"],
      ]),
    /defined twice/,
  );
});

test("levels decide who reads and who sets", () => {
  const user = { level: "user" } as const;
  const operator = { level: "operator" } as const;
  const manager = { level: "manager" } as const;
  const root = { level: "manager", root: true } as const;
  const reads = (read: AttributeDef["read"]): boolean[] => [user, operator, manager].map((caller) => mayRead({ read }, caller));
  assert.deepEqual(reads("all"), [true, true, true]);
  assert.deepEqual(reads("op"), [false, true, true]);
  assert.deepEqual(reads("mgr"), [false, false, true]);
  assert.deepEqual(reads("none"), [false, false, false]);
  const sets = (set: AttributeDef["set"]): boolean[] => [user, operator, manager, root].map((caller) => maySet({ set }, caller));
  assert.deepEqual(sets("user"), [true, true, true, true]);
  assert.deepEqual(sets("op"), [false, true, true, true]);
  assert.deepEqual(sets("mgr"), [false, false, true, true]);
  assert.deepEqual(sets("root"), [false, false, false, true]);
  assert.deepEqual(sets("pbs"), [false, false, false, false]);
  const readOnly = "15003 Cannot set attribute, read only or insufficient permission ";
  assert.equal(
    refusal(() => checkSettable(row("server_state"), manager)),
    `${readOnly} server_state`,
  );
  assert.equal(
    refusal(() => checkSettable(row("acl_roots"), manager)),
    readOnly,
  );
  assert.equal(
    refusal(() => checkSettable(row("resources_max"), operator)),
    "accepted: undefined",
  );
  const list = attributeOf(ATTRIBUTE_TABLES.job, "Resource_List");
  assert.equal(
    refusal(() => checkSettable(list, user, resources.get("soft_walltime"))),
    `${readOnly} Resource_List.soft_walltime`,
  );
});

test("every row has a type that can hold its default, a line of help, and survives text and back", () => {
  for (const table of Object.values(ATTRIBUTE_TABLES)) {
    for (const def of table.rows) {
      assert.ok(def.help.length > 3 && !def.help.includes("\n"), `${table.object} ${def.name} has no help`);
      for (const value of [def.default, def.assumed]) {
        if (value === undefined || def.type === "resource_list" || def.type === "node_state") continue;
        const text = renderValue(def, value, resources);
        assert.equal(typeof text, "string", def.name);
        assert.deepEqual(parseValue(def, String(text), resources), value, `${table.object} ${def.name}`);
      }
    }
  }
});

test("a fresh server lists what the reference lists", () => {
  const attrs = {
    ...defaultAttributes(SERVER_ATTRIBUTES),
    server_state: "Active",
    server_host: "svr",
    state_count: "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
    pbs_version: "1",
  };
  const wire = encodeAttrs(SERVER_ATTRIBUTES, attrs, resources);
  assert.deepEqual(
    Object.entries(wire).map(([name, value]) => `${name} = ${typeof value === "string" ? value : JSON.stringify(value)}`),
    [
      "server_state = Active",
      "server_host = svr",
      "scheduling = True",
      "total_jobs = 0",
      "state_count = Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
      "default_queue = workq",
      "log_events = 511",
      "mailer = /usr/sbin/sendmail",
      "mail_from = adm",
      "query_other_jobs = True",
      'resources_default = {"ncpus":"1"}',
      'default_chunk = {"ncpus":"1"}',
      "scheduler_iteration = 600",
      "resv_enable = True",
      "node_fail_requeue = 310",
      "max_array_size = 10000",
      "resend_term_delay = 5",
      "pbs_license_min = 0",
      "pbs_license_max = 2147483647",
      "pbs_license_linger_time = 31536000",
      "license_count = Avail_Global:1000000 Avail_Local:1000000 Used:0 High_Use:0",
      "pbs_version = 1",
      "eligible_time_enable = False",
      "max_concurrent_provision = 5",
      "clear_topjob_estimates_enable = False",
      "power_provisioning = False",
      "max_job_sequence_id = 9999999",
    ],
  );
});

test("fresh schedulers list what the reference lists", () => {
  const list = (name: string): string[] =>
    Object.entries(encodeAttrs(SCHED_ATTRIBUTES, freshSched(name, "/h", "svr"), resources)).map(([n, v]) => `${n} = ${v}`);
  const common = ["sched_cycle_length = 00:20:00", "throughput_mode = True", "job_run_wait = runjob_hook"];
  const tail = [
    "preempt_queue_prio = 150",
    "preempt_prio = express_queue, normal_jobs",
    "preempt_order = SCR",
    "preempt_sort = min_time_since_start",
    "log_events = 767",
    "server_dyn_res_alarm = 30",
  ];
  assert.deepEqual(list("default"), [
    "sched_host = svr",
    ...common,
    "partition = pbs-default",
    "sched_priv = /h/sched_priv",
    "sched_log = /h/sched_logs",
    "scheduling = True",
    "scheduler_iteration = 600",
    "state = down",
    ...tail,
  ]);
  assert.deepEqual(list("sc1"), [
    ...common,
    "sched_priv = /h/sched_priv_sc1",
    "sched_log = /h/sched_logs_sc1",
    "scheduling = False",
    "scheduler_iteration = 600",
    "state = down",
    ...tail,
  ]);
});

test("unset restores some defaults and removes the others", () => {
  const restored = {
    log_events: 511,
    mailer: "/usr/sbin/sendmail",
    mail_from: "adm",
    query_other_jobs: true,
    scheduler_iteration: 600,
    resv_enable: true,
  } as const;
  const more = {
    max_array_size: 10000,
    max_concurrent_provision: 5,
    eligible_time_enable: false,
    clear_topjob_estimates_enable: false,
  } as const;
  const licenses = { pbs_license_min: 0, pbs_license_max: 2147483647, pbs_license_linger_time: 31536000, scheduling: true } as const;
  for (const [name, value] of Object.entries({ ...restored, ...more, ...licenses })) assert.equal(valueAfterUnset(row(name)), value, name);
  for (const name of [
    "default_queue",
    "resources_default",
    "default_chunk",
    "node_fail_requeue",
    "resend_term_delay",
    "max_job_sequence_id",
    "comment",
  ]) {
    assert.equal(valueAfterUnset(row(name)), undefined, name);
  }
});

test("defaults are copies: changing one object leaves the next one fresh", () => {
  const first = defaultAttributes(SERVER_ATTRIBUTES);
  (first["default_chunk"] as { ncpus: number }).ncpus = 7;
  assert.deepEqual(defaultAttributes(SERVER_ATTRIBUTES)["default_chunk"], { ncpus: 1 });
});
