// A server in a world without delays, for table tests: the real core and the real driver (src/server/driver); builders for
// queues, vnodes, schedulers and jobs; requests as any user; a store that keeps rows in memory, from which the server can be
// restarted. Every batch checks the invariants.

import assert from "node:assert/strict";
import { Reject } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import type { RunnersToServer, ServerToRunners } from "#protocol/runner-link.ts";
import type { Decision, SchedToServer, ServerToSched, Verdict } from "#protocol/sched-link.ts";
import { identify } from "#server/attributes/permission.ts";
import type { Core } from "#server/core/core.ts";
import { checkInvariants } from "#server/core/invariants.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts, type OwnPorts } from "#server/driver/immediate-ports.ts";
import type { HistoryPort } from "#server/driver/ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { Batch, ClientFrame, MomFrame, SchedFrame, ShellAction } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import { ownTransaction, transaction } from "#server/engine/kernel.ts";
import type { AccountingRecord, ServerConfig } from "#server/engine/transaction.ts";
import { enqueueJob } from "#server/jobs/life.ts";
import type { SchedSight } from "#server/scheds/heartbeat.ts";
import { timeZone } from "#server/shell/time-zone.ts";
import type { JobOwn } from "#server/state/job-own.ts";
import { freshState, loadState, type StoredState } from "#server/state/load.ts";
import { jobData, jobOfRows } from "#server/state/rows.ts";
import type { Attrs, Job, JobAttrs, RunTime, ServerState } from "#server/state/state.ts";
import type { Data, JobRow, Batch as Rows } from "#store/store.ts";
import type { LogRecord } from "#support/log-event.ts";

export const HOST = "svr";
/** Friday, 20 November 2026, 09:26:28 UTC */
export const START_S = 1795166788;

export const CONFIG: ServerConfig = {
  host: HOST,
  home: "/home/pbs",
  pbs_version: "23.06.06",
  own_user: null,
  ctime: utcTime,
  timeZone,
  userExists: (name) => ["root", "alice", "bob", "carol"].includes(name),
};

/** `Fri Nov 20 09:26:28 2026` */
export function utcTime(epoch_s: number): string {
  const date = new Date(epoch_s * 1000);
  const [day, dom, month, year, time] = date.toUTCString().replace(",", "").split(" ");
  return `${day} ${month} ${String(Number(dom)).padStart(2, " ")} ${time} ${year}`;
}

export const ROOT: Peer = { user: "root", uid: 0, groups: ["root"], host: HOST, root: true };
export const user = (name: string): Peer => ({ user: name, uid: 1000 + name.length, groups: ["users"], host: HOST, root: false });
export const ALICE = user("alice");
export const BOB = user("bob");

export type Answer =
  | { readonly ok: true; readonly value?: unknown; readonly text?: string }
  | { readonly ok: false; readonly code: number; readonly text: string | null };

/** The messages that have left the core; all are committed. */
export type Harness = {
  driver: ServerDriver;
  clock: HandClock;
  readonly core: Core;
  now_ms: number;
  /** rows as a store would hold them */
  readonly store: FakeStore;
  readonly logs: LogRecord[];
  readonly accounting: AccountingRecord[];
  readonly actions: ShellAction[];
  readonly answers: Map<number, Answer>;
  readonly parts: Map<number, unknown[]>;
  /** without sched-ping, which schedulers answer at once */
  readonly to_scheds: { link: number; type: keyof ServerToSched; data: unknown }[];
  /** without mom-ping, which moms answer at once */
  readonly to_moms: { link: number; type: keyof ServerToMom; data: unknown }[];
  readonly to_runners: { type: keyof ServerToRunners; data: unknown }[];
  /** links of moms and schedulers that answer no ping */
  readonly silent: Set<number>;
  /** the shell's view of schedulers' processes, by name; processes not listed run */
  readonly sights: Map<string, SchedSight>;
  next_token: number;
};

/** held: commits wait for release(); null: each commit is done at once. */
export type FakeStore = { stored: StoredRows; history: Map<string, Job>; commits: number; held: (() => void)[] | null };
type StoredRows = {
  server: Attrs;
  counters: StoredState["counters"];
  history_count: number;
  jobs: Map<string, JobRow & { readonly run?: Data }>;
} & {
  [K in "resources" | "queues" | "vnodes" | "scheds" | "resvs" | "hooks" | "run_times" | "clocks" | "backends" | "runners"]: Map<
    string,
    unknown
  >;
};

