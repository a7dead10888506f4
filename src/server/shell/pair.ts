// A server of a complex with two servers: what it does besides serving (docs/standby.md).
//
// A1. While it leads, it touches server_priv/svrlive at every beat in which its term is confirmed, so that people and tools of
//     the site see which server is active.
// A2. A secondary that leads gives way when the primary has come back: it ends as qterm does, with the schedulers that it has
//     started, and then waits as the standby. Nothing is lost, because everything that was acknowledged is in the database.
// A3. A server that ends because another one leads is started again by itself, and waits. It does so only in the background; in
//     the foreground (option -N) its caller decides. A server that a person has told to end, by qterm or a signal, stays ended,
//     even if another one has replaced it meanwhile.
// A4. A leader that reaches clearly fewer hosts of moms than the server that waits gives way to it, in the same way as in A2. A secondary gives way to a primary that
//     reaches them only (store/postgres/reach.ts).

import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, utimesSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { leaderText } from "#protocol/failover/leader.ts";
import type { PairRole } from "#protocol/failover/pair-role.ts";
import type { StandbyView } from "#protocol/hosts-view.ts";
import type { StandbySecrets } from "#protocol/join-link.ts";
import {
  compareReach,
  givesUp,
  lostHosts,
  mayHaveBack,
  noteReach,
  readReach,
  STANDING_AT_FIRST,
  type Standing,
} from "#store/postgres/reach.ts";
import { type WaitingRow, type WaitingSight, whoTakesBack } from "#store/postgres/servers.ts";
import type { SharedStore } from "#store/store.ts";
import { databaseFile } from "#store/store-choice.ts";
import { nth } from "#support/assert.ts";
import type { Conf, ServerAt } from "#support/conf.ts";
import { AGAIN_ENV, READY_ENV, READY_FD } from "./daemon-start.ts";
import type { Reaching } from "./open-home.ts";
import { readPairKey, SharedFiles } from "./shared-files.ts";

const TOUCH_MS = 2000;

export class Pair {
  readonly role: PairRole;
  readonly files: SharedFiles;
  readonly shared: SharedStore;
  readonly #conf: Conf;
  readonly #timer: NodeJS.Timeout;
  #sights: readonly WaitingSight[] = [];
  #giveWay: (why: string) => void = () => undefined;
  readonly #reach: Reaching | null;
  readonly #led_ms = performance.now();
  #standing: Standing = STANDING_AT_FIRST;
  /** since when neither server reaches a host */
  readonly #lost_ms = new Map<string, number>();

  /** reach: how this server finds out which hosts of moms it reaches; null: it does not */
  constructor(conf: Conf, role: PairRole, shared: SharedStore, reach: Reaching | null) {
    this.role = role;
    this.shared = shared;
    this.#reach = reach;
    this.#conf = conf;
    this.files = new SharedFiles(conf.home, shared);
    this.#touch();
    this.#timer = setInterval(() => this.#touch(), TOUCH_MS).unref();
  }

  /** giveWay: called once, when another server is to lead (A2, A4). why: a text for the log */
  watch(giveWay: (why: string) => void): void {
    this.#giveWay = giveWay;
  }

  /** Called with the servers that wait (store/postgres/servers.ts). */
  see(sights: readonly WaitingSight[]): void {
    this.#sights = sights;
    const why = this.#reach === null ? this.#whyTakenBack(() => true) : this.#whyGivenUp(this.#reach);
    if (why === null) return;
    const giveWay = this.#giveWay;
    this.#giveWay = () => undefined;
    giveWay(why);
  }

  /** Why the primary takes the lead back from this server (A2); null: it does not. */
  #whyTakenBack(may: (row: WaitingRow) => boolean): string | null {
    const next = whoTakesBack(this.role, this.#sights);
    if (next === null || !may(next)) return null;
    return `the primary server has come back: ${next.host} (pid ${next.pid}) leads from now on`;
  }

