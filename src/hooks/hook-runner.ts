// Runs hooks for a daemon. A hook host of a language is started when it is needed, and is kept. It runs one hook at a time.
// If all hook hosts are busy, hooks wait.
//
// R1. The time limit of a hook begins when a hook host begins to run it.
// R2. A hook host that is idle for a while exits, so that hooks that are no longer used leave no processes.

import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HookLanguage } from "#model/tables/hook.ts";
import { HOOK_EVENTS } from "#model/tables/hook-attributes.ts";
import { messageOf } from "#support/caught.ts";
import { type HookHost, type HookQuery, type HostRun, startHost } from "./hook-host.ts";
import { ATTRIBUTE_TYPES } from "./run/attribute-types.ts";
import { type HookOutcome, type HookRun, readAnswer } from "./run/hook-input.ts";

export type HookIdentity = { readonly uid: number; readonly gid: number; readonly groups: readonly number[] };

export type HookRunnerOptions = {
  /** server_priv/hooks or mom_priv/hooks. Its folder tmp has configuration files and, for hooks with debug, the input and output of every run */
  readonly directory: string;
  /** entries of pbs.conf */
  readonly conf: { readonly [name: string]: string };
  /** the user that runs JavaScript hooks if we are root */
  readonly nobody: { readonly uid: number; readonly gid: number } | null;
  /** answers a hook's query to the daemon, with {items} or {error} */
  readonly answer: (query: HookQuery) => unknown;
  readonly complain: (text: string) => void;
};

export type HookRunner = {
  /** Runs a hook. identity: the user that a Python hook runs as; null: our own user */
  run(run: HookRun, identity: HookIdentity | null): Promise<HookOutcome>;
  close(): void;
};

/** Largest number of hook hosts of one language. */
const HOSTS_MAX = 4;
const IDLE_MS = 300_000;
/** How many ms after the alarm a JavaScript hook host ends itself, in case the daemon that should kill it no longer exists. */
const LIMIT_BEYOND_MS = 5000;

type Waiting = { readonly run: HookRun; readonly identity: HookIdentity | null; readonly done: (outcome: HookOutcome) => void };

/** Makes a runner of hooks. It starts no process before it runs the first hook. */
export function hookRunner(options: HookRunnerOptions): HookRunner {
  return new Runner(options);
}

class Runner implements HookRunner {
  readonly #options: HookRunnerOptions;
  readonly #files: RunFiles;
  readonly #pools: { readonly [L in HookLanguage]: HostPool };

  constructor(options: HookRunnerOptions) {
    this.#options = options;
    this.#files = new RunFiles(join(options.directory, "tmp"), options.complain);
    this.#pools = { python: this.#pool("python"), javascript: this.#pool("javascript") };
  }

  run(run: HookRun, identity: HookIdentity | null): Promise<HookOutcome> {
    return new Promise((done) => this.#pools[run.script.language].add({ run, identity, done }));
  }

  close(): void {
    for (const pool of Object.values(this.#pools)) pool.close();
  }

  #pool(language: HookLanguage): HostPool {
    const { nobody, conf } = this.#options;
    return new HostPool({
      start: () => startHost(language, { nobody, setup: { tables: ATTRIBUTE_TYPES, conf, events: HOOK_EVENTS } }),
      serve: (host, run, identity) => this.#serve(host, run, identity),
    });
  }

  async #serve(host: HookHost, run: HookRun, identity: HookIdentity | null): Promise<HookOutcome> {
    const answer = await host.run(this.#hostRun(run, identity));
    if (run.debug) this.#files.keepForDebugging(run, answer);
    return readAnswer(answer);
  }

  #hostRun(run: HookRun, identity: HookIdentity | null): HostRun {
    const { script, config, input, resources, ...hook } = run;
    const key = scriptKey(run);
    const alarm_ms = run.alarm * 1000;
    const own =
      script.language === "javascript"
        ? { config: config === null ? null : decoded(config.content).toString("utf8"), limit_ms: alarm_ms + LIMIT_BEYOND_MS }
        : { config_file: config === null ? null : this.#files.configFile(run.name, config), identity, directory: this.#files.directory };
    return {
      key,
      name: run.name,
      content: script.content,
      alarm_ms,
      answer: this.#options.answer,
      frame: { script: key, hook, input, resources, ...own },
    };
  }
}

type PoolOptions = {
  readonly start: () => HookHost;
  readonly serve: (host: HookHost, run: HookRun, identity: HookIdentity | null) => Promise<HookOutcome>;
};

/** The hook hosts of one language, and the runs that wait for one of them. */
class HostPool {
  readonly #options: PoolOptions;
  readonly #idle: { readonly host: HookHost; readonly timer: NodeJS.Timeout }[] = [];
  readonly #waiting: Waiting[] = [];
  #busy = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#pump();
  }

  close(): void {
    this.#closed = true;
    for (const { host, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      host.close();
    }
  }

  #pump(): void {
    while (this.#busy < HOSTS_MAX) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#busy++;
      void this.#serve(next);
    }
  }

  async #serve({ run, identity, done }: Waiting): Promise<void> {
    let host: HookHost | null = null;
    let outcome: HookOutcome;
    try {
      host = this.#take();
      outcome = await this.#options.serve(host, run, identity);
    } catch (error) {
      outcome = { kind: "error", text: messageOf(error), logs: [] };
    }
    this.#busy--;
    if (host !== null) this.#giveBack(host);
    done(outcome);
    this.#pump();
  }

