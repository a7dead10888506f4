// Terminals of interactive jobs on the starter's side: a relay process (terminal/terminal-main.ts) for each, with the identity of the job's owner.
//
// T1. A job's program is started only after its relay has connected to qsub and has opened a pseudo terminal.
// T2. A relay is not part of its job: it is not in the job's session, group or environment, and lives until all output of the job was sent.
// T3. A relay runs as the job's owner, so its message may be forged: the starter opens only the slave of a pseudo terminal, and only if it belongs to that
//     owner.

import { closeSync, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { isTerm, type TerminalTicket } from "#protocol/terminal/link.ts";
import { errorText, makePipe, spawnSession } from "../host/posix.ts";
import { readProcess } from "../host/proc-table.ts";
import { isPseudoTerminal } from "../host/pseudo-terminal.ts";
import { siblingProgram } from "../host/sibling.ts";
import type { RunKey, StartSpec } from "../job/starter-link.ts";
import { commandOf } from "./launch.ts";

/** What a relay reads from its stdin. */
export type RelayOrder = {
  readonly job: string;
  readonly ticket: TerminalTicket;
  /** a directory of the job, in which the relay writes the cookie of the display */
  readonly directory: string;
};
/** The only answer of a relay. */
export type RelayWord = OpenTerminal | { readonly failed: string };

/** The pseudo terminal that a relay has opened. display, authority: for qsub -X. */
export type OpenTerminal = { readonly pty: string; readonly term: string; readonly display?: string; readonly authority?: string };

/** Returns the job's environment with the variables of its terminal. */
export function terminalEnvironment(env: readonly string[], { term, display, authority }: OpenTerminal): string[] {
  const own = { TERM: term, DISPLAY: display, XAUTHORITY: authority };
  const set = Object.entries(own).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
  return [...env.filter((entry) => !set.some((other) => other.startsWith(entry.slice(0, entry.indexOf("=") + 1)))), ...set];
}

const RELAY_ENVIRONMENT = ["PATH=/usr/bin:/bin"];
const WORD_CHARS_MAX = 4096;

/** Functions for the answer of a relay: one of them is called, once. */
export type TerminalAnswers = { readonly opened: (terminal: OpenTerminal) => void; readonly failed: (text: string) => void };

/** A relay process and what is known about it. */
class Relay {
  readonly key: RunKey;
  readonly pid: number;
  /** write end of the relay's stdin; null: it was closed because the job is over */
  #order: number | null;
  #answers: TerminalAnswers | null;
  #open = false;

  constructor({ job, run_count }: RunKey, { pid, order }: Started, answers: TerminalAnswers) {
    this.key = { job, run_count };
    this.pid = pid;
    this.#order = order;
    this.#answers = answers;
  }

  /** Whether the relay has opened a terminal. */
  get isOpen(): boolean {
    return this.#open;
  }

  open(terminal: OpenTerminal): void {
    const answers = this.#answers;
    if (answers === null) return;
    this.#answers = null;
    this.#open = true;
    answers.opened(terminal);
  }

  fail(text: string): void {
    const answers = this.#answers;
    this.#answers = null;
    answers?.failed(text);
  }

  /** Tells the relay, by closing its stdin, that the job is over. The relay forwards the remaining output, then ends. */
  closeOrder(): void {
    if (this.#order !== null) closeSync(this.#order);
    this.#order = null;
  }

  kill(): void {
    try {
      process.kill(this.pid, "SIGKILL");
    } catch {
      // The relay has just ended.
    }
  }
}

export class Terminals {
  readonly #relays = new Map<number, Relay>();
  readonly #pids = new Set<number>();

  /** Returns the pids of relays, which must not be taken for leftovers of jobs. */
  get pids(): ReadonlySet<number> {
    return this.#pids;
  }

  #ofJob(job: string): Relay | undefined {
    return [...this.#relays.values()].find(({ key }) => key.job === job);
  }

  /** Starts a relay. Later calls one of the two functions in `answers`, once. */
  open(spec: StartSpec & { readonly terminal: TerminalTicket }, answers: TerminalAnswers): void {
    const started = startRelay(spec);
    if ("text" in started) return queueMicrotask(() => answers.failed(started.text));
    const relay = new Relay(spec, started, answers);
    this.#relays.set(relay.pid, relay);
    this.#pids.add(relay.pid);
    readWord(started.words, (word) => this.#answer(relay, word));
  }

  #answer(relay: Relay, word: RelayWord | null): void {
    // There was no answer: the relay has ended. That is reported when it is reaped.
    if (word === null) return;
    if ("failed" in word) return relay.fail(word.failed);
    if (!isPseudoTerminal(word.pty) || !isTerm(word.term)) return relay.fail("the relay did not name a terminal");
    if (this.#relays.has(relay.pid)) relay.open(word);
  }

  /** Whether there is a relay of exactly this run. */
  has({ job, run_count }: RunKey): boolean {
    return this.#ofJob(job)?.key.run_count === run_count;
  }

  /** Tells the relay of the job that the job's processes are gone, so that the relay may end. Returns whether there still is a relay. */
  over(job: string): boolean {
    const relay = this.#ofJob(job);
    relay?.closeOrder();
    return relay !== undefined;
  }

  /** Handles the end of a child process. Returns the run whose open terminal it served; null: it served none. */
  ended(pid: number): RunKey | null {
    const relay = this.#relays.get(pid);
    this.#pids.delete(pid);
    if (relay === undefined) return null;
    this.#relays.delete(pid);
    relay.closeOrder();
    relay.fail("the relay of the terminal has ended");
    return relay.isOpen ? relay.key : null;
  }

  /** Whether the job's relay has ended but is not reaped yet. */
  hasDied(job: string): boolean {
    const relay = this.#ofJob(job);
    return relay?.isOpen === true && readProcess(relay.pid)?.state === "Z";
  }

  kill(job: string): void {
    this.#ofJob(job)?.kill();
  }

  /** Gives up the relays that have no terminal yet. Their mom will request the runs again. */
  cancelOpening(): void {
    for (const relay of [...this.#relays.values()]) {
      if (relay.isOpen) continue;
      // The relay is separated from its run now: the run may be requested again before the relay is reaped.
      this.#relays.delete(relay.pid);
      relay.closeOrder();
      relay.kill();
      relay.fail("the mom was lost while qsub was being called");
    }
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

/** Reads the relay's answer and passes it to `take`, or null if the relay gives no proper answer. */
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

/** Returns display and authority if they are acceptable: they become environment variables of the job. */
function displayOf(display: unknown, authority: unknown): Pick<OpenTerminal, "display" | "authority"> {
  if (typeof display !== "string" || !/^localhost:\d+\.\d+$/.test(display)) return {};
  return typeof authority === "string" && !authority.includes("\0") ? { display, authority } : { display };
}

function parseWord(line: string): RelayWord {
  try {
    const { pty, term, display, authority, failed }: { readonly [name: string]: unknown } = JSON.parse(line);
    if (typeof pty === "string" && typeof term === "string") return { pty, term, ...displayOf(display, authority) };
    if (typeof failed === "string") return { failed };
  } catch {
    // The answer is not JSON: reported below.
  }
  return { failed: "the relay of the terminal does not speak as one" };
}
