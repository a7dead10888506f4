// One host process: a Python or JavaScript interpreter that runs hooks one after the other (python/hook_host.py,
// javascript/host-main.ts).
//
// P1. Every run ends: with the host's answer, at its alarm, or with the host's death. A host that does not stop on request is
//     killed with its process group.
// P2. A host that has been killed or has died runs nothing more.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { HookLanguage } from "#model/tables/hook.ts";
import { assert } from "#support/assert.ts";

export type HostOptions = {
  /** the user that a JavaScript host becomes if root starts it; null: the host keeps our user */
  readonly nobody: { readonly uid: number; readonly gid: number } | null;
  /** data about attributes and pbs.conf that each host receives once */
  readonly setup: object;
};

/** A hook's question to the daemon: one object of a kind, or all of them (name ""). */
export type HookQuery = { readonly what: string; readonly name: string };

export type HostRun = {
  /** identifies the script; the content is sent only if the host does not have it */
  readonly key: string;
  readonly name: string;
  readonly content: string;
  /** passed to the host unchanged */
  readonly frame: object;
  readonly alarm_ms: number;
  readonly answer: (query: HookQuery) => unknown;
};

export type HookHost = {
  readonly language: HookLanguage;
  readonly alive: boolean;
  /** the `done` message of the host; `{verdict: "stopped"}` at the alarm; `{verdict: "error"}` if the host died */
  run(run: HostRun): Promise<unknown>;
  /** lets the host exit by itself */
  close(): void;
};

/** Time in ms that a host has to clean up after a stopped run. */
const STOP_MS_MAX = 2000;
/** Greatest size of one answer or question of a hook. */
const FRAME_CHARS_MAX = 32 * 1024 * 1024;
const ERRORS_CHARS_MAX = 4096;
/** Number of compiled scripts that a host keeps. */
const SCRIPTS_MAX = 64;

/** Paths of the system's own interpreter. */
const PYTHONS = ["/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"];

/** Starts an interpreter. It lives until it dies, is killed or is closed. */
export function startHost(language: HookLanguage, options: HostOptions): HookHost {
  const child = language === "python" ? startPython() : startJavascript(options.nobody);
  return new HostProcess(language, child, options.setup);
}

/** The process, its pipes and its present run. */
class HostProcess implements HookHost {
  readonly language: HookLanguage;
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #output: Readable;
  /** keys of the scripts that the host has, least recently used first */
  readonly #known: string[] = [];
  /** the beginning of an incomplete frame */
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
      // Output may still be in the pipe, so the run ends when the output ends.
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

  /** Sends a script to a host once; the host forgets its least recently used script. */
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

/** A message of the host. No field is trusted (hook-input.ts, I1). */
type HostFrame = { readonly query?: { readonly what?: unknown; readonly name?: unknown }; readonly done?: unknown };

/** Returns null if the text is not a JSON object. */
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

/** The environment contains only the time zone and, for Python, what it needs to find programs and to write text. */
const timeZone = (): { TZ?: string } => (process.env["TZ"] === undefined ? {} : { TZ: process.env["TZ"] });

function launch(command: string, argv: readonly string[], env: NodeJS.ProcessEnv, argv0: string): ChildProcess {
  return spawn(command, argv, { argv0, detached: true, cwd: "/", env, stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
}

function startPython(): ChildProcess {
  const python = PYTHONS.find((path) => existsSync(path)) ?? "python3";
  const env = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LANG: "C.UTF-8", LC_ALL: "C.UTF-8", ...timeZone() };
  // Isolated mode: no variables, no packages of users, no imports from the working directory; and no .pyc files.
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

/** In a checkout that runs from source the program is beside our source, otherwise beside our bundle. */
function javascriptProgram(): string {
  const self = fileURLToPath(import.meta.url);
  return self.endsWith(".ts") ? join(dirname(self), "javascript", "host-main.ts") : join(dirname(self), "pbs_hook_host.mjs");
}

/** The folder of the Python files: src/hooks, also in an installation. */
function ownFiles(): string {
  const self = dirname(fileURLToPath(import.meta.url));
  return [self, join(self, "../src/hooks")].find((path) => existsSync(join(path, "python", "hook_host.py"))) ?? self;
}
