// Runners as processes of this machine. There is no cluster manager to ask, so this file does the work of a small one: it keeps orders in files, starts the runners
// that fit, and finds their processes again after a restart of the controller.
//
// I1. An order is in its file before submit() answers, and before a process of it starts.
// I2. A process is recorded after it was started. If the controller ends between the two, the next open finds the process by its environment.
// I3. Every runner leads a process group of its own and continues when the controller ends.
// I4. A runner that lives longer than its walltime is ended, first by SIGTERM, then by SIGKILL.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { nth } from "#support/assert.ts";
import { messageOf } from "#support/caught.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import { type Backend, ORDER_COUNT_MAX, RUNNER_ENV, type RunnerOrder, type RunnerSighting, type Wish } from "../contract/backend.ts";
import { BackendError, type Fault } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { identityWords } from "../shell/identity.ts";
import { ageOf, bootId, environments, isAlive, leadsGroup, type Process, processOf, signalGroup, uidOf } from "../shell/processes.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { type OrderRecord, parseOrderRecord, runnerOfEnviron } from "./answer.ts";
import { localFault } from "./faults.ts";
import { type LocalOptions, localOptions } from "./options.ts";
import { amountsFor, startable, sumOf } from "./request.ts";

const PATH = "/usr/local/bin:/usr/bin:/bin";
/** Pause between two looks at runners, which are not all children of this process. */
const LOOK_MS = 1000;
/** Time from SIGTERM to SIGKILL. */
const GRACE_MS = 10_000;
/** Seconds that a runner may exceed its walltime before it is ended. */
const WALLTIME_GRACE_S = 30;

type Runner = { state: "queued" | "running" | "ended"; process: Process | null; fault: Fault | null; killed: boolean };
type Order = { record: Omit<OrderRecord, "runners">; runners: Runner[] };
type Place = { readonly order: Order; readonly index: number; readonly runner: Runner };

export function openLocal(settings: BackendSettings, tokens: TokenFiles): Backend {
  const options = localOptions(settings, { ncpus: availableParallelism(), mem_kb: Math.floor(totalmem() / 1024) });
  const local = new Local(options, join(settings.state_dir, "orders"), tokens);
  local.recover();
  return {
    type: "local",
    submit: async (order) => local.submit(order),
    list: async () => local.list(),
    cancel: async (runners, { queued_only = false } = {}) => local.cancel(runners, queued_only),
    probe: async () => ({ text: `this machine: ${JSON.stringify(options.capacity)}`, array_max: ORDER_COUNT_MAX }),
    release: async (tag) => local.release(tag),
    reschedule: async (runners, wish) => local.reschedule(runners, wish),
    close: async () => local.close(),
  };
}

class Local {
  readonly #options: LocalOptions;
  readonly #dir: string;
  readonly #tokens: TokenFiles;
  readonly #orders = new Map<string, Order>();
  readonly #boot = bootId();
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(options: LocalOptions, dir: string, tokens: TokenFiles) {
    this.#options = options;
    this.#dir = dir;
    this.#tokens = tokens;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Reads the orders and finds their processes (I2). */
  recover(): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#dir)) {
      if (!name.endsWith(".json")) continue;
      const { runners, ...record } = this.#read(join(this.#dir, name));
      this.#orders.set(record.tag, { record, runners: runners.map((each) => ({ ...each, fault: null, killed: false })) });
    }
    if (this.#orders.size === 0) return;
    for (const { pid, environ } of environments()) this.#adopt(pid, environ);
    this.#look();
  }

