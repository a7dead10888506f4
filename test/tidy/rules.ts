// The rules of the tidy tests. A new folder, program or shell file needs one line here.

/** Layers of src/, lowest first (ARCHITECTURE.md): imports point to lower layers; folders of one layer do not import one another. */
export const LAYERS: readonly (readonly string[])[] = [
  ["support"],
  ["model", "identity"],
  ["protocol"],
  ["store", "hooks"],
  ["server", "sched", "mom", "backends", "comm"],
  ["cli", "qmgr", "rsub", "admin", "grid", "runner", "sim", "replay", "report", "resident", "web"],
];

/** These may import anything: the administrator's program starts and inspects all parts, the simulator runs them. */
export const MAY_IMPORT_ANYTHING: readonly string[] = ["admin", "sim"];

/** qmgr is a command too: it shares the form, options and texts of commands. The resident runs all of them. */
export const ALSO_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  qmgr: ["cli"],
  rsub: ["cli"],
  resident: ["cli", "qmgr", "rsub"],
};

/** Commands communicate with a server and import none of its code. */
export const NEVER_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  cli: ["store", "server", "sched", "mom", "comm", "backends"],
  qmgr: ["store", "server", "sched", "mom", "comm", "backends"],
  rsub: ["store", "server", "sched", "mom", "comm", "backends"],
  resident: ["store", "server", "sched", "mom", "comm", "backends"],
};

/**
 * Pure: could be replayed from a log on another machine. No node:*, no clock, no randomness, no timers, no process, and no value imported from a
 * file that has them. Globs as in biome.json, which must hold the same list: `**` any files below, `*` within a name, `!` takes out.
 */
export const PURE: readonly string[] = [
  "src/model/**",
  "src/identity/**",
  "!src/identity/x509/**",
  "!src/identity/files/**",
  "src/protocol/datagram/**",
  "src/protocol/failover/follower.ts",
  "src/protocol/failover/leader.ts",
  "src/protocol/multicast/**",
  "src/qmgr/language/**",
  "src/qmgr/session/**",
  "src/qmgr/shell/*.ts",
  "src/sched/**",
  "!src/sched/main.ts",
  "!src/sched/shell/**",
  "src/replay/**",
  "src/report/**",
  "src/grid/**",
  "!src/grid/main.ts",
  "!src/grid/shell/**",
  "src/web/**",
  "!src/web/main.ts",
  "!src/web/shell/**",
  "src/server/**",
  "!src/server/main.ts",
  "!src/server/shell/**",
  "src/mom/driver/**",
  "src/mom/run/**",
  "src/mom/config/**",
  "src/mom/job/**",
  "src/hooks/run/**",
  "src/store/postgres/leadership.ts",
  "src/store/postgres/reach.ts",
  "src/store/postgres/faults.ts",
  "src/resident/allowance.ts",
  "src/resident/frame.ts",
  "src/resident/request.ts",
  "src/resident/settings.ts",
  "src/runner/plan.ts",
  "src/runner/reconcile.ts",
  "src/backends/contract/**",
  "src/backends/*/options.ts",
  "src/backends/*/request.ts",
  "src/backends/*/answer.ts",
  "src/backends/*/faults.ts",
];

/** Entries that no other file imports, besides the programs of scripts/lib/programs.mjs. */
export const ENTRIES: readonly string[] = ["src/sim/main.ts", "bench/main.ts", "src/grid/jdl/schema.ts"];

/** Most files in a folder, READMEs not counted. */
export const FOLDER_FILES = 25;

/** Folders that still hold more. The list only becomes shorter. */
export const HEAPS: readonly string[] = [];

/** Pairs of folders that still import each other. The list only becomes shorter. */
export const MUTUAL: readonly string[] = [];

/** Folders with subfolders whose README does not yet draw them as floors. The list only becomes shorter. */
export const WITHOUT_FLOORS: readonly string[] = [];

/** Longest line of a source file; the formatter breaks code at 140, so what is longer is a comment, a text or a table row. */
export const LINE_LENGTH = 180;

/** Longest README of a folder: a screen. */
export const README_LINES = 60;

/** A longer file should be split in two. Tables that are read row by row are excepted. */
export const FILE_LINES = 600;
export const LONG_TABLES: readonly string[] = [];

/** Whether a path is among the globs, the last match deciding. */
export function matches(globs: readonly string[], path: string): boolean {
  let inside = false;
  for (const glob of globs) {
    const out = glob.startsWith("!");
    if (globExpression(out ? glob.slice(1) : glob).test(path)) inside = !out;
  }
  return inside;
}

function globExpression(glob: string): RegExp {
  const parts = glob.split(/(\*\*|\*)/).map((part) => {
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    return part.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("")}$`);
}
