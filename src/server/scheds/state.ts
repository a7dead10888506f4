// States of schedulers and their effect on the server (docs/reference/attributes.md 2 and 3, docs/reference/qmgr.md 6).
//
//   down --connects--> idle <--cycle begins, ends--> scheduling;   either --link lost--> down

import type { SERVER_STATES } from "#model/tables/server-attributes.ts";

export type SchedState = "down" | "idle" | "scheduling";
export type ServerStateWord = (typeof SERVER_STATES)[number];

/** An event of a scheduler as the server sees it. */
export type SchedHappening = "connected" | "cycle-begun" | "cycle-ended" | "lost";

/** The state after an event. */
export function nextSchedState(state: SchedState, happening: SchedHappening): SchedState {
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

/** The value of server_state: the activity of the default scheduler, unless the server is ending. A server with scheduling off is Active, as in OpenPBS. */
export function serverState(server: {
  readonly defaultSched: SchedState;
  readonly ending?: "immediate" | "delay" | "quick";
}): ServerStateWord {
  if (server.ending === "delay") return "Terminating_Delayed";
  if (server.ending !== undefined) return "Terminating";
  return server.defaultSched === "scheduling" ? "Scheduling" : "Active";
}
