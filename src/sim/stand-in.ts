// Continues a saved complex in virtual time. The drivers of server and schedulers are the real ones; simulated moms only
// count the time of jobs. A job runs until its walltime is over. No client submits anything, and nothing fails.
//
// W1. A job that was running when the state was saved continues until its walltime is over. While a job is suspended, its
//     walltime does not pass.
// W2. A job without walltime never ends. A job whose time was already over when the state was saved ends at once.
// W3. At each instant, jobs whose time is over end first. Then the server and the schedulers work, so that they decide when
//     everything due at that instant has happened.
// W4. Hosts that were down stay down. Hooks are not run, and no history is kept.

import { hostName } from "#identity/host-name.ts";
import { listOf } from "#model/attribute-reader.ts";
import { firstHost } from "#model/request/host-entry.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomHello, MomJob, MomToServer } from "#protocol/mom-link.ts";
import type { SchedToServer } from "#protocol/sched-link.ts";
import type { SchedPorts } from "#sched/driver/ports.ts";
import { SchedDriver } from "#sched/driver/sched-driver.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Core } from "#server/core/core.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts } from "#server/driver/immediate-ports.ts";
import type { ServerPorts } from "#server/driver/ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { ClientFrame, MomFrame, SchedFrame } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ServerConfig } from "#server/engine/transaction.ts";
import { isWithMom } from "#server/state/job-phase.ts";
import { remotePlace } from "#server/state/partitions.ts";
import type { ServerState, Vnode } from "#server/state/state.ts";
import { nth } from "#support/assert.ts";
import { settingsOfBook, virtualModules } from "./sched-process.ts";

/**
 * A job on one of its hosts. left_ms: how much of its time is left. since_ms: since when this time passes; null: it stands
 * still. leads: this is the first host of the job, the only one that ends it.
 */
type StandInRun = { readonly run_count: number; left_ms: number; since_ms: number | null; readonly leads: boolean };
type StandInHost = { readonly name: string; readonly link: number; readonly runs: Map<string, StandInRun> };
type StandInSched = { readonly name: string; readonly link: number; readonly driver: SchedDriver };

/** When and where a job or subjob started. */
export type StandInStart = { readonly job: string; readonly start_s: number; readonly exec_vnode: string };
/** When a job ended because its time was over. */
export type StandInEnd = { readonly job: string; readonly end_s: number };

const LOST: ReadonlySet<string> = new Set(["down", "state-unknown", "stale", "unresolvable", "sleep"]);
/** When no job runs any more, all events that depend only on the clock occur within this many seconds: reservations that are tried again, and cycles. */
const PATIENCE_S = 3600;

export type StandInInput = {
  readonly state: ServerState;
  readonly config: ServerConfig;
  readonly now_ms: number;
  bookOf(sched: string): PolicyBook;
};

/** Returns the complex as it was when it was saved. All daemons have sent their hello, and no decision has been made. */
export const createStandIn = (input: StandInInput): StandIn => new StandIn(input);

export class StandIn {
  readonly #driver: ServerDriver;
  readonly #clock: HandClock;
  readonly #bookOf: StandInInput["bookOf"];
  readonly #hosts: readonly StandInHost[];
  readonly #host_of_link: ReadonlyMap<number, StandInHost>;
  readonly #scheds = new Map<string, StandInSched>();
  readonly #answers = new Map<number, ClientFrame>();
  readonly #parts = new Map<number, unknown[]>();
  readonly #starts: StandInStart[] = [];
  readonly #ends: StandInEnd[] = [];
  #tokens = 0;
  #links = 0;

  constructor({ state, config, now_ms, bookOf }: StandInInput) {
    this.#bookOf = bookOf;
    this.#clock = new HandClock(now_ms);
    this.#hosts = hostsOf(state, () => ++this.#links);
    this.#host_of_link = new Map(this.#hosts.map((host) => [host.link, host]));
    const hellos = this.#hosts.map((host) => helloOf(state, host, now_ms));
    // The simulated moms and schedulers always answer, so the server need not send pings every few seconds for months of
    // virtual time.
    state.server["node_silence_timeout"] = 0;
    state.server["sched_silence_timeout"] = 0;
    this.#driver = new ServerDriver(this.#ports(), config, state);
    this.#driver.start();
    this.#clock.settle();
    this.#hosts.forEach((host, at) => this.#tellServer(host, "mom-hello", nth(hellos, at)));
    this.#clock.settle();
  }

