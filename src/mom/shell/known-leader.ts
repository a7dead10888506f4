// The newest leader of which the mom has heard (protocol/failover/leader.ts), in the file mom_priv/leader, so that a mom that was started again knows it.
//
// K1. If a leader is known, the complex has two servers. If then nobody listens at the address of one server, this does not prove that no server runs: the other one
//     may lead, and start the jobs of this mom elsewhere (../run/cut-off.ts Z1). The same is true for a mom whose pbs.conf does not name the two servers yet.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Leader, leaderText, parseLeader } from "#protocol/failover/leader.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import type { ServerEnd } from "../driver/ports.ts";

const fileIn = (directory: string): string => join(directory, "leader");

/** Returns the leader in the file; null: none is known. directory: mom_priv */
export function readLeader(directory: string): Leader | null {
  try {
    return parseLeader(readFileSync(fileIn(directory), "utf8").trim());
  } catch {
    return null;
  }
}

/** Notes the leader. Throws the file system's error. */
export const noteLeader = (directory: string, leader: Leader): void => writeWholeFile(fileIn(directory), `${leaderText(leader)}\n`, 0o644);

/** Returns the leader that a welcome names; null: it names none. */
export function leaderIn(data: unknown): Leader | null {
  const text = isRecord(data) ? data["leader"] : undefined;
  return typeof text === "string" ? parseLeader(text) : null;
}

/** Returns the functions of `end` for a mom that knows one server only. They also note the leader that each welcome names (K1). fault: writes a line into the log. */
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
