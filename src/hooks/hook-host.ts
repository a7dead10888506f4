// A hook host: a process with a Python or JavaScript interpreter that runs hooks one after the other (python/hook_host.py,
// javascript/host-main.ts).
//
// P1. The run of a hook always ends: the hook host answers, the time limit of the hook (its alarm) is over, or the hook host
//     dies. A hook host that does not stop the hook on request is killed with its process group.
// P2. A hook host that was killed or has died gets no more hooks.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { HookLanguage } from "#model/tables/hook.ts";
import { assert } from "#support/assert.ts";

export type HostOptions = {
  /** the user that a JavaScript hook host becomes if root starts it; null: the hook host keeps our user */
  readonly nobody: { readonly uid: number; readonly gid: number } | null;
  /** types of attributes, entries of pbs.conf and hook events, sent to each hook host once */
  readonly setup: object;
};

/** A hook's query to its daemon. what: the kind of object. name: the object; "": all objects of that kind. */
export type HookQuery = { readonly what: string; readonly name: string };

export type HostRun = {
  /** identifies the script, whose content is sent only if the hook host does not have it */
  readonly key: string;
  readonly name: string;
  readonly content: string;
  /** the input of the hook, passed on to the hook host unchanged */
  readonly frame: object;
  readonly alarm_ms: number;
  readonly answer: (query: HookQuery) => unknown;
};

export type HookHost = {
  readonly language: HookLanguage;
  readonly alive: boolean;
  /** resolves with the `done` message of the hook host; at the alarm with `{verdict: "stopped"}`; with `{verdict: "error"}` if the hook host died */
  run(run: HostRun): Promise<unknown>;
  /** tells the hook host to exit */
  close(): void;
};

/** The time in ms that a hook host has to clean up after it stopped a hook. */
const STOP_MS_MAX = 2000;
/** Largest answer or query of a hook host, in characters. */
const FRAME_CHARS_MAX = 32 * 1024 * 1024;
const ERRORS_CHARS_MAX = 4096;
/** Number of compiled scripts that a hook host keeps. */
const SCRIPTS_MAX = 64;

/** Where the system's Python interpreter may be. */
const PYTHONS = ["/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"];

/** Starts a hook host. It lives until it is closed or killed, or dies. */
export function startHost(language: HookLanguage, options: HostOptions): HookHost {
  const child = language === "python" ? startPython() : startJavascript(options.nobody);
  return new HostProcess(language, child, options.setup);
}

/** A hook host: its process, its pipes and the run of a hook that it works on. */
class HostProcess implements HookHost {
  readonly language: HookLanguage;
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #output: Readable;
  /** keys of the scripts that the hook host has; the script whose last use is longest ago comes first */
  readonly #known: string[] = [];
  /** the beginning of a frame whose end has not arrived yet */
  #waiting = "";
  #errors = "";
  #alive = true;
  #current: { readonly run: HostRun; readonly end: (answer: unknown) => void } | null = null;

  constructor(language: HookLanguage, child: ChildProcess, setup: object) {
    this.language = language;
    this.#child = child;
    const [, , , input, output] = child.stdio;
    assert(input instanceof Writable && output instanceof Readable, "a hook host has pipes for frames");
    this.#input = input;
    this.#output = output;
    this.#listen();
    this.#send({ setup });
  }

  get alive(): boolean {
    return this.#alive;
  }

