// Runs JavaScript hooks for pbs_server and pbs_mom, one at a time, each in a separate context.
//
// This process reads frames (JSON and a form feed) from descriptor 3 and writes answers to descriptor 4. It has no event
// loop: it waits, works and answers. When it runs from source, it may read only the files of this folder (H1), so it imports
// no others.
//
// H1. The process has no rights. The permission model of Node.js lets it read only its own program, and forbids it to start
//     processes, worker threads and native code. Its environment has only the time zone. If root starts it, it becomes the
//     given user before it reads a frame.
// H2. The context of a hook has the language and the pbs module, which is made inside the context from its source text. No
//     object of this program is in it.
// H3. If a hook loops, the daemon kills this process. If the daemon no longer exists, the process ends at its own time limit
//     for the hook.

import { readSync, writeSync } from "node:fs";
import { constants, createContext, Script } from "node:vm";
import { PBS_TEXT, type PbsParts } from "./pbs.ts";
import { runRule } from "./rule.ts";

const CONTROL_IN = 3;
const CONTROL_OUT = 4;
const ANSWER_CHARS_MAX = 16 * 1024 * 1024;

type Frame = {
  readonly setup?: { readonly tables: object; readonly conf: object };
  readonly script?: { readonly key: string; readonly name: string; readonly content: string };
  readonly forget?: string;
  readonly run?: {
    readonly script: string;
    readonly hook: { readonly name: string };
    readonly limit_ms: number;
    readonly config: string | null;
    /** an admission rule of the grid in place of a hook: the campaign as JSON text */
    readonly rule?: string;
  };
  readonly answer?: unknown;
};

const PBS = new Script(PBS_TEXT, { filename: "pbs" });
let waiting = "";
const decoder = new TextDecoder();

/** Returns the next frame, or null if the daemon no longer exists. */
function nextFrame(): Frame | null {
  const buffer = Buffer.alloc(1 << 16);
  for (;;) {
    const end = waiting.indexOf("\f");
    if (end >= 0) {
      const text = waiting.slice(0, end);
      waiting = waiting.slice(end + 1);
      return JSON.parse(text) as Frame;
    }
    const length = readSome(buffer);
    if (length === 0) return null;
    waiting += decoder.decode(buffer.subarray(0, length), { stream: true });
  }
}

/** Waits for data. Returns the number of bytes read; 0: the daemon has closed the pipe. */
function readSome(buffer: Buffer): number {
  for (;;) {
    try {
      return readSync(CONTROL_IN, buffer);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return 0;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function send(text: string): void {
  const bytes = Buffer.from(`${text}\f`);
  for (let at = 0; at < bytes.length; ) at += writeSync(CONTROL_OUT, bytes, at);
}

/** Runs one hook. Returns the answer as JSON text. */
function runHook(setup: object, run: NonNullable<Frame["run"]>, script: Script): string {
  // Nothing of this program can be reached from this function, because it has no prototype (H2).
  const ask: (question: string) => string = Object.setPrototypeOf((question: string): string => {
    if (typeof question !== "string") return '{"error":"not a question"}';
    send(`{"query":${question}}`);
    const frame = nextFrame();
    if (frame === null) process.exit(1);
    return JSON.stringify(frame.answer ?? { error: "the server gave no answer" });
  }, null);
  const context = createContext(constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } });
  const parts: PbsParts = PBS.runInContext(context);
  const hook = new parts.PbsModule(parts, { global: context, runText: JSON.stringify({ ...setup, run }), ask });
  let threw = false;
  let thrown: unknown;
  try {
    script.runInContext(context, { timeout: run.limit_ms });
  } catch (error) {
    threw = true;
    thrown = error;
  }
  const text = hook.finish(threw, thrown);
  if (typeof text !== "string" || text.length > ANSWER_CHARS_MAX)
    return JSON.stringify({ verdict: "error", error: "the hook's answer is too long" });
  return text;
}

const runOne = (setup: object, run: NonNullable<Frame["run"]>, script: Script): string =>
  run.rule === undefined ? runHook(setup, run, script) : runRule(script, run.rule, run.limit_ms);

/** Returns the answer for an error outside of the hook: its script is invalid, or the answer cannot be made. */
const failed = (error: unknown): string =>
  JSON.stringify({ verdict: "error", error: error instanceof Error ? (error.stack ?? error.message) : String(error) });

function serve(): void {
  let setup: object = { tables: {}, conf: {}, events: [] };
  const scripts = new Map<string, Script | string>();
  for (let frame = nextFrame(); frame !== null; frame = nextFrame()) {
    if (frame.setup !== undefined) setup = frame.setup;
    else if (frame.forget !== undefined) scripts.delete(frame.forget);
    else if (frame.script !== undefined) {
      const { key, name, content } = frame.script;
      try {
        scripts.set(key, new Script(Buffer.from(content, "base64").toString("utf8"), { filename: name }));
      } catch (error) {
        scripts.set(key, failed(error));
      }
    } else if (frame.run !== undefined) {
      const script = scripts.get(frame.run.script);
      let answer: string;
      try {
        answer = script instanceof Script ? runOne(setup, frame.run, script) : (script ?? failed("the hook's script is not here"));
      } catch (error) {
        answer = failed(error);
      }
      send(`{"done":${answer}}`);
    }
  }
}

/** Becomes the user in the arguments (uid and gid), if there is one. */
function becomeNobody(): void {
  const [uid, gid] = process.argv.slice(2).map(Number);
  if (uid === undefined || gid === undefined || process.setgroups === undefined) return;
  process.setgroups([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

becomeNobody();
send(JSON.stringify({ ready: process.pid }));
serve();
