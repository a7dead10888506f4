// The requests of the clients of one seed: submissions of all kinds, and everything else that users, operators and managers do
// while the complex works.

import { placeText } from "#model/request/place.ts";
import type { AttrValueText, QueueJobRequest, Request } from "#protocol/messages.ts";
import type { TerminalTicket } from "#protocol/terminal/link.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ServerState } from "#server/state/state.ts";
import type { Prng } from "#support/prng.ts";
import { create, set } from "./drawn/manager-request.ts";
import { planningAttributes, planningChange } from "./drawn/plan-workload.ts";
import { drawEvents, importHook, type Op, type Scenario } from "./drawn/scenario.ts";
import { reservation, resvChange } from "./resv-workload.ts";
import { HOST, USERS } from "./server-process.ts";

export const ROOT: Peer = { user: "root", uid: 0, groups: ["root"], host: HOST, root: true };
const peerOf = (user: string): Peer => ({
  user,
  uid: 1000 + USERS.indexOf(user as never),
  groups: ["users"],
  host: HOST,
  root: false,
});

const BACKLOG_MAX = 20;

export type Ask = { readonly peer: Peer; readonly request: Request };

/** Draws a submission of qsub. */
export function submission(random: Prng, scenario: Scenario, now_ms: number): Ask {
  return { peer: peerOf(random.pick(USERS)), request: { kind: "queue-job", ...jobRequest(random, scenario, now_ms) } };
}

function jobRequest(random: Prng, { queues, plans, cuts }: Scenario, now_ms: number): Omit<QueueJobRequest, "kind"> {
  const attrs: AttrValueText[] = [
    { name: "Job_Name", value: random.pick(["sim", "STDIN", "a.b-c_d"]) },
    { name: "Output_Path", value: `${HOST}:/tmp/o` },
    { name: "Error_Path", value: `${HOST}:/tmp/e` },
    { name: "Variable_List", value: "PBS_O_HOME=/home/x,PBS_O_HOST=svr,PBS_O_WORKDIR=/home/x" },
  ];
  const resource = (name: string, value: string): void => void attrs.push({ name: "Resource_List", resource: name, value });
  if (random.chance(0.6)) {
    resource("select", someSelect(random));
    if (random.chance(0.5)) resource("place", somePlace(random));
  } else if (random.chance(0.5)) {
    resource("ncpus", String(random.int(1, 4)));
  }
  if (random.chance(0.5)) resource("walltime", String(random.pick(cuts ? [600, 3600, 7200] : [1, 10, 60, 600])));
  if (random.chance(0.15)) resource("mem", random.pick(["1gb", "100mb", "9gb"]));
  if (random.chance(0.15)) attrs.push(...arrayOptions(random));
  if (random.chance(cuts ? 0.05 : 0.2)) attrs.push({ name: "depend", value: dependText(random) });
  if (random.chance(cuts ? 0.02 : 0.1)) attrs.push({ name: "Hold_Types", value: "u" });
  if (random.chance(0.1)) attrs.push({ name: "Execution_Time", value: String(Math.floor(now_ms / 1000) + random.int(0, 100)) });
  if (random.chance(0.2)) attrs.push({ name: "Rerunable", value: "n" });
  if (random.chance(0.2)) attrs.push({ name: "Checkpoint", value: random.pick(["n", "w=1", "c=1"]) });
  if (random.chance(0.1)) attrs.push({ name: "tolerate_node_failures", value: random.pick(["job_start", "all", "none"]) });
  if (random.chance(0.2)) attrs.push({ name: "Priority", value: String(random.int(-1024, 1023)) });
  if (plans) attrs.push(...planningAttributes(random));
  const destination = random.chance(0.3) ? "" : random.chance(0.03) ? "nowhere" : random.pick(queues).name;
  const script = random.chance(0.9) ? "#!/bin/sh\nsleep 1\n" : null;
  if (!random.split(`interactive ${now_ms}`).chance(INTERACTIVE)) return { destination, attrs, script };
  return { destination, attrs: [...attrs, { name: "interactive", value: "True" }], script: null, terminal: TICKET };
}

/** Share of submissions that are interactive (qsub -I). */
const INTERACTIVE = 0.08;
const TICKET: TerminalTicket = { socket: "partita-qsub-sim", secret: "5".repeat(64) };

