// Asks one backend for what the plan wants: lists its runners, submits orders, cancels, releases. One call is under way at a time.
//
// L1. A backend is asked again for ever: after a fault with a pause (src/backends/contract/backoff.ts), otherwise whenever the picture changes and every runner_resync_interval.
//     While runners are expected to come or to go, the backend is also asked LOOK_MS_FIRST after the last change of the picture, then after twice as long, and so on.
// L2. The server is told of a fault at once, in the backend's own words, and is also told when the fault is over.
// L3. Exactly once: the server has recorded the runners before they are submitted. If a submission ends without a clear answer, it is repeated with the same tag, and the backend
//     looks for the tag first.
// L4. While the backend fails and its fallback is `local`, new runners are started on this machine. The state of the runners that the failing backend has counts as
//     unknown until it answers again; then it is asked for new runners again. A backend that takes no more runners at present (a quota, a number of jobs) has not
//     failed: jobs wait for it. The runners on this machine are looked at as long as there are any, also by a later process.

import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Backend, Owner, RunnerOrder, RunnerSighting } from "#backends/contract/backend.ts";
import { pauseAfter } from "#backends/contract/backoff.ts";
import { BackendError, type FaultKind } from "#backends/contract/fault.ts";
import type { BackendSettings } from "#backends/contract/settings.ts";
import { isTagOf, makeTag, parseTag } from "#backends/contract/tag.ts";
import { jobOptions } from "#model/request/backend-options.ts";
import type { Bucket } from "#model/request/bucket.ts";
import { type BackendWork, type RunnersToServer, type RunnerWork, runnerName } from "#protocol/runner-link.ts";
import { messageOf } from "#support/caught.ts";
import type { Plan, PlanBackend } from "./plan.ts";
import { reconcile } from "./reconcile.ts";

export type LoopTools = {
  /** identifies the complex in tags */
  readonly complex: string;
  /** user mode: the user of the complex, to whom all runners belong; null: system mode */
  readonly user: string | null;
  /** runner_priv */
  readonly directory: string;
  /** the program of a runner with its arguments, and its environment */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** the shortest time between two looks at a backend other than this machine; absent: PAUSE_MS_MIN */
  readonly pause_ms_min?: number;
  /** system mode: the identity of a user; null: the user is unknown here, or is root */
  ownerOf(name: string): Owner | null;
  /** opens a backend; throws a BackendError if its attributes cannot be right */
  open(settings: BackendSettings): Backend;
  send<T extends keyof RunnersToServer>(type: T, data: RunnersToServer[T]): void;
  /** asks the server to record runners; null: it did not */
  record(ask: Omit<RunnersToServer["runners-ask"], "token">): Promise<number | null>;
  note(text: string): void;
  /** called when the backend can never run a runner of a bucket */
  refused(partition: string, bucket: string, why: string): void;
  /** called when something has changed, so that a plan must be made again */
  changed(): void;
};

type Source = { readonly backend: Backend; readonly diverted: boolean };
type Listed = { readonly sightings: readonly RunnerSighting[]; readonly whole: boolean };
type Pending = { readonly order: RunnerOrder; readonly source: Source; readonly names: readonly string[]; readonly bucket: string };

const RESYNC_S_DEFAULT = 60;
const WALLTIME_S_DEFAULT = 3600;
/** What a runner needs of its life besides the walltime of a job: to start, to deliver files, and the margin in which the server gives it no job. */
const LIFE_SPARE_S = 180;
/** The life of a runner whose jobs have no limit of time. */
const LIFE_ENDLESS_S = 366 * 86_400;
/** After the backend has refused a bucket, it is asked for no runners of this bucket for this time. */
const REFUSED_MS = 60_000;
const TOKEN_BYTES = 32;
/** How often the runners of the spare are looked at. The spare is the local backend that is used while the main one fails (L4). */
const SPARE_MS = 2000;
/** L1 */
const LOOK_MS_FIRST = 2000;
/** The shortest time between two looks at a backend that is not this machine itself: the picture changes with each job, and a list may take the backend much work. */
const PAUSE_MS_MIN = 500;

