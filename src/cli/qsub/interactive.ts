// qsub -I: submits the job, waits until the relay of its terminal connects from the execution host, and then serves as the
// job's terminal until the job ends (docs/reference/commands.md 1.3).
//
// I1. Whenever qsub ends, the terminal gets its former settings back, unless SIGKILL ended qsub.
// I2. A job without a user at its terminal is deleted: if the user ends qsub, or qsub dies, while the job waits, the job is
//     deleted. Once the job runs, the end of its terminal ends it.
// I3. While qsub asks the user whether to end the job, the terminal is used only for this question. If the job connects
//     meanwhile, the job waits until the user has answered.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ServerUnreachable } from "#protocol/client.ts";
import type { QueueJobRequest } from "#protocol/messages.ts";
import { type ChannelHandlers, listenForTerminal, type TerminalChannel, type TerminalListener } from "#protocol/terminal/channel.ts";
import { isTerm, type TerminalFrame, type TerminalShape } from "#protocol/terminal/link.ts";
import type { CommandIo } from "../command.ts";
import type { Complex, Link } from "../complex.ts";
import { PBSE_HISTJOBID, PBSE_UNKJOBID, refusalStatus } from "../errors.ts";
import type { Terminal } from "../terminal.ts";
import { escapeReader } from "./escapes.ts";
import { submitRefusal } from "./submit.ts";
import { type X11Forwarding, x11Forwarding } from "./x11.ts";

const DELETED = 2;
const FAILED = 1;
const SIGNALLED = 128;
/** The time in which the user must answer. */
const ANSWER_MS_MAX = 60_000;
const RECONNECT_MS = 1000;

/** What an interactive job needs. x11: whether it was submitted with -X. */
export type InteractiveWorld = { readonly io: CommandIo; readonly complex: Complex; readonly terminal: Terminal; readonly x11: boolean };

/** Submits the job. Returns the exit status when the job has ended. */
export async function interactiveJob(world: InteractiveWorld, link: Link, request: QueueJobRequest): Promise<number> {
  const { io, terminal } = world;
  const forwarding = world.x11 ? x11Forwarding(io.env) : null;
  if (world.x11 && forwarding === null) {
    io.err("qsub: DISPLAY names no display\n");
    return FAILED;
  }
  const call = incomingCall();
  // In a complex on one host, no port is opened.
  const network = existsSync(join(world.complex.conf().home, "identity/ca.crt"));
  const listener = await listenForTerminal(call.take, { network });
  try {
    const reply = await link.request({ ...request, terminal: listener.ticket });
    if (!reply.ok) {
      io.err(submitRefusal(reply));
      return refusalStatus(reply.code);
    }
    const { id } = reply.value as { readonly id: string };
    const called = await waitForCall(world, link, listener, call, id);
    if (typeof called === "number") return called;
    return await session(world, call, called, id, forwarding);
  } finally {
    listener.close();
    terminal.restore();
  }
}

/** The channel from the job. Frames are kept until a handler takes them. */
type Call = {
  readonly take: (channel: TerminalChannel) => ChannelHandlers;
  readonly came: Promise<TerminalChannel>;
  /** sets the handlers; frames that were kept are delivered first. onClosed gets null if the channel ended in order, otherwise the error */
  attend(onFrame: (frame: TerminalFrame) => void, onClosed: (error: Error | null) => void, onDrain: () => void): void;
};

function incomingCall(): Call {
  const { promise: came, resolve } = Promise.withResolvers<TerminalChannel>();
  const waiting: TerminalFrame[] = [];
  let closed: { readonly error: Error | null } | null = null;
  let onFrame = (frame: TerminalFrame): void => void waiting.push(frame);
  let onClosed = (error: Error | null): void => {
    closed = { error };
  };
  let onDrain = (): void => undefined;
  return {
    came,
    take(channel) {
      resolve(channel);
      return { onFrame: (frame) => onFrame(frame), onClose: (error) => onClosed(error), onDrain: () => onDrain() };
    },
    attend(frames, ended, drained) {
      onFrame = frames;
      onClosed = ended;
      onDrain = drained;
      for (const frame of waiting.splice(0)) frames(frame);
      if (closed !== null) ended(closed.error);
    },
  };
}