  /** Why another server is to lead, given which hosts of moms both reach (A4); null: this server goes on. */
  #whyGivenUp({ probes, limits }: Reaching): string | null {
    const now_ms = performance.now();
    const other = this.#sights.find(({ row, is_alive }) => is_alive && row.role !== this.role && row.orders === null)?.row ?? null;
    const own = probes.latest();
    const theirs = readReach(other?.reach ?? null);
    this.#standing = noteReach(this.#standing, own, theirs, now_ms);
    probes.lost = lostHosts(this.#lost_ms, own, theirs, now_ms, limits.settle_ms);
    const back = this.#whyTakenBack((row) =>
      mayHaveBack(this.#standing, { own, primary: readReach(row.reach), trying: probes.isTrying }, now_ms, limits),
    );
    if (back !== null || other === null || !givesUp(this.#standing, this.#led_ms, now_ms, limits)) return back;
    const found = compareReach(own, theirs);
    return `of ${found.all} hosts this server reaches ${found.own}, the server on ${other.host} (pid ${other.pid}) ${found.other}: that server leads from now on`;
  }

  /** The servers that wait and have shown within the time of silence that they are alive. */
  get waiting(): readonly WaitingRow[] {
    return this.#sights.filter(({ is_alive }) => is_alive).map(({ row }) => row);
  }

  /** All servers that wait or have waited, for people. */
  get standbys(): readonly StandbyView[] {
    const offset_ms = Date.now() - performance.now();
    return this.#sights.map(({ row: { role, host, pid }, is_alive, since_ms }) => {
      return { role, host, pid, waits: is_alive, seen_s: Math.floor((offset_ms + since_ms) / 1000) };
    });
  }

  /** Whether this server certainly leads now. */
  get leads(): boolean {
    return this.shared.isConfirmed();
  }

  get leader(): string {
    return leaderText(this.shared.leader());
  }

  /** The leader, when it is certain that it still leads. */
  async confirmedLeader(): Promise<string> {
    await this.shared.confirm();
    return this.leader;
  }

  /** The secrets that the standby server needs; null: PBS_SECONDARY does not name the host, or this server has no key of the two servers. */
  standbyFor(host: string): StandbySecrets | null {
    const key = readPairKey(this.#conf.home);
    const secondary = this.#conf.pair?.secondary.host.toLowerCase();
    const asked = host.toLowerCase();
    if (key === null || secondary === undefined || (secondary !== asked && !secondary.startsWith(`${asked}.`))) return null;
    return { key, database: readFileSync(databaseFile(this.#conf), "utf8") };
  }

  close(): void {
    this.#reach?.probes.close();
    clearInterval(this.#timer);
  }

  #touch(): void {
    if (!this.shared.isConfirmed()) return;
    const path = join(this.#conf.home, "server_priv", "svrlive");
    try {
      closeSync(openSync(path, "a", 0o644));
      const now_s = Date.now() / 1000;
      utimesSync(path, now_s, now_s);
    } catch {
      // The file is only for people. The server reports a full disk or a missing directory elsewhere.
    }
  }
}

/** PBS_PRIMARY and PBS_SECONDARY as pbs.conf has them, for hosts that join; undefined: the complex has one server. */
export function pairSettings({ pair }: Pick<Conf, "pair">): { readonly primary: string; readonly secondary: string } | undefined {
  const text = ({ host, port }: ServerAt): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return pair === null ? undefined : { primary: text(pair.primary), secondary: text(pair.secondary) };
}

/** The name of this host in the complex, and whether the complex belongs to one user (AuthorityOptions.member). */
export const memberOf = ({ pair, mom_node_name, mode }: Conf): { readonly name: string; readonly own: boolean } | null =>
  pair === null ? null : { name: mom_node_name || hostname(), own: mode === "user" };

/** Starts the server of this process again, as a standby (A3). The caller must end this process at once. */
export function startAgain(): void {
  const child = spawn(process.execPath, [...process.execArgv, nth(process.argv, 1), ...process.argv.slice(2)], {
    detached: true,
    argv0: "pbs_server",
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "ignore"],
    env: { ...process.env, [READY_ENV]: String(READY_FD), [AGAIN_ENV]: "1" },
  });
  child.unref();
}