export class BackendLoop {
  readonly #tools: LoopTools;
  #work: BackendWork;
  #opened_for = "";
  #main: Source | null = null;
  #spare: Source | null = null;
  /** the fault of the last call; null: it worked */
  #fault: { readonly kind: FaultKind; readonly text: string } | null = null;
  #failures = 0;
  #told: string | null | undefined = undefined;
  /** the reasons that the server was told last, as text */
  #said = "";
  #next_ms = 0;
  #busy = false;
  #passing: Promise<void> = Promise.resolve();
  #again = false;
  /** when the last look began */
  #looked_ms = Number.NEGATIVE_INFINITY;
  /** looks since the picture of the runners changed, and that picture (L1) */
  #looks = 0;
  #pictured = "";
  /** whether runners are expected to come or to go */
  #is_moving = false;
  #closed = false;
  #strangers: ReadonlyMap<string, number> = new Map();
  #seen: ReadonlyMap<string, RunnerSighting> = new Map();
  /** the owners of the orders in the last picture, by serial */
  #owners: ReadonlyMap<number, string> = new Map();
  #is_empty = false;
  readonly #refused = new Map<string, number>();
  /** orders that were submitted without a clear answer, by tag */
  readonly #uncertain = new Map<string, Pending>();
  readonly #submitting = new Set<string>();
  readonly #tags = new Set<string>();
  /** serials of orders that went to the spare */
  readonly #of_spare = new Set<number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(work: BackendWork, tools: LoopTools) {
    this.#work = work;
    this.#tools = tools;
  }

  /** Returns what the plan must know of the backend. */
  planned(now_ms: number): PlanBackend {
    const { name, partition, attrs } = this.#work;
    for (const [key, until_ms] of this.#refused) if (until_ms <= now_ms) this.#refused.delete(key);
    return {
      name,
      partition,
      enabled: attrs["enabled"] === true,
      max_runners: Number(attrs["max_runners"] ?? 0),
      n_max_queued: Number(attrs["n_max_queued_jobs"] ?? 10),
      refused: new Set(this.#refused.keys()),
      asks: this.#fault === null ? this.#main !== null : this.#spareWanted,
    };
  }

  /** Whether runners are started on this machine while the backend fails (L4). */
  get #mayFallBack(): boolean {
    const { type, fallback } = this.#work.attrs;
    return type !== "local" && (fallback ?? "local") === "local";
  }

  get #spareWanted(): boolean {
    return this.#fault !== null && this.#fault.kind !== "limit" && this.#mayFallBack;
  }

  /** Called with each new picture. runners: the runners of this backend. Looks at the backend, unless it is in a pause. */
  update(work: BackendWork, runners: readonly RunnerWork[], plan: () => Plan): void {
    this.#work = work;
    if (this.#closed) return;
    this.#owners = new Map(runners.map(({ serial, bucket }) => [serial, bucket.owner]));
    // Somebody has changed attributes of the backend object, perhaps to remove the fault.
    if (this.#fault !== null && this.#attributes !== this.#opened_for) this.#next_ms = 0;
    if (this.#busy) {
      this.#again = true;
      return;
    }
    const now_ms = Date.now();
    if (this.#rests && !this.#spareWanted) return this.#wake(this.#next_ms - now_ms);
    const pictured = runners.map(({ name, doing, away }) => `${name} ${doing} ${away === true}`).join();
    if (pictured !== this.#pictured) this.#looks = 0;
    this.#pictured = pictured;
    const pause_ms = work.attrs["type"] === "local" ? 0 : this.#looked_ms + (this.#tools.pause_ms_min ?? PAUSE_MS_MIN) - performance.now();
    if (pause_ms > 0) return this.#wake(pause_ms);
    this.#looked_ms = performance.now();
    this.#busy = true;
    this.#passing = this.#pass(runners, plan).finally(() => {
      this.#busy = false;
      const resync_ms = Number(work.attrs["runner_resync_interval"] ?? RESYNC_S_DEFAULT) * 1000;
      if (this.#fault === null) this.#wake(this.#is_moving ? Math.min(resync_ms, LOOK_MS_FIRST * 2 ** this.#looks++) : resync_ms);
      else this.#wake(this.#spareWanted ? SPARE_MS : Math.max(0, this.#next_ms - Date.now()));
      if (!this.#again) return;
      this.#again = false;
      this.#tools.changed();
    });
  }

  /** Whether the last list of the backend was whole and had no living runner, and no order is under way or uncertain. */
  get isEmpty(): boolean {
    return this.#is_empty && this.#fault === null && !this.#busy && this.#uncertain.size === 0 && this.#submitting.size === 0;
  }

  /** Resolves when the loop asks nothing. */
  idle(): Promise<void> {
    return this.#passing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.allSettled([this.#main?.backend.close(), this.#spare?.backend.close()]);
  }

  #wake(delay_ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tools.changed(), delay_ms);
  }

  /** Whether the backend failed and is not asked again yet. */
  get #rests(): boolean {
    return this.#fault !== null && Date.now() < this.#next_ms;
  }

  async #pass(runners: readonly RunnerWork[], plan: () => Plan): Promise<void> {
    try {
      const sightings = await this.#list();
      await this.#settle(runners, sightings);
      await this.#repeatUncertain();
      await this.#carryOut(plan());
      if (this.#fault === null) this.#works();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Returns the attributes that people have set, as one text for comparisons. */
  get #attributes(): string {
    const { state: _state, last_error: _error, last_error_time: _time, ...attributes } = this.#work.attrs;
    return JSON.stringify(attributes);
  }

  async #open(): Promise<void> {
    const text = this.#attributes;
    if (this.#main !== null && text === this.#opened_for) return;
    await this.#main?.backend.close();
    this.#main = null;
    this.#opened_for = text;
    const backend = this.#tools.open(this.#settings(""));
    this.#main = { backend, diverted: false };
    const own = { complex: this.#tools.complex, backend: this.#work.name };
    for (const tag of backend.kept?.() ?? []) if (isTagOf(tag, own)) this.#tags.add(tag);
  }

  #directoryOf(suffix: "" | "local"): string {
    const { name } = this.#work;
    return join(this.#tools.directory, suffix === "" ? name : `${name}.${suffix}`);
  }

  #settings(suffix: "" | "local"): BackendSettings {
    const { name, attrs } = this.#work;
    const state_dir = this.#directoryOf(suffix);
    mkdirSync(state_dir, { recursive: true, mode: 0o711 });
    const { complex, user } = this.#tools;
    if (suffix === "local") return { name, type: "local", complex, user, attributes: {}, state_dir };
    return {
      name,
      type: attrs["type"] as BackendSettings["type"],
      complex,
      user,
      attributes: attrs as BackendSettings["attributes"],
      state_dir,
    };
  }

  /** Lists the runners of the backend and of its spare. whole false: the backend itself was not asked or did not answer (L4). */
  async #list(): Promise<Listed> {
    const spare = await this.#listSpare();
    if (this.#rests) return { sightings: spare, whole: false };
    try {
      await this.#open();
      const main = ((await this.#main?.backend.list()) ?? []).filter((each) => this.#isOurs(each));
      this.#fault = null;
      return { sightings: [...main, ...spare], whole: true };
    } catch (error) {
      if (!this.#mayFallBack) throw error;
      this.#failed(error);
      return { sightings: await this.#listSpare(), whole: false };
    }
  }

  /** Lists the runners of the spare. If an earlier process has started some, its directory is there. */
  async #listSpare(): Promise<readonly RunnerSighting[]> {
    if (this.#spare === null && (this.#spareWanted || existsSync(this.#directoryOf("local"))))
      this.#spare = { backend: this.#tools.open(this.#settings("local")), diverted: true };
    const sightings = ((await this.#spare?.backend.list()) ?? []).filter((each) => this.#isOurs(each));
    for (const { tag } of sightings) this.#of_spare.add(parseTag(tag)?.serial ?? 0);
    return sightings;
  }

  /**
   * Whether a sighting is a runner of this backend. Any user can give a job a name that looks like a tag, so it must belong to the owner of the order. A sighting of an order
   * that the server does not have any more has no owner; it is cancelled with the rights of its own user only.
   */
  #isOurs({ tag, user }: RunnerSighting): boolean {
    const { complex, user: own } = this.#tools;
    if (!isTagOf(tag, { complex, backend: this.#work.name })) return false;
    return user === null || user === (own ?? this.#owners.get(parseTag(tag)?.serial ?? 0) ?? user);
  }

  async #settle(all: readonly RunnerWork[], { sightings, whole }: Listed): Promise<void> {
    const { send, note } = this.#tools;
    const done = reconcile({
      runners: whole ? all : all.filter(({ serial }) => this.#of_spare.has(serial)),
      sightings,
      tagOf: (serial) => this.#tagOf(serial),
      submitting: new Set([...this.#submitting, ...this.#uncertain.keys()]),
      known_tags: this.#tags,
      strangers: this.#strangers,
      now_ms: Date.now(),
    });
    this.#is_empty = false;
    this.#is_moving = done.strangers.size > 0 || all.some(({ doing, away }) => doing === "asked" || doing === "lost" || away === true);
    this.#strangers = done.strangers;
    this.#seen = done.seen;
    const reasons = Object.fromEntries([...done.seen.keys()].map((name) => [name, done.reasons[name] ?? ""]));
    const said = JSON.stringify(reasons);
    if (Object.keys(done.remotes).length > 0 || said !== this.#said) send("runners-seen", { remotes: done.remotes, reasons });
    this.#said = said;
    if (done.gone.length > 0) send("runners-gone", { runners: done.gone });
    if (!whole) return;
    if (done.cancel.length > 0) {
      note(`backend ${this.#work.name}: ${done.cancel.length} runners without a record are cancelled`);
      await this.#cancel(done.cancel, false);
    }
    for (const tag of done.release) {
      for (const source of [this.#main, this.#spare]) await source?.backend.release(tag);
      this.#tags.delete(tag);
    }
    this.#is_empty = all.length === 0 && sightings.every(({ state }) => state === "ended");
  }

  async #cancel(sightings: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    for (const source of [this.#main, this.#spare]) await source?.backend.cancel(sightings, { queued_only });
  }

  async #repeatUncertain(): Promise<void> {
    for (const [tag, pending] of [...this.#uncertain]) {
      // The backend may have been opened anew since, with attributes that mend the fault.
      const source = pending.source.diverted ? this.#spare : this.#main;
      if (source === null) continue;
      this.#uncertain.delete(tag);
      try {
        await this.#submit({ ...pending, source, order: { ...pending.order, isFirst: false } });
      } catch (error) {
        if (!this.#mayFallBack) throw error;
        // Meanwhile the spare is asked for runners.
        return this.#failed(error);
      }
    }
  }

  async #carryOut({ asks, cancels, drains }: Plan): Promise<void> {
    const { name } = this.#work;
    if (drains.length > 0) this.#tools.send("runners-drain", { names: drains });
    const sightings = cancels.flatMap((runner) => this.#seen.get(runner) ?? []).filter(({ state }) => state === "queued");
    if (sightings.length > 0) {
      await this.#cancel(sightings, true);
      this.#again = true;
    }
    for (const ask of asks) if (ask.backend === name) await this.#ask(ask.bucket, ask.count, ask.priority);
  }

  async #ask(bucket: Bucket, count: number, priority: number): Promise<void> {
    const source = this.#rests ? this.#spare : this.#main;
    if (source === null) return;
    const { name: backend, attrs } = this.#work;
    const options = this.#optionsFor(bucket);
    if (options === null) return;
    const owner = this.#tools.user === null ? this.#tools.ownerOf(bucket.owner) : null;
    if (this.#tools.user === null && owner === null)
      return this.#refuse(bucket.key, `${bucket.owner} is no user of the server's host who may have runners (root may not)`);
    const least_s = Number(attrs["runner_walltime"] ?? WALLTIME_S_DEFAULT);
    const life_s = bucket.walltime_s === null ? LIFE_ENDLESS_S : Math.max(least_s, bucket.walltime_s + LIFE_SPARE_S);
    const tokens = Array.from({ length: count }, () => randomBytes(TOKEN_BYTES).toString("hex"));
    const digests = tokens.map((token) => createHash("sha256").update(token).digest("hex"));
    const serial = await this.#tools.record({ backend, bucket: bucket.key, life_s, digests });
    if (serial === null) return;
    if (source.diverted) this.#of_spare.add(serial);
    const tag = this.#tagOf(serial);
    const order: RunnerOrder = {
      tag,
      isFirst: true,
      count,
      owner,
      argv: this.#tools.argv,
      env: this.#tools.env,
      tokens,
      request: {
        ncpus: bucket.ncpus,
        mem_kb: bucket.mem_kb === 0 ? null : bucket.mem_kb,
        tmp_kb: bucket.tmp_kb === 0 ? null : bucket.tmp_kb,
        walltime_s: life_s,
        resources: bucket.resources,
        options,
        diverted: source.diverted,
      },
      wish: { start_s: null, priority },
    };
    await this.#submit({ order, source, names: tokens.map((_, index) => runnerName(backend, serial, index)), bucket: bucket.key });
  }

  /** The options of a bucket's jobs for this backend; null: the backend does not take them. The server has checked them, but another backend of the partition may be meant. */
  #optionsFor(bucket: Bucket): Readonly<Record<string, string>> | null {
    if (bucket.options === undefined) return {};
    const { type, backend_opts_allowed: allowed } = this.#work.attrs;
    try {
      return jobOptions(String(type), Array.isArray(allowed) ? allowed.map(String) : undefined, bucket.options);
    } catch (error) {
      this.#refuse(bucket.key, messageOf(error));
      return null;
    }
  }

  /** Records that this bucket cannot be run. The other buckets are not affected. */
  #refuse(bucket: string, why: string): void {
    this.#refused.set(bucket, Date.now() + REFUSED_MS);
    this.#tools.note(`backend ${this.#work.name} cannot run ${bucket}: ${why}`);
    this.#tools.refused(this.#work.partition, bucket, why);
  }

  async #submit(pending: Pending): Promise<void> {
    const { order, source, names, bucket } = pending;
    const { tag } = order;
    const { send } = this.#tools;
    this.#tags.add(tag);
    this.#is_empty = false;
    this.#submitting.add(tag);
    try {
      const sightings = await source.backend.submit(order);
      const remotes = Object.fromEntries(sightings.flatMap(({ index, id }) => (names[index] === undefined ? [] : [[names[index], id]])));
      send("runners-seen", { remotes });
    } catch (error) {
      if (error instanceof BackendError && error.uncertain) {
        this.#uncertain.set(tag, pending);
        throw error;
      }
      const why = messageOf(error);
      send("runners-gone", { runners: names.map((name) => ({ name, why })) });
      if (!(error instanceof BackendError) || error.kind !== "impossible") throw error;
      this.#refuse(bucket, why);
    } finally {
      this.#submitting.delete(tag);
    }
  }

  #tagOf(serial: number): string {
    return makeTag({ complex: this.#tools.complex, backend: this.#work.name, serial });
  }

  // --- faults (L1, L2)

  #works(): void {
    this.#failures = 0;
    this.#tell(null);
  }

  #failed(error: unknown): void {
    const kind = error instanceof BackendError ? error.kind : "transient";
    const text = messageOf(error);
    this.#fault = { kind, text };
    this.#failures++;
    this.#next_ms = Date.now() + pauseAfter(kind, this.#failures, Math.random());
    this.#tell(text);
  }

  #tell(error: string | null): void {
    if (this.#told === error) return;
    this.#told = error;
    this.#tools.send("runners-state", { backend: this.#work.name, error });
  }

  /** Called when the link to the server was made again: the server is told everything anew. */
  tellAgain(): void {
    this.#told = undefined;
    this.#said = "";
  }
}