// ---- before the job runs ----

/** Waits until the job connects. Returns its channel, or the exit status if it does not connect. */
async function waitForCall(
  { io, complex, terminal }: InteractiveWorld,
  link: Link,
  listener: TerminalListener,
  call: Call,
  id: string,
): Promise<TerminalChannel | number> {
  const { promise: answered, resolve: answer } = Promise.withResolvers<number>();
  let question: Promise<void> | null = null;
  const ask = (): void => {
    question ??= askWhetherToEnd(io, terminal).then((words) => {
      question = null;
      if (words === null) return;
      io.out(words);
      answer(DELETED);
    });
  };
  const leave = (): void => answer(SIGNALLED + 1);
  const quiet = [
    terminal.onSignal("SIGINT", ask),
    terminal.onSignal("SIGTERM", ask),
    terminal.onSignal("SIGHUP", leave),
    terminal.onSignal("SIGTSTP", () => io.out("Sorry, you cannot suspend qsub until the job is started\n")),
  ];
  const watch = watchJob(complex, link, id);
  io.out(`qsub: waiting for job ${id} to start\n`);
  try {
    const first = await Promise.race([call.came, answered, watch.over]);
    if (first === "over") {
      io.err(`qsub: job ${id} apparently deleted\n`);
      return FAILED;
    }
    if (typeof first !== "number") {
      if (question === null) return first;
      // The channel is used only after the user has answered (I3).
      const decided = await Promise.race([question, answered]);
      if (typeof decided !== "number") return first;
    }
    listener.close();
    // The job is deleted before the text is written (I2): if the terminal no longer exists, writing ends this process.
    await deleteJob(complex, id);
    io.out(`Job ${id} is being deleted\n`);
    return await answered;
  } catch (error) {
    // After an error the job would have no terminal, so it is deleted (I2).
    await deleteJob(complex, id).catch(() => undefined);
    throw error;
  } finally {
    watch.stop();
    for (const off of quiet) off();
  }
}

/** Asks the user whether the job is to be deleted. Resolves with the text to print if it is, and with null if it is not. */
async function askWhetherToEnd(io: CommandIo, terminal: Terminal): Promise<string | null> {
  io.out("Do you wish to terminate the job and exit (y|[n])? ");
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const timer = setTimeout(() => resolve("Timeout -- deleting job\n"), ANSWER_MS_MAX);
  let line = "";
  terminal.listen(
    (bytes) => {
      line += Buffer.from(bytes).toString("latin1");
      for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
        const [letter] = line.slice(0, end).trim().toLowerCase();
        line = line.slice(end + 1);
        if (letter === "y") return resolve("");
        if (letter === "n" || letter === undefined) return resolve(null);
        io.out("yes or no please\n");
      }
    },
    () => resolve(""),
  );
  const decision = await promise;
  clearTimeout(timer);
  terminal.listen(null);
  return decision;
}

/** Codes of refusals which show that the job does not exist any more. */
const NO_JOB: ReadonlySet<number> = new Set([PBSE_UNKJOBID, PBSE_HISTJOBID]);

/**
 * Watches the job. `over` resolves when the job has ended or no longer exists. If the connection to the server is lost, the server is asked again when it is
 * back. `over` rejects after any other error.
 */
