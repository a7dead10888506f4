// Every attribute of every object, set and then unset, driven by the tables of attributes. The values after unset are listed
// here independently of the tables, as in docs/reference/attributes.md 10. The test also compares behaviour: the server's
// state, its timers and the data sent to a connected scheduler after set and unset equal those after an unset alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttributeDef, AttributeTable } from "#model/attribute.ts";
import { HOOK_ATTRIBUTES } from "#model/tables/hook-attributes.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import { SCHED_ATTRIBUTES } from "#model/tables/sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { Delta, Snapshot } from "#protocol/sched-link.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { Sched } from "#server/state/state.ts";
import { mirrorFault } from "#sim/checks/mirror.ts";
import { book } from "../../sched/world.ts";
import {
  addHost,
  addJob,
  addQueue,
  addSched,
  addVnode,
  advance,
  cycle,
  type Harness,
  HOST,
  harness,
  momHello,
  runOn,
  schedHello,
} from "../harness.ts";
import { qmgr, shown, verdict } from "./qmgr.ts";

type Kind = "server" | "queue" | "node" | "sched";
type Target = {
  readonly kind: Kind;
  readonly name: string;
  readonly table: AttributeTable;
  readonly comes_back: { readonly [name: string]: string };
};

const READ_ONLY = "15003 Cannot set attribute, read only or insufficient permission ";
const DEFAULT_SCHED = "15223 Operation is not permitted on default scheduler";

/** Attributes that unset restores, with the restored value as listed. All others have no value after unset. */
const SCHED_DEFAULTS = {
  sched_cycle_length: "00:20:00",
  throughput_mode: "True",
  job_run_wait: "runjob_hook",
  scheduler_iteration: "600",
  preempt_queue_prio: "150",
  preempt_prio: "express_queue, normal_jobs",
  preempt_order: "SCR",
  preempt_sort: "min_time_since_start",
  log_events: "767",
  server_dyn_res_alarm: "30",
} as const;
const TARGETS: readonly Target[] = [
  {
    kind: "server",
    name: "",
    table: SERVER_ATTRIBUTES,
    comes_back: {
      scheduling: "True",
      log_events: "511",
      mailer: "/usr/sbin/sendmail",
      mail_from: "adm",
      query_other_jobs: "True",
      scheduler_iteration: "600",
      resv_enable: "True",
      max_array_size: "10000",
      pbs_license_min: "0",
      pbs_license_max: "2147483647",
      pbs_license_linger_time: "31536000",
      eligible_time_enable: "False",
      max_concurrent_provision: "5",
      clear_topjob_estimates_enable: "False",
    },
  },
  {
    kind: "sched",
    name: "default",
    table: SCHED_ATTRIBUTES,
    comes_back: {
      ...SCHED_DEFAULTS,
      sched_host: HOST,
      partition: "pbs-default",
      sched_priv: "/home/pbs/sched_priv",
      sched_log: "/home/pbs/sched_logs",
      scheduling: "True",
    },
  },
  {
    kind: "sched",
    name: "s1",
    table: SCHED_ATTRIBUTES,
    comes_back: { ...SCHED_DEFAULTS, sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: "False" },
  },
  { kind: "queue", name: "q1", table: QUEUE_ATTRIBUTES, comes_back: {} },
  { kind: "queue", name: "r1", table: QUEUE_ATTRIBUTES, comes_back: {} },
  { kind: "node", name: "n2", table: NODE_ATTRIBUTES, comes_back: { resv_enable: "True", state: "free" } },
];