  #listen(): void {
    this.#output.setEncoding("utf8");
    this.#output.on("data", (chunk: string) => this.#take(chunk));
    this.#output.on("error", () => this.#die("the hook host was lost"));
    this.#output.on("close", () => this.#die("the hook host ended"));
    this.#input.on("error", () => this.#die("the hook host ended"));
    this.#child.stderr?.setEncoding("utf8");
    this.#child.stderr?.on("data", (chunk: string) => {
      this.#errors = (this.#errors + chunk).slice(-ERRORS_CHARS_MAX);
    });
    this.#child.once("error", (error) => this.#die(error.message));
    this.#child.once("exit", (code, signal) => {
      // Output may still be in the pipe. It is read in the short time before the run ends.
      const why = signal === null ? `the hook host ended with status ${code}` : `the hook host was ended by ${signal}`;
      setTimeout(() => this.#die(why), 100).unref();
    });
  }

  run(run: HostRun): Promise<unknown> {
    return new Promise((resolve) => {
      let stopping: NodeJS.Timeout | null = null;
      const timer = setTimeout(() => {
        if (this.language !== "python") return finish({ verdict: "stopped" }, true);
        this.#send({ stop: true });
        stopping = setTimeout(() => finish({ verdict: "stopped" }, true), STOP_MS_MAX);
      }, run.alarm_ms);
      const finish = (answer: unknown, kill = false): void => {
        clearTimeout(timer);
        if (stopping !== null) clearTimeout(stopping);
        this.#current = null;
        if (kill) this.#die("");
        resolve(answer);
      };
      this.#current = { run, end: (answer) => finish(answer) };
      if (!this.#alive) return finish({ verdict: "error", error: "the hook host ended" });
      this.#sendScript(run);
      this.#send({ run: run.frame });
    });
  }

  close(): void {
    this.#alive = false;
    this.#input.end();
  }

  #send(frame: object): void {
    this.#input.write(`${JSON.stringify(frame)}\f`);
  }

  /**
   * Sends a script to the hook host if it does not have it. If the hook host then has too many scripts, it is told to forget the script whose last use is
   * longest ago.
   */
  #sendScript({ key, name, content }: HostRun): void {
    const at = this.#known.indexOf(key);
    if (at >= 0) this.#known.splice(at, 1);
    else this.#send({ script: { key, name, content } });
    this.#known.push(key);
    if (this.#known.length > SCRIPTS_MAX) this.#send({ forget: this.#known.shift() });
  }

  #take(chunk: string): void {
    this.#waiting += chunk;
    for (let end = this.#waiting.indexOf("\f"); end >= 0; end = this.#waiting.indexOf("\f")) {
      const frame = parsedFrame(this.#waiting.slice(0, end));
      this.#waiting = this.#waiting.slice(end + 1);
      if (frame === null) return this.#die("the hook host does not speak its protocol");
      this.#receive(frame);
    }
    if (this.#waiting.length > FRAME_CHARS_MAX) this.#die("the hook's answer is too long");
  }

  #receive({ query, done }: HostFrame): void {
    if (query !== undefined && this.#current !== null) {
      const { what, name } = query;
      this.#send({ answer: this.#current.run.answer({ what: String(what), name: String(name) }) });
    } else if (done !== undefined) this.#current?.end(done);
  }

  #die(why: string): void {
    if (!this.#alive) return;
    this.#alive = false;
    killGroup(this.#child);
    this.#input.destroy();
    this.#output.destroy();
    const detail = this.#errors.trim() === "" ? "" : `: ${this.#errors.trim()}`;
    this.#current?.end({ verdict: "error", error: `${why}${detail}` });
  }
}

/** A message of the hook host. No field of it is trusted (hook-input.ts, I1). */
type HostFrame = { readonly query?: { readonly what?: unknown; readonly name?: unknown }; readonly done?: unknown };

/** Parses a message. Returns null if the text is not a JSON object. */
function parsedFrame(text: string): HostFrame | null {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === "object" ? frame : null;
  } catch {
    return null;
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The process group no longer exists.
  }
}

/**
 * Returns the time zone variable for the environment of a hook host. Python also gets what it needs to find programs and to write text; nothing else is passed.
 */
const timeZone = (): { TZ?: string } => (process.env["TZ"] === undefined ? {} : { TZ: process.env["TZ"] });

function launch(command: string, argv: readonly string[], env: NodeJS.ProcessEnv, argv0: string): ChildProcess {
  return spawn(command, argv, { argv0, detached: true, cwd: "/", env, stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
}

function startPython(): ChildProcess {
  const python = PYTHONS.find((path) => existsSync(path)) ?? "python3";
  const env = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LANG: "C.UTF-8", LC_ALL: "C.UTF-8", ...timeZone() };
  // Isolated mode: Python ignores variables, packages of users and modules in the working directory, and writes no .pyc files.
  return launch(python, ["-I", "-B", "-X", "utf8", join(ownFiles(), "python", "hook_host.py")], env, "pbs_python");
}

const JAVASCRIPT_HEAP_MB = 512;

function startJavascript(nobody: HostOptions["nobody"]): ChildProcess {
  const program = javascriptProgram();
  const argv = [
    "--permission",
    `--allow-fs-read=${program.endsWith(".ts") ? dirname(program) : program}`,
    "--no-warnings",
    `--max-old-space-size=${JAVASCRIPT_HEAP_MB}`,
    program,
    ...(nobody === null ? [] : [String(nobody.uid), String(nobody.gid)]),
  ];
  return launch(process.execPath, argv, timeZone(), "pbs_hook_host");
}

/** Returns the program of the JavaScript hook host. In a checkout that runs from source it is beside our source, otherwise beside our bundle. */
function javascriptProgram(): string {
  const self = fileURLToPath(import.meta.url);
  return self.endsWith(".ts") ? join(dirname(self), "javascript", "host-main.ts") : join(dirname(self), "pbs_hook_host.mjs");
}

/** Returns the folder of the Python files. It is src/hooks, in an installation too. */
function ownFiles(): string {
  const self = dirname(fileURLToPath(import.meta.url));
  return [self, join(self, "../src/hooks")].find((path) => existsSync(join(path, "python", "hook_host.py"))) ?? self;
}
