// The usage of shares over restarts: the file `usage` of a sched_priv, read when the directory is taken over and when pbsfs has changed it (usage.touch),
// written soon after usage has changed.
//
// W1. The file is always whole (whole-file.ts). What of each run is counted is in it, so nothing counts twice or is lost when the scheduler ends at any moment.
// W2. A file that cannot be read is kept as usage.bad and told; usage begins anew.
// W3. What pbsfs wrote is never overwritten: usage.touch is looked for before every write.

import { readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { createFairshare, decayDue, type Fairshare, replant, type StoredUsage, storedOf } from "#model/fairshare.ts";
import type { FairshareTree } from "#model/resource-group.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import { countUsage } from "../order/usage-count.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";

type Record = (event: number, object: string, text: string, logClass?: string) => void;
export type UsageKeeper = {
  /** the files of a sched_priv were read */
  plant(directory: string, tree: FairshareTree, now_s: number): void;
  /** usage as it is now: what runs have used since the last cycle is counted, decay that is due done. counts: shares order jobs */
  before(universe: Universe, policy: Policy, now_s: number, counts: boolean): Fairshare;
  /** writes what was not written yet */
  flush(): void;
};

/** Changes within this time are written together. */
const WRITE_MS = 1000;

export function usageKeeper(record: Record): UsageKeeper {
  let directory: string | null = null;
  let tree: FairshareTree | null = null;
  let fairshare: Fairshare | null = null;
  let timer: NodeJS.Timeout | null = null;
  /** everything must be counted again */
  let reread = false;
  let fault_told = "";

  const path = (name: string): string => join(directory ?? ".", name);

  function stored(): StoredUsage | null {
    let text: string;
    try {
      text = readFileSync(path("usage"), "utf8");
    } catch (error) {
      const missing = codeOf(error) === "ENOENT";
      const what = missing ? "Creating usage database for fairshare" : `cannot be read: ${messageOf(error)}`;
      record(missing ? LOG_EVENT.SCHED : LOG_EVENT.ERROR, "fairshare usage", what, "Fil");
      return null;
    }
    const usage = parseUsage(text);
    if (typeof usage !== "string") return usage;
    record(LOG_EVENT.ERROR, "fairshare usage", `usage begins anew, the old file is kept as usage.bad: ${usage}`, "Fil");
    attempt(() => renameSync(path("usage"), path("usage.bad")));
    return null;
  }

  /** What pbsfs has written counts from now on. */
  function takeTouch(now_s: number): void {
    if (directory === null || tree === null) return;
    try {
      if (!statSync(path("usage.touch")).isFile()) return;
    } catch {
      return;
    }
    attempt(() => removeIfThere(path("usage.touch")));
    fairshare = createFairshare(tree, stored(), now_s);
    reread = true;
  }

  function save(): void {
    timer = null;
    const now_s = Math.floor(Date.now() / 1000);
    takeTouch(now_s);
    if (directory === null || fairshare === null || !fairshare.changed) return;
    const text = usageText(storedOf(fairshare));
    if (attempt(() => writeWholeFile(path("usage"), text))) {
      fairshare.changed = false;
      record(LOG_EVENT.DEBUG2, "Fairshare", "Usage Sync");
    }
  }

  /** A fault is told once, until it is over or another. */
  function attempt(work: () => void): boolean {
    try {
      work();
      fault_told = "";
      return true;
    } catch (error) {
      const message = messageOf(error);
      if (message !== fault_told) record(LOG_EVENT.ERROR, "fairshare usage", `cannot be kept: ${message}`, "Fil");
      fault_told = message;
      return false;
    }
  }

  return {
    plant(dir, group_tree, now_s) {
      tree = group_tree;
      if (directory !== dir) {
        if (timer !== null) {
          clearTimeout(timer);
          save();
        }
        directory = dir;
        fairshare = null;
      }
      fairshare = fairshare === null ? createFairshare(group_tree, stored(), now_s) : replant(fairshare, group_tree);
    },
    before(universe, policy, now_s, counts) {
      takeTouch(now_s);
      fairshare ??= createFairshare(tree ?? NO_TREE, null, now_s);
      if (reread) universe.used.all = true;
      reread = false;
      countUsage(universe, fairshare, counts);
      if (counts && decayDue(fairshare, policy.fairshare_decay, now_s) > 0)
        record(LOG_EVENT.DEBUG2, "Fairshare", "Decaying Fairshare Tree");
      if (counts && fairshare.changed) timer ??= setTimeout(save, WRITE_MS);
      return fairshare;
    },
    flush() {
      if (timer === null) return;
      clearTimeout(timer);
      save();
    },
  };
}

const NO_TREE: FairshareTree = { name: "TREEROOT", cresgrp: 0, shares: -1, percentage: 1, children: [] };

/** Whether usage is counted: shares order jobs now, or will at another time of day. */
export const shareMatters = ({ ranking }: Universe, { prime, non_prime }: PolicyBook): boolean =>
  prime.fair_share || non_prime.fair_share || ranking.entity !== null;
