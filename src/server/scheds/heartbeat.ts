// The heartbeat between server and schedulers: the server repeatedly asks each scheduler whether it is alive (a ping). This is
// needed because a stopped process (SIGSTOP, a debugger) keeps its connection open and answers nothing, and its jobs wait.
//
// B1. If a scheduler sends nothing for sched_silence_timeout (45 s), the server looks at its process. If the process is
//     stopped, the scheduler counts as silent.
// B2. A scheduler whose process is not stopped may be in a long cycle: it counts as silent only after another
//     sched_cycle_length.
// B3. A silent scheduler is down: its connection is closed, so that its pending decisions do not count. When it
//     continues, it says hello and gets a snapshot.
// B4. If a silent process stays silent for another sched_silence_timeout, the server looks at it again. If it was stopped
//     and now runs, it may still be in its cycle and gets another sched_cycle_length. In all other cases the server kills it;
//     this counts as a crash (session.ts).
// B5. Time in which the server itself stood still does not count as silence of schedulers (moms/heartbeat.ts H3).
// B6. Only schedulers that announce in their hello that they answer pings are pinged. A scheduler that has not said hello yet
//     counts as silent only if its process is stopped.
// B7. The process of a scheduler on another host cannot be seen. If the scheduler sends nothing for sched_silence_timeout, the
//     server tries to reach its host. If the host does not answer, the connection is closed at once, otherwise after another
//     sched_cycle_length. The server then dials the scheduler again, which gets a snapshot.

import { limitOf } from "#model/limits/server-limits.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { SchedRuntime, Silence } from "../engine/sched-runtime.ts";
import { nextLook, stoodStill } from "../engine/silence.ts";
import { isRemote } from "../state/partitions.ts";

/**
 * What the shell has found out about a process: it is stopped (SIGSTOP), runs, or does not exist. pid: of that process; 0: none was
 * found. For a scheduler on another host, `runs` means that its host and port answer, and `none` that they do not.
 */
export type SchedSight = { readonly pid: number; readonly process: "stopped" | "runs" | "none" };

/** Used for a scheduler without sched_cycle_length. */
const CYCLE_LENGTH_S = 1200;

/** sched_silence_timeout in ms; 0: schedulers are not pinged. */
export const schedSilence_ms = ({ state }: Kernel): number => 1000 * limitOf(state, "sched_silence_timeout");

/** Called when a scheduler was started or has said hello: pings it, and starts the heartbeat unless it is already running. */
export function beginSchedHeartbeat(kernel: Kernel, runtime: SchedRuntime): void {
  if (schedSilence_ms(kernel) > 0) ping(kernel, runtime);
  if (kernel.timers.at("sched-heartbeat") === undefined) arm(kernel);
}

/** Called when sched_silence_timeout has changed: the new time counts from now. */
export function schedHeartbeatChanged(kernel: Kernel): void {
  for (const runtime of kernel.scheds.by_name.values()) {
    runtime.heard_ms = kernel.now_ms;
    kernel.timers.clear(`sched-silent:${runtime.name}`);
    if (runtime.silent !== null) armKill(kernel, runtime.name);
    else if (schedSilence_ms(kernel) > 0) ping(kernel, runtime);
  }
  arm(kernel);
}

/** Called by the timer sched-heartbeat: pings all schedulers, and lets the shell examine the processes of schedulers that were silent too long. */
export function schedHeartbeat(kernel: Kernel): void {
  const silence_ms = schedSilence_ms(kernel);
  const stood_still = stoodStill(kernel.now_ms, kernel.scheds.heartbeat_ms, silence_ms);
  for (const runtime of kernel.scheds.by_name.values()) {
    if (stood_still) runtime.heard_ms = kernel.now_ms;
    ping(kernel, runtime);
    if (isAwaited(kernel, runtime) && kernel.now_ms - runtime.heard_ms >= silence_ms)
      kernel.out.actions.push({ kind: "look-at-sched", sched: runtime.name, pid: runtime.link === null ? 0 : runtime.pid });
  }
  arm(kernel);
}

/** Called when the shell has examined a process. Returns a record of the scheduler's silence; null: it is not silent, or it has sent a message meanwhile. */
export function silenceOf(kernel: Kernel, runtime: SchedRuntime, { pid, process }: SchedSight): Silence | null {
  const silence_ms = schedSilence_ms(kernel);
  if (silence_ms === 0 || !isAwaited(kernel, runtime) || pid === 0 || process === "none") return null;
  if (runtime.link !== null && pid !== runtime.pid) return null;
  const stopped = process === "stopped";
  if (!stopped && runtime.link === null) return null;
  const limit_ms = silence_ms + (stopped ? 0 : cycleLength_ms(kernel, runtime.name));
  return kernel.now_ms - runtime.heard_ms < limit_ms ? null : { pid, stopped, heard_ms: runtime.heard_ms };
}

/** Whether the connection to a scheduler on another host counts as broken (B7). */
export function isFarSilent(kernel: Kernel, runtime: SchedRuntime, { process }: SchedSight): boolean {
  const silence_ms = schedSilence_ms(kernel);
  if (silence_ms === 0 || !isAwaited(kernel, runtime)) return false;
  const limit_ms = silence_ms + (process === "none" ? 0 : cycleLength_ms(kernel, runtime.name));
  return kernel.now_ms - runtime.heard_ms >= limit_ms;
}

/** sched_cycle_length of a scheduler, in ms. */
export const cycleLength_ms = ({ state }: Kernel, name: string): number =>
  1000 * Number(state.scheds.get(name)?.attrs["sched_cycle_length"] ?? CYCLE_LENGTH_S);

/** Sets the timer for the next look at a silent process (B4): after sched_silence_timeout, or after ms. */
export function armKill(kernel: Kernel, name: string, ms = schedSilence_ms(kernel)): void {
  if (schedSilence_ms(kernel) > 0) kernel.timers.set(`sched-silent:${name}`, kernel.now_ms + ms);
}

function arm(kernel: Kernel): void {
  kernel.timers.clear("sched-heartbeat");
  const silence_ms = schedSilence_ms(kernel);
  const awaited = [...kernel.scheds.by_name.values()].filter((runtime) => isAwaited(kernel, runtime));
  if (silence_ms === 0 || awaited.length === 0) return;
  const heard = awaited.map(({ heard_ms }) => heard_ms);
  kernel.scheds.heartbeat_ms = nextLook(kernel.now_ms, silence_ms, heard);
  kernel.timers.set("sched-heartbeat", kernel.scheds.heartbeat_ms);
}

/** Whether a message from the scheduler is expected (B6): it is connected and answers pings, or it is starting on this host. */
function isAwaited({ state, config }: Kernel, { name, link, pongs, started, leaving, silent }: SchedRuntime): boolean {
  if (silent !== null) return false;
  if (link !== null) return pongs;
  const sched = state.scheds.get(name);
  return started && !leaving && sched !== undefined && !isRemote(sched, config);
}

function ping(kernel: Kernel, { link, pongs }: SchedRuntime): void {
  if (link !== null && pongs) kernel.out.scheds.push({ link, type: "sched-ping", data: { number: ++kernel.scheds.pings } });
}
