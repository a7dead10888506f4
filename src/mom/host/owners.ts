// The user that a job runs as: in system mode, the user that the server names, with the groups of that user; in user mode, the mom's own user.

import type { MomJob } from "#protocol/mom-link.ts";
import { systemUsers } from "#support/passwd.ts";
import type { Owner } from "../job/plan.ts";

/** Finds the user that a job runs as. Returns null if the user does not exist here, or, in user mode, is not the user of the complex. */
export type OwnerOf = (job: Pick<MomJob, "user" | "group">) => Owner | null;

export function ownersOf(mode: "user" | "system"): OwnerOf {
  const users = systemUsers();
  if (mode === "user") {
    const own = users.userByUid(process.getuid?.() ?? 0);
    return (job) => (own === null || own.name !== job.user ? null : { user: own.name, home: own.home, shell: own.shell, identity: null });
  }
  return (job) => {
    const user = users.userByName(job.user);
    if (user === null) return null;
    const gids = users.gidsOf(user);
    const asked = users.groupByName(job.group)?.gid;
    // A group in group_list counts only if the user is a member of it.
    const gid = asked !== undefined && gids.includes(asked) ? asked : user.gid;
    return { user: user.name, home: user.home, shell: user.shell, identity: { uid: user.uid, gid, groups: [...gids] } };
  };
}