/** A fresh complex: server svr, queue workq (default, started), default scheduler, job history. It has no vnode: see addHost. */
export function harness(options: { readonly server?: Attrs } = {}): Harness {
  const state = freshState(HOST, CONFIG);
  Object.assign(state.server, { job_history_enable: true, default_queue: "workq", ...options.server });
  const clock = new HandClock(START_S * 1000);
  const h: Harness = {
    clock,
    driver: new ServerDriver(
      immediatePorts(
        clock,
        worldOf(() => h),
      ),
      CONFIG,
      state,
    ),
    get core() {
      return h.driver.core;
    },
    get now_ms() {
      return h.clock.now_ms;
    },
    set now_ms(now_ms) {
      h.clock.now_ms = now_ms;
    },
    store: { stored: emptyRows(), history: new Map(), commits: 0, held: null },
    logs: [],
    accounting: [],
    actions: [],
    answers: new Map(),
    parts: new Map(),
    to_scheds: [],
    to_moms: [],
    to_runners: [],
    silent: new Set(),
    sights: new Map(),
    next_token: 1,
  };
  h.core.kernel.changes.server = true;
  for (const name of state.scheds.keys()) h.core.kernel.changes.scheds.add(name);
  h.driver.start();
  addQueue(h, "workq");
  return h;
}

function emptyRows(): StoredRows {
  return {
    server: {},
    counters: { next_seq: 0, next_order: 1, next_rank: 0 },
    history_count: 0,
    resources: new Map(),
    queues: new Map(),
    vnodes: new Map(),
    scheds: new Map(),
    resvs: new Map(),
    hooks: new Map(),
    clocks: new Map(),
    run_times: new Map(),
    backends: new Map(),
    runners: new Map(),
    jobs: new Map(),
  };
}

// --- builders: by events, without any checks

export function addQueue(h: Harness, name: string, attrs: Attrs = {}): void {
  apply(h, { kind: "created", object: "queue", name, attrs: { queue_type: "Execution", enabled: true, started: true, ...attrs } });
}

/** A vnode as a mom would report it, but without a mom: its state does not change by itself. */
export function addVnode(h: Harness, name: string, attrs: Attrs = {}): void {
  const resources_available = { host: name, vnode: name, ncpus: 4, mem: "8gb", ...(attrs["resources_available"] as object | undefined) };
  apply(h, {
    kind: "created",
    object: "node",
    name,
    attrs: { Mom: [name], state: [], sharing: "default_shared", ...attrs, resources_available },
  });
}

/** A vnode with a connected mom (link 100 and up). Returns the link. */
export function addHost(h: Harness, name: string, resources: Attrs = {}): number {
  const link = 100 + h.core.state.vnodes.size;
  apply(h, {
    kind: "created",
    object: "node",
    name,
    attrs: { Mom: [name], Port: 15002, state: ["state-unknown", "down"], sharing: "default_shared", resources_available: {} },
  });
  momHello(h, link, name, [], resources);
  return link;
}

export function addSched(h: Harness, name: string, attrs: Attrs = {}): void {
  apply(h, { kind: "created", object: "sched", name, attrs: { scheduling: true, scheduler_iteration: 600, state: "down", ...attrs } });
}

/** A job in a queue, created directly: attributes of a plain qsub, replaced by those given. Returns the id. */
export function addJob(h: Harness, attrs: Attrs = {}, who: Peer = ALICE): string {
  const seq = h.core.state.next_seq + 1;
  const id = `${seq}.${HOST}`;
  h.core.kernel.now_ms = h.now_ms;
  const tx = transaction(h.core.kernel, identify(h.core.state, who), 0);
  enqueueJob(tx, id, seq, { ...plainJob(who), ...attrs } as JobAttrs, null);
  settle(h);
  return id;
}

