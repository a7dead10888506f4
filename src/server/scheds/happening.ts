// Events of schedulers: the states of schedulers and of the server that follow, and the log lines.

import { DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { nextSchedState, type SchedHappening, type SchedState, serverState } from "./state.ts";

/** States of schedulers are not stored: down after a restart until the hello. */
export function happened(kernel: Kernel, name: string, happening: SchedHappening): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const state = nextSchedState(sched.attrs["state"] as SchedState, happening);
  if (sched.attrs["state"] === state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "sched", name, set: { state } });
  if (name === DEFAULT_SCHED) setServerState(kernel);
}

/** server_state follows the default scheduler and the manner of shutting down (docs/reference/attributes.md 2). */
export function setServerState(kernel: Kernel): void {
  const defaultSched = (kernel.state.scheds.get(DEFAULT_SCHED)?.attrs["state"] ?? "down") as SchedState;
  const { stopping } = kernel;
  const server_state = serverState({ defaultSched, ...(stopping === "no" ? {} : { ending: stopping }) });
  if (kernel.state.server["server_state"] === server_state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "server", name: "", set: { server_state } });
}

export const logName = (kernel: Kernel): string => `Server@${kernel.config.host}`;

export function logSched(kernel: Kernel, name: string, text: string): void {
  kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Sched", object: name, text });
}
