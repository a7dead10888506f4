// The reason why no scheduler looks at the jobs of a queue: its partition has no scheduler, the scheduler runs no cycles, or
// the partition has no vnodes, or no runners yet (docs/runners.md). The server itself gives this reason, in the job's comment, in `partita explain` and in
// `partita top`.
//
// U1. The reason is not stored. Its text replaces the scheduler's comment whenever the job is shown, so it disappears
//     together with its cause.
// U2. The comment of an administrator, and that of an array that has begun, are not replaced.
// U3. A cause that usually passes quickly is shown in the comment only after TELL_AFTER_S; `partita explain` names it at once.

import type { SchedRuntime } from "../engine/sched-runtime.ts";
import type { Timers } from "../engine/timers.ts";
import type { Unserved } from "../engine/transaction.ts";
import { isForSched } from "../state/job-phase.ts";
import type { OwnHost } from "../state/own-host.ts";
import { backendsFor, partitionOf, remotePlace, runnerCounts, schedOfPartition } from "../state/partitions.ts";
import type { Attrs, Backend, Queue, Sched, ServerState } from "../state/state.ts";
import { isFault, silentText } from "./supervisor.ts";

/** The fields of the kernel that the reason depends on. */
export type ServedWorld = {
  readonly state: ServerState;
  /** reasons: what backends say about runners that wait, by the name of the runner */
  readonly runners: { readonly reasons: ReadonlyMap<string, string> };
  readonly scheds: { readonly by_name: ReadonlyMap<string, SchedRuntime> };
  readonly config: OwnHost;
  readonly timers: Pick<Timers, "at">;
  readonly now_ms: number;
};

/** The comment gives such a reason only after this time, counted from when the job became eligible or the scheduler began to start (U3). */
const TELL_AFTER_S = 20;
/** So many different texts of backends about runners that wait stand in a comment. */
const TOLD_MAX = 3;

/** The reason why no scheduler looks at the jobs of this queue; null: a scheduler does. */
export function whyUnserved(world: ServedWorld, queue: Queue): Unserved | null {
  const { state } = world;
  const partition = partitionOf(queue);
  const sched = schedOfPartition(state, partition);
  if (sched === undefined)
    return {
      code: "NO_SCHEDULER",
      sched: "",
      partition,
      text: `No scheduler serves partition ${partition}`,
      remedy: `qmgr -c "set sched NAME partition += ${partition}"`,
    };
  const away = whyAway(world, sched);
  if (away !== null) return { sched: sched.name, partition, ...away };
  if (state.resv_queues.has(queue.name)) return null;
  const backends = backendsFor(state, partition);
  if (backends.length > 0) return whyNoRunner(world, backends, sched.name, partition);
  if (hasVnodes(state, partition)) return null;
  return {
    code: "NO_VNODES",
    sched: sched.name,
    partition,
    text: `Partition ${partition} of scheduler ${sched.name} has no vnodes`,
    remedy: noVnodesRemedy(sched, partition),
  };
}

/**
 * The reason why no runner takes the jobs of a partition: all its backends fail, or it has no vnodes at all, so that all jobs wait for the first runner. null: the
 * reasons that the scheduler itself gives are right.
 */
function whyNoRunner({ state, runners }: ServedWorld, backends: readonly Backend[], sched: string, partition: string): Unserved | null {
  const failing = backends.filter(({ attrs }) => attrs["state"] === "failing");
  const names = backends.map(({ name }) => name).join(", ");
  if (failing.length === backends.length) {
    const text = failing.map(({ name, attrs }) => `Backend ${name} fails: ${attrs["last_error"] ?? "it gives no reason"}`).join("; ");
    return {
      code: "BACKEND_FAILS",
      sched,
      partition,
      text,
      remedy: `it is asked again and again; see qmgr -c "list backend ${failing[0]?.name}"`,
    };
  }
  if (hasVnodes(state, partition)) return null;
  const asked = backends.reduce((sum, { name }) => sum + runnerCounts(state, name).asked, 0);
  return {
    code: "NO_RUNNERS",
    sched,
    partition,
    text: `No runner of backend ${names} is connected yet, ${asked} ${asked === 1 ? "is" : "are"} asked for${told(state, backends, runners.reasons)}`,
    remedy: "nothing, it comes by itself; partita runners shows what the backend says",
  };
}

/** What backends say about their runners that wait, each text once. */
function told(state: ServerState, backends: readonly Backend[], reasons: ReadonlyMap<string, string>): string {
  const names = new Set(backends.map(({ name }) => name));
  const texts = new Set<string>();
  for (const [runner, text] of reasons) {
    const of = state.runners.get(runner)?.attrs.backend;
    if (of !== undefined && names.has(of) && texts.size < TOLD_MAX) texts.add(`${of} says: ${text}`);
  }
  return [...texts].map((text) => `; ${text}`).join("");
}

function noVnodesRemedy({ name }: Sched, partition: string): string {
  return name === "default" ? 'qmgr -c "unset node NAME partition"' : `qmgr -c "set node NAME partition = ${partition}"`;
}

function hasVnodes(state: ServerState, partition: string): boolean {
  for (const vnode of state.vnodes.values()) if (partitionOf(vnode) === partition) return true;
  return false;
}

