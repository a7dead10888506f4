// The writing side of a PostgreSQL store: its connection, its term as the leader, and its commits.
//
// Z1. Commits, beats and other writes are done one after the other.
// Z2. If the connection is lost during a commit, the writer connects again, begins a new term and reads the number of the last
//     commit. Only then is the commit acknowledged, or done again. The statement of the lost connection belongs to the former
//     term: it has either taken effect before, or never will.
// Z3. A writer that has lost its term, or finds that commits are missing, ends for good. It reports this once, before the
//     promise of the commit settles.

import { setTimeout as sleep } from "node:timers/promises";
import type { PairRole } from "#protocol/failover/pair-role.ts";
import type { Parameter, Reader } from "../sql-history.ts";
import { type Batch, isStoreError, StoreError } from "../store.ts";
import { BATCH_FUNCTION, textsOf, WRITE_BATCH } from "./batch-function.ts";
import { type Connection, connectDatabase, weaknesses } from "./connection.ts";
import { afterReconnect, type Candidate, isAlive, type LeaderRow, mayTake, mustConfirm, type Sighting, seen } from "./leadership.ts";
import {
  createSchema,
  fence,
  migrate,
  newer,
  readLeader,
  readVersion,
  type SchemaStep,
  VERSION_WITH_REACH,
  VERSION_WITH_SERVERS,
} from "./postgres-schema.ts";
import { type MomPlace, placesText } from "./reach.ts";
import {
  leavesFree,
  leaveWaiting,
  type Order,
  type ReachPort,
  readMomPlaces,
  readWaiting,
  seenServers,
  showWaiting,
  type Waiting,
  type WaitingSight,
  writeMomPlaces,
} from "./servers.ts";
import { type DatabaseSettings, nameOfDatabase } from "./settings.ts";

/** The process that writes. host, pid: shown to the administrator of another server that finds the database taken. */
export type Writing = Candidate & { readonly host: string; readonly pid: number };

export type WriterOptions = {
  readonly settings: DatabaseSettings;
  readonly me: Writing;
  readonly steps: readonly SchemaStep[];
  /** whether open() waits for a database that cannot be reached, or for a leader that may have ended; otherwise it fails at once */
  readonly waits: boolean;
  /** true: waits while another server leads. false: refuses as soon as the other server shows that it is alive */
  readonly stands_by: boolean;
  /** the role of this server in a complex with two servers; null: the complex has one server */
  readonly role: PairRole | null;
  /** called from time to time while this server leads: the servers that wait */
  readonly onServers: (sights: readonly WaitingSight[]) => void;
  /** how this server finds out which hosts of moms it reaches; null: it does not */
  readonly reach: ReachPort | null;
  /** Examines the store before anything is written to it. Throws the refusal. row: null if there is no store yet. */
  readonly examine: (row: LeaderRow | null, name: string) => void;
  readonly onNotice: (text: string) => void;
  /** called once when the writer has ended for good (Z3) */
  readonly onEnd: (error: StoreError) => void;
};

/** Pauses between attempts to reach the database. */
const RETRY_MS = 250;
const RETRY_MS_MAX = 2000;
/** How many times a server that stands by looks at the leader in the time of silence. The pause between two looks can delay a take-over. */
const LOOKS_PER_SILENCE = 14;
/** Interval at which a server repeats in its log that it waits. */
const NOTICE_MS = 60_000;

const now_ms = (): number => performance.now();

export class Writer {
  readonly #options: WriterOptions;
  readonly #name: string;
  #connection: Connection | null = null;
  #leader: LeaderRow;
  /** whether a commit may have taken effect although its answer was lost */
  #is_open = false;
  #ended: StoreError | null = null;
  #closing = new AbortController();
  #tail: Promise<unknown> = Promise.resolve();
  /** when the statement that confirmed the term last was sent */
  #confirmed_ms = now_ms();
  #noticed_ms: number | null = null;
  /** why the last attempt to connect again has failed; null: it has not */
  #trouble: StoreError | null = null;
  #is_beating = false;
  readonly #beats: NodeJS.Timeout;
  #waiting: ReadonlyMap<string, WaitingSight> = new Map();
  /** the hosts of moms that both servers try to reach, as the database has them; null: they were not read yet */
  #places: readonly MomPlace[] | null = null;

