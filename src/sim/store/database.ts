// A database that two servers can reach, with the row about their leader, as in src/store/postgres. Everything that a
// server does there takes the way to the database and back; either way may be cut. Who leads is decided by
// src/store/postgres/leadership.ts.
//
// B1. A commit checks at the database that its term is the present one (leadership.ts E1).
// B2. A take-over names the row that was seen; if the row has changed, nothing is taken (E3).
// B3. Work that has not arrived at the database when its server stops waiting for it never takes effect. Work that has arrived may
//     have taken effect, although the server gets the fault `away`.

import type { Result } from "#server/driver/ports.ts";
import type { LeaderRow } from "#store/postgres/leadership.ts";
import { type Batch, StoreError } from "#store/store.ts";
import type { Disk } from "./disk.ts";
import type { Waiter } from "./seat-reach.ts";

/** The time without a change of the row after which another server takes over, and the interval of beats. */
export const SILENCE_MS = 6000;
export const BEAT_MS = 1500;
/** How long a server waits for an answer of the database. */
const PATIENCE_MS = 60_000;
/** Interval in ms at which a message is sent again while its way is cut. */
const SENT_AGAIN_MS = 1000;
const STORE = 7;

export type DatabaseOptions = {
  /** Returns the time in ms for which a way is still cut. up: from the server at this seat to the database; down: back. */
  cut_ms(seat: number, way: "up" | "down"): number;
  /** Returns the time in ms that a message takes. */
  delay_ms(): number;
  after(delay_ms: number, act: () => void | Promise<void>): void;
};

/** Calls `act` in the process of a server. If the process is stopped, it is called when the process continues; if the process is dead, never. */
export type InProcess = (act: () => void) => void;

export class Database {
  readonly disk: Disk;
  readonly #options: DatabaseOptions;
  /** number of take-overs by another server than the last leader */
  takeovers = 0;
  #last_holder: string | null = null;
  /** what the servers that wait say, by seat */
  readonly #waiting = new Map<number, Waiter>();
  #row: LeaderRow = { store: STORE, term: 0, last_commit: 0, beat: 0, holder: null, instance: null, host: null, pid: null };

  constructor(disk: Disk, options: DatabaseOptions) {
    this.disk = disk;
    this.#options = options;
  }

  get row(): LeaderRow {
    return this.#row;
  }

  /** Does work at the database for the server at a seat, and tells its process the outcome. */
  ask<T>(seat: number, inProcess: InProcess, work: () => T | Promise<T>, done: (result: Result<T>) => void): void {
    let state: "asked" | "arrived" | "over" = "asked";
    const tell = (result: Result<T>): void => {
      if (state === "over") return;
      state = "over";
      inProcess(() => done(result));
    };
    this.#options.after(PATIENCE_MS, () => tell({ ok: false, error: new StoreError("away", "the database does not answer") }));
    this.#travel(seat, "up", async () => {
      if (state === "over") return;
      state = "arrived";
      const result = await outcomeOf(work);
      this.#travel(seat, "down", () => tell(result));
    });
  }

  /** Takes the lead, if the row is still the one that was seen (B2). Returns the new row, or null. */
  take(seen: LeaderRow, candidate: { readonly holder: string; readonly instance: string }): LeaderRow | null {
    if (JSON.stringify(seen) !== JSON.stringify(this.#row)) return null;
    if (this.#last_holder !== null && this.#last_holder !== candidate.holder) this.takeovers++;
    this.#last_holder = candidate.holder;
    this.#row = { ...this.#row, term: this.#row.term + 1, beat: 0, ...candidate };
    return this.#row;
  }

  /** Gives up the lead of a term. */
  release(term: number): void {
    this.#fence(term);
    this.#row = { ...this.#row, holder: null, instance: null };
  }

  /** Notes what the server at a seat says while it waits. null: it waits no longer */
  say(seat: number, reach: Waiter["reach"] | null): void {
    if (reach === null) this.#waiting.delete(seat);
    else this.#waiting.set(seat, { seen: 1 + (this.#waiting.get(seat)?.seen ?? 0), reach });
  }

  /** Returns what the server at a seat says; null: it does not wait. */
  waiter(seat: number): Waiter | null {
    return this.#waiting.get(seat) ?? null;
  }

  /** Shows that the leader of a term is alive. Throws if it was deposed. */
  beat(term: number): void {
    this.#fence(term);
    this.#row = { ...this.#row, beat: this.#row.beat + 1 };
  }

  /** Writes a batch for the leader of a term. Throws if it was deposed (B1), or if the disk refuses. */
  async commit(term: number, batch: Batch): Promise<void> {
    this.#fence(term);
    await this.disk.store.commit(batch);
    this.#row = { ...this.#row, last_commit: this.#row.last_commit + 1 };
  }

  #fence(term: number): void {
    if (term !== this.#row.term) throw new StoreError("deposed", "another server leads");
  }

  /** Lets a message travel, and calls `arrive` when it arrives. While the way is cut, the message waits. */
  #travel(seat: number, way: "up" | "down", arrive: () => void | Promise<void>): void {
    const { cut_ms, delay_ms, after } = this.#options;
    after(delay_ms(), () => {
      const left_ms = cut_ms(seat, way);
      if (left_ms === 0) return arrive();
      after(Math.min(left_ms, SENT_AGAIN_MS), () => this.#travel(seat, way, arrive));
    });
  }
}

async function outcomeOf<T>(work: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error : new Error(String(error)) };
  }
}