/** Values for attributes whose type does not determine one. */
const VALUES: { readonly [attribute: string]: string } = {
  multicast_group: "239.192.150.7",
  default_queue: "q1",
  queue: "q1",
  queue_type: "Execution",
  route_destinations: "workq",
  node_group_key: "host",
  pnames: "host",
  restrict_res_to_release_on_suspend: "ncpus",
  managers: "alice@*",
  operators: "alice@*",
  job_sort_formula: "ncpus",
  "backfill.formula": "ncpus",
  mailer: "/bin/true",
  cred_renew_tool: "/bin/true",
  preempt_prio: "normal_jobs",
  preempt_order: "R",
  opt_backfill_fuzzy: "high",
  sched_user: "alice",
  sched_priv: "/tmp/priv",
  sched_log: "/tmp/logs",
  max_job_sequence_id: "99999999",
  jobscript_max_size: "1mb",
  current_aoe: "linux",
  default_qsub_arguments: "-N x",
};
/** Attributes that cannot be set, with the refusal. */
const REFUSED: { readonly [target: string]: { readonly [attribute: string]: string } } = {
  "node n2": {
    Mom: `${READ_ONLY} Mom`,
    Port: `${READ_ONLY} Port`,
    provision_enable: "15029 Feature/function not supported: vnodes are not provisioned, provision_enable cannot be True",
  },
  "sched default": {
    partition: DEFAULT_SCHED,
    sched_priv: DEFAULT_SCHED,
    sched_log: DEFAULT_SCHED,
    sched_host: DEFAULT_SCHED,
    sched_port: DEFAULT_SCHED,
  },
  "queue r1": { partition: "15217 Cannot assign a partition to route queue" },
};
/** Attributes that cannot be unset. */
const KEPT: { readonly [attribute: string]: string } = {
  Mom: `${READ_ONLY} Mom`,
  Port: `${READ_ONLY} Port`,
  queue_type: "15137 Queue type must be set",
};

/** Values to try for an attribute, one at a time; a resource is part of the name. */
function samples(def: AttributeDef): readonly (readonly [name: string, value: string])[] {
  const given = VALUES[def.name];
  if (given !== undefined) return [[def.name, given]];
  switch (def.type) {
    case "boolean":
      return [
        [def.name, "True"],
        [def.name, "False"],
      ];
    case "integer":
    case "long64":
    case "float":
      return [[def.name, String(Math.max(def.min ?? 0, Math.min(def.max ?? 77, 77)))]];
    case "duration":
      return [[def.name, "00:02:00"]];
    case "size":
      return [[def.name, `${(def.min ?? 1024) * 2}b`]];
    case "keyword":
      return [[def.name, (def.keywords ?? []).at(-1) ?? ""]];
    case "resource_list":
      return [
        [`${def.name}.ncpus`, "3"],
        [`${def.name}.mem`, "3mb"],
      ];
    case "entity_limit":
      return [[def.name, "[u:PBS_GENERIC=3]"]];
    case "entity_limit_res":
      return [[`${def.name}.ncpus`, "[u:PBS_GENERIC=3]"]];
    case "node_state":
      return [[def.name, "offline"]];
    default:
      return [[def.name, "x9"]];
  }
}

/** A complex with something of everything: two connected schedulers, queues of both types, jobs that wait, are held and run. */
function world(): { readonly h: Harness; readonly mirror: () => Universe } {
  const h = harness();
  addQueue(h, "q1");
  addQueue(h, "r1", { queue_type: "Route", started: false, route_destinations: ["workq"] });
  addSched(h, "s1", { ...freshS1 });
  const link = addHost(h, "n1");
  addVnode(h, "n2", { resources_available: { aoe: "linux" }, resv_enable: true, license: "l", ntype: "PBS" });
  runOn(h, addJob(h), "n1", link);
  addJob(h, { queue: "q1" });
  addJob(h, { Hold_Types: "u" });
  schedHello(h, 1);
  settleCycles(h, 1);
  return { h, mirror: mirrorOf(h, 1) };
}