  private constructor(options: WriterOptions, connection: Connection, leader: LeaderRow) {
    this.#options = options;
    this.#name = nameOfDatabase(options.settings);
    this.#connection = connection;
    this.#leader = leader;
    this.#beats = setInterval(() => void this.#beat(), options.settings.beat_s * 1000).unref();
  }

  /** Connects, becomes the leader and brings the tables up to date. Rejects with StoreError. */
  static async open(options: WriterOptions, stop: AbortSignal): Promise<Writer> {
    const wait: Wait = { newest: null };
    for (let waited: Waited = null; ; ) {
      try {
        return await Writer.#attempt(options, wait, stop);
      } catch (error) {
        if (!options.waits || stop.aborted || !isStoreError(error) || error.fault !== "away") throw error;
        waited = noticed(waited, error.message, options.onNotice);
        await pause(RETRY_MS_MAX, stop);
      }
    }
  }

  static async #attempt(options: WriterOptions, wait: Wait, stop: AbortSignal): Promise<Writer> {
    const { settings, steps, onNotice } = options;
    const connection = await connectDatabase(settings, "writer");
    try {
      let version = await readVersion(connection, settings.schema);
      options.examine(version === null ? null : await readLeader(connection), connection.name);
      if (version === null) {
        await createSchema(connection, settings.schema);
        version = (await readVersion(connection, settings.schema)) ?? 0;
      }
      if (version > steps.length) throw newer(connection, version, steps.length);
      const shows = showsItself(options, version);
      const leader = await lead(connection, options, { wait, shows }, stop);
      // The former leader may have changed the tables while this server waited.
      version = (await readVersion(connection, settings.schema)) ?? version;
      options.examine(leader, connection.name);
      await migrate(connection, version, steps, leader.term, onNotice);
      await connection.exec(`${fence(leader.term)}; ${BATCH_FUNCTION}`);
      for (const text of await weaknesses(connection)) onNotice(text);
      if (options.role !== null) await beginLead(connection, options.me, options.role);
      return new Writer(options, connection, leader);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** The number of the store, and of its last commit that is known. */
  get standing(): { readonly store: number; readonly commit: number } {
    return { store: this.#leader.store, commit: this.#leader.last_commit };
  }

  /** The present term of this leader. */
  get term(): number {
    return this.#leader.term;
  }

  /** Whether the term was confirmed so recently that no other server can lead (leadership.ts E4). */
  get isConfirmed(): boolean {
    return this.#ended === null && !mustConfirm(this.#confirmed_ms, now_ms(), this.#options.settings.silence_s * 1000);
  }

  /** Resolves when isConfirmed is true. Rejects with StoreError: `away` after the time of patience; `deposed`. */
  confirm(): Promise<void> {
    return this.#inTime((deadline_ms) => this.#mustLead(deadline_ms));
  }

  /** Gives the order to all servers that wait, or to the waiting servers of one role. */
  order(order: Order, role: PairRole | null): Promise<void> {
    return this.transaction(async (writer) => {
      const { holder } = this.#options.me;
      if (role === null) await writer.all("UPDATE servers SET orders = ? WHERE holder <> ?", order, holder);
      else await writer.all("UPDATE servers SET orders = ? WHERE role = ? AND holder <> ?", order, role, holder);
    });
  }

  /**
   * Writes a batch. Resolves with the number of the commit, or null if there was nothing to write. Rejects with StoreError; `away`: the database could not be
   * reached for the time of patience, and the batch may have been written.
   */
  commit(batch: Batch): Promise<number | null> {
    const texts = textsOf(batch);
    if (texts === null) return Promise.resolve(null);
    return this.#inTime(async (deadline_ms) => {
      await this.#connected(deadline_ms);
      const number = this.#leader.last_commit + 1;
      for (;;) {
        const connection = await this.#connected(deadline_ms);
        if (this.#leader.last_commit === number) break;
        this.#is_open = true;
        const begun_ms = now_ms();
        try {
          await connection.all(WRITE_BATCH, this.#leader.term, number, ...texts);
          this.#is_open = false;
          this.#confirmed(begun_ms, number);
          break;
        } catch (error) {
          if (connection.isLost()) continue;
          this.#is_open = false;
          throw this.#failed(error, connection);
        }
      }
      await this.#mustLead(deadline_ms);
      return number;
    });
  }

  /** Does reads on the writing connection, after everything that was written before. Between the reads, the leader shows that it is alive. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    return this.#inTime(async (deadline_ms) => {
      const connection = await this.#connected(deadline_ms);
      try {
        return await work(this.#livingReader(connection));
      } catch (error) {
        throw this.#failed(error, connection);
      }
    });
  }

  /** A reader for many reads in one turn. No beat gets a turn during this time, so the reader does the beats itself, over the same connection. */
  #livingReader(connection: Connection): Reader {
    const beat_ms = this.#options.settings.beat_s * 1000;
    return {
      name: connection.name,
      all: async <T>(sql: string, ...values: readonly Parameter[]): Promise<T[]> => {
        if (now_ms() - this.#confirmed_ms > beat_ms) await this.#confirmOver(connection);
        return connection.all<T>(sql, ...values);
      },
    };
  }

  /** Does work as one transaction, in which the term cannot end. */
  transaction<T>(work: (writer: Reader) => Promise<T>): Promise<T> {
    return this.#inTime(async (deadline_ms) => {
      const connection = await this.#connected(deadline_ms);
      try {
        await connection.exec("BEGIN");
        await connection.exec(fence(this.#leader.term));
        const result = await work(connection);
        await connection.exec("COMMIT");
        return result;
      } catch (error) {
        if (!connection.isLost()) await connection.exec("ROLLBACK").catch(() => undefined);
        throw this.#failed(error, connection);
      }
    });
  }

  /** Makes operations that wait for the database fail soon. */
  hurry(): void {
    this.#closing.abort();
  }

  /** Gives up the leadership and closes the connection. */
  close(): Promise<void> {
    this.hurry();
    clearInterval(this.#beats);
    return this.#inTurn(async () => {
      const connection = this.#connection;
      if (connection === null) return;
      const release = "UPDATE leader SET holder = NULL, instance = NULL, host = NULL, pid = NULL WHERE term = ?";
      if (!connection.isLost()) await connection.all(release, this.#leader.term).catch(() => undefined);
      await connection.close();
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work, work);
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /**
   * Does work in its turn. The time of patience begins now. If it ends before the turn comes and the connection is lost, the work
   * fails without an attempt to connect: otherwise each piece of waiting work would add the time of an attempt.
   */
  #inTime<T>(work: (deadline_ms: number) => Promise<T>): Promise<T> {
    const deadline_ms = now_ms() + this.#options.settings.patience_s * 1000;
    return this.#inTurn(async () => {
      const is_lost = this.#connection?.isLost() !== false;
      if (this.#ended === null && is_lost && this.#trouble !== null && now_ms() > deadline_ms) throw awayFor(this.#trouble);
      return work(deadline_ms);
    });
  }

  /** The connection. If it is lost, connects again until the deadline. */
  async #connected(deadline_ms: number): Promise<Connection> {
    for (let pause_ms = RETRY_MS; ; pause_ms = Math.min(2 * pause_ms, RETRY_MS_MAX)) {
      if (this.#ended !== null) throw this.#ended;
      if (this.#connection?.isLost() === false) return this.#connection;
      if (this.#closing.signal.aborted)
        throw awayFor(this.#trouble ?? new StoreError("away", `${this.#name}: the connection to the database was lost`));
      try {
        return await this.#reconnect();
      } catch (error) {
        if (this.#ended !== null || !isStoreError(error)) throw error;
        // The server has started, and an administrator may repair any fault of the login: so the login is tried again, whatever the fault.
        this.#noticed_ms = noticed(this.#noticed_ms, error.message, this.#options.onNotice);
        this.#trouble = error;
        if (this.#closing.signal.aborted || now_ms() + pause_ms > deadline_ms) throw awayFor(error);
        await pause(pause_ms, this.#closing.signal);
      }
    }
  }

  async #reconnect(): Promise<Connection> {
    const connection = await connectDatabase(this.#options.settings, "writer");
    try {
      const begun_ms = now_ms();
      const leader = await takeAgain(connection, this.#options.me);
      if (leader === null) throw this.#end(await deposedBy(connection));
      const { last_commit: known, store } = this.#leader;
      const found = leader.store === store ? afterReconnect(leader.last_commit, known, this.#is_open) : "lost";
      if (found === "lost" || found === "foreign") throw this.#end(missing(connection.name, found, leader.last_commit, known));
      this.#leader = leader;
      this.#is_open = false;
      this.#confirmed_ms = begun_ms;
      this.#connection = connection;
      if (this.#noticed_ms !== null) this.#options.onNotice(`${connection.name} answers again`);
      this.#noticed_ms = null;
      this.#trouble = null;
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  #confirmed(begun_ms: number, last_commit: number): void {
    this.#confirmed_ms = begun_ms;
    this.#leader = { ...this.#leader, last_commit };
  }

  /** Confirms the term if its last confirmation is too old for acting on a commit (leadership.ts E4). */
  async #mustLead(deadline_ms: number): Promise<void> {
    const silence_ms = this.#options.settings.silence_s * 1000;
    while (mustConfirm(this.#confirmed_ms, now_ms(), silence_ms)) {
      // If every answer comes too late, none proves that this server still leads. Then the batch is written, but the server must not act on it.
      if (now_ms() > deadline_ms) throw new StoreError("away", `${this.#name}: the database answers too slowly`);
      await this.#confirm(deadline_ms);
    }
  }

  async #confirm(deadline_ms: number): Promise<void> {
    await this.#confirmOver(await this.#connected(deadline_ms));
  }

  async #confirmOver(connection: Connection): Promise<void> {
    const begun_ms = now_ms();
    try {
      const rows = await connection.all("UPDATE leader SET beat = beat + 1 WHERE term = ? RETURNING term", this.#leader.term);
      if (rows.length === 0) throw this.#end(await deposedBy(connection));
      this.#confirmed_ms = begun_ms;
    } catch (error) {
      if (!connection.isLost()) throw error;
    }
  }

  async #beat(): Promise<void> {
    const beat_ms = this.#options.settings.beat_s * 1000;
    if (this.#options.role !== null) void this.#lookAtServers();
    // While the database does not answer, a beat takes longer than the interval. At most one beat waits for its turn.
    if (this.#is_beating || this.#ended !== null || now_ms() - this.#confirmed_ms < beat_ms / 2) return;
    this.#is_beating = true;
    // A fault is reported by #connected, or by the next commit.
    await this.#inTurn(() => this.#confirm(now_ms())).catch(() => undefined);
    this.#is_beating = false;
  }

  #is_looking = false;

  /** Looks at the servers that wait. A fault of the database is reported by the next beat. */
  async #lookAtServers(): Promise<void> {
    const connection = this.#connection;
    if (this.#is_looking || this.#ended !== null || connection === null || connection.isLost()) return;
    this.#is_looking = true;
    try {
      const { settings, me, onServers, reach } = this.#options;
      const rows = (await readWaiting(connection)).filter(({ holder }) => holder !== me.holder);
      this.#waiting = seenServers(this.#waiting, rows, now_ms(), settings.silence_s * 1000);
      if (reach !== null) await this.#chooseHosts(connection, reach);
      onServers([...this.#waiting.values()]);
    } catch (error) {
      if (!isStoreError(error)) throw error;
    } finally {
      this.#is_looking = false;
    }
  }

  /** Keeps the list of the hosts of moms that both servers try to reach. */
  async #chooseHosts(connection: Connection, reach: ReachPort): Promise<void> {
    const present = this.#places ?? (await readMomPlaces(connection));
    const wanted = reach.places(present);
    const text = placesText(wanted);
    if (text !== placesText(present)) await writeMomPlaces(connection, text, this.#leader.term);
    this.#places = wanted;
    reach.ask([...this.#waiting.values()].some(({ is_alive }) => is_alive) ? wanted : []);
  }

  /** The error for a statement that the database has undone. A database that accepts no writes may have a successor: the connection is made again. */
  #failed(error: unknown, connection: Connection): unknown {
    if (!isStoreError(error)) return error;
    if (error.fault === "deposed") return this.#end(error);
    if (error.fault === "permission") void connection.close();
    return error;
  }

  #end(error: StoreError): StoreError {
    if (this.#ended !== null) return this.#ended;
    this.#ended = error;
    clearInterval(this.#beats);
    this.#options.onEnd(error);
    return error;
  }
}

const awayFor = (error: StoreError): StoreError => new StoreError("away", error.message, error);

/** When the log was last told that the server waits; null: it was not. */
type Waited = number | null;

/** Writes into the log that the database cannot be reached: at first, and then from time to time. */
function noticed(before: Waited, message: string, onNotice: (text: string) => void): Waited {
  if (before !== null && now_ms() - before < NOTICE_MS) return before;
  onNotice(`waiting for the database: ${message}`);
  return now_ms();
}

const pause = (delay_ms: number, stop: AbortSignal): Promise<unknown> =>
  sleep(delay_ms, undefined, { signal: stop }).catch(() => undefined);

/** What a waiting server remembers when it loses its connection. newest: the row of the leader with the most commits that this server has seen. */
type Wait = { newest: LeaderRow | null };
/** shows: how this server shows that it waits; null: it does not */
type Waiter = { readonly wait: Wait; readonly shows: Waiting | null };

/** What the row of a server that waits says, as far as tables of this version have a place for it; null: they have no such row, or the complex has one server. */
function showsItself({ role, me, reach }: WriterOptions, version: number): Waiting | null {
  if (role === null || version < VERSION_WITH_SERVERS) return null;
  return { ...me, role, reach: version < VERSION_WITH_REACH ? null : reach };
}

/** The other servers that wait. before: what earlier looks have shown */
async function lookAtRivals(
  connection: Connection,
  me: Waiting,
  before: ReadonlyMap<string, WaitingSight>,
  silence_ms: number,
): Promise<ReadonlyMap<string, WaitingSight>> {
  const rows = await readWaiting(connection, me.reach !== null);
  return seenServers(
    before,
    rows.filter(({ holder }) => holder !== me.holder),
    now_ms(),
    silence_ms,
  );
}

/** Becomes the leader, perhaps after the silence of the present one. Rejects with `locked` if the present leader is alive, with `dismissed` if this server must end. */
async function lead(connection: Connection, options: WriterOptions, { wait, shows }: Waiter, stop: AbortSignal): Promise<LeaderRow> {
  const { me, settings, waits, stands_by, onNotice } = options;
  const silence_ms = settings.silence_s * 1000;
  const look_ms = stands_by ? silence_ms / LOOKS_PER_SILENCE : settings.beat_s * 1000;
  const first = await readLeader(connection);
  let sighting: Sighting | null = null;
  let told = "";
  let rivals: ReadonlyMap<string, WaitingSight> = new Map();
  for (;;) {
    const order = shows === null ? null : await showWaiting(connection, shows);
    if (order === "stop") throw await dismissed(connection, me);
    const row = sighting === null && order === null ? first : await readLeader(connection);
    if (!stands_by && isAlive(first, row)) throw taken(connection.name, row);
    if (wait.newest !== null && row.store === wait.newest.store && row.last_commit < wait.newest.last_commit)
      throw missing(connection.name, "lost", row.last_commit, wait.newest.last_commit);
    wait.newest = row;
    sighting = seen(sighting, row, now_ms());
    const decision = mayTake(me, sighting, now_ms(), silence_ms);
    if (stop.aborted) throw taken(connection.name, row);
    if (order === "idle") {
      told = tell(told, `waiting: this server is idle until the primary leads again (qterm -i)`, onNotice);
      await pause(look_ms, stop);
    } else if (decision.kind === "again") {
      const leader = await takeAgain(connection, me);
      if (leader !== null) return leader;
    } else if (decision.kind === "take" && decision.why === "nobody leads" && shows !== null) {
      rivals = await lookAtRivals(connection, shows, rivals, silence_ms);
      const is_left = leavesFree(shows, [...rivals.values()], { free_ms: now_ms() - sighting.since_ms, look_ms, silence_ms });
      const leader = is_left ? null : await takeFrom(connection, row, me, true);
      if (leader !== null) return leader;
      if (is_left) await pause(look_ms, stop);
    } else if (decision.kind === "take") {
      const leader = await takeFrom(connection, row, me, shows !== null);
      if (leader !== null) return leader;
    } else {
      if (!waits) throw taken(connection.name, row);
      const leads = `waiting: ${whoOf(row)} leads`;
      const silent = `waiting up to ${settings.silence_s} s for a sign of life: ${connection.name} was used by ${whoOf(row)}`;
      told = tell(told, stands_by ? leads : silent, onNotice);
      await pause(Math.min(look_ms, Math.max(0, decision.until_ms - now_ms())), stop);
    }
  }
}

/** Tells a text unless it is the one that was told last. Returns it. */
function tell(told: string, text: string, onNotice: (text: string) => void): string {
  if (told !== text) onNotice(text);
  return text;
}

async function dismissed(connection: Connection, me: Candidate): Promise<StoreError> {
  await leaveWaiting(connection, me);
  return new StoreError("dismissed", `${connection.name}: the server that leads has told this one to end`);
}

/** Called when a server has begun to lead: it waits no longer, and a primary cancels the order that keeps its secondary idle. */
async function beginLead(connection: Connection, me: Candidate, role: PairRole): Promise<void> {
  await leaveWaiting(connection, me);
  if (role === "primary") await connection.all("UPDATE servers SET orders = NULL WHERE orders = 'idle'");
}

const whoOf = ({ host, pid }: LeaderRow): string => `the server on ${host ?? "an unknown host"} (pid ${pid ?? "unknown"})`;
const taken = (name: string, row: LeaderRow): StoreError => new StoreError("locked", `${name}: ${whoOf(row)} uses this database`);

const LEADER_COLUMNS = "store, term, last_commit, beat, holder, instance, host, pid";

/**
 * Becomes the leader if the row is still as it was seen (leadership.ts E3), and if there is no order against it (servers.ts V2).
 * null: the row has changed meanwhile, or there is such an order. shows: whether this server shows that it waits
 */
async function takeFrom(connection: Connection, row: LeaderRow, me: Writing, shows: boolean): Promise<LeaderRow | null> {
  const unless = shows ? "AND NOT EXISTS (SELECT 1 FROM servers WHERE instance = ? AND orders IS NOT NULL)" : "";
  const [taken] = await connection.all<LeaderRow>(
    `UPDATE leader SET term = term + 1, beat = 0, holder = ?, instance = ?, host = ?, pid = ? WHERE term = ? AND last_commit = ? AND beat = ? ${unless}
     RETURNING ${LEADER_COLUMNS}`,
    me.holder,
    me.instance,
    me.host,
    me.pid,
    row.term,
    row.last_commit,
    row.beat,
    ...(shows ? [me.instance] : []),
  );
  return taken ?? null;
}

/** Begins a new term of the same leader. null: another server has taken over. */
async function takeAgain(connection: Connection, me: Writing): Promise<LeaderRow | null> {
  const [taken] = await connection.all<LeaderRow>(
    `UPDATE leader SET term = term + 1, beat = 0 WHERE instance = ? RETURNING ${LEADER_COLUMNS}`,
    me.instance,
  );
  return taken ?? null;
}

async function deposedBy(connection: Connection): Promise<StoreError> {
  const row = await readLeader(connection).catch(() => null);
  const who = row === null || row.holder === null ? "another server" : whoOf(row);
  return new StoreError("deposed", `${connection.name}: ${who} has taken this database`);
}

function missing(name: string, found: "lost" | "foreign", last_commit: number, known: number): StoreError {
  return found === "lost"
    ? new StoreError(
        "lost",
        `${name}: the database has ${last_commit} commits, but ${known} were acknowledged (was a standby without them promoted?)`,
      )
    : new StoreError(
        "corrupt",
        `${name}: the database has ${last_commit} commits, but only ${known} were made: another program has written to it`,
      );
}
