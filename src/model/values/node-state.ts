// The state of a vnode: a set of words, which are shown in a fixed order; an empty set is shown as `free`
// (docs/reference/attributes.md 5 and 10). Administrators set offline, down and sleep with qmgr. The server and the moms
// set all others; maintenance comes with qsig -s admin-suspend.
//
// I1. In memory the words have that order, and `free` is never one of them.

import { PBSE, reject } from "../pbse.ts";

// biome-ignore format: a list
const NODE_STATES = [
  "state-unknown", "down", "stale", "offline", "job-busy", "job-exclusive", "resv-exclusive", "busy", "unresolvable", "provisioning",
  "wait-provisioning", "maintenance", "sleep",
] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** The words that `set node N state` accepts. */
const SETTABLE: ReadonlySet<string> = new Set(["free", "offline", "down", "sleep"]);
/** The words that `state = free` removes. */
const CLEARED_BY_FREE: ReadonlySet<string> = new Set(["offline", "down", "sleep"]);

/**
 * Parses the words that an administrator gives; for `free` returns the empty list. Refuses an unknown word with 15067, and
 * `free` together with other words with 15068.
 */
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
 * Applies an operator to a state. = adds the given words, so that a node that is job-busy is still job-busy after it was set
 * offline; but `= free` removes the words in CLEARED_BY_FREE. += adds words, -= removes words.
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

/** The words in the order of output. */
export function inOrder(states: readonly string[]): NodeState[] {
  return NODE_STATES.filter((state) => states.includes(state));
}

/** Whether jobs may start on a node in this state. A node that is only full of jobs counts as usable. */
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
