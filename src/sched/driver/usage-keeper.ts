// Keeps the usage of shares over restarts, in the file `usage` of a sched_priv. The file is read when the scheduler begins
// to use the directory, and when pbsfs has changed the file (usage.touch). It is written soon after usage has changed.
//
// W1. The file is always complete (UsagePort). It also contains how much of each running job's usage is counted, so that no
//     usage is counted twice or lost, whenever the scheduler ends.
// W2. A file that cannot be read is kept as usage.bad and reported; usage begins anew.
// W3. What pbsfs wrote is never overwritten: usage.touch is looked for before every write.

import { createFairshare, decayDue, type Fairshare, replant, type StoredUsage, storedOf } from "#model/fairshare.ts";
import type { FairshareTree } from "#model/resource-group.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";
import { messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { countUsage } from "../order/usage-count.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import type { SchedPorts } from "./ports.ts";

/** Changes within this time are written together. */
const WRITE_MS = 1000;

export class UsageKeeper {
  readonly #ports: Pick<SchedPorts, "clock" | "log" | "usage">;
  #directory: string | null = null;
  #tree: FairshareTree | null = null;
  #fairshare: Fairshare | null = null;
  /** cancels the write that waits for its timer; null: none waits */
  #cancelSave: (() => void) | null = null;
  /** true: the usage of all running jobs must be counted again */
  #reread = false;
  #fault_told = "";

  constructor(ports: Pick<SchedPorts, "clock" | "log" | "usage">) {
    this.#ports = ports;
  }

  /** Takes over a tree that was read from the files of a sched_priv. Reads the usage file if the directory is another one than before. */
  plant(directory: string, tree: FairshareTree): void {
    this.#tree = tree;
    if (this.#directory !== directory) {
      this.flush();
      this.#directory = directory;
      this.#fairshare = null;
    }
    this.#fairshare =
      this.#fairshare === null ? createFairshare(tree, this.#stored(directory), this.#now_s) : replant(this.#fairshare, tree);
  }

  /**
   * Brings usage up to date before a cycle: adds what jobs have used since the last cycle, and applies decay that is due.
   * counts: whether shares order jobs.
   */
  before(universe: Universe, policy: Policy, now_s: number, counts: boolean): Fairshare {
    const { clock } = this.#ports;
    this.#takeTouch(now_s);
    const fairshare = (this.#fairshare ??= createFairshare(this.#tree ?? NO_TREE, null, now_s));
    if (this.#reread) universe.used.all = true;
    this.#reread = false;
    countUsage(universe, fairshare, counts);
    if (counts && decayDue(fairshare, policy.fairshare_decay, now_s) > 0)
      this.#record(LOG_EVENT.DEBUG2, "Fairshare", "Decaying Fairshare Tree", "Svr");
    if (counts && fairshare.changed) this.#cancelSave ??= clock.after(WRITE_MS, () => this.#save());
    return fairshare;
  }

  /** Writes the changes that are not written yet. */
  flush(): void {
    if (this.#cancelSave === null) return;
    this.#cancelSave();
    this.#save();
  }

  get #now_s(): number {
    return Math.floor(this.#ports.clock.wall_ms() / 1000);
  }

  #record(event: number, object: string, text: string, log_class = "Fil"): void {
    this.#ports.log.record(event, log_class, object, text);
  }

  #stored(directory: string): StoredUsage | null {
    let text: string | null;
    try {
      text = this.#ports.usage.read(directory);
    } catch (error) {
      this.#record(LOG_EVENT.ERROR, "fairshare usage", `cannot be read: ${messageOf(error)}`);
      return null;
    }
    if (text === null) {
      this.#record(LOG_EVENT.SCHED, "fairshare usage", "Creating usage database for fairshare");
      return null;
    }
    const usage = parseUsage(text);
    if (typeof usage !== "string") return usage;
    this.#record(LOG_EVENT.ERROR, "fairshare usage", `usage begins anew, the old file is kept as usage.bad: ${usage}`);
    this.#attempt(() => this.#ports.usage.setAside(directory));
    return null;
  }

  /** Reads the file again if pbsfs has written it. */
  #takeTouch(now_s: number): void {
    const directory = this.#directory;
    if (directory === null || this.#tree === null || !this.#ports.usage.isTouched(directory)) return;
    this.#attempt(() => this.#ports.usage.clearTouch(directory));
    this.#fairshare = createFairshare(this.#tree, this.#stored(directory), now_s);
    this.#reread = true;
  }

  #save(): void {
    this.#cancelSave = null;
    this.#takeTouch(this.#now_s);
    const directory = this.#directory;
    const fairshare = this.#fairshare;
    if (directory === null || fairshare === null || !fairshare.changed) return;
    const text = usageText(storedOf(fairshare));
    if (!this.#attempt(() => this.#ports.usage.write(directory, text))) return;
    fairshare.changed = false;
    this.#record(LOG_EVENT.DEBUG2, "Fairshare", "Usage Sync", "Svr");
  }

  /** Calls `work`. If it fails, reports the fault once, until the fault ends or changes. Returns whether it succeeded. */
  #attempt(work: () => void): boolean {
    try {
      work();
      this.#fault_told = "";
      return true;
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#fault_told) this.#record(LOG_EVENT.ERROR, "fairshare usage", `cannot be kept: ${message}`);
      this.#fault_told = message;
      return false;
    }
  }
}

const NO_TREE: FairshareTree = { name: "TREEROOT", cresgrp: 0, shares: -1, percentage: 1, children: [] };

/** Returns whether usage must be counted: shares order jobs now, or will at another time of day. */
export const shareMatters = ({ ranking }: Universe, { prime, non_prime }: PolicyBook): boolean =>
  prime.fair_share || non_prime.fair_share || ranking.entity !== null;
