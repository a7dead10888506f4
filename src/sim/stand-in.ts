// A saved complex going on in virtual time: the real server core and real scheduler cycles, with moms that do nothing but keep time. A job runs until its
// walltime is over; nobody submits anything, nothing fails.
//
// W1. What runs when it was saved has only the rest of its walltime left; what was suspended keeps the time it was stopped for.
// W2. A job without walltime never ends. One whose time was over when it was saved ends at once.
// W3. Everything that is due at an instant has happened before anybody decides: all ends first, then what the server and the schedulers do.
// W4. Hosts that were down stay down. Hooks are not run, and no history is kept.

import type { HookOutcome } from "#hooks/run/hook-input.ts";
import { NO_REQUESTS } from "#hooks/run/hook-input.ts";
import { firstHost } from "#model/request/host-entry.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomHello, MomJob, MomToServer } from "#protocol/mom-link.ts";
import type { Decision, SchedCycle, Verdict } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle.ts";
import { type Memory, NO_MEMORY } from "#sched/cycle-result.ts";
import { failedVictims } from "#sched/failed-victims.ts";
import { applyDelta, createUniverse } from "#sched/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { PolicyBook } from "#sched/policy.ts";
import type { Universe } from "#sched/universe.ts";
import { type Core, createCore } from "#server/core/core.ts";
import type { Batch, ClientFrame, MomFrame, SchedFrame, ShellAction } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ServerConfig } from "#server/engine/transaction.ts";
import { isWithMom } from "#server/state/job-phase.ts";
import type { ServerState, Vnode } from "#server/state/state.ts";

/** Host -> when its part of a run ends; only the first host of a run ends it. */
type StandInRun = { readonly run_count: number; left_ms: number; since_ms: number | null; readonly leads: boolean };
type StandInHost = { readonly name: string; readonly link: number; readonly runs: Map<string, StandInRun> };
type StandInSched = {
  readonly name: string;
  readonly link: number;
  universe: Universe | null;
  memory: Memory;
  work: { readonly cycle: number; readonly decisions: readonly Decision[] } | null;
  waiting: SchedFrame[];
  wake_s: number | null;
};

/** A start of a job, or of a subjob. */
export type StandInStart = { readonly job: string; readonly start_s: number; readonly exec_vnode: string };
/** An end: it had run until its time was over. */
export type StandInEnd = { readonly job: string; readonly end_s: number };

export type StandIn = {
  readonly core: Core;
  readonly now_s: number;
  readonly starts: readonly StandInStart[];
  readonly ends: readonly StandInEnd[];
  /** the answer to a request, when all that follows from it at this instant has happened; null: it waits for something */
  ask(peer: Peer, request: Request): ClientFrame | null;
  /** what a request with several parts told */
  partsOf(token: ClientFrame): readonly unknown[];
  /** lets it go on until then, or until nothing is to come any more */
  run(until_s: number): void;
};

const LOST: ReadonlySet<string> = new Set(["down", "state-unknown", "stale", "unresolvable", "sleep"]);
const NOTHING_DONE: HookOutcome = { kind: "accept", changes: {}, requests: NO_REQUESTS, logs: [] };
/** What comes by the clock alone comes within this, when nothing runs any more: reservations that are tried again, cycles. */
const PATIENCE_S = 3600;

export type StandInInput = {
  readonly state: ServerState;
  readonly config: ServerConfig;
  readonly now_ms: number;
  bookOf(sched: string): PolicyBook;
};