function plainJob(who: Peer): Attrs {
  return {
    Job_Name: "STDIN",
    Job_Owner: `${who.user}@${HOST}`,
    queue: "workq",
    Hold_Types: "n",
    Resource_List: { ncpus: 1, nodect: 1, place: "free", select: "1:ncpus=1" },
    schedselect: "1:ncpus=1",
    Rerunable: true,
    Priority: 0,
    project: "_pbs_project_default",
    euser: who.user,
    egroup: "users",
    executable: "/bin/true",
    Output_Path: `${HOST}:/tmp/o`,
    Error_Path: `${HOST}:/tmp/e`,
    Variable_List: ["PBS_O_HOME=/home/x"],
  };
}

export function apply(h: Harness, event: Parameters<ReturnType<typeof ownTransaction>["apply"]>[0]): void {
  h.core.kernel.now_ms = h.now_ms;
  ownTransaction(h.core.kernel).apply(event);
  settle(h);
}

// --- requests

/** Sends one request and returns its answer; undefined: deferred. Reads of the history are served from the fake store. */
export function ask(h: Harness, who: Peer, request: Request): Answer | undefined {
  const token = h.next_token++;
  h.driver.request(who, request, token);
  settle(h);
  return h.answers.get(token);
}

/** The value of an answer, which must be there and ok. */
export function askOk(h: Harness, who: Peer, request: Request): unknown {
  const answer = ask(h, who, request);
  assert.ok(answer !== undefined, `no answer to ${request.kind}`);
  assert.ok(answer.ok, `${request.kind} refused: ${JSON.stringify(answer)}`);
  return answer.value;
}

/** The items of a status reply. */
export function statusOf(h: Harness, who: Peer, request: Request): unknown[] {
  const token = h.next_token;
  askOk(h, who, request);
  return h.parts.get(token) ?? [];
}

/** `15001 Unknown Job Id` for a refused request, "ok" for an accepted one, "deferred" while there is no answer. */
export function outcome(h: Harness, who: Peer, request: Request): string {
  const answer = ask(h, who, request);
  if (answer === undefined) return "deferred";
  return answer.ok ? "ok" : `${answer.code} ${answer.text}`;
}

// --- time

/** Advances the time by seconds, and processes everything that becomes due. */
export function advance(h: Harness, seconds: number): void {
  const end_ms = h.now_ms + seconds * 1000;
  settle(h);
  for (let next_ms = h.clock.next_ms; next_ms <= end_ms; next_ms = h.clock.next_ms) {
    h.now_ms = Math.max(h.now_ms, next_ms);
    h.clock.ring();
    settle(h);
  }
  h.now_ms = end_ms;
}

// --- moms and schedulers, played by the test

export function momHello(h: Harness, link: number, host: string, jobs: MomToServer["mom-hello"]["jobs"] = [], resources: Attrs = {}): void {
  const resources_available = { ncpus: 4, mem: "8gb", arch: "linux", ...resources };
  mom(h, link, "mom-hello", {
    host,
    port: 15002,
    pid: 1,
    version: "23.06.06",
    vnodes: [{ name: host, attrs: { resources_available, pcpus: 4, sharing: "default_shared" } }],
    jobs,
    pongs: true,
  });
}

export function mom<T extends keyof MomToServer>(h: Harness, link: number, type: T, data: MomToServer[T]): void {
  h.driver.mom(link, type, data);
  settle(h);
}

export function runners<T extends keyof RunnersToServer>(h: Harness, link: number, type: T, data: RunnersToServer[T]): void {
  h.driver.runners(link, type, data);
  settle(h);
}

export function sched<T extends keyof SchedToServer>(h: Harness, link: number, type: T, data: SchedToServer[T]): void {
  h.driver.sched(link, type, data);
  settle(h);
}

/** A scheduler sends its hello. */
export function schedHello(h: Harness, link: number, name = "default"): void {
  sched(h, link, "sched-hello", { name, pid: 4711, version: "x", pongs: true });
}

export function schedLost(h: Harness, link: number): void {
  h.driver.schedLost(link, 0);
  settle(h);
}

