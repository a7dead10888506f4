// Terminals of interactive jobs, as the starter keeps them: one relay process (terminal-main.ts) each, with the identity of the job's owner.
//
// T1. A job's program is started only when its relay has reached qsub and has a pseudo terminal.
// T2. A relay is no part of its job: it is not in the job's session, group or environment, and lives until what the job wrote was sent.
// T3. What a relay says is its owner's word: only the slave of a pseudo terminal that belongs to him is opened.

import { closeSync, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { isTerm, type TerminalTicket } from "#protocol/terminal-link.ts";
import { commandOf } from "./launch.ts";
import { errorText, makePipe, spawnSession } from "./posix.ts";
import { readProcess } from "./proc-table.ts";
import { isPseudoTerminal } from "./pseudo-terminal.ts";
import { siblingProgram } from "./sibling.ts";
import type { RunKey, StartSpec } from "./starter-link.ts";

/** What a relay is told on its stdin. */
export type RelayOrder = {
  readonly job: string;
  readonly ticket: TerminalTicket;
  /** of the job's own: for the cookie of its display */
  readonly directory: string;
};
/** What it answers once. */
export type RelayWord = OpenTerminal | { readonly failed: string };

/** display, authority: of qsub -X */
export type OpenTerminal = { readonly pty: string; readonly term: string; readonly display?: string; readonly authority?: string };

/** The job's environment on its terminal. */
export function terminalEnvironment(env: readonly string[], { term, display, authority }: OpenTerminal): string[] {
  const own = { TERM: term, DISPLAY: display, XAUTHORITY: authority };
  const set = Object.entries(own).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
  return [...env.filter((entry) => !set.some((other) => other.startsWith(entry.slice(0, entry.indexOf("=") + 1)))), ...set];
}

type Relay = RunKey & {
  readonly pid: number;
  /** write end of its stdin; null: closed, the job is over */
  order: number | null;
  open: boolean;
  readonly failed: (text: string) => void;
};

export type Terminals = {
  /** Starts a relay; one of the answers comes once, later. */
  open(
    spec: StartSpec & { readonly terminal: TerminalTicket },
    answers: { readonly opened: (terminal: OpenTerminal) => void; readonly failed: (text: string) => void },
  ): void;
  /** a relay of this very run lives */
  has(key: RunKey): boolean;
  /** relays: not to be taken for leftovers of jobs */
  readonly pids: ReadonlySet<number>;
  /** the job's processes are gone: its relay may end. False: there is none (any more) */
  over(job: string): boolean;
  /** A process of ours has ended: the run whose terminal was open is returned, null: nobody's that matters. */
  ended(pid: number): RunKey | null;
  /** its relay is dead, and was not reaped yet */
  hasDied(job: string): boolean;
  kill(job: string): void;
  /** those that have no terminal yet are given up: their mom will ask again */
  cancelOpening(): void;
};

const RELAY_ENVIRONMENT = ["PATH=/usr/bin:/bin"];
const WORD_CHARS_MAX = 4096;

export function makeTerminals(): Terminals {
  const byPid = new Map<number, Relay>();
  const pids = new Set<number>();
  const ofJob = (job: string): Relay | undefined => [...byPid.values()].find((relay) => relay.job === job);
  const closeOrder = (relay: Relay): void => {
    if (relay.order !== null) closeSync(relay.order);
    relay.order = null;
  };
  return {
    pids,
    open(spec, { opened, failed }) {
      const started = startRelay(spec);
      if ("text" in started) return queueMicrotask(() => failed(started.text));
      let answered = false;
      const answer = (give: () => void): void => {
        if (!answered) give();
        answered = true;
      };
      const relay: Relay = {
        job: spec.job,
        run_count: spec.run_count,
        pid: started.pid,
        order: started.order,
        open: false,
        failed: (text) => answer(() => failed(text)),
      };
      byPid.set(relay.pid, relay);
      pids.add(relay.pid);
      readWord(started.words, (word) => {
        // Its end is told when it is reaped.
        if (word === null) return;
        if ("failed" in word) return relay.failed(word.failed);
        if (!isPseudoTerminal(word.pty) || !isTerm(word.term)) return relay.failed("the relay did not name a terminal");
        if (!byPid.has(relay.pid)) return;
        answer(() => {
          relay.open = true;
          opened(word);
        });
      });
    },
    has: ({ job, run_count }) => ofJob(job)?.run_count === run_count,
    over(job) {
      const relay = ofJob(job);
      if (relay !== undefined) closeOrder(relay);
      return relay !== undefined;
    },
    ended(pid) {
      const relay = byPid.get(pid);
      pids.delete(pid);
      if (relay === undefined) return null;
      byPid.delete(pid);
      closeOrder(relay);
      relay.failed("the relay of the terminal has ended");
      return relay.open ? { job: relay.job, run_count: relay.run_count } : null;
    },
    hasDied(job) {
      const relay = ofJob(job);
      return relay?.open === true && readProcess(relay.pid)?.state === "Z";
    },
    kill(job) {
      const relay = ofJob(job);
      if (relay !== undefined) killQuietly(relay.pid);
    },
    cancelOpening() {
      for (const relay of [...byPid.values()]) {
        if (relay.open) continue;
        // It is nobody's from now on: the run may be asked for again before it is reaped.
        byPid.delete(relay.pid);
        closeOrder(relay);
        killQuietly(relay.pid);
        relay.failed("the mom was lost while qsub was being called");
      }
    },
  };
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended just now.
  }
}

