// States of a vnode: a set of words, shown in a fixed order, `free` when there is none (docs/reference/attributes.md 5 and 10).
// Administrators set offline, down, maintenance and sleep; all others come from server and moms.
//
// I1. In memory the list is in order and never holds `free`.

import { PBSE, reject } from "../pbse.ts";

// biome-ignore format: a list
const NODE_STATES = [
  "state-unknown", "down", "stale", "offline", "job-busy", "job-exclusive", "resv-exclusive", "busy", "unresolvable", "provisioning",
  "wait-provisioning", "maintenance", "sleep",
] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** What `set node N state` may name. */
const SETTABLE: ReadonlySet<string> = new Set(["free", "offline", "down", "sleep"]);
/** What `state = free` takes away. */
const CLEARED_BY_FREE: ReadonlySet<string> = new Set(["offline", "down", "sleep"]);

/** Words of a state list that an administrator may give; `free` gives the empty list. Refuses with 15067, `free` beside others with 15068. */
export function parseNodeStates(text: string, name = "state"): NodeState[] {
  const words = text.split(",").map((word) => word.trim().toLowerCase());
  for (const word of words) if (!SETTABLE.has(word)) throw reject(PBSE.BADNDATVAL, name);
  if (!words.includes("free")) return inOrder(words);
  if (words.some((word) => word !== "free")) throw reject(PBSE.MUTUALEX, name);
  return [];
}

export function renderNodeStates(states: readonly string[]): string {
  return states.length === 0 ? "free" : states.join(",");
}

/**
 * = adds the states named (a node that is job-busy stays so when it is set offline), `= free` clears what administrators set; += adds, -= removes.
 */
export function combineNodeStates(op: "=" | "+=" | "-=", old: readonly string[], given: readonly string[]): NodeState[] {
  switch (op) {
    case "=":
      return inOrder(given.length === 0 ? old.filter((state) => !CLEARED_BY_FREE.has(state)) : [...old, ...given]);
    case "+=":
      return inOrder([...old, ...given]);
    case "-=":
      return inOrder(old.filter((state) => !given.includes(state)));
    default: {
      const unreachable: never = op;
      return unreachable;
    }
  }
}

/** The states in the order of output. */
export function inOrder(states: readonly string[]): NodeState[] {
  return NODE_STATES.filter((state) => states.includes(state));
}

/** Whether no job can be started there because of these states (a node that is merely full of jobs is not unusable). */
export function isNodeUsable(states: readonly string[]): boolean {
  return !states.some((state) => UNUSABLE.has(state));
}

const UNUSABLE: ReadonlySet<string> = new Set<NodeState>([
  "state-unknown",
  "down",
  "stale",
  "offline",
  "unresolvable",
  "provisioning",
  "wait-provisioning",
  "maintenance",
  "sleep",
  "busy",
]);