/** Draws the options of an array (qsub -J). */
function arrayOptions(random: Prng): AttrValueText[] {
  const first = random.int(0, 3);
  const indices = `${first}-${first + random.int(0, 9)}${random.chance(0.3) ? `:${random.int(1, 3)}` : ""}`;
  return [
    { name: "array_indices_submitted", value: indices },
    ...(random.chance(0.4) ? [{ name: "max_run_subjobs", value: String(random.int(1, 3)) }] : []),
  ];
}

/** Draws a value of qsub -W depend, usually with existing jobs. */
function dependText(random: Prng): string {
  const id = (): string => `${random.int(1, random.chance(0.1) ? 60 : 15)}${random.chance(0.15) ? "[]" : ""}`;
  const item = (): string => {
    if (random.chance(0.1)) return `on:${random.int(1, 2)}`;
    const type = random.pick([
      "after",
      "afterok",
      "afternotok",
      "afterany",
      "afterany",
      "runone",
      "before",
      "beforeok",
      "beforenotok",
      "beforeany",
    ]);
    return `${type}:${Array.from({ length: random.int(1, 2) }, id).join(":")}`;
  };
  return Array.from({ length: random.int(1, 2) }, item).join(",");
}

/** Changes the id of an array to the id of a subjob or of a range of subjobs, which need not exist. */
function subjobsOf(random: Prng, id: string): string {
  if (!id.includes("[]") || random.chance(0.4)) return id;
  const first = random.int(0, 9);
  const some = random.chance(0.5) ? String(first) : `${first}-${first + random.int(0, 6)}${random.chance(0.2) ? ":2" : ""}`;
  return id.replace("[]", `[${some}]`);
}

function someSelect(random: Prng): string {
  const chunks = Array.from({ length: random.int(1, 2) }, () => {
    const resources = [
      `ncpus=${random.int(1, random.chance(0.1) ? 9 : 3)}`,
      ...(random.chance(0.3) ? [`mem=${random.int(1, 4)}gb`] : []),
      ...(random.chance(0.1) ? ["vnode=n1"] : []),
    ];
    return `${random.int(1, 2)}:${resources.join(":")}`;
  });
  return chunks.join("+");
}

function somePlace(random: Prng): string {
  const sharing = random.pick([undefined, "excl", "shared", "exclhost"] as const);
  const arrangement = random.pick(["free", "pack", "scatter", "vscatter"] as const);
  const group = random.chance(0.1) ? "rack" : undefined;
  return placeText({ arrangement, ...(sharing === undefined ? {} : { sharing }), ...(group === undefined ? {} : { group }) });
}

/** Returns in half of the cases a running job instead of the given job, because a hold of a running job may checkpoint and end it. */
function heldJob(random: Prng, state: ServerState, job: string): string {
  const running = [...state.jobs.values()].filter(({ attrs }) => attrs.job_state === "R").map(({ id }) => id);
  return running.length > 0 && random.chance(0.5) ? random.pick(running) : job;
}

/** Draws a request of a client. Returns null if there is no object that it could be about. */
export function anyRequest(random: Prng, scenario: Scenario, state: ServerState, now_ms: number): Ask | null {
  if (scenario.ops.length === 0) return null;
  const op = random.pick(scenario.ops);
  return managerOp(random, op, scenario, state) ?? jobOp(random, op, scenario, state, now_ms);
}