/** Ends the present cycle of a scheduler with decisions, and returns their verdicts. */
export function cycle(h: Harness, link: number, decisions: readonly Decision[] = []): readonly Verdict[] {
  const given = h.to_scheds.filter((frame) => frame.link === link && frame.type === "sched-cycle").at(-1);
  assert.ok(given !== undefined, "no cycle was started");
  const number = (given.data as ServerToSched["sched-cycle"]).cycle;
  sched(h, link, "sched-decisions", { cycle: number, decisions });
  const answer = h.to_scheds.filter((frame) => frame.link === link && frame.type === "sched-verdicts").at(-1);
  assert.ok(answer !== undefined, "no verdicts came");
  const { verdicts } = answer.data as ServerToSched["sched-verdicts"];
  sched(h, link, "sched-cycle-end", { cycle: number, jobs_considered: decisions.length, cycle_ms: 1 });
  return verdicts;
}

/** Makes a job run on a host (one chunk), as after a run decision and mom-started. */
export function runOn(h: Harness, job: string, host: string, link: number, ncpus = 1): void {
  const answer = ask(h, ROOT, { kind: "run-job", job, exec_vnode: `(${host}:ncpus=${ncpus})`, async: true });
  assert.equal(answer?.ok, true, JSON.stringify(answer));
  mom(h, link, "mom-started", { job, run_count: jobAttrs(h, job).run_count ?? 0, session_id: 4711, jobdir: "/home/x" });
}

export function obit(h: Harness, link: number, job: string, exit_status = 0, run_count = jobAttrs(h, job).run_count ?? 0): void {
  mom(h, link, "mom-obit", { job, run_count, exit_status, used: { cput: 0, mem: "0kb", ncpus: 1, walltime: 10 }, stageout_status: 1 });
}

// --- inspection

/** Attributes of a live or finished job. */
export function jobAttrs(h: Harness, id: string): JobAttrs {
  const job = h.core.state.jobs.get(id) ?? h.store.history.get(id);
  assert.ok(job !== undefined, `no job ${id}`);
  return job.attrs;
}

/** The server's private data of a live or finished job. */
export function jobOwn(h: Harness, id: string): JobOwn {
  const job = h.core.state.jobs.get(id) ?? h.store.history.get(id);
  assert.ok(job !== undefined, `no job ${id}`);
  return job.own;
}

/** `R 42` */
export const stateOf = (h: Harness, id: string): string => `${jobAttrs(h, id).job_state} ${jobAttrs(h, id).substate}`;
/** Log texts of an object. */
export const logsOf = (h: Harness, object: string): string[] =>
  h.logs.filter((record) => record.object === object).map((record) => record.text);
/** Letters of the accounting records of a job, in order. */
export const lettersOf = (h: Harness, id: string): string =>
  h.accounting
    .filter((record) => record.id === id)
    .map((record) => record.type)
    .join("");
/** Cycle commands sent to a scheduler. */
export const commandsTo = (h: Harness, link: number): number[] =>
  h.to_scheds
    .filter((frame) => frame.link === link && frame.type === "sched-cycle")
    .map((frame) => (frame.data as ServerToSched["sched-cycle"]).command);

// --- the driver's world

/** Processes everything that has accumulated, including results of direct calls of the core, and all consequences. */
export function settle(h: Harness): void {
  h.driver.do(() => undefined);
  h.clock.settle();
}

/** The next commit waits: nothing of its batch leaves, and later changes collect for the next commit. */
export function holdCommits(h: Harness): void {
  h.store.held = [];
}

/** Completes the commit; later commits are immediate. */
export function release(h: Harness): void {
  const held = h.store.held ?? [];
  h.store.held = null;
  for (const done of held) done();
  settle(h);
}