/** The former world is reused if it has returned to its initial state. */
let latest: ReturnType<typeof world> | undefined;
let fresh: string | undefined;
function freshWorld(): ReturnType<typeof world> {
  fresh ??= whole(world().h);
  if (latest === undefined || whole(latest.h) !== fresh) latest = world();
  return latest;
}
const freshS1 = {
  scheduling: false,
  sched_cycle_length: 1200,
  throughput_mode: true,
  job_run_wait: "runjob_hook",
  sched_priv: "/home/pbs/sched_priv_s1",
  sched_log: "/home/pbs/sched_logs_s1",
  preempt_queue_prio: 150,
  preempt_prio: "express_queue, normal_jobs",
  preempt_order: "SCR",
  preempt_sort: "min_time_since_start",
  log_events: 767,
  server_dyn_res_alarm: 30,
};

/** Ends cycles without decisions until none is in progress, so that all changes are sent. */
function settleCycles(h: Harness, link: number): void {
  const count = (type: string): number => h.to_scheds.filter((frame) => frame.link === link && frame.type === type).length;
  for (let ended = count("sched-verdicts"); count("sched-cycle") > ended; ended++) cycle(h, link);
}

/** The scheduler's view, updated at each call. */
function mirrorOf(h: Harness, link: number): () => Universe {
  let universe: Universe | undefined;
  let at = 0;
  return () => {
    for (; at < h.to_scheds.length; at++) {
      const { link: to, type, data } = h.to_scheds[at] as (typeof h.to_scheds)[number];
      if (to !== link || (type !== "sched-snapshot" && type !== "sched-delta")) continue;
      const copy = JSON.parse(JSON.stringify(data)) as unknown;
      if (type === "sched-snapshot") universe = createUniverse(copy as Snapshot, mirrorOptions(book()));
      else applyDelta(universe as Universe, copy as Delta);
    }
    return universe as Universe;
  };
}

