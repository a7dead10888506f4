// The watch over a site's modules: a separate thread notices when one of their calls does not return. Code on the main thread could
// not notice that. The thread notes the module in sched_priv and ends the process; the server starts another one, which finds the
// note and leaves the module out of the chain (module-host.ts).
//
//   main thread:      a call begins -> shared memory has its number -> the call ends
//   watching thread:  the same call for module_alarm seconds -> note in sched_priv, SIGALRM   (module-watch-main.ts)
//
// W1. To watch a call takes only a few writes to shared memory, because checks are called thousands of times in a cycle.
// W2. Work between calls (after an await) belongs to the modules whose promises are open. If the main thread hangs while no cycle
//     runs, the module whose promise has been open longest is held responsible.
// W3. Time in which the watching thread itself did not run does not count: a machine that slept, or a stopped process, is no
//     module's fault.

import { readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { writeWholeFile } from "#support/whole-file.ts";

/** Indexes in the shared memory, of 32 bits each. A call is identified by the number that was sent to the thread for it; 0: no call. */
export const AT = { CALL: 0, CALLS: 1, OPEN: 2, BEAT: 3, CYCLE: 4 } as const;
const PLACES = 5;

/** A module that has not returned from a call. from: a text made from its file, version and options, by which the module is recognized again. */
export type Stuck = { readonly name: string; readonly from: string; readonly doing: string; readonly alarm_s: number };
/** Messages to the watching thread. */
export type WatchMessage =
  | { readonly kind: "call"; readonly call: number; readonly name: string; readonly from: string; readonly doing: string }
  | { readonly kind: "set"; readonly file: string; readonly alarm_s: number };

export type ModuleWatch = {
  /** Sets sched_priv and module_alarm (0: no time limit). Resolves when the thread watches. */
  begin(sched_priv: string, alarm_s: number): Promise<void>;
  /** Returns the watch for the calls of one module of the site, given with its file and options. */
  of(name: string, from: string): CallWatch;
  /** Tells the thread whether the scheduler itself is working on a cycle, for which there is no time limit. */
  busy(is: boolean): void;
  stop(): Promise<void>;
};
export type CallWatch = {
  call<T>(doing: string, act: () => T): T;
  /** Watches work until its promise is settled. Rejects if that takes longer than limit_s (0: no limit). */
  open<T>(doing: string, limit_s: number, act: () => Promise<T> | T): Promise<T>;
};

/** The watch for built-in modules, which does nothing, because they are trusted to return. */
export const UNWATCHED: CallWatch = { call: (_, act) => act(), open: async (_, _limit_s, act) => act() };

const BEAT_MS = 500;
const FILE = "modules_stuck";

export function moduleWatch(onError: (text: string) => void): ModuleWatch {
  const memory = new Int32Array(new SharedArrayBuffer(4 * PLACES));
  const open: number[] = [];
  /** the registered calls by number; a thread that is started later must get them too */
  const told: WatchMessage[] = [];
  let thread: Worker | null = null;
  let beat: NodeJS.Timeout | null = null;
  let next_call = 1;
  let depth = 0;

  const tell = (message: WatchMessage): void => thread?.postMessage(message);

  function start(): Promise<void> {
    const worker = new Worker(threadProgram(), { workerData: memory.buffer, resourceLimits: { maxOldGenerationSizeMb: 32 } });
    thread = worker;
    worker.unref();
    for (const message of told) tell(message);
    worker.on("error", (error) => {
      thread = null;
      onError(`nobody watches over modules any more: ${error.message}`);
    });
    beat ??= setInterval(() => Atomics.add(memory, AT.BEAT, 1), BEAT_MS).unref();
    return new Promise((resolve) => {
      worker.once("online", resolve);
      worker.once("error", () => resolve());
    });
  }

  const showOpen = (): void => void Atomics.store(memory, AT.OPEN, open[0] ?? 0);

  return {
    async begin(sched_priv, alarm_s) {
      if (thread === null && alarm_s > 0) await start();
      tell({ kind: "set", file: join(sched_priv, FILE), alarm_s });
    },
    of(name, from) {
      const calls = new Map<string, number>();
      const numberOf = (doing: string): number => {
        let call = calls.get(doing);
        if (call === undefined) {
          calls.set(doing, (call = next_call++));
          const message = { kind: "call", call, name, from, doing } as const;
          told.push(message);
          tell(message);
        }
        return call;
      };
      const call = <T>(doing: string, act: () => T): T => {
        // A module may cause the cycle to call another module. The time of both counts for the module that was called first.
        if (depth === 0) {
          Atomics.store(memory, AT.CALL, numberOf(doing));
          Atomics.add(memory, AT.CALLS, 1);
        }
        depth++;
        try {
          return act();
        } finally {
          depth--;
          if (depth === 0) Atomics.store(memory, AT.CALL, 0);
        }
      };
      return {
        call,
        async open(doing, limit_s, act) {
          const number = numberOf(doing);
          open.push(number);
          showOpen();
          try {
            return await within(
              limit_s,
              call(doing, async () => act()),
            );
          } finally {
            open.splice(open.indexOf(number), 1);
            showOpen();
          }
        },
      };
    },
    busy: (is) => void Atomics.store(memory, AT.CYCLE, is ? 1 : 0),
    async stop() {
      if (beat !== null) clearInterval(beat);
      await thread?.terminate();
      thread = null;
    },
  };
}

/** Returns the result of a promise. Rejects if the promise is not settled in time. */
async function within<T>(limit_s: number, work: Promise<T>): Promise<T> {
  if (limit_s <= 0) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(lateText(limit_s))), limit_s * 1000);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export const lateText = (limit_s: number): string => `not done within ${limit_s} s`;

/** Returns the path of the thread's program: its bundle beside that of the scheduler, or its source. */
function threadProgram(): string {
  const self = fileURLToPath(import.meta.url);
  return join(dirname(self), basename(dirname(self)) === "shell" ? "module-watch-main.ts" : "pbs_sched_watch.mjs");
}

// --- notes about modules that did not return

/** Reads the modules noted in a sched_priv. A note that cannot be read is ignored. */
export function readStuck(sched_priv: string): Stuck[] {
  try {
    return stuckOf(readFileSync(join(sched_priv, FILE), "utf8"));
  } catch {
    return [];
  }
}

/** Replaces the notes by these. */
export function keepStuck(sched_priv: string, stuck: readonly Stuck[]): void {
  if (stuck.length === 0) rmSync(join(sched_priv, FILE), { force: true });
  else writeWholeFile(join(sched_priv, FILE), stuckText(stuck));
}

export const stuckText = (stuck: readonly Stuck[]): string => `${JSON.stringify(stuck)}\n`;

export function stuckOf(text: string): Stuck[] {
  const value: unknown = JSON.parse(text);
  return (Array.isArray(value) ? value : []).filter(isStuck);
}

function isStuck(value: unknown): value is Stuck {
  const { name, from, doing, alarm_s } = (value ?? {}) as Partial<Record<keyof Stuck, unknown>>;
  return typeof name === "string" && typeof from === "string" && typeof doing === "string" && typeof alarm_s === "number";
}
