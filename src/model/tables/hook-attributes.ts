// Attributes of hooks in the order in which qmgr prints them (docs/reference/attributes.md 9). Booleans of hooks are printed in lower case.

import { type AttributeRow, attributeTable } from "../attribute.ts";

// biome-ignore format: a list
export const HOOK_EVENTS = [
  "queuejob", "postqueuejob", "modifyjob", "resvsub", "modifyresv", "movejob", "runjob", "jobobit", "management", "modifyvnode", "provision",
  "periodic", "resv_confirm", "resv_begin", "resv_end", "execjob_begin", "execjob_prologue", "execjob_epilogue", "execjob_preterm",
  "execjob_launch", "execjob_attach", "execjob_resize", "execjob_abort", "execjob_postsuspend", "execjob_preresume", "execjob_end",
  "exechost_periodic", "exechost_startup",
] as const;

const EVENTS: ReadonlySet<string> = new Set(HOOK_EVENTS);

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["type", "keyword", "all", "mgr", "site, or pbs for a built-in hook", { default: "site", keywords: ["site", "pbs"] }],
  ["enabled", "boolean", "all", "mgr", "whether the hook runs", { default: true, restored: true }],
  ["event", "string_array", "all", "mgr", "events that run the hook", { unique: true, check: (event) => EVENTS.has(event) }],
  ["user", "keyword", "all", "mgr", "who runs the hook", { default: "pbsadmin", restored: true, keywords: ["pbsadmin", "pbsuser"] }],
  ["alarm", "integer", "all", "mgr", "seconds the hook may take", { default: 30, restored: true, min: 1 }],
  ["freq", "integer", "all", "mgr", "seconds between runs for periodic events", { default: 120, restored: true, min: 1 }],
  ["order", "integer", "all", "mgr", "hooks of one event run in this order; 1 to 1000 for a site's own", { default: 1, restored: true, min: -1000, max: 2000 }],
  ["debug", "boolean", "all", "mgr", "whether input and output files of the hook are kept", { default: false, restored: true }],
  ["fail_action", "string_array", "all", "mgr", "what happens when the hook fails", { default: ["none"], restored: true, unique: true, check: (action) => FAIL_ACTIONS.has(action) }],
  ["pending_delete", "boolean", "none", "pbs", "internal"],
];

const FAIL_ACTIONS: ReadonlySet<string> = new Set(["none", "offline_vnodes", "clear_vnodes_upon_recovery", "scheduler_restart_cycle"]);

export const HOOK_ATTRIBUTES = attributeTable("hook", ROWS);