type Away = Omit<Unserved, "sched" | "partition">;

/** The reason why a scheduler runs no cycles; null: it runs cycles. */
function whyAway(world: ServedWorld, sched: Sched): Away | null {
  const { name, attrs } = sched;
  const runtime = world.scheds.by_name.get(name);
  const start = `qmgr -c "set sched ${name} scheduling = True"`;
  const { scheduling, comment } = attrs;
  if (scheduling !== true) {
    const fault = runtime?.fault ?? (isFault(comment) ? String(comment) : null);
    if (fault === null) return { code: "SCHEDULING_OFF", text: `Scheduler ${name} has scheduling = False`, remedy: start };
    const dirs = `sched_priv ${attrs["sched_priv"]}, sched_log ${attrs["sched_log"]}`;
    return { code: "SCHED_FAULT", text: `Scheduler ${name}: ${fault}`, remedy: `mend it (${dirs}), then ${start}` };
  }
  if (runtime?.link !== null && runtime !== undefined) return null;
  const place = remotePlace(sched, world.config);
  if (place !== null && runtime !== undefined && runtime.unreached !== null) {
    const text = `Scheduler ${name} on host ${place.host} cannot be reached: ${runtime.unreached}`;
    return { code: "SCHED_UNREACHED", text, remedy: `start it there: partita start, or pbs_sched -I ${name}` };
  }
  return whyDown(world, sched, runtime, start);
}

/** The reason for a scheduler that should run here and is not connected. */
function whyDown({ timers, now_ms }: ServedWorld, { name, attrs }: Sched, runtime: SchedRuntime | undefined, start: string): Away {
  if (runtime !== undefined && runtime.silent !== null) {
    const { pid } = runtime.silent;
    const kill_ms = timers.at(`sched-silent:${name}`);
    const ended =
      kill_ms === undefined ? "" : `; else it is ended and started anew in ${Math.max(0, Math.ceil((kill_ms - now_ms) / 1000))} s`;
    return {
      code: "SCHED_SILENT",
      text: `Scheduler ${name} ${silentText(runtime.silent, now_ms)}`,
      remedy: runtime.silent.stopped ? `kill -CONT ${pid}${ended}` : `kill -KILL ${pid}${ended}`,
    };
  }
  const due_ms = timers.at(`sched-start:${name}`);
  const crashes = runtime?.crashes.length ?? 0;
  if (runtime?.attention === true) {
    const again = due_ms === undefined ? "" : `, the next start is in ${Math.max(0, Math.ceil((due_ms - now_ms) / 1000))} s`;
    const text = `Scheduler ${name} needs attention: it ended ${crashes} time${crashes === 1 ? "" : "s"} by itself${again}`;
    return {
      code: "SCHED_CRASHED",
      text,
      remedy: `see ${attrs["sched_log"]} and ${attrs["sched_priv"]}/sched_out; ${start} starts it at once`,
    };
  }
  if (runtime?.started === true || due_ms !== undefined)
    return {
      code: "SCHED_STARTING",
      text: `Scheduler ${name} is starting`,
      remedy: `if it does not come up, see ${attrs["sched_log"]} and ${attrs["sched_priv"]}/sched_out`,
      since_ms: runtime?.away_ms ?? 0,
    };
  return { code: "SCHED_DOWN", text: `Scheduler ${name} is down`, remedy: `${start} starts it` };
}

// --- as a comment

/** The comment that a job shows. */
const unservedComment = ({ text, remedy }: Unserved): string => `Not Running: ${text} (to mend: ${remedy})`;

/** Matches comments of schedulers. Only these are replaced by the server's text (U2). */
const SCHEDS_WORD = /^(Not Running|Can Never Run): /;

/** Returns a function that gives a job's attributes the comment to show. Each queue is examined once for all jobs. */
export function commentNow(world: ServedWorld): (attrs: Attrs) => Attrs {
  const known = new Map<unknown, Unserved | null>();
  const now_s = Math.floor(world.now_ms / 1000);
  return (attrs) => {
    const { queue, comment, etime } = attrs;
    if (!isForSched({ attrs } as Parameters<typeof isForSched>[0])) return attrs;
    if (comment !== undefined && !SCHEDS_WORD.test(String(comment))) return attrs;
    let unserved = known.get(queue);
    if (unserved === undefined) known.set(queue, (unserved = unservedQueue(world, String(queue))));
    if (unserved === null || !isTold(unserved, typeof etime === "number" ? etime : now_s, now_s)) return attrs;
    return { ...attrs, comment: unservedComment(unserved) };
  };
}

function unservedQueue(world: ServedWorld, name: string): Unserved | null {
  const queue = world.state.queues.get(name);
  return queue === undefined || queue.attrs["queue_type"] !== "Execution" ? null : whyUnserved(world, queue);
}

/** Whether the cause has lasted long enough for the comment to give it (U3). */
function isTold({ code, since_ms = 0 }: Unserved, etime_s: number, now_s: number): boolean {
  if (code === "SCHEDULING_OFF") return now_s - etime_s >= TELL_AFTER_S;
  return code !== "SCHED_STARTING" || now_s - since_ms / 1000 >= TELL_AFTER_S;
}