  #take(): HookHost {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      clearTimeout(kept.timer);
      if (kept.host.alive) return kept.host;
    }
    return this.#options.start();
  }

  #giveBack(host: HookHost): void {
    if (!host.alive) return;
    if (this.#closed) return host.close();
    const timer = setTimeout(() => {
      const at = this.#idle.findIndex((kept) => kept.host === host);
      this.#idle.splice(at, 1);
      host.close();
    }, IDLE_MS);
    timer.unref();
    this.#idle.push({ host, timer });
  }
}

/** The files in the folder tmp of hooks: configuration files for Python hooks, and inputs and outputs for debugging. */
class RunFiles {
  readonly directory: string;
  readonly #complain: (text: string) => void;
  readonly #configs = new Map<string, { readonly content: string; readonly path: string }>();
  #next_run = 1;

  constructor(directory: string, complain: (text: string) => void) {
    this.directory = directory;
    this.#complain = complain;
    this.#prepare();
  }

  /** Removes the configuration files that an earlier daemon has left. */
  #prepare(): void {
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o750 });
      for (const name of readdirSync(this.directory))
        if (/\.config(\.[a-z]+)?$/.test(name)) rmSync(join(this.directory, name), { force: true });
    } catch (error) {
      this.#complain(`${this.directory}: ${messageOf(error)}`);
    }
  }

  /** Writes the configuration of a Python hook to a file, if it is not there yet, and returns the path. The hook reads its configuration from that file. */
  configFile(name: string, config: NonNullable<HookRun["config"]>): string {
    const path = join(this.directory, `${name}.config${config.suffix}`);
    const known = this.#configs.get(name);
    if (known?.content === config.content && known.path === path) return path;
    writeWhole(path, decoded(config.content));
    this.#configs.set(name, { content: config.content, path });
    return path;
  }

  /** Saves the input and the output of a hook with debug as hook_EVENT_NAME_NUMBER.in and .out. */
  keepForDebugging(run: HookRun, answer: unknown): void {
    const name = join(this.directory, `hook_${run.input.event}_${run.name}_${process.pid}-${this.#next_run++}`);
    try {
      writeWhole(`${name}.in`, `${JSON.stringify(run.input, null, 1)}\n`);
      writeWhole(`${name}.out`, `${JSON.stringify(answer, null, 1)}\n`);
    } catch (error) {
      this.#complain(`debug files of hook ${run.name}: ${messageOf(error)}`);
    }
  }
}

const decoded = (base64: string): Buffer => Buffer.from(base64, "base64");

/** The keys of scripts. A hook gets a new key when its script is imported again. */
const keys = new WeakMap<object, string>();
let next_key = 1;
function scriptKey({ script }: HookRun): string {
  let key = keys.get(script);
  if (key === undefined) {
    key = String(next_key++);
    keys.set(script, key);
  }
  return key;
}

/** Writes a file that all users can read, because hooks may run as users. Files that users must not read lie in a directory that is closed to them. */
function writeWhole(path: string, text: string | Buffer): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  chmodSync(`${path}.new`, 0o644);
  renameSync(`${path}.new`, path);
}
