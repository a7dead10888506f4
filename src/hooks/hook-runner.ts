// Runs hooks for a daemon: a few hosts of each language, started when first needed and kept, each with one hook at a time; what comes meanwhile waits.
//
// R1. A hook's time begins when a host takes it.
// R2. Idle hosts end after a while, so that a site that has no hooks any more has no processes for them.

import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HookLanguage } from "#model/hook.ts";
import { HOOK_EVENTS } from "#model/hook-attributes.ts";
import { ATTRIBUTE_TYPES } from "./attribute-types.ts";
import { type HookHost, type HookQuery, type HostRun, startHost } from "./hook-host.ts";
import { type HookOutcome, type HookRun, readAnswer } from "./hook-input.ts";

export type HookIdentity = { readonly uid: number; readonly gid: number; readonly groups: readonly number[] };

export type HookRunnerOptions = {
  /** server_priv/hooks or mom_priv/hooks: its tmp holds configuration files, and with debug the inputs and outputs of runs */
  readonly directory: string;
  /** entries of pbs.conf */
  readonly conf: { readonly [name: string]: string };
  /** whom JavaScript hooks run as when we are root */
  readonly nobody: { readonly uid: number; readonly gid: number } | null;
  /** what hooks ask of the daemon: {items} or {error} */
  readonly answer: (query: HookQuery) => unknown;
  readonly complain: (text: string) => void;
};

export type HookRunner = {
  /** identity: whom a Python hook runs as; null: ourselves */
  run(run: HookRun, identity: HookIdentity | null): Promise<HookOutcome>;
  close(): void;
};

/** Hosts of one language. */
const HOSTS_MAX = 4;
const IDLE_MS = 300_000;
/** What a JavaScript host allows itself beyond the alarm, should nobody be there to kill it. */
const LIMIT_BEYOND_MS = 5000;

type Waiting = { readonly run: HookRun; readonly identity: HookIdentity | null; readonly done: (outcome: HookOutcome) => void };
type Pool = { readonly idle: { readonly host: HookHost; readonly timer: NodeJS.Timeout }[]; busy: number; readonly waiting: Waiting[] };

export function hookRunner(options: HookRunnerOptions): HookRunner {
  const { directory, complain } = options;
  const tmp = join(directory, "tmp");
  const pools: { readonly [L in HookLanguage]: Pool } = {
    python: { idle: [], busy: 0, waiting: [] },
    javascript: { idle: [], busy: 0, waiting: [] },
  };
  const configs = new Map<string, { readonly content: string; readonly path: string }>();
  let next_run = 1;
  let closed = false;
  prepare(tmp, complain);

  const pump = (language: HookLanguage): void => {
    const pool = pools[language];
    while (pool.waiting.length > 0 && pool.busy < HOSTS_MAX) {
      const next = pool.waiting.shift() as Waiting;
      pool.busy++;
      void serve(language, next);
    }
  };

  const serve = async (language: HookLanguage, { run, identity, done }: Waiting): Promise<void> => {
    const pool = pools[language];
    let host: HookHost | null = null;
    let outcome: HookOutcome;
    try {
      host = takeHost(pool, language);
      const answer = await host.run(hostRun(run, identity));
      outcome = readAnswer(answer);
      if (run.debug) keepForDebugging(run, answer);
    } catch (error) {
      outcome = { kind: "error", text: (error as Error).message, logs: [] };
    }
    pool.busy--;
    if (host !== null) giveBack(pool, host);
    done(outcome);
    pump(language);
  };

  const takeHost = (pool: Pool, language: HookLanguage): HookHost => {
    for (let kept = pool.idle.pop(); kept !== undefined; kept = pool.idle.pop()) {
      clearTimeout(kept.timer);
      if (kept.host.alive) return kept.host;
    }
    return startHost(language, { nobody: options.nobody, setup: { tables: ATTRIBUTE_TYPES, conf: options.conf, events: HOOK_EVENTS } });
  };

  const giveBack = (pool: Pool, host: HookHost): void => {
    if (!host.alive) return;
    if (closed) return host.close();
    const timer = setTimeout(() => {
      pool.idle.splice(
        pool.idle.findIndex((kept) => kept.host === host),
        1,
      );
      host.close();
    }, IDLE_MS);
    timer.unref();
    pool.idle.push({ host, timer });
  };

  const hostRun = (run: HookRun, identity: HookIdentity | null): HostRun => {
    const { script, config, input, resources, ...hook } = run;
    const javascript = script.language === "javascript";
    return {
      key: scriptKey(run),
      name: run.name,
      content: script.content,
      alarm_ms: run.alarm * 1000,
      answer: options.answer,
      frame: {
        script: scriptKey(run),
        hook,
        input,
        resources,
        ...(javascript
          ? {
              config: config === null ? null : Buffer.from(config.content, "base64").toString("utf8"),
              limit_ms: run.alarm * 1000 + LIMIT_BEYOND_MS,
            }
          : { config_file: config === null ? null : configFile(run.name, config), identity, directory: tmp }),
      },
    };
  };

  /** Hooks in Python read their configuration from a file: it is written when it is new. */
  const configFile = (name: string, config: NonNullable<HookRun["config"]>): string => {
    const path = join(tmp, `${name}.config${config.suffix}`);
    const known = configs.get(name);
    if (known?.content === config.content && known.path === path) return path;
    writeWhole(path, Buffer.from(config.content, "base64"));
    configs.set(name, { content: config.content, path });
    return path;
  };

  /** debug: what went in and came out, as hook_EVENT_NAME_NUMBER.in and .out. */
  const keepForDebugging = (run: HookRun, answer: unknown): void => {
    const name = join(tmp, `hook_${run.input.event}_${run.name}_${process.pid}-${next_run++}`);
    try {
      writeWhole(`${name}.in`, `${JSON.stringify(run.input, null, 1)}\n`);
      writeWhole(`${name}.out`, `${JSON.stringify(answer, null, 1)}\n`);
    } catch (error) {
      complain(`debug files of hook ${run.name}: ${(error as Error).message}`);
    }
  };

  return {
    run: (run, identity) =>
      new Promise((done) => {
        pools[run.script.language].waiting.push({ run, identity, done });
        pump(run.script.language);
      }),
    close() {
      closed = true;
      for (const pool of Object.values(pools)) {
        for (const { host, timer } of pool.idle.splice(0)) {
          clearTimeout(timer);
          host.close();
        }
      }
    },
  };
}

/** A hook whose script was imported anew is another script. */
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

function prepare(tmp: string, complain: (text: string) => void): void {
  try {
    mkdirSync(tmp, { recursive: true, mode: 0o750 });
    for (const name of readdirSync(tmp)) if (/\.config(\.[a-z]+)?$/.test(name)) rmSync(join(tmp, name), { force: true });
  } catch (error) {
    complain(`${tmp}: ${(error as Error).message}`);
  }
}

/** Readable for all, since hooks may run as users; the directories above are closed to them where it matters. */
function writeWhole(path: string, text: string | Buffer): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  chmodSync(`${path}.new`, 0o644);
  renameSync(`${path}.new`, path);
}
