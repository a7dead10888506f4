// Listings of jobs that a user has under way. Each keeps the list of jobs that it began with, and a page that its reader has not taken. A user has a share of
// listings (max_user_listings); further ones wait in their order.

import type { Request } from "#protocol/messages.ts";

/** Whether a request reads many jobs, live or finished. */
export function isListing(request: Request): boolean {
  if (request.kind === "select-jobs") return true;
  return request.kind === "status" && request.object === "job" && (request.ids.length !== 1 || request.subjobs === true);
}

export type Shares<Owner> = {
  /** Calls start once the user has a share free, at once if there is one. Returns whether it did so at once. */
  take(uid: number, owner: Owner, start: () => void): boolean;
  /** a share is given back */
  over(uid: number): void;
  /** the owner is gone: it does not wait any more */
  leave(uid: number, owner: Owner): void;
};

/** max: shares of one user, asked at each use. */
export function createShares<Owner>(max: () => number): Shares<Owner> {
  const users = new Map<number, { taken: number; waiting: { readonly owner: Owner; readonly start: () => void }[] }>();
  const forget = (uid: number): void => {
    const user = users.get(uid);
    if (user !== undefined && user.taken === 0 && user.waiting.length === 0) users.delete(uid);
  };
  return {
    take(uid, owner, start) {
      let user = users.get(uid);
      if (user === undefined) users.set(uid, (user = { taken: 0, waiting: [] }));
      if (user.taken >= max()) {
        user.waiting.push({ owner, start });
        return false;
      }
      user.taken++;
      start();
      return true;
    },
    over(uid) {
      const user = users.get(uid);
      if (user === undefined) return;
      user.taken--;
      while (user.taken < max() && user.waiting.length > 0) {
        user.taken++;
        user.waiting.shift()?.start();
      }
      forget(uid);
    },
    leave(uid, owner) {
      const user = users.get(uid);
      if (user === undefined) return;
      user.waiting = user.waiting.filter((each) => each.owner !== owner);
      forget(uid);
    },
  };
}
