// The newest leader of which the mom has heard (protocol/failover/leader.ts), in the file mom_priv/leader, so that a mom that was started again knows it.
//
// K1. A leader shows that the complex has two servers. Then nobody listening at the address of one server does not prove that no server runs: the other one may
//     lead, and start the jobs of this mom elsewhere (../run/cut-off.ts Z1). This counts, too, for a mom whose pbs.conf does not name the two servers yet.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Leader, leaderText, parseLeader } from "#protocol/failover/leader.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import type { ServerEnd } from "../driver/ports.ts";

const fileIn = (directory: string): string => join(directory, "leader");

/** directory: mom_priv. null: none is known */
export function readLeader(directory: string): Leader | null {
  try {
    return parseLeader(readFileSync(fileIn(directory), "utf8").trim());
  } catch {
    return null;
  }
}

/** Notes the leader. Throws the file system's error. */
export const noteLeader = (directory: string, leader: Leader): void => writeWholeFile(fileIn(directory), `${leaderText(leader)}\n`, 0o644);

/** The leader that a welcome names; null: none. */
export function leaderIn(data: unknown): Leader | null {
  const text = isRecord(data) ? data["leader"] : undefined;
  return typeof text === "string" ? parseLeader(text) : null;
}

/** The end of the connection of a mom that knows one server only: keeps what each welcome says about a second one (K1). fault: writes a line into the log. */
export function heedingLeader(directory: string, end: ServerEnd, fault: (text: string) => void): ServerEnd {
  let has_leader = readLeader(directory) !== null;
  const keep = (leader: Leader | null): void => {
    const had_leader = has_leader;
    has_leader = leader !== null;
    try {
      if (leader !== null) noteLeader(directory, leader);
      else if (had_leader) removeIfThere(fileIn(directory));
    } catch (error) {
      fault(`the leader cannot be noted: ${messageOf(error)}`);
    }
    if (leader !== null && !had_leader)
      fault("the complex has two servers: add PBS_PRIMARY and PBS_SECONDARY to pbs.conf, and start this mom again, so that it finds both");
  };
  return {
    ...end,
    frame(type, data) {
      if (type === "mom-welcome") keep(leaderIn(data));
      end.frame(type, data);
    },
    absent() {
      if (!has_leader) end.absent();
    },
  };
}