  get core(): Core {
    return this.#driver.core;
  }

  get now_s(): number {
    return Math.floor(this.#clock.now_ms / 1000);
  }

  get starts(): readonly StandInStart[] {
    return this.#starts;
  }

  get ends(): readonly StandInEnd[] {
    return this.#ends;
  }

  /** Makes a request, and lets everything happen that follows from it at this instant. Returns the answer; null: the request waits for something. */
  ask(peer: Peer, request: Request): ClientFrame | null {
    const token = ++this.#tokens;
    this.#driver.request(peer, request, token);
    this.#clock.settle();
    const answer = this.#answers.get(token) ?? null;
    this.#answers.delete(token);
    return answer;
  }

  /** Returns the items in the `part` frames of the reply to a request. */
  partsOf({ token }: ClientFrame): readonly unknown[] {
    return this.#parts.get(token) ?? [];
  }

  /** Lets time pass until until_s, or until no further event can occur. */
  run(until_s: number): void {
    let last_ms = this.#clock.now_ms;
    for (;;) {
      const next_ms = Math.min(this.#firstEnd(), this.#clock.next_ms);
      if (next_ms > until_s * 1000 || (!this.#isComing() && next_ms > last_ms + PATIENCE_S * 1000)) return;
      const before = this.#starts.length + this.#ends.length;
      this.#step(next_ms);
      if (this.#starts.length + this.#ends.length > before) last_ms = this.#clock.now_ms;
    }
  }

  // --- ports of the server

  #ports(): ServerPorts {
    return immediatePorts(this.#clock, {
      links: {
        toSched: (frame) => this.#toSched(frame),
        toMoms: (frames) => frames.forEach((frame) => this.#toHost(frame)),
        end: (link) => this.#endLink(link),
        dropDaemons: () => undefined,
        setLimits: () => undefined,
        close: (done) => done(),
      },
      clients: {
        answer: (frames) => this.#answer(frames),
        taken: (_token, then) => then(),
        of: (token) => ({ uid: 0, link: token }),
        open: () => [],
      },
      processes: {
        start: (name) => this.#startSched(name),
        stop: (name) => this.#stopSched(name),
      },
    });
  }

  #answer(frames: readonly ClientFrame[]): void {
    for (const frame of frames) {
      if (frame.kind === "part") this.#parts.set(frame.token, [...(this.#parts.get(frame.token) ?? []), ...frame.items]);
      else this.#answers.set(frame.token, frame);
    }
  }

  #endLink(link: number): void {
    const sched = [...this.#scheds.values()].find((each) => each.link === link);
    if (sched !== undefined) this.#stopSched(sched.name);
  }

  #tellServer<T extends keyof MomToServer>(host: StandInHost, type: T, data: MomToServer[T]): void {
    this.#driver.mom(host.link, type, data);
  }

  // --- schedulers

  #startSched(name: string): void {
    if (this.#scheds.has(name)) return;
    const link = ++this.#links;
    const driver = new SchedDriver(this.#schedPorts(name, link), { name, pid: link, version: "what-if" });
    this.#scheds.set(name, { name, link, driver });
    driver.start();
    driver.opened();
  }

  /** Returns the name of the other host to which a scheduler belongs; null: it belongs to the server's host. */
  #hostOf(name: string): string | null {
    const { state, kernel } = this.#driver.core;
    const sched = state.scheds.get(name);
    const place = sched === undefined ? null : remotePlace(sched, kernel.config);
    return place === null ? null : hostName(place.host);
  }

  #stopSched(name: string): void {
    const sched = this.#scheds.get(name);
    if (!this.#scheds.delete(name) || sched === undefined) return;
    sched.driver.lost("it is stopped");
    this.#driver.schedLost(sched.link, sched.link);
  }

  #schedPorts(name: string, link: number): SchedPorts {
    const settings = settingsOfBook(this.#bookOf(name));
    return {
      clock: this.#clock,
      link: {
        send: (type, data) => {
          if (this.#scheds.get(name)?.link !== link) return;
          const host = this.#hostOf(name);
          if (type === "sched-hello" && host !== null) this.#driver.schedHello(link, data as SchedToServer["sched-hello"], host);
          else this.#driver.sched(link, type, data);
        },
        reconnect() {
          throw new Error(`scheduler ${name} does not understand the server`);
        },
        close: () => undefined,
      },
      directories: { sched_priv: "sched_priv", follow: () => ({ fault: null, moved: false }), release: () => undefined },
      settings: { read: () => settings, version: () => "" },
      usage: NO_USAGE_FILE,
      programs: { ask: (_programs, _space, _alarm_s, done) => done(new Map()), stop: () => undefined },
      modules: virtualModules((done) => done()),
      log: { record: () => undefined, setMask: () => undefined, flush: () => undefined, reopen: () => undefined },
      local: settings.book.local,
      busy: () => undefined,
      quit: () => this.#stopSched(name),
    };
  }

  #toSched(frame: SchedFrame): void {
    const sched = [...this.#scheds.values()].find((each) => each.link === frame.link);
    if (sched === undefined) return;
    if (frame.type === "sched-refused") this.#stopSched(sched.name);
    else sched.driver.take(frame);
  }

  // --- hosts

  #toHost(frame: MomFrame): void {
    const host = this.#host_of_link.get(frame.link);
    if (host === undefined) return;
    switch (frame.type) {
      case "mom-start":
        for (const job of frame.data.jobs) this.#startRun(host, job);
        return;
      case "mom-signal": {
        const run = host.runs.get(frame.data.job);
        if (run !== undefined && frame.data.signal.endsWith("suspend")) this.#stopRun(run);
        if (run !== undefined && frame.data.signal.endsWith("resume")) run.since_ms ??= this.#clock.now_ms;
        return this.#tellServer(host, "mom-result", { token: frame.data.token, ok: true });
      }
      case "mom-message":
        return this.#tellServer(host, "mom-result", { token: frame.data.token, ok: true });
      case "mom-terminate":
        return this.#endRun(host, frame.data.job, frame.data.run_count, frame.data.why === "rerun" ? RERUN : TERMINATED);
      case "mom-discard":
        host.runs.delete(frame.data.job);
        return;
      default:
        return;
    }
  }

  #startRun(host: StandInHost, job: MomJob): void {
    const leads = leadOf(job.exec_host) === host.name.toLowerCase();
    host.runs.set(job.id, { run_count: job.run_count, left_ms: walltimeOf(job.attrs) * 1000, since_ms: this.#clock.now_ms, leads });
    if (leads) this.#starts.push({ job: job.id, start_s: this.now_s, exec_vnode: job.exec_vnode });
    this.#tellServer(host, "mom-started", { job: job.id, run_count: job.run_count, session_id: 1, jobdir: "/" });
  }

  /** Stops the time of a job on a host. */
  #stopRun(run: StandInRun): void {
    if (run.since_ms === null) return;
    run.left_ms -= this.#clock.now_ms - run.since_ms;
    run.since_ms = null;
  }

  #endRun(host: StandInHost, job: string, run_count: number, exit_status: number): void {
    const run = host.runs.get(job);
    if (run?.run_count !== run_count) return;
    host.runs.delete(job);
    if (run.leads) this.#ends.push({ job, end_s: this.now_s });
    this.#tellServer(host, "mom-obit", { job, run_count, exit_status, used: { cput: 0, mem: "0kb" } });
  }

  // --- time

  #firstEnd(): number {
    let first_ms = Number.POSITIVE_INFINITY;
    for (const { runs } of this.#hosts) for (const run of runs.values()) first_ms = Math.min(first_ms, endOf(run));
    return first_ms;
  }

  #step(at_ms: number): void {
    this.#clock.now_ms = Math.max(this.#clock.now_ms, at_ms);
    const { now_ms } = this.#clock;
    for (const host of this.#hosts)
      for (const [job, run] of [...host.runs]) if (endOf(run) <= now_ms) this.#endRun(host, job, run.run_count, 0);
    this.#clock.ring();
    this.#clock.settle();
  }

  /** Returns whether an event other than the server's own timers can still occur. */
  #isComing(): boolean {
    if (this.#firstEnd() !== Number.POSITIVE_INFINITY) return true;
    if ([...this.#scheds.values()].some(({ driver }) => driver.bound_s !== null)) return true;
    const { state } = this.core;
    if ([...state.jobs.values()].some(({ attrs }) => attrs.job_state === "W")) return true;
    return [...state.resvs.values()].some(({ attrs }) => (attrs.reserve_start ?? Number.POSITIVE_INFINITY) * 1000 < FAR_MS);
  }
}

/** Returns when a job ends by itself on its first host; Infinity: never, or this is not its first host. */
const endOf = (run: StandInRun): number =>
  run.leads && run.since_ms !== null ? Math.max(run.since_ms, run.since_ms + run.left_ms) : Number.POSITIVE_INFINITY;

/** A port without a file `usage`: usage begins at 0 and is not kept. */
const NO_USAGE_FILE: SchedPorts["usage"] = {
  read: () => null,
  write: () => undefined,
  setAside: () => undefined,
  isTouched: () => false,
  clearTouch: () => undefined,
};

const RERUN = -11;
const TERMINATED = 271;
/** The time in ms, far away, that replaces the start of an as-soon-as-possible reservation, which has none yet. */
const FAR_MS = 8e12;

/** Returns the hosts that were up, with their jobs. */
function hostsOf(state: ServerState, nextLink: () => number): StandInHost[] {
  const names = new Map<string, boolean>();
  for (const vnode of state.vnodes.values()) {
    const name = hostNameOf(vnode);
    const up = !listOf(vnode.attrs, "state").some((word) => LOST.has(word));
    names.set(name, (names.get(name) ?? false) || up);
  }
  return [...names].flatMap(([name, up]) => (up ? [{ name, link: nextLink(), runs: new Map() }] : []));
}

const hostNameOf = ({ name, attrs }: Vnode): string =>
  nth(String((attrs["Mom"] as readonly string[] | undefined)?.[0] ?? name).split("."), 0);

/** Returns the hello of a mom that connects again with its jobs. Starts the clocks of these jobs. */
function helloOf(state: ServerState, host: StandInHost, now_ms: number): MomHello {
  const vnodes = [...state.vnodes.values()].filter((vnode) => hostNameOf(vnode) === host.name);
  const jobs = new Set(vnodes.flatMap((vnode) => [...vnode.jobs.keys()]));
  return {
    host: host.name,
    port: Number(vnodes[0]?.attrs["Port"] ?? 15002),
    pid: 1,
    version: String(state.server["pbs_version"] ?? ""),
    vnodes: vnodes.map(({ name, attrs }) => ({
      name,
      attrs: {
        resources_available: attrs["resources_available"] ?? {},
        pcpus: attrs["pcpus"] ?? 1,
        sharing: attrs["sharing"] ?? "default_shared",
      },
    })),
    jobs: [...jobs].flatMap((id) => {
      const job = state.jobs.get(id);
      if (job === undefined || !isWithMom(job)) return [];
      const { run_count = 1, job_state, stime = 0, exec_host = "" } = job.attrs;
      const suspended = job_state === "S";
      const used = Number((job.attrs["resources_used"] as { readonly walltime?: number } | undefined)?.walltime ?? 0);
      const ran_ms = suspended ? used * 1000 : Math.max(0, now_ms - stime * 1000);
      const left_ms = Math.max(0, walltimeOf(job.attrs) * 1000 - ran_ms);
      host.runs.set(id, {
        run_count,
        left_ms,
        since_ms: suspended ? null : now_ms,
        leads: leadOf(String(exec_host)) === host.name.toLowerCase(),
      });
      return [{ job: id, run_count, state: suspended ? ("suspended" as const) : ("running" as const), session_id: 1 }];
    }),
  };
}

/** Returns the name of the first host: `n1` for `n1/0*3+n2/0`. */
const leadOf = (exec_host: string): string => firstHost(exec_host).split(".")[0]?.toLowerCase() ?? "";

/** Returns the walltime in seconds; Infinity: the job has none. */
function walltimeOf(attrs: { readonly [name: string]: unknown }): number {
  const walltime = (attrs["Resource_List"] as { readonly walltime?: unknown } | undefined)?.walltime;
  return typeof walltime === "number" ? walltime : Number.POSITIVE_INFINITY;
}