/** A complex that stands at the time it was saved: everybody has said hello, and nobody has decided anything. */
export function createStandIn({ state, config, now_ms, bookOf }: StandInInput): StandIn {
  let clock_ms = now_ms;
  let token = 1;
  let link = 1;
  const hosts = hostsOf(state, () => link++);
  const hostOfLink = new Map(hosts.map((host) => [host.link, host]));
  const hellos = hosts.map((host) => helloOf(state, host, now_ms));
  const scheds = new Map<string, StandInSched>();
  const answers = new Map<number, ClientFrame>();
  const parts = new Map<number, unknown[]>();
  const starts: StandInStart[] = [];
  const ends: StandInEnd[] = [];
  // Moms that only keep time and schedulers without a process always answer: nobody need ask them every few seconds of the months to come.
  state.server["node_silence_timeout"] = 0;
  state.server["sched_silence_timeout"] = 0;
  const core = createCore(state, config, now_ms);

  const tellServer = <T extends keyof MomToServer>(host: StandInHost, type: T, data: MomToServer[T]): void =>
    core.mom(host.link, type, data, clock_ms);

  // --- what leaves the core

  function settle(): void {
    for (let batch: Batch | null = core.take(); batch !== null; batch = core.take()) {
      for (const frame of batch.clients) {
        if (frame.kind === "part") parts.set(frame.token, [...(parts.get(frame.token) ?? []), ...frame.items]);
        else answers.set(frame.token, frame);
      }
      for (const frame of batch.scheds) toSched(frame);
      for (const frame of batch.moms) toHost(frame);
      for (const action of batch.actions) carryOut(action);
    }
  }

  function carryOut(action: ShellAction): void {
    switch (action.kind) {
      case "start-sched":
        return startSched(action.sched);
      case "stop-sched":
        return stopSched(action.sched);
      case "prepare-sched":
      case "say-sched":
      case "look-at-sched":
      case "kill-sched":
        return;
      case "drop-link": {
        const sched = [...scheds.values()].find((each) => each.link === action.link);
        if (sched !== undefined) stopSched(sched.name);
        return;
      }
      case "read-history":
        return core.historyRead(action.token, new Map(action.ids.map((id) => [id, null])), clock_ms);
      case "page-history":
        return core.historyPage(action.token, [], true, clock_ms);
      case "go-on":
        while (core.slice(action.token, clock_ms));
        return;
      case "purge-history":
        return core.historyPurged(0);
      case "resolve-host":
        return core.hostResolved(action.token, action.host, true, clock_ms);
      case "run-hook":
        return core.hookEnded(action.run, NOTHING_DONE, clock_ms);
      case "backup":
      case "shutdown":
      case "send-mail":
      case "log-events":
      case "formula":
        return;
      default: {
        const unreachable: never = action;
        return unreachable;
      }
    }
  }

  // --- schedulers

  function startSched(name: string): void {
    if (scheds.has(name)) return;
    const sched: StandInSched = { name, link: link++, universe: null, memory: NO_MEMORY, work: null, waiting: [], wake_s: null };
    scheds.set(name, sched);
    core.sched(sched.link, "sched-hello", { name, pid: sched.link, version: "what-if" }, clock_ms);
  }

  function stopSched(name: string): void {
    const sched = scheds.get(name);
    if (!scheds.delete(name) || sched === undefined) return;
    core.schedLost(sched.link, clock_ms);
  }

  function toSched(frame: SchedFrame): void {
    const sched = [...scheds.values()].find((each) => each.link === frame.link);
    if (sched === undefined) return;
    if (frame.type === "sched-verdicts") takeVerdicts(sched, frame.data.verdicts);
    else if (sched.work !== null) sched.waiting.push(frame);
    else take(sched, frame);
  }

  function take(sched: StandInSched, frame: SchedFrame): void {
    switch (frame.type) {
      case "sched-snapshot":
        sched.universe = createUniverse(frame.data, mirrorOptions(bookOf(sched.name)));
        return;
      case "sched-delta":
        if (sched.universe !== null) applyDelta(sched.universe, frame.data);
        return;
      case "sched-cycle":
        return runCycle(sched, frame.data);
      case "sched-quit":
      case "sched-refused":
        return stopSched(sched.name);
      case "sched-ping":
        return;
      case "sched-ask":
        return core.sched(sched.link, "sched-answer", { token: frame.data.token, value: null }, clock_ms);
      case "sched-configure":
      case "sched-verdicts":
        return;
      default: {
        const unreachable: never = frame;
        return unreachable;
      }
    }
  }

  function runCycle(sched: StandInSched, { cycle: number, command, job }: SchedCycle): void {
    if (sched.universe === null) return;
    const now_s = Math.floor(clock_ms / 1000);
    const input = { now_s, command, memory: sched.memory, ...(job === undefined ? {} : { job }) };
    const result = cycle(sched.universe, bookOf(sched.name), input);
    sched.memory = result.memory;
    sched.wake_s = result.bound_s;
    sched.work = { cycle: number, decisions: result.decisions };
    if (result.decisions.length === 0) finishCycle(sched);
    else core.sched(sched.link, "sched-decisions", { cycle: number, decisions: result.decisions }, clock_ms);
  }

  function takeVerdicts(sched: StandInSched, verdicts: readonly Verdict[]): void {
    if (sched.work === null) return;
    const now_s = Math.floor(clock_ms / 1000);
    sched.memory = {
      ...sched.memory,
      failed_victims: failedVictims(sched.memory.failed_victims, sched.work.decisions, verdicts, now_s),
    };
    finishCycle(sched);
  }

  function finishCycle(sched: StandInSched): void {
    if (sched.work === null) return;
    const { cycle: number } = sched.work;
    sched.work = null;
    core.sched(sched.link, "sched-cycle-end", { cycle: number, jobs_considered: 0, cycle_ms: 1 }, clock_ms);
    for (const frame of sched.waiting.splice(0)) toSched(frame);
  }

  // --- hosts

  function toHost(frame: MomFrame): void {
    const host = hostOfLink.get(frame.link);
    if (host === undefined) return;
    switch (frame.type) {
      case "mom-start":
        for (const job of frame.data.jobs) startRun(host, job);
        return;
      case "mom-signal": {
        const run = host.runs.get(frame.data.job);
        if (run !== undefined && frame.data.signal.endsWith("suspend")) stopClock(run);
        if (run !== undefined && frame.data.signal.endsWith("resume")) run.since_ms ??= clock_ms;
        return tellServer(host, "mom-result", { token: frame.data.token, ok: true });
      }
      case "mom-message":
        return tellServer(host, "mom-result", { token: frame.data.token, ok: true });
      case "mom-terminate":
        return endRun(host, frame.data.job, frame.data.run_count, frame.data.why === "rerun" ? RERUN : TERMINATED);
      case "mom-discard":
        host.runs.delete(frame.data.job);
        return;
      default:
        return;
    }
  }

  function startRun(host: StandInHost, job: MomJob): void {
    const leads = leadOf(job.exec_host) === host.name.toLowerCase();
    host.runs.set(job.id, { run_count: job.run_count, left_ms: walltimeOf(job.attrs) * 1000, since_ms: clock_ms, leads });
    if (leads) starts.push({ job: job.id, start_s: Math.floor(clock_ms / 1000), exec_vnode: job.exec_vnode });
    tellServer(host, "mom-started", { job: job.id, run_count: job.run_count, session_id: 1, jobdir: "/" });
  }

  function stopClock(run: StandInRun): void {
    if (run.since_ms === null) return;
    run.left_ms -= clock_ms - run.since_ms;
    run.since_ms = null;
  }

  function endRun(host: StandInHost, job: string, run_count: number, exit_status: number): void {
    const run = host.runs.get(job);
    if (run?.run_count !== run_count) return;
    host.runs.delete(job);
    if (run.leads) ends.push({ job, end_s: Math.floor(clock_ms / 1000) });
    tellServer(host, "mom-obit", { job, run_count, exit_status, used: { cput: 0, mem: "0kb" } });
  }

  // --- time

  const endOf = (run: StandInRun): number =>
    run.leads && run.since_ms !== null ? Math.max(run.since_ms, run.since_ms + run.left_ms) : Number.POSITIVE_INFINITY;
  const runs = (): StandInRun[] => hosts.flatMap((host) => [...host.runs.values()]);
  const firstEnd = (): number => runs().reduce((first, run) => Math.min(first, endOf(run)), Number.POSITIVE_INFINITY);
  const firstWake = (): number =>
    [...scheds.values()].reduce(
      (first, { wake_s }) => Math.min(first, wake_s === null ? Number.POSITIVE_INFINITY : wake_s * 1000),
      Number.POSITIVE_INFINITY,
    );

  function step(at_ms: number): void {
    clock_ms = Math.max(clock_ms, at_ms);
    for (const host of hosts) for (const [job, run] of [...host.runs]) if (endOf(run) <= clock_ms) endRun(host, job, run.run_count, 0);
    for (const sched of scheds.values()) {
      if (sched.wake_s === null || sched.wake_s * 1000 > clock_ms) continue;
      sched.wake_s = null;
      core.sched(sched.link, "sched-wake", {}, clock_ms);
    }
    core.tick(clock_ms);
    settle();
  }

  /** Something other than the server's own clocks is still to come. */
  function isComing(): boolean {
    if (firstEnd() !== Number.POSITIVE_INFINITY || firstWake() !== Number.POSITIVE_INFINITY) return true;
    if ([...state.jobs.values()].some(({ attrs }) => attrs.job_state === "W")) return true;
    return [...state.resvs.values()].some(({ attrs }) => (attrs.reserve_start ?? Number.POSITIVE_INFINITY) * 1000 < FAR_MS);
  }

  core.start(clock_ms);
  settle();
  hosts.forEach((host, at) => tellServer(host, "mom-hello", hellos[at] as MomHello));
  settle();

  return {
    core,
    get now_s() {
      return Math.floor(clock_ms / 1000);
    },
    starts,
    ends,
    ask(peer, request) {
      const number = token++;
      core.request(peer, request, number, clock_ms);
      settle();
      const answer = answers.get(number) ?? null;
      answers.delete(number);
      return answer;
    },
    partsOf: ({ token: of }) => parts.get(of) ?? [],
    run(until_s) {
      let last_ms = clock_ms;
      for (;;) {
        const next_ms = Math.min(firstEnd(), firstWake(), core.nextTick() ?? Number.POSITIVE_INFINITY);
        if (next_ms > until_s * 1000 || (!isComing() && next_ms > last_ms + PATIENCE_S * 1000)) return;
        const before = starts.length + ends.length;
        step(next_ms);
        if (starts.length + ends.length > before) last_ms = clock_ms;
      }
    },
  };
}

