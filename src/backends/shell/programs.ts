// Runs the programs of a backend: without a shell, with a time limit, with bounded output, in the locale C, as the user that the caller names.
//
// P1. A call ends after timeout_ms, or at most twice LAST_WORDS_MS later, even if the program cannot be killed.
// P2. At most AT_ONCE programs of one backend run at the same time; further calls wait. So a backend that hangs gets few calls.
// P3. An output beyond OUTPUT_MAX is an error: a list that was cut would report living runners as ended.
// P4. If this process runs as root, it runs only programs that root alone can change.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import type { Owner } from "../contract/backend.ts";
import { BackendError, cleanText, type FaultKind } from "../contract/fault.ts";
import { identityWords } from "./identity.ts";
import { signalGroup } from "./processes.ts";

const AT_ONCE = 4;
const OUTPUT_MAX = 64 * 1024 * 1024;
const ERRORS_MAX = 64 * 1024;
/** Time that a program has after SIGTERM, and after SIGKILL, before it is given up. */
const LAST_WORDS_MS = 2000;
const DIRECTORIES = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/opt/slurm/bin", "/opt/pbs/bin"];

/** How a program ended. status null: it was killed, or it did not end in time. */
export type Ran = { readonly status: number | null; readonly stdout: string; readonly stderr: string; readonly timed_out: boolean };

export type Programs = {
  /** Runs a program by its name. Throws if it cannot be started or prints too much; every other end is a Ran. */
  run(name: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
};

export type RunOptions = {
  /** the user that the program runs as; null or absent: the user of this process */
  readonly owner?: Owner | null;
  /** what the program reads from its standard input */
  readonly input?: string;
  readonly timeout_ms?: number;
};

/** bin: the directory of the programs; null: the usual directories. env: what the programs need beside PATH, HOME and the locale. */
export function programs(settings: {
  readonly bin: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly timeout_ms: number;
}): Programs {
  let running = 0;
  const waiting: (() => void)[] = [];
  const turn = (): Promise<void> => {
    if (running < AT_ONCE) {
      running++;
      return Promise.resolve();
    }
    return new Promise((resolve) => waiting.push(resolve));
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  };
  return {
    async run(name, args, { owner = null, input = "", timeout_ms = settings.timeout_ms } = {}) {
      const path = pathOf(settings.bin, name);
      const words = [...identityWords(owner), path, ...args];
      const env = { PATH: DIRECTORIES.slice(0, 3).join(":"), LC_ALL: "C", ...identityEnv(owner), ...settings.env };
      await turn();
      try {
        return await ran(name, words, env, input, timeout_ms);
      } finally {
        leave();
      }
    },
  };
}

function pathOf(bin: string | null, name: string): string {
  const path = bin === null ? DIRECTORIES.map((directory) => join(directory, name)).find((each) => existsSync(each)) : join(bin, name);
  if (path === undefined || !existsSync(path))
    throw new BackendError({ kind: "configuration", text: `there is no program ${path ?? name}; consider: set backend ... bin=DIRECTORY` });
  if (process.geteuid?.() !== 0) return path;
  try {
    return trustedFile(path, [0]);
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `${path} is not run as root: ${messageOf(error)}` });
  }
}

function identityEnv(owner: Owner | null): Readonly<Record<string, string>> {
  if (owner !== null) return { USER: owner.name, LOGNAME: owner.name };
  const { HOME, USER, LOGNAME } = process.env;
  return Object.fromEntries(Object.entries({ HOME, USER, LOGNAME }).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function ran(
  name: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string,
  timeout_ms: number,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const [program = "", ...args] = words;
    const child = spawn(program, args, { cwd: "/", env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    const stdout = collector(child, "stdout", OUTPUT_MAX, () => end(() => reject(tooLong(name))));
    const stderr = collector(child, "stderr", ERRORS_MAX, () => undefined);
    const timers: NodeJS.Timeout[] = [];
    let timed_out = false;
    let over = false;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      for (const timer of timers) clearTimeout(timer);
      if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL");
      settle();
    };
    const finish = (status: number | null): void =>
      end(() => resolve({ status: timed_out ? null : status, stdout: stdout(), stderr: stderr(), timed_out }));
    const later = (ms: number, act: () => void): void => void timers.push(setTimeout(act, ms));
    later(timeout_ms, () => {
      timed_out = true;
      if (child.pid !== undefined) signalGroup(child.pid, "SIGTERM");
    });
    later(timeout_ms + LAST_WORDS_MS, () => child.pid !== undefined && signalGroup(child.pid, "SIGKILL"));
    later(timeout_ms + 2 * LAST_WORDS_MS, () => finish(null));
    child.once("error", (error) => end(() => reject(new BackendError({ kind: "configuration", text: `${name}: ${error.message}` }))));
    child.once("close", (code) => finish(code));
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
}

/** Collects what a child writes, up to a limit. */
function collector(child: ChildProcess, stream: "stdout" | "stderr", max: number, tooMuch: () => void): () => string {
  const parts: Buffer[] = [];
  let length = 0;
  child[stream]?.on("data", (part: Buffer) => {
    if (length > max) return;
    length += part.length;
    parts.push(part);
    if (length > max) tooMuch();
  });
  return () => Buffer.concat(parts).toString("utf8");
}

const tooLong = (name: string): BackendError =>
  new BackendError({ kind: "transient", text: `${name} printed more than ${OUTPUT_MAX} bytes` });

export type FailureReading = { readonly timeout_ms: number; readonly kindOf: (text: string) => FaultKind; readonly isSubmission?: boolean };

/** The error for a program that failed. isSubmission: whatever is not a clear refusal may have happened nevertheless. */
export function failureOf(name: string, ran: Ran, { timeout_ms, kindOf, isSubmission = false }: FailureReading): BackendError {
  const text = wordsOf(name, ran, timeout_ms);
  const kind = ran.timed_out && kindOf(text) !== "limit" ? "transient" : kindOf(text);
  return new BackendError({ kind, text }, { uncertain: isSubmission && (ran.timed_out || kind === "transient") });
}

/** Returns what a program said when it failed, as one line: its errors, otherwise its output, otherwise how it ended. */
function wordsOf(name: string, { status, stdout, stderr, timed_out }: Ran, timeout_ms: number): string {
  const said = cleanText(stderr) || cleanText(stdout.slice(0, 4000));
  if (timed_out) return `${name} did not answer within ${timeout_ms / 1000} s${said === "" ? "" : `: ${said}`}`;
  return said === "" ? `${name} ended with ${status === null ? "a signal" : `status ${status}`} and said nothing` : said;
}