type Started = { readonly pid: number; readonly order: number; readonly words: number };

function startRelay(spec: StartSpec & { readonly terminal: TerminalTicket }): Started | { readonly text: string } {
  const [stdin, order] = makePipe();
  const [words, stdout] = makePipe();
  const nothing = openSync("/dev/null", "w");
  const directory = openSync("/", "r");
  try {
    const program = { path: process.execPath, argv: [process.execPath, "--no-warnings", siblingProgram("terminal")] };
    const command = commandOf({ ...program, login: false, env: RELAY_ENVIRONMENT, owner: spec.owner, limits: {}, nice: null });
    const outcome = spawnSession({ ...command, stdin, stdout, stderr: nothing, directory });
    if ("errno" in outcome) {
      closeSync(order);
      closeSync(words);
      return { text: `the relay of the terminal cannot be started: ${errorText(outcome.errno)}` };
    }
    const tmpdir = spec.env.find((entry) => entry.startsWith("TMPDIR="))?.slice("TMPDIR=".length) ?? "";
    const told: RelayOrder = { job: spec.job, ticket: spec.terminal, directory: tmpdir };
    writeSync(order, `${JSON.stringify(told)}\n`);
    return { pid: outcome.pid, order, words };
  } finally {
    for (const fd of [stdin, stdout, nothing, directory]) closeSync(fd);
  }
}

/** null: it ended without a word. */
function readWord(fd: number, take: (word: RelayWord | null) => void): void {
  const pipe = new Socket({ fd, readable: true, writable: false });
  let text = "";
  let told = false;
  const tell = (word: RelayWord | null): void => {
    if (!told) take(word);
    told = true;
    pipe.destroy();
  };
  pipe.setEncoding("utf8");
  pipe.on("data", (chunk: string) => {
    text += chunk;
    const end = text.indexOf("\n");
    if (end >= 0) tell(parseWord(text.slice(0, end)));
    else if (text.length > WORD_CHARS_MAX) tell(null);
  });
  pipe.on("error", () => tell(null));
  pipe.on("close", () => tell(null));
}

/** What can stand in an environment. */
function displayOf(display: unknown, authority: unknown): Pick<OpenTerminal, "display" | "authority"> {
  if (typeof display !== "string" || !/^localhost:\d+\.\d+$/.test(display)) return {};
  return typeof authority === "string" && !authority.includes("\0") ? { display, authority } : { display };
}

function parseWord(line: string): RelayWord {
  try {
    const { pty, term, display, authority, failed } = JSON.parse(line) as { readonly [name: string]: unknown };
    if (typeof pty === "string" && typeof term === "string") return { pty, term, ...displayOf(display, authority) };
    if (typeof failed === "string") return { failed };
  } catch {
    // told below
  }
  return { failed: "the relay of the terminal does not speak as one" };
}