const RERUN = -11;
const TERMINATED = 271;
/** A reservation that is wanted as soon as possible has no time yet: a mark far away. */
const FAR_MS = 8e12;

/** Hosts that were there, with what ran on them. */
function hostsOf(state: ServerState, nextLink: () => number): StandInHost[] {
  const names = new Map<string, boolean>();
  for (const vnode of state.vnodes.values()) {
    const name = hostNameOf(vnode);
    const up = !((vnode.attrs["state"] ?? []) as readonly string[]).some((word) => LOST.has(word));
    names.set(name, (names.get(name) ?? false) || up);
  }
  return [...names].flatMap(([name, up]) => (up ? [{ name, link: nextLink(), runs: new Map() }] : []));
}

const hostNameOf = ({ name, attrs }: Vnode): string =>
  String((attrs["Mom"] as readonly string[] | undefined)?.[0] ?? name).split(".")[0] as string;

/** What a mom says that comes back with its jobs, and the clocks of these. */
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

/** `n1/0*3+n2/0`: n1. */
const leadOf = (exec_host: string): string => firstHost(exec_host).split(".")[0]?.toLowerCase() ?? "";

/** Seconds; Infinity without walltime. */
function walltimeOf(attrs: { readonly [name: string]: unknown }): number {
  const walltime = (attrs["Resource_List"] as { readonly walltime?: unknown } | undefined)?.walltime;
  return typeof walltime === "number" ? walltime : Number.POSITIVE_INFINITY;
}