function jobOp(random: Prng, op: Op, scenario: Scenario, state: ServerState, now_ms: number): Ask | null {
  const ids = [...state.jobs.keys()];
  // If there are no jobs, a client submits one.
  if (ids.length === 0 && random.chance(0.9)) return submission(random, scenario, now_ms);
  const picked = ids.length === 0 || random.chance(0.03) ? `${random.int(1, 50)}${random.pick(["", "[]"])}.${HOST}` : random.pick(ids);
  const owner = state.jobs.get(picked)?.attrs.euser ?? "alice";
  const job = subjobsOf(random, picked);
  const peer = random.chance(0.5) ? ROOT : peerOf(random.chance(0.8) ? owner : random.pick(USERS));
  const by = (request: Request, who = peer): Ask => ({ peer: who, request });
  switch (op) {
    case "hold":
      return by({ kind: "hold-job", job: heldJob(random, state, job), holds: random.pick(["u", "o", "uos"]) });
    case "release":
      return by({ kind: "release-job", job, holds: random.pick(["u", "uos"]) });
    case "delete":
      return by({ kind: "delete-job", job, ...(random.chance(0.1) ? { history: true } : {}) });
    case "force-delete":
      return by({ kind: "delete-job", job, force: true });
    case "modify":
      return by({ kind: "modify-job", job, attrs: [modification(random, now_ms)] });
    case "move":
      return by({ kind: "move-job", job, destination: random.pick(scenario.queues).name });
    case "order":
      return by({ kind: "order-job", job, other: ids.length > 0 ? random.pick(ids) : job });
    case "rerun":
      return by({ kind: "rerun-job", job }, ROOT);
    case "force-rerun":
      return by({ kind: "rerun-job", job, force: true }, ROOT);
    case "release-nodes": {
      const node = random.pick(random.pick(scenario.hosts).vnodes).name;
      const what = random.pick([
        { nodes: [], all: true },
        { nodes: [], keep: "1" },
        { nodes: [], keep: "select=ncpus=1" },
        { nodes: [node] },
      ]);
      return by({ kind: "release-nodes", job, ...what });
    }
    case "run":
      return by({ kind: "run-job", job, ...(random.chance(0.3) ? { async: true } : {}) }, ROOT);
    case "run-on":
      return by({ kind: "run-job", job, exec_vnode: `(${random.pick(scenario.hosts).name}:ncpus=1)` }, ROOT);
    case "signal":
      return by({ kind: "signal-job", job, signal: random.pick(["TERM", "KILL", "0", "SIGUSR1", "NONSENSE"]) });
    case "suspend":
      return by({ kind: "signal-job", job, signal: random.pick(["suspend", "admin-suspend"]) }, ROOT);
    case "resume":
      return by({ kind: "signal-job", job, signal: random.pick(["resume", "admin-resume"]) }, ROOT);
    case "reserve": {
      const partitions = ["pbs-default", ...scenario.scheds.flatMap((sched) => sched.partitions)];
      const request = reservation(random, state, partitions, now_ms);
      return by(request, "hosts" in request ? ROOT : peerOf(random.pick(USERS)));
    }
    case "resv-change": {
      const request = resvChange(random, state, now_ms);
      return request === null ? null : by(request, random.chance(0.7) ? ROOT : peerOf(random.pick(USERS)));
    }
    case "resv-job": {
      const queue = state.resvs.size === 0 ? undefined : random.pick([...state.resvs.values()]).attrs.queue;
      if (queue === undefined) return null;
      if (random.chance(0.3)) return by({ kind: "move-job", job, destination: queue });
      return {
        peer: peerOf(random.pick(USERS)),
        request: { kind: "queue-job", ...jobRequest(random, scenario, now_ms), destination: queue },
      };
    }
    case "message":
      return by({ kind: "message-job", job, files: random.pick(["o", "e", "eo"]), message: "hello" });
    case "wait":
      return by({ kind: "wait-job", job });
    case "status":
      return by({
        kind: "status",
        object: random.pick(["job", "queue", "node", "sched", "server", "resource", "resv"]),
        ids: random.chance(0.2) ? [job] : [],
        ...(random.chance(0.3) ? { history: "with" } : {}),
        ...(random.chance(0.4) ? { subjobs: true } : {}),
      });
    case "explain":
      return by(
        random.chance(0.9) ? { kind: "explain-job", job } : { kind: "view-sched", sched: random.pick(["default", "s1", "nosuch"]) },
      );
    case "select":
      return by({ kind: "select-jobs", criteria: [], states: "QR", ...(random.chance(0.5) ? { subjobs: true } : {}) });
    case "batch": {
      // While the queue is long, no bulk is submitted: the simulation would only take longer.
      if (ids.length > BACKLOG_MAX) return null;
      const jobs = Array.from({ length: random.int(1, 4) }, () => jobRequest(random, scenario, now_ms));
      return by({ kind: "queue-jobs", jobs }, peerOf(random.pick(USERS)));
    }
    default:
      return null;
  }
}

function modification(random: Prng, now_ms: number): { name: string; resource?: string; op: "="; value: string } {
  return random.pick([
    { name: "Priority", op: "=", value: String(random.int(-10, 10)) },
    { name: "Resource_List", resource: "walltime", op: "=", value: String(random.pick([5, 60, 600])) },
    { name: "Resource_List", resource: "select", op: "=", value: someSelect(random) },
    { name: "Resource_List", resource: "place", op: "=", value: somePlace(random) },
    { name: "Execution_Time", op: "=", value: String(Math.floor(now_ms / 1000) + random.int(-5, 60)) },
    { name: "Rerunable", op: "=", value: random.pick(["y", "n"]) },
    { name: "Job_Name", op: "=", value: "renamed" },
    { name: "topjob_ineligible", op: "=", value: random.pick(["True", "False"]) },
    { name: "depend", op: "=", value: dependText(random) },
    { name: "max_run_subjobs", op: "=", value: String(random.int(1, 4)) },
    { name: "Output_Path", op: "=", value: `${HOST}:/tmp/elsewhere` },
  ] as const);
}