  #read(path: string): OrderRecord {
    try {
      return parseOrderRecord(readFileSync(path, "utf8"));
    } catch (error) {
      throw new BackendError({ kind: "configuration", text: `${path}: ${messageOf(error)}` }, { cause: error });
    }
  }

  /**
   * Only the leader of a process group is a runner: its own children may have inherited the environment. Any user can give a process such an environment, and this process
   * may end what it adopts, so the process must belong to the user of the runner.
   */
  #adopt(pid: number, environ: string): void {
    const found = runnerOfEnviron(environ);
    const order = found === null ? undefined : this.#orders.get(found.tag);
    const runner = found === null ? undefined : order?.runners[found.index];
    if (runner === undefined || runner.state !== "queued" || !leadsGroup(pid)) return;
    if (uidOf(pid) !== (order?.record.owner?.uid ?? process.geteuid?.())) return;
    runner.process = processOf(pid, this.#boot);
    if (runner.process !== null) runner.state = "running";
  }

  submit(order: RunnerOrder): readonly RunnerSighting[] {
    const known = this.#orders.get(order.tag);
    if (known !== undefined) return this.#sightings(known);
    const amounts = amountsFor(order.request, this.#options.capacity);
    identityWords(order.owner);
    const { tag, owner, argv, env, request, wish, count } = order;
    const runners = Array.from({ length: count }, (): Runner => ({ state: "queued", process: null, fault: null, killed: false }));
    const entry: Order = { record: { tag, owner, argv, env, amounts, walltime_s: request.walltime_s, wish }, runners };
    this.#tokens.write(order);
    this.#write(entry);
    this.#orders.set(tag, entry);
    this.#startWhatFits();
    return this.#sightings(entry);
  }

  list(): readonly RunnerSighting[] {
    this.#look();
    return [...this.#orders.values()].flatMap((order) => this.#sightings(order));
  }

  cancel(runners: readonly RunnerSighting[], queued_only: boolean): void {
    for (const { tag, index } of runners) {
      const order = this.#orders.get(tag);
      const runner = order?.runners[index];
      if (order === undefined || runner === undefined) continue;
      if (runner.state === "queued") runner.state = "ended";
      else if (runner.state === "running" && !queued_only) this.#end(runner);
      this.#write(order);
    }
    this.#startWhatFits();
  }

  release(tag: string): void {
    const order = this.#orders.get(tag);
    if (order?.runners.some(({ state }) => state !== "ended"))
      throw new BackendError({ kind: "transient", text: `runners of ${tag} have not ended` });
    this.#tokens.remove(tag);
    removeIfThere(this.#pathOf(tag));
    this.#orders.delete(tag);
  }

  reschedule(runners: readonly RunnerSighting[], wish: Wish): void {
    for (const tag of new Set(runners.map((each) => each.tag))) {
      const order = this.#orders.get(tag);
      if (order === undefined) continue;
      order.record = { ...order.record, wish };
      this.#write(order);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  *#places(): Generator<Place> {
    for (const order of this.#orders.values()) for (const [index, runner] of order.runners.entries()) yield { order, index, runner };
  }

  /** Finds runners that have ended, ends runners that have exceeded their walltime (I4), and starts the runners that fit. */
  #look(): void {
    if (this.#closed) return;
    for (const { order, runner } of this.#places()) {
      if (runner.state !== "running" || runner.process === null) continue;
      if (!isAlive(runner.process)) {
        runner.state = "ended";
        this.#write(order);
      } else if (ageOf(runner.process) > order.record.walltime_s + WALLTIME_GRACE_S) this.#end(runner);
    }
    this.#startWhatFits();
  }

  #end(runner: Runner): void {
    const { process } = runner;
    // In system mode root signals, so the process must still be the runner.
    if (process === null || runner.killed || !isAlive(process)) return;
    runner.killed = true;
    signalGroup(process.pid, "SIGTERM");
    setTimeout(() => isAlive(process) && signalGroup(process.pid, "SIGKILL"), GRACE_MS).unref();
  }

  #startWhatFits(): void {
    const { capacity } = this.#options;
    const places = [...this.#places()];
    const used = sumOf(places.filter(({ runner }) => runner.state === "running").map(({ order }) => order.record.amounts));
    const waiting = places
      .filter(({ runner }) => runner.state === "queued")
      .map((place) => ({ item: place, amounts: place.order.record.amounts, priority: place.order.record.wish.priority }));
    for (const place of startable(waiting, capacity, used)) this.#start(place);
  }

  #start({ order, index, runner }: Place): void {
    try {
      const child = this.#spawn(order.record, index);
      child.once("error", (error) => this.#failed(order, runner, error));
      child.once("exit", () => this.#look());
      child.unref();
      if (child.pid === undefined) return;
      runner.process = processOf(child.pid, this.#boot);
      runner.state = runner.process === null ? "ended" : "running";
      runner.fault = null;
      this.#write(order);
    } catch (error) {
      this.#failed(order, runner, error);
    }
  }

  /** Called when a process could not be started: the runner waits, and the next look tries again. */
  #failed(order: Order, runner: Runner, error: unknown): void {
    if (this.#closed) return;
    const { kind, message } = localFault(error);
    runner.fault = { kind, text: message };
    runner.state = "queued";
    runner.process = null;
    this.#write(order);
  }

  #spawn({ tag, owner, argv, env }: Order["record"], index: number): ChildProcess {
    const words = [...identityWords(owner), ...argv];
    const output = this.#openOutput(tag, index, owner !== null);
    try {
      return spawn(nth(words, 0), words.slice(1), {
        detached: true,
        cwd: "/",
        stdio: ["ignore", output, output],
        env: {
          PATH,
          ...(owner === null ? {} : { USER: owner.name, LOGNAME: owner.name }),
          ...env,
          [RUNNER_ENV.TAG]: tag,
          [RUNNER_ENV.INDEX]: String(index),
          [RUNNER_ENV.TOKEN_FILE]: join(this.#tokens.directoryOf(tag), String(index)),
        },
      });
    } finally {
      if (output !== "ignore") closeSync(output);
    }
  }

  /** In system mode nothing is written: root must not open files in directories of users. */
  #openOutput(tag: string, index: number, isSystem: boolean): number | "ignore" {
    const { output_dir } = this.#options;
    if (output_dir === null || isSystem) return "ignore";
    const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
    return openSync(join(output_dir, `${tag}.${index}.out`), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  }

  #pathOf(tag: string): string {
    return join(this.#dir, `${tag}.json`);
  }

  #write({ record, runners }: Order): void {
    const kept: OrderRecord = { ...record, runners: runners.map(({ state, process }) => ({ state, process })) };
    writeWholeFile(this.#pathOf(record.tag), JSON.stringify(kept), 0o600);
  }

  #sightings({ record, runners }: Order): readonly RunnerSighting[] {
    return runners.map(({ state, process, fault }, index) => ({
      tag: record.tag,
      index,
      id: process === null ? `${record.tag}/${index}` : String(process.pid),
      state,
      reason: fault?.text ?? (state === "queued" ? "waits for free resources of this machine" : ""),
      user: record.owner?.name ?? null,
      host: null,
      ending: null,
      fault,
    }));
  }
}
