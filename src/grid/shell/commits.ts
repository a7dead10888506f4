// Writes changed rows to the store in batches: while one batch is written, the changes for the next one are collected.
//
// C1. settled() resolves when everything that was applied before the call is durable.
// C2. If a batch cannot be written (for example because the disk is full), it is tried again until it is written. Until then, the daemon sends nothing that depends on it.

import { setTimeout as sleep } from "node:timers/promises";
import type { Batch, Store } from "#store/store.ts";
import { messageOf } from "#support/caught.ts";

const AGAIN_MS = 1000;

export type Commits = {
  settled(): Promise<void>;
  /** why the last attempt failed; null: it succeeded */
  readonly trouble: string | null;
};

/** take: returns the rows that have changed since the last call. */
export function groupCommits(store: Pick<Store, "commit">, take: () => Batch | null, note: (text: string) => void): Commits {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let trouble: string | null = null;
  const write = async (): Promise<void> => {
    const batch = take();
    if (batch === null) return;
    for (;;) {
      try {
        await store.commit(batch);
        if (trouble !== null) note("the store can be written again");
        trouble = null;
        return;
      } catch (error) {
        if (trouble === null) note(`the store cannot be written, tried again until it can: ${messageOf(error)}`);
        trouble = messageOf(error);
        await sleep(AGAIN_MS);
      }
    }
  };
  const begin = (): Promise<void> => {
    running = write().finally(() => {
      running = null;
    });
    return running;
  };
  return {
    settled() {
      if (running === null) return begin();
      next ??= running.then(() => {
        next = null;
        return begin();
      });
      return next;
    },
    get trouble() {
      return trouble;
    },
  };
}
