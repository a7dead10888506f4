// The connection and the process of pbs_runners, the controller of the backends, and its messages (src/protocol/runner-link.ts).
//
// C1. The process runs while a backend is enabled or a runner is recorded. If it ends by itself, it is started again; the pause before a start grows with the number of recent
//     crashes.
//     The process is told to end when nothing needs it any more (pass.ts P4).
// C2. What the controller says about a backend has no effect on other backends. It cannot record runners of a bucket for which no job waits.
// C3. If backends cannot be used (usable.ts), an enabled backend fails, whatever the controller says, and starts no runner. Runners that are recorded are still looked after.
// C4. Jobs that are held because no backend took a runner of their bucket go on as soon as a backend takes one. Until then the bucket is tried again (demand.ts D4).

import { type RunnersToServer, runnerName } from "#protocol/runner-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { logJob } from "../jobs/life.ts";
import { isRefused, releaseBuried } from "../jobs/retries.ts";
import { isIn } from "../state/job-phase.ts";
import { hasRunners, runnersOf } from "../state/partitions.ts";
import type { Attrs, Backend } from "../state/state.ts";
import { allAway, drain, runnerGone } from "./arrival.ts";
import { bucketOfJob } from "./demand.ts";
import { beginRunnersHeartbeat } from "./heartbeat.ts";
import { holdJob, isNeeded, pass, passSoon } from "./pass.ts";
import { startsRunners, whyUnusable } from "./usable.ts";

const RESTART_MS = [0, 1000, 5000, 30_000] as const;
const CRASH_WINDOW_MS = 600_000;
/** If the process has not connected within this time, it is started again. The shell starts no second process while one runs. */
const CONNECT_MS = 10_000;

const note = (kernel: Kernel, text: string, event: number = LOG_EVENT.SYSTEM): void =>
  void kernel.out.logs.push({ event, class: "Svr", object: "pbs_runners", text });

export function frame(kernel: Kernel, link: number, { type, data }: FrameOf<"runners-to-server">): void {
  if (type === "runners-hello") return hello(kernel, link, data);
  if (kernel.runners.link !== link) return;
  kernel.runners.heard_ms = kernel.now_ms;
  switch (type) {
    case "runners-ask":
      return asked(kernel, link, data);
    case "runners-seen":
      if (data.reasons !== undefined) noteReasons(kernel, data.reasons);
      return seen(kernel, data.remotes);
    case "runners-gone":
      for (const { name, why, preempted } of data.runners) {
        const runner = kernel.state.runners.get(name);
        if (runner !== undefined) runnerGone(kernel, runner, why, preempted === true ? "preempted" : "gone");
      }
      return passSoon(kernel);
    case "runners-drain":
      for (const name of data.names) {
        const runner = kernel.state.runners.get(name);
        if (runner !== undefined) drain(kernel, runner);
      }
      return passSoon(kernel);
    case "runners-state": {
      const backend = kernel.state.backends.get(data.backend);
      if (backend !== undefined) told(kernel, backend, data.error);
      return;
    }
    case "runners-impossible":
      return impossible(kernel, data.bucket, data.why);
    case "runners-pong":
      return;
    default: {
      const unreachable: never = type;
      return unreachable;
    }
  }
}

function hello(kernel: Kernel, link: number, { pid, pongs }: RunnersToServer["runners-hello"]): void {
  const { runners, out, timers } = kernel;
  if (runners.link !== null && runners.link !== link) {
    out.runners.push({ link, type: "runners-refused", data: { text: "another pbs_runners is connected" } });
    return;
  }
  Object.assign(runners, { link, pid, pongs: pongs === true, started: true, sent: "" });
  timers.clear("runners-start");
  note(kernel, `connected, pid ${pid}`);
  beginRunnersHeartbeat(kernel);
  pass(kernel);
}

type Ask = Extract<FrameOf<"runners-to-server">, { type: "runners-ask" }>["data"];

/** Records runners before the controller asks a backend for them. */
function asked(kernel: Kernel, link: number, { token, backend: name, bucket: key, life_s, digests }: Ask): void {
  const { state, out } = kernel;
  const backend = state.backends.get(name);
  const bucket = kernel.runners.wanted.get(key);
  const room = backend === undefined ? 0 : Number(backend.attrs["max_runners"] ?? 0) - runnersOf(state, name).length;
  if (!startsRunners(kernel.config, backend) || bucket === undefined || room < digests.length) {
    out.runners.push({ link, type: "runners-asked", data: { token, serial: null } });
    return passSoon(kernel);
  }
  const tx = ownTransaction(kernel);
  const serial = state.next_order;
  const taken = digests.map((_, index) => runnerName(name, serial, index)).find((each) => state.vnodes.has(each) || state.hosts.has(each));
  if (taken !== undefined) {
    note(kernel, `backend ${name} starts no runners: ${taken} is already the name of a vnode or host`, LOG_EVENT.ERROR);
    out.runners.push({ link, type: "runners-asked", data: { token, serial: null } });
    return;
  }
  for (const [index, digest] of digests.entries()) {
    const attrs: Attrs = { backend: name, serial, index, bucket, digest, asked_s: tx.now_s, life_s };
    tx.apply({ kind: "created", object: "runner", name: runnerName(name, serial, index), attrs });
  }
  out.runners.push({ link, type: "runners-asked", data: { token, serial } });
  passSoon(kernel);
}

function seen(kernel: Kernel, remotes: { readonly [name: string]: string }): void {
  const tx = ownTransaction(kernel);
  const keys = new Set<string>();
  for (const [name, remote] of Object.entries(remotes)) {
    const runner = kernel.state.runners.get(name);
    if (runner === undefined || runner.attrs.remote === remote) continue;
    if (runner.attrs.remote === undefined) keys.add(runner.attrs.bucket.key);
    tx.apply({ kind: "changed", object: "runner", name, set: { remote }, unset: [] });
    if (kernel.state.vnodes.has(name)) tx.apply({ kind: "changed", object: "node", name, set: { backend_id: remote }, unset: [] });
  }
  taken(kernel, keys);
}

