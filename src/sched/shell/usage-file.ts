// Reads and writes the file `usage` of a sched_priv, and the file usage.touch, which pbsfs leaves beside it
// (../driver/usage-keeper.ts).

import { readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "#support/caught.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import type { UsagePort } from "../driver/ports.ts";

export const USAGE_FILE: UsagePort = {
  read(sched_priv) {
    try {
      return readFileSync(join(sched_priv, "usage"), "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  },
  write: (sched_priv, text) => writeWholeFile(join(sched_priv, "usage"), text),
  setAside: (sched_priv) => renameSync(join(sched_priv, "usage"), join(sched_priv, "usage.bad")),
  isTouched(sched_priv) {
    try {
      return statSync(join(sched_priv, "usage.touch")).isFile();
    } catch {
      return false;
    }
  },
  clearTouch: (sched_priv) => removeIfThere(join(sched_priv, "usage.touch")),
};
