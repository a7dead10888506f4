// States of schedulers, the events that change them, and their effect on the server (docs/reference/attributes.md 2 and 3, docs/reference/qmgr.md 6).
//
//   down --connects--> idle <--cycle begins, ends--> scheduling;   either --link lost--> down

import { DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import type { SERVER_STATES } from "#model/tables/server-attributes.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";

export type SchedState = "down" | "idle" | "scheduling";
export type ServerStateWord = (typeof SERVER_STATES)[number];

/** An event that changes the state of a scheduler. */
export type SchedHappening = "connected" | "cycle-begun" | "cycle-ended" | "lost";

/** The state of a scheduler after an event. */
function nextSchedState(state: SchedState, happening: SchedHappening): SchedState {
  switch (happening) {
    case "connected":
      return "idle";
    case "cycle-begun":
      return state === "down" ? "down" : "scheduling";
    case "cycle-ended":
      return state === "down" ? "down" : "idle";
    case "lost":
      return "down";
    default: {
      const unreachable: never = happening;
      return unreachable;
    }
  }
}

/**
 * The value of server_state: what the default scheduler is doing, unless the server is ending. While scheduling is False,
 * server_state is Active, as in OpenPBS.
 */
function serverState(server: { readonly defaultSched: SchedState; readonly ending?: "immediate" | "delay" | "quick" }): ServerStateWord {
  if (server.ending === "delay") return "Terminating_Delayed";
  if (server.ending !== undefined) return "Terminating";
  return server.defaultSched === "scheduling" ? "Scheduling" : "Active";
}

// --- events of a scheduler

/** Sets the state of a scheduler after an event. The state is not stored: after a restart of the server it is down until the scheduler's hello. */
export function happened(kernel: Kernel, name: string, happening: SchedHappening): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const state = nextSchedState(sched.attrs["state"] as SchedState, happening);
  if (sched.attrs["state"] === state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "sched", name, set: { state } });
  if (name === DEFAULT_SCHED) setServerState(kernel);
}

/** Sets server_state from the state of the default scheduler and the manner in which the server ends (docs/reference/attributes.md 2). */
export function setServerState(kernel: Kernel): void {
  const defaultSched = (kernel.state.scheds.get(DEFAULT_SCHED)?.attrs["state"] ?? "down") as SchedState;
  const { stopping } = kernel.ending;
  const server_state = serverState({ defaultSched, ...(stopping === "no" ? {} : { ending: stopping }) });
  if (kernel.state.server["server_state"] === server_state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "server", name: "", set: { server_state } });
}

export const logName = (kernel: Kernel): string => `Server@${kernel.config.host}`;

export function logSched(kernel: Kernel, name: string, text: string): void {
  kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Sched", object: name, text });
}
