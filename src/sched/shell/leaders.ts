// Which servers a scheduler on another host obeys, in a complex with two servers (docs/standby.md).
//
// O1. The scheduler obeys no server that was replaced (#protocol/failover/follower.ts). The newest leader of which it has heard is in its sched_priv before it
//     obeys, so that it knows the leader when it was started again.
// O2. The scheduler cannot ask the other server (follower.ts F4). It has looked for the known store in vain when it has had no server for absent_ms.

import { followNobody, judgeWelcome } from "#protocol/failover/follower.ts";
import { type Leader, leaderText } from "#protocol/failover/leader.ts";
import { LeaderNote, readLeader } from "#protocol/failover/leader-file.ts";

export class Leaders {
  /** the directory in which the scheduler was started: a new start reads it before a server can name another one */
  readonly #note: LeaderNote;
  readonly #absent_ms: number;
  #known: Leader | null;
  /** since when the scheduler has had no server, on the steady clock */
  #alone_ms = performance.now();

  /** fault: writes a line into the log */
  constructor(directory: string, absent_ms: number, fault: (text: string) => void) {
    this.#note = new LeaderNote(directory, fault);
    this.#absent_ms = absent_ms;
    this.#known = readLeader(directory);
  }

  /** Whether a server must name its leader before it gets a link. */
  get isOneKnown(): boolean {
    return this.#known !== null;
  }

  /** Decides about a server that has named this leader; null: none. has_server: the scheduler has a link. Returns why the server is not obeyed; null: it is. */
  judge(said: Leader | null, has_server: boolean): string | null {
    const known = this.#known;
    const sought = !has_server && performance.now() - this.#alone_ms >= this.#absent_ms;
    const { judgement, next } = judgeWelcome({ ...followNobody(known), sought }, said);
    if (judgement === "obey") {
      this.#know(next.known);
      return null;
    }
    const named = said === null ? "no leader" : `the leader ${leaderText(said)}`;
    const newest = known === null ? "none" : leaderText(known);
    return judgement === "leave"
      ? `the server was replaced: it names ${named}, and the newest leader is ${newest}`
      : `the server has another database than the one known: it names ${named}, and the newest leader is ${newest}`;
  }

  /** Must be called when the scheduler has lost its server. */
  serverLost(): void {
    this.#alone_ms = performance.now();
  }

  #know(leader: Leader | null): void {
    const known = this.#known;
    if (known?.store === leader?.store && known?.term === leader?.term) return;
    this.#known = leader;
    this.#note.keep(leader);
  }
}