/** Writes a batch into the fake store. Rows are copied as JSON, as a real store does. */
function commit(store: FakeStore, state: ServerState, { changes }: Batch, rows: Rows): void {
  const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
  const { stored } = store;
  store.commits++;
  if (changes.server) {
    stored.server = copy(state.server);
    stored.counters = { next_seq: state.next_seq, next_order: state.next_order, next_rank: state.next_rank };
  }
  const write = <T>(
    rows: Map<string, unknown>,
    names: Iterable<string>,
    objects: ReadonlyMap<string, T>,
    row: (object: T) => unknown,
  ): void => {
    for (const name of names) {
      const object = objects.get(name);
      if (object === undefined) rows.delete(name);
      else rows.set(name, copy(row(object)));
    }
  };
  write(stored.queues, changes.queues, state.queues, ({ name, order, attrs }) => ({ name, order, attrs }));
  write(stored.vnodes, changes.vnodes, state.vnodes, ({ name, order, attrs, set_by_admin }) => ({ name, order, attrs, set_by_admin }));
  write(stored.scheds, changes.scheds, state.scheds, (row) => row);
  write(stored.resvs, changes.resvs, state.resvs, ({ id, attrs }) => ({ id, attrs }));
  write(stored.resources, changes.resources, state.resources, (row) => row);
  write(stored.hooks, changes.hooks, state.hooks, (row) => row);
  write(stored.clocks, changes.clocks, state.clocks, (row) => row);
  write(stored.run_times, changes.run_times, state.run_times, (row) => row);
  write(stored.backends, changes.backends, state.backends, (row) => row);
  write(stored.runners, changes.runners, state.runners, (row) => row);
  writeJobs(stored.jobs, state, changes, rows);
  for (const [id, job] of changes.ended) store.history.set(id, copy(job));
  for (const id of changes.purged) store.history.delete(id);
  for (const [id, job] of store.history)
    if (job.attrs["array_id"] !== undefined && changes.purged_arrays.has(job.seq)) store.history.delete(id);
  stored.history_count = store.history.size;
}

/** After every commit, checks that the rows equal the changed state. */
function writeJobs(stored: StoredRows["jobs"], state: ServerState, changes: Batch["changes"], rows: Rows): void {
  const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
  for (const id of rows.jobs_gone ?? []) stored.delete(id);
  for (const row of rows.jobs ?? []) stored.set(row.id, copy({ ...stored.get(row.id), ...row }));
  for (const id of rows.runs_gone ?? []) stored.set(id, { ...(stored.get(id) as JobRow), run: undefined } as JobRow);
  for (const { id, data } of rows.runs ?? []) stored.set(id, { ...(stored.get(id) as JobRow), run: copy(data) });
  for (const id of changes.jobs) {
    const job = state.jobs.get(id);
    const row = stored.get(id);
    if (job === undefined) assert.equal(row, undefined);
    else {
      const { attrs, own } = jobOfRows(row?.data ?? {}, row?.run);
      assert.deepEqual({ ...attrs, ...own }, copy(jobData(job)), `rows of ${id}`);
    }
  }
}

/** Ports of the harness. h: called at each use, because a restart makes a new driver. */
function worldOf(h: () => Harness): OwnPorts {
  let underway: Batch | null = null;
  return {
    store: {
      commit(rows, done) {
        assert.ok(underway !== null);
        const { store, core } = h();
        commit(store, core.state, underway, rows);
        if (store.held === null) done(null);
        else store.held.push(() => done(null));
      },
      load: () => assert.fail("the store never fails"),
      history: fakeHistory(() => h().store),
      // Never done: tests inspect the action.
      backup: () => undefined,
      close: (done) => done(),
    },
    links: {
      toSched: (frame) => toSched(h(), frame),
      toMoms: (frames) => frames.forEach((frame) => toMom(h(), frame)),
      toRunners: ({ type, data }) => void h().to_runners.push({ type, data }),
      end: () => undefined,
      dropDaemons: () => undefined,
      setLimits: () => undefined,
      close: (done) => done(),
    },
    clients: {
      answer: (frames) => answer(h(), frames),
      taken: (_token, then) => then(),
      of: (token) => (h().answers.has(token) ? undefined : { uid: 0, link: token }),
      open: () => [],
    },
    // Tests answer for hooks themselves. A server that must end waits for its schedulers.
    hooks: { run: () => undefined, close: () => undefined },
    processes: { look: (name, pid, done) => done(h().sights.get(name) ?? { pid, process: "runs" }), stopAll: () => undefined },
    log: { note: () => undefined, records: (list) => void h().logs.push(...list), setMask: () => undefined },
    accounting: {
      record: (type, id, text) => void h().accounting.push({ type, id, text }),
      flush: () => undefined,
      lost: 0,
      line: () => "",
      tail: () => [],
    },
    resolve: (host, done) => done(RESOLVED[host] ?? null),
    watch: {
      taken(core, batch) {
        checkInvariants(core.state);
        underway = batch;
      },
      delivered: ({ actions }) => void h().actions.push(...actions.filter(({ kind }) => !DONE_HERE.has(kind))),
    },
  };
}

