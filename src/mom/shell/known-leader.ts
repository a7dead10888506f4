// The newest leader of which the mom has heard, in the file mom_priv/leader (protocol/failover/leader-file.ts).
//
// K1. If a leader is known, the complex has two servers. If then nobody listens at the address of one server, this does not prove that no server runs: the other one
//     may lead, and start the jobs of this mom elsewhere (../run/cut-off.ts Z1). The same is true for a mom whose pbs.conf does not name the two servers yet.

import type { Leader } from "#protocol/failover/leader.ts";
import { LeaderNote, leaderIn, readLeader } from "#protocol/failover/leader-file.ts";
import type { ServerEnd } from "../driver/ports.ts";

/** Returns the functions of `end` for a mom that knows one server only. They also note the leader that each welcome names (K1). fault: writes a line into the log. */
export function heedingLeader(directory: string, end: ServerEnd, fault: (text: string) => void): ServerEnd {
  const note = new LeaderNote(directory, fault);
  let has_leader = readLeader(directory) !== null;
  const keep = (leader: Leader | null): void => {
    const had_leader = has_leader;
    has_leader = leader !== null;
    if (leader !== null || had_leader) note.keep(leader);
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
