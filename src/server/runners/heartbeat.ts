// The heartbeat between server and pbs_runners: the server repeatedly asks the controller of the backends whether it is alive (a ping). A controller that
// hangs or is stopped (SIGSTOP) keeps its connection open, and nobody would ask for runners any more.
//
// B1. A controller that sends nothing for sched_silence_timeout (45 s) is killed. The server then starts another one, which learns everything from the
//     server's picture and from the lists of the backends. The controller waits for backends without being busy, so it answers also while a backend hangs.
// B2. Time in which the server itself stood still does not count (moms/heartbeat.ts H3).
// B3. A controller of an earlier release, which does not know the ping, is not asked.

import { limitOf } from "#model/limits/server-limits.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Kernel } from "../engine/kernel.ts";
import { nextLook, stoodStill } from "../engine/silence.ts";

const silence_ms = ({ state }: Kernel): number => 1000 * limitOf(state, "sched_silence_timeout");

/** Called when the controller has connected, and when sched_silence_timeout has changed. */
export function beginRunnersHeartbeat(kernel: Kernel): void {
  kernel.runners.heard_ms = kernel.now_ms;
  kernel.timers.clear("runners-heartbeat");
  ping(kernel);
}

/** Called by the timer `runners-heartbeat`: pings the controller, or ends it if it has been silent for too long (B1). */
export function runnersHeartbeat(kernel: Kernel): void {
  const { runners, out, now_ms } = kernel;
  const limit_ms = silence_ms(kernel);
  if (stoodStill(now_ms, runners.heartbeat_ms, limit_ms)) runners.heard_ms = now_ms;
  if (runners.link === null || now_ms - runners.heard_ms < limit_ms) return ping(kernel);
  const text = `process ${runners.pid} has not answered for ${Math.round((now_ms - runners.heard_ms) / 1000)} seconds and is killed`;
  out.logs.push({ event: LOG_EVENT.ERROR, class: "Svr", object: "pbs_runners", text });
  out.actions.push({ kind: "kill-runners", pid: runners.pid }, { kind: "drop-link", link: runners.link });
}

function ping(kernel: Kernel): void {
  const { runners, out, timers, now_ms } = kernel;
  if (runners.link === null || !runners.pongs || silence_ms(kernel) === 0) return;
  out.runners.push({ link: runners.link, type: "runners-ping", data: { number: ++runners.pings } });
  runners.heartbeat_ms = nextLook(now_ms, silence_ms(kernel), [runners.heard_ms]);
  timers.set("runners-heartbeat", runners.heartbeat_ms);
}