function managerOp(random: Prng, op: Op, scenario: Scenario, state: ServerState): Ask | null {
  const queue = random.pick(scenario.queues).name;
  const vnode = random.pick(random.pick(scenario.hosts).vnodes).name;
  const sched = random.pick(["default", ...scenario.scheds.map(({ name }) => name)]);
  const partition = random.pick(["p1", "p2", "p3", "pbs-default", ""]);
  const flag = random.pick(["True", "False"]);
  const root = (request: Request): Ask => ({ peer: ROOT, request });
  switch (op) {
    case "hook":
      return root(hookRequest(random, state));
    case "plan":
      return root(planningChange(random, scenario));
    case "sched-switch":
      return root(set("sched", sched, ["scheduling", flag]));
    case "queue-switch":
      return root(set("queue", queue, [random.pick(["started", "enabled"]), flag]));
    case "node-rack":
      return root(set("node", vnode, ["resources_available", random.pick(["A", "B", "A,B", "C"]), "=", "rack"]));
    case "node-group":
      return root(set("server", "", ["node_group_key", "rack"], ["node_group_enable", flag]));
    case "node-offline":
      return root(set("node", vnode, ["state", random.pick(["offline", "free"])]));
    case "node-partition":
      return root(
        partition === ""
          ? { kind: "manager", verb: "unset", object: "node", name: vnode, attrs: [{ name: "partition", op: "unset", value: "" }] }
          : set("node", vnode, ["partition", partition]),
      );
    case "queue-partition":
      return root(
        partition === ""
          ? { kind: "manager", verb: "unset", object: "queue", name: queue, attrs: [{ name: "partition", op: "unset", value: "" }] }
          : set("queue", queue, ["partition", partition]),
      );
    case "sched-partition":
      return root(set("sched", sched, ["partition", partition, random.pick(["+=", "-=", "="])]));
    case "server-set":
      return root(
        set(
          "server",
          "",
          random.pick([
            ["job_accumulation_time", String(random.int(0, 3))],
            ["scheduler_iteration", "60"],
            ["scheduling", flag],
            ["node_fail_requeue", random.pick(["30", "30", "400", "0"])],
            ["resv_post_processing_time", String(random.pick([0, 5, 60]))],
            ["eligible_time_enable", random.chance(0.8) ? "True" : "False"],
          ] as const),
        ),
      );
    case "limits":
      return root(
        random.chance(0.5)
          ? set("queue", queue, ["max_run", `[u:PBS_GENERIC=${random.int(1, 3)}]`])
          : { kind: "manager", verb: "unset", object: "queue", name: queue, attrs: [{ name: "max_run", op: "unset", value: "" }] },
      );
    case "history":
      return root(set("server", "", ["job_history_enable", flag]));
    case "node-delete": {
      const name = random.pick(scenario.hosts).name;
      return root(state.vnodes.has(name) ? { kind: "manager", verb: "delete", object: "node", name, attrs: [] } : create("node", name));
    }
    case "sched-delete": {
      const own = scenario.scheds[0];
      if (own === undefined) return null;
      const { name, host } = own;
      if (state.scheds.has(name)) return root({ kind: "manager", verb: "delete", object: "sched", name, attrs: [] });
      return root(create("sched", name, ...(host === null ? [] : [["sched_host", host] as const])));
    }
    default:
      return null;
  }
}

/** Draws a request that creates, fills, changes or deletes a hook. */
function hookRequest(random: Prng, state: ServerState): Request {
  const name = `h${random.int(1, 3)}`;
  const hook = state.hooks.get(name);
  if (hook === undefined) return create("hook", name, ["event", drawEvents(random)], ["alarm", String(random.int(1, 20))]);
  if (hook.script === null) return importHook(name);
  return random.pick<Request>([
    { kind: "manager", verb: "delete", object: "hook", name, attrs: [] },
    set("hook", name, ["event", drawEvents(random)]),
    set("hook", name, ["enabled", random.pick(["True", "False"])]),
    set("hook", name, ["order", String(random.int(1, 5))]),
    importHook(name),
  ]);
}