function watchJob(complex: Complex, first: Link, id: string): { readonly over: Promise<"over">; stop(): void } {
  let stopped = false;
  let link: Link | null = first;
  const { promise: over, resolve, reject } = Promise.withResolvers<"over">();
  const watch = async (): Promise<void> => {
    while (!stopped) {
      try {
        link ??= await complex.connect();
        const reply = await link.request({ kind: "wait-job", job: id });
        if (reply.ok || NO_JOB.has(reply.code)) return resolve("over");
        // The server shuts down or its disk is full. Its answer does not mean that the job has ended.
        if (!stopped) await sleep(RECONNECT_MS);
      } catch (error) {
        if (!(error instanceof ServerUnreachable)) throw error;
        link = null;
        if (!stopped) await sleep(RECONNECT_MS);
      }
    }
  };
  watch().catch(reject);
  // After the job has connected, nobody waits for this promise, so its rejection must not count as unhandled.
  over.catch(() => undefined);
  return {
    over,
    stop() {
      stopped = true;
      link?.close();
    },
  };
}

async function deleteJob(complex: Complex, id: string): Promise<void> {
  const link = await complex.connect();
  try {
    await link.request({ kind: "delete-job", job: id });
  } finally {
    link.close();
  }
}

// ---- while the job runs ----

const ENDING_SIGNALS = [
  ["SIGTERM", 15],
  ["SIGHUP", 1],
  ["SIGINT", 2],
] as const;

/** Describes the terminal that the job will get: it is like the submitter's own. */
function shapeOf(io: CommandIo, terminal: Terminal, forwarding: X11Forwarding | null): TerminalShape {
  const term = io.env["TERM"] ?? "";
  return {
    ...terminal.window(),
    term: isTerm(term) ? term : "unknown",
    controls: terminal.controls,
    ...(forwarding === null ? {} : { x11: forwarding.offer }),
  };
}

async function session(
  { io, terminal }: InteractiveWorld,
  call: Call,
  channel: TerminalChannel,
  id: string,
  forwarding: X11Forwarding | null,
): Promise<number> {
  const display = forwarding?.over(channel) ?? null;
  const { promise: ended, resolve: end } = Promise.withResolvers<{ readonly status: number; readonly words?: string }>();
  const read = escapeReader(terminal.controls);
  let ready = false;
  const goOn = (): void => {
    terminal.raw();
    channel.send({ kind: "window", size: terminal.window() });
  };
  const suspend = (): void => {
    terminal.restore();
    terminal.suspend();
    goOn();
  };
  const type = (bytes: Uint8Array): void => {
    for (const typed of read(bytes)) {
      if (typed.kind === "terminate") return end({ status: 0 });
      if (typed.kind === "suspend") suspend();
      else if (!channel.send({ kind: "data", bytes: typed.bytes })) terminal.listen(null);
    }
  };
  const open = (): void => {
    ready = true;
    channel.send({ kind: "shape", shape: shapeOf(io, terminal, forwarding) });
    io.out(`qsub: job ${id} ready\n\n`);
    terminal.raw();
    terminal.listen(type, () => end({ status: SIGNALLED + 1 }));
  };
  const hear = (frame: TerminalFrame): void => {
    switch (frame.kind) {
      case "hello":
        if (frame.job === id) return open();
        return end({ status: FAILED, words: "qsub: invalid job name from execution server\n" });
      case "data":
        if (ready) terminal.write(frame.bytes);
        return;
      case "end":
        return end({ status: 0 });
      default:
        return display?.take(frame);
    }
  };
  const drained = (): void => {
    if (ready) terminal.listen(type);
    display?.drained();
  };
  const quiet = [
    terminal.onSignal("SIGWINCH", () => ready && channel.send({ kind: "window", size: terminal.window() })),
    terminal.onSignal("SIGCONT", () => ready && goOn()),
    ...ENDING_SIGNALS.map(([name, number]) => terminal.onSignal(name, () => end({ status: SIGNALLED + number }))),
  ];
  call.attend(hear, () => end({ status: FAILED, words: "qsub: the connection to the job was lost\n" }), drained);
  const { status, words } = await ended;
  terminal.listen(null);
  terminal.restore();
  for (const off of quiet) off();
  channel.destroy();
  display?.close();
  if (words !== undefined) io.err(ready ? `\n${words}` : words);
  if (ready) io.out(`\nqsub: job ${id} completed\n`);
  return status;
}
