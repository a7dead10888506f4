// Which hosts the server at a seat reaches, and whether it gives up its lead for that reason, by the rules of src/store/postgres/reach.ts.

import { givesUp, leavesToRival, noteReach, type Reach, type ReachLimits, type Round, STANDING_AT_FIRST } from "#store/postgres/reach.ts";

const LIMITS: ReachLimits = { mom_silence_ms: 3000, settle_ms: 30_000 };

export type SeatReachOptions = {
  /** the hosts that both servers try to reach */
  readonly hosts: readonly string[];
  /** Returns whether data pass both ways between the host and the server. */
  isReached(host: string): boolean;
  /** Returns the time of the monotonic clock. */
  now_ms(): number;
};

/** What a server that waits has last said in the database. seen: a number that grows each time */
export type Waiter = { readonly seen: number; readonly reach: Reach };

export class SeatReach {
  readonly #options: SeatReachOptions;
  #standing = STANDING_AT_FIRST;
  #led_ms = 0;
  /** what the other server has last said, and when this was new */
  #other: { readonly waiter: Waiter; readonly since_ms: number; readonly is_alive: boolean } | null = null;

  constructor(options: SeatReachOptions) {
    this.#options = options;
  }

  /** Tries all hosts. */
  round(): Round {
    const { hosts, isReached, now_ms } = this.#options;
    return { begun_ms: now_ms(), asked: hosts, reached: hosts.filter(isReached) };
  }

  /** Called when the server begins to lead. */
  leads(): void {
    this.#standing = STANDING_AT_FIRST;
    this.#led_ms = this.#options.now_ms();
    this.#other = null;
  }

  #hear(waiter: Waiter | null, silence_ms: number): void {
    const now_ms = this.#options.now_ms();
    const last = this.#other;
    if (waiter === null) this.#other = null;
    else if (last === null) this.#other = { waiter, since_ms: now_ms, is_alive: false };
    else if (last.waiter.seen !== waiter.seen) this.#other = { waiter, since_ms: now_ms, is_alive: true };
    else this.#other = { ...last, is_alive: last.is_alive && now_ms - last.since_ms < silence_ms };
  }

  /** Called by the leader. waiter: what the other server says; null: it does not wait. Returns whether the leader gives up its lead. */
  givesUp(own: Round, waiter: Waiter | null, silence_ms: number): boolean {
    this.#hear(waiter, silence_ms);
    const now_ms = this.#options.now_ms();
    const other = this.#other?.is_alive === true ? this.#other.waiter.reach : null;
    this.#standing = noteReach(this.#standing, own, other, now_ms);
    return givesUp(this.#standing, this.#led_ms, now_ms, LIMITS);
  }

  /** Called by a server that waits. Returns whether it leaves the lead, which nobody has, to the other server. */
  leaves(own: Round, waiter: Waiter | null, times: Parameters<typeof leavesToRival>[2]): boolean {
    this.#hear(waiter, times.silence_ms);
    if (this.#other === null) return false;
    const { waiter: other, is_alive } = this.#other;
    return leavesToRival(own, [{ reach: other.reach, is_alive }], times);
  }
}
