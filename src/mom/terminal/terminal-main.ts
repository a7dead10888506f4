// pbs_terminal: the relay between the pseudo terminal of an interactive job and the qsub that waits for it. It runs as the job's owner, one for each such
// job; the starter starts it (starter/terminals.ts), and it is not part of the job's session.
//
// R1. stdin brings one line of JSON (RelayOrder); its end means that the job's processes are gone. stdout gets one line (RelayWord). Secrets are passed only in
//     this way.
// R2. When the relay ends, for whatever reason, the master is closed, and the kernel hangs up the job's terminal.
// R3. Output that a job has written before its end still reaches qsub, within a time limit.

import { closeSync, writeSync } from "node:fs";
import { ReadStream } from "node:tty";
import { dialTerminal, type TerminalChannel } from "#protocol/terminal/channel.ts";
import type { TerminalFrame, TerminalShape } from "#protocol/terminal/link.ts";
import { messageOf } from "#support/caught.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { applySettings, setWindowSize, terminalSettings, withControls } from "#support/libc/terminal-modes.ts";
import { openPseudoTerminal, terminalWriter } from "../host/pseudo-terminal.ts";
import type { RelayOrder, RelayWord } from "../starter/terminals.ts";
import { type JobDisplay, openDisplay } from "./x11-display.ts";

/** The time in which qsub must have described its terminal. */
const SHAPE_MS_MAX = 30_000;
/** The time in which qsub must take the job's last output: a user who has stopped the terminal does not delay the end of the job for longer. */
const LAST_MS_MAX = 5000;

function say(word: RelayWord): void {
  try {
    writeSync(1, `${JSON.stringify(word)}\n`);
    closeSync(1);
  } catch {
    // The starter, which started this relay, no longer exists, and neither do its jobs.
  }
}

function give_up(text: string): never {
  say({ failed: text });
  process.exit(1);
}

async function main(): Promise<void> {
  closeForeignDescriptors();
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM", "SIGPIPE"] as const) process.on(signal, () => undefined);
  const order = await readOrder();
  const { promise: shaped, resolve: shape } = Promise.withResolvers<TerminalShape>();
  let session: ReturnType<typeof relay> | null = null;
  /** input that qsub sent before the pseudo terminal existed */
  const early: TerminalFrame[] = [];
  let channel: TerminalChannel;
  try {
    channel = await dialTerminal(order.ticket, (own) => ({
      onFrame: (frame) => {
        if (session !== null) return session.take(frame);
        if (frame.kind !== "shape") return void early.push(frame);
        own.pause();
        shape(frame.shape);
      },
      onDrain: () => session?.drained(),
      onClose: () => (session === null ? give_up("qsub has gone") : process.exit(0)),
    }));
  } catch (error) {
    return give_up(messageOf(error));
  }
  channel.send({ kind: "hello", job: order.job });
  const late = setTimeout(() => give_up("qsub does not tell of its terminal"), SHAPE_MS_MAX);
  const terminal = await shaped;
  clearTimeout(late);
  const { master, path } = openPseudoTerminal();
  setWindowSize(master, terminal);
  applySettings(master, withControls(terminalSettings(master), terminal.controls));
  const display = terminal.x11 === undefined ? null : await displayFor(channel, terminal.x11, order.directory);
  session = relay(master, channel, display);
  for (const frame of early) session.take(frame);
  channel.resume();
  process.stdin.on("end", () => session?.jobIsOver());
  process.stdin.resume();
  say({ pty: path, term: terminal.term, ...(display === null ? {} : { display: display.name, authority: display.authority }) });
}

/** Sets up the display. If that fails, tells the user so on the terminal, and returns null. */
async function displayFor(channel: TerminalChannel, x11: NonNullable<TerminalShape["x11"]>, directory: string): Promise<JobDisplay | null> {
  try {
    return await openDisplay(channel, x11, directory);
  } catch (error) {
    channel.send({ kind: "data", bytes: Buffer.from(`pbs_mom: no forwarding of X11: ${messageOf(error)}\r\n`) });
    return null;
  }
}

/** Reads the first line of stdin. If stdin ends before it, this relay is not needed and ends. */
function readOrder(): Promise<RelayOrder> {
  return new Promise((resolve) => {
    let text = "";
    const unwanted = (): never => process.exit(0);
    const take = (chunk: string): void => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end < 0) return;
      process.stdin.off("data", take).off("end", unwanted).pause();
      resolve(JSON.parse(text.slice(0, end)) as RelayOrder);
    };
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", take);
    process.stdin.once("end", unwanted);
  });
}

function relay(master: number, channel: TerminalChannel, display: JobDisplay | null) {
  const terminal = new ReadStream(master);
  const writer = terminalWriter(master, () => channel.resume());
  let ended = false;
  /** Called when no more output will come from the job. */
  const end = (): void => {
    if (ended) return;
    ended = true;
    writer.close();
    setTimeout(() => process.exit(0), LAST_MS_MAX);
    channel.send({ kind: "end" });
    channel.finish();
  };
  terminal.on("data", (bytes: Buffer) => {
    if (!channel.send({ kind: "data", bytes })) terminal.pause();
  });
  // EIO: no process has the slave open any more.
  terminal.on("error", end);
  terminal.on("end", end);
  terminal.resume();
  return {
    take(frame: TerminalFrame): void {
      if (ended) return;
      if (frame.kind === "data" && !writer.write(frame.bytes)) channel.pause();
      if (frame.kind === "window") {
        try {
          setWindowSize(master, frame.size);
        } catch {
          // The job has just ended. Its last output must still be forwarded.
        }
      }
      display?.streams.take(frame);
    },
    drained(): void {
      if (!ended) terminal.resume();
      display?.streams.drained();
    },
    /**
     * Ends the relay after a time limit. It does not wait longer: a process outside of the job may keep the slave open for ever. It does not end earlier: more
     * output may still arrive.
     */
    jobIsOver(): void {
      setTimeout(end, LAST_MS_MAX);
    },
  };
}

main().catch((error: Error) => give_up(error.message));