/** Releases the jobs that are held because no backend took a runner of these buckets (C4). */
function taken(kernel: Kernel, keys: ReadonlySet<string>): void {
  if (!kernel.runners.demands.some(({ bucket, trial }) => trial === true && keys.has(bucket.key))) return;
  for (const job of [...kernel.state.jobs.values()]) {
    if (!isRefused(job)) continue;
    const bucket = bucketOfJob(kernel.state, job);
    if ("impossible" in bucket || !keys.has(bucket.key)) continue;
    const tx = ownTransaction(kernel);
    logJob(tx, LOG_EVENT.JOB, job.id, "Hold released: a backend takes its runner");
    releaseBuried(tx, job, "n");
  }
  passSoon(kernel);
}

/** Notes what backends say about runners that wait. A reason stays until the runner is gone or its backend gives another reason. */
function noteReasons({ runners, state }: Kernel, reasons: { readonly [name: string]: string }): void {
  for (const [name, reason] of Object.entries(reasons)) {
    if (!state.runners.has(name)) continue;
    if (reason === "") runners.reasons.delete(name);
    else runners.reasons.set(name, reason);
  }
}

/** Notes whether a backend works. The last error stays when the backend works again, with its time. */
function told(kernel: Kernel, { name, attrs }: Backend, said: string | null): void {
  const error = whyUnusable(kernel.config) ?? said;
  const tx = ownTransaction(kernel);
  const state = attrs["enabled"] !== true ? "disabled" : error === null ? "ready" : "failing";
  const set: Attrs = attrs["state"] === state ? {} : { state };
  if (error !== null && (attrs["last_error"] !== error || attrs["state"] !== state))
    Object.assign(set, { last_error: error, last_error_time: tx.now_s });
  if (Object.keys(set).length === 0) return;
  note(kernel, `backend ${name} is ${state}${error === null ? "" : `: ${error}`}`, error === null ? LOG_EVENT.SYSTEM : LOG_EVENT.ERROR);
  tx.apply({ kind: "changed", object: "backend", name, set, unset: [] });
}

/** Added to the reason, because a runner for jobs without a limit of time asks for a very long life. */
const NO_WALLTIME = "the job requests no walltime: request one, or set default_walltime of the backend";

function impossible(kernel: Kernel, key: string, why: string): void {
  for (const job of [...kernel.state.jobs.values()]) {
    if (!isIn(job, "queued", "begun")) continue;
    const bucket = bucketOfJob(kernel.state, job);
    if ("impossible" in bucket || bucket.key !== key) continue;
    holdJob(kernel, job, bucket.walltime_s === null ? `${why} (${NO_WALLTIME})` : why);
  }
}

export function lost(kernel: Kernel, link: number): void {
  if (kernel.runners.link !== link) return;
  kernel.runners.link = null;
  kernel.timers.clear("runners-heartbeat");
  note(kernel, "disconnected");
  // A process that is no child of this server does not tell when it ends.
  if (isNeeded(kernel)) processSoon(kernel, CONNECT_MS);
  else kernel.runners.started = false;
}

// --- the process

/** Called at the start of the server. */
export function startAll(kernel: Kernel): void {
  allAway(kernel);
  if (hasRunners(kernel)) backendChanged(kernel);
}

/** Called when a backend or a runner was created, changed or deleted: starts the process if it is needed (C1). */
export function backendChanged(kernel: Kernel): void {
  const unusable = whyUnusable(kernel.config);
  for (const backend of [...kernel.state.backends.values()]) {
    const { name, attrs } = backend;
    if (attrs["enabled"] === true && unusable !== null) told(kernel, backend, unusable);
    if (attrs["enabled"] === true || attrs["state"] === undefined || attrs["state"] === "disabled") continue;
    ownTransaction(kernel).apply({ kind: "changed", object: "backend", name, set: { state: "disabled" }, unset: [] });
  }
  // Without backends and runners, no pass follows.
  if (hasRunners(kernel)) passSoon(kernel);
  else pass(kernel);
  if (isNeeded(kernel) && !kernel.runners.started && kernel.timers.at("runners-start") === undefined) startProcess(kernel);
}

/** Called by the timer `runners-start`. */
export function startProcess(kernel: Kernel): void {
  const { runners, ending } = kernel;
  if (!isNeeded(kernel) && runners.link === null) runners.started = false;
  if (runners.link !== null || !isNeeded(kernel) || ending.stopping !== "no") return;
  runners.started = true;
  kernel.out.actions.push({ kind: "start-runners" });
  processSoon(kernel, CONNECT_MS);
}

const processSoon = ({ timers, now_ms }: Kernel, delay_ms: number): void => timers.set("runners-start", now_ms + delay_ms);

/** Called when the process has ended or could not be started. why: for the log; null: it ended because it was told to, or another one runs. */
export function exited(kernel: Kernel, why: string | null): void {
  const { runners, now_ms } = kernel;
  runners.started = false;
  if (why === null || runners.link !== null || kernel.ending.stopping !== "no") return;
  const recent = runners.crashes.filter((time) => now_ms - time < CRASH_WINDOW_MS);
  const delay_ms = RESTART_MS[Math.min(recent.length, RESTART_MS.length - 1)] ?? 0;
  runners.crashes = [...recent, now_ms];
  note(kernel, `ended with ${why}; it is started again in ${delay_ms / 1000} s`, LOG_EVENT.ERROR);
  processSoon(kernel, delay_ms);
}