/** The hosts that have an address, and the names of hosts by address. */
const RESOLVED: { readonly [host: string]: string } = { localhost: "localhost", [HOST]: HOST, "10.0.0.7": "n7.site.org" };

/** Actions that the harness carries out as a store would; tests inspect the results. */
const DONE_HERE: ReadonlySet<ShellAction["kind"]> = new Set([
  "read-history",
  "page-history",
  "go-on",
  "purge-history",
  "resolve-host",
  "look-at-sched",
]);

function toSched(h: Harness, frame: SchedFrame): void {
  if (frame.type !== "sched-ping") h.to_scheds.push(structuredClone(frame));
  else if (!h.silent.has(frame.link)) h.driver.sched(frame.link, "sched-pong", { number: frame.data.number });
}

function toMom(h: Harness, frame: MomFrame): void {
  if (frame.type !== "mom-ping") h.to_moms.push(structuredClone(frame));
  else if (!h.silent.has(frame.link)) h.driver.mom(frame.link, "mom-pong", { number: frame.data.number });
}

function answer(h: Harness, frames: readonly ClientFrame[]): void {
  for (const frame of frames) {
    if (frame.kind === "part") h.parts.set(frame.token, [...(h.parts.get(frame.token) ?? []), ...frame.items]);
    else {
      assert.ok(!h.answers.has(frame.token), `request ${frame.token} was answered twice`);
      const { token, kind, ...rest } = frame;
      h.answers.set(token, { ...rest, ok: kind === "ok" } as Answer);
    }
  }
}

function fakeHistory(store: () => FakeStore): HistoryPort {
  const index = (job: Job): number => Number(job.attrs["array_index"] ?? -1);
  return {
    read: (ids, _page_rows, done) => done({ ok: true, value: new Map(ids.map((id) => [id, store().history.get(id) ?? null])) }),
    pages({ queue, seqs, subjobs }) {
      const jobs = [...store().history.values()].filter(
        (job) =>
          (queue === undefined || job.attrs.queue === queue) &&
          (seqs === undefined || seqs.includes(job.seq)) &&
          (subjobs || index(job) < 0),
      );
      jobs.sort((a, b) => a.seq - b.seq || index(a) - index(b));
      // Two pages, so that handlers cannot rely on a single page.
      const half = Math.ceil(jobs.length / 2);
      const pages = [jobs.slice(0, half), jobs.slice(half)];
      return { next: (done) => done({ ok: true, value: pages.shift() ?? null }) };
    },
    purge(before_s, done) {
      const old = [...store().history.values()].filter((job) => (job.attrs.history_timestamp ?? 0) < before_s);
      for (const job of old) store().history.delete(job.id);
      done({ ok: true, value: old.length });
    },
    count: (done) => done({ ok: true, value: store().history.size }),
  };
}

/** kill -9: uncommitted data and connections are lost, and a new core starts from the rows. */
export function restart(h: Harness): void {
  const { stored } = h.store;
  const list = <T>(rows: Map<string, unknown>): T[] => structuredClone([...rows.values()]) as T[];
  const state = loadState(HOST, {
    server: structuredClone(stored.server),
    counters: stored.counters,
    history_count: h.store.history.size,
    resources: list(stored.resources),
    queues: list(stored.queues),
    vnodes: list(stored.vnodes),
    scheds: list(stored.scheds),
    resvs: list(stored.resvs),
    hooks: list(stored.hooks),
    backends: list(stored.backends),
    runners: list(stored.runners),
    clocks: list(stored.clocks),
    run_times: [...stored.run_times].map(([key, value]) => ({ key, value: value as RunTime })),
    jobs: structuredClone([...stored.jobs.values()]).map(({ id, seq, data, run }) => ({ id, seq, ...jobOfRows(data, run) })),
  });
  checkInvariants(state);
  h.clock = new HandClock(h.now_ms);
  h.driver = new ServerDriver(
    immediatePorts(
      h.clock,
      worldOf(() => h),
    ),
    CONFIG,
    state,
  );
  h.driver.start();
  settle(h);
}

export { Reject };