/** The server's state and timers as text, without counters and dates. */
function whole({ core }: Harness): string {
  const { state } = core.kernel;
  const timers = core.kernel.timers.next();
  const plain = (value: unknown): unknown =>
    value instanceof Map
      ? [...value].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
      : value instanceof Set
        ? [...value].sort()
        : value;
  return JSON.stringify(
    { state, timers },
    (key, value: unknown) => {
      if (NOISE.has(key)) return undefined;
      const seen = plain(value);
      if (typeof seen !== "object" || seen === null || Array.isArray(seen)) return seen;
      return Object.fromEntries(Object.entries(seen).sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    1,
  );
}
/** The differing lines of two texts. */
function difference(a: string, b: string): string {
  if (a === b) return "";
  const [left, right] = [a.split("\n"), b.split("\n")];
  const at = left.findIndex((line, index) => line !== right[index]);
  return `${left.slice(at - 3, at + 4).join("\n")}\n--- and\n${right.slice(at - 3, at + 4).join("\n")}`;
}
const NOISE: ReadonlySet<string> = new Set(["mtime", "last_state_change_time"]);

const nameOf = ({ kind, name }: Target): string => (name === "" ? kind : `${kind} ${name}`);

for (const target of TARGETS) {
  test(`every attribute of ${nameOf(target)}: set, then unset`, async () => {
    for (const def of target.table.rows) {
      for (const [name, value] of def.set === "pbs" ? ([[def.name, "1"]] as const) : samples(def)) await check(target, def, name, value);
    }
  });
}

async function check(target: Target, def: AttributeDef, name: string, value: string): Promise<void> {
  const { kind } = target;
  const of = nameOf(target);
  const what = `${of} ${name}=${value}`;
  const { h, mirror } = freshWorld();
  const set = await verdict(h, `set ${of} ${name}='${value}'`);
  if (def.set === "pbs") {
    assert.match(set, /^1500[23] /, what);
    assert.match(await verdict(h, `unset ${of} ${def.name}`), /^1500[23] /, what);
    return;
  }
  const refused = REFUSED[of]?.[def.name];
  if (refused !== undefined && !(def.type === "boolean" && value === "False")) {
    assert.equal(set, refused, what);
    assert.equal(whole(h), fresh, `${what}: what is refused changes nothing`);
  } else {
    assert.ok(set === "ok" || /^15026 Warning/.test(set), `${what}: ${set}`);
  }
  const unset = KEPT[def.name] ?? "ok";
  assert.equal(await verdict(h, `unset ${of} ${def.name}`), unset, what);
  if (unset === "ok") {
    assert.deepEqual(shown(h, kind, target.name, def.name), target.comes_back[def.name], `${what}, unset`);
    comeToRest(h);
    const alone = await afterUnsetAlone(of, def.name);
    assert.equal(difference(whole(h), alone), "", `${what}: after set and unset the server is as after unset alone`);
  }
  comeToRest(h);
  const fault = mirrorFault(mirror(), h.core.kernel, h.core.state.scheds.get("default") as Sched, book());
  // A mirror that has begun to count for a limit continues without the limit; nothing reads those counts then.
  assert.ok(fault === null || /^usage .* right is nothing$/.test(fault), `${what}: ${fault}`);
}

function comeToRest(h: Harness): void {
  advance(h, 0);
  settleCycles(h, 1);
}

const unset_alone = new Map<string, string>();
async function afterUnsetAlone(of: string, attribute: string): Promise<string> {
  const line = `unset ${of} ${attribute}`;
  const known = unset_alone.get(line);
  if (known !== undefined) return known;
  const { h } = world();
  assert.equal(await verdict(h, line), "ok", line);
  comeToRest(h);
  const text = whole(h);
  unset_alone.set(line, text);
  return text;
}

test("every attribute of a hook: set, then unset", async () => {
  const h = harness();
  assert.equal(await verdict(h, "create hook h1 event=execjob_begin"), "ok");
  const made = await qmgr(h, "print hook h1");
  const values: { readonly [attribute: string]: string } = {
    user: "pbsuser",
    fail_action: "offline_vnodes",
    order: "7",
    enabled: "false",
    debug: "true",
  };
  for (const { name, set } of HOOK_ATTRIBUTES.rows) {
    if (set === "pbs" || name === "type" || name === "event") continue;
    assert.equal(await verdict(h, `set hook h1 ${name}=${values[name] ?? "77"}`), "ok", name);
    // freq is printed for periodic hooks only.
    if (name !== "freq") assert.notEqual(await qmgr(h, "print hook h1"), made, name);
    assert.equal(await verdict(h, `unset hook h1 ${name}`), "ok", name);
    assert.equal(await qmgr(h, "print hook h1"), made, name);
  }
});

test("event of a hook: unset leaves none", async () => {
  const h = harness();
  assert.equal(await verdict(h, "create hook h1"), "ok");
  const made = await qmgr(h, "print hook h1");
  assert.equal(await verdict(h, "set hook h1 event='runjob,queuejob'"), "ok");
  assert.equal(await verdict(h, "unset hook h1 event"), "ok");
  assert.equal(await qmgr(h, "print hook h1"), made);
});

test("flags of a resource: set, then unset; its type stays", async () => {
  const h = harness();
  assert.equal(await verdict(h, "create resource r1 type=long"), "ok");
  const made = await qmgr(h, "print resource r1");
  assert.equal(await verdict(h, "set resource r1 flag=nh"), "ok");
  assert.equal(await verdict(h, "unset resource r1 flag"), "ok");
  assert.equal(await qmgr(h, "print resource r1"), made);
  assert.equal(await verdict(h, "unset resource r1 type"), "15004 Invalid request");
});

test("what an administrator set on a vnode is the mom's again when the whole attribute is unset", async () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 4 });
  const ncpus = (): unknown => (shown(h, "node", "n1", "resources_available") as { ncpus?: string } | undefined)?.ncpus;
  assert.equal(await verdict(h, "set node n1 resources_available.ncpus=3"), "ok");
  momHello(h, link + 50, "n1");
  assert.equal(ncpus(), "3");
  assert.equal(await verdict(h, "unset node n1 resources_available"), "ok");
  momHello(h, link + 51, "n1");
  assert.equal(ncpus(), "4");
});
