// One launcher's command: from the request to the status.
//
// S1. A command begins only after the launcher's side has taken `A`: a launcher that has gone or given up before never has it carried out.
// S2. When the launcher goes, the command's links end, what it reads fails (it does not merely end: half a script must not become a job), what it prints is dropped.
// S3. What is printed and not yet taken is bounded: links to the server stop bringing more. Standard input is asked for a piece at a time.

import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { type Command, type CommandIo, internalError, NeedsOwnProcess } from "#cli/command.ts";
import type { Flow } from "#protocol/client.ts";
import { whyOwnProcess } from "./allowance.ts";
import { frameHead, frameReader, type LauncherFrame, outputFrames, type ResidentLetter } from "./frame.ts";
import { type CommandRequest, parseRequest } from "./request.ts";
import type { ServerLinks } from "./server-links.ts";

export type SessionWorld = {
  readonly circumstances: string;
  /** whether one more command may begin now */
  admits(): boolean;
  load(program: string): Promise<Command>;
  /** a connection to a server for a command */
  readonly links: ServerLinks;
  /** runs a function so that what goes wrong in it later is known to be the session's */
  within<T>(session: Session, action: () => T): T;
  began(session: Session): void;
  /** once for each that began */
  ended(session: Session): void;
};

export type Session = {
  /** The command broke down in a way that its promise did not tell. */
  fail(error: unknown): void;
};

/** A launcher sends its request at once; one that does not is let go. */
const REQUEST_MS_MAX = 5000;
const INTERNAL_ERROR = 255;
/** Made once: every command ends with it, and most need no trace of where. */
const LAUNCHER_GONE = new Error("the command's launcher has gone");

/** Serves one connection, whose peer is known to be our own user. */
export function serve(socket: Socket, world: SessionWorld): void {
  const read = frameReader();
  const gone = new AbortController();
  const impatience = setTimeout(() => socket.destroy(), REQUEST_MS_MAX);
  let request: CommandRequest | null = null;
  let input: Input | null = null;
  let began = false;
  let over = false;
  let has_acted = false;

  const send = (letter: ResidentLetter, ...payload: number[]): void => {
    socket.write(Buffer.concat([frameHead(letter, payload.length), Buffer.from(payload)]));
  };
  const finish = (letter: "N" | "X", ...payload: number[]): void => {
    if (over) return;
    over = true;
    send(letter, ...payload);
    socket.end();
    leave();
  };
  const leave = (): void => {
    over = true;
    clearTimeout(impatience);
    if (!gone.signal.aborted) gone.abort(LAUNCHER_GONE);
    input?.destroy(LAUNCHER_GONE);
    input = null;
  };
  const print = (letter: "O" | "E", text: string): void => {
    if (over || text === "") return;
    has_acted = true;
    // What is printed last and the status behind it wake the launcher once.
    socket.cork();
    for (const bytes of outputFrames(letter, text)) socket.write(bytes);
    process.nextTick(() => socket.uncork());
  };
  const session: Session = {
    fail(error) {
      if (request !== null) print("E", internalError(request.program, error));
      finish("X", INTERNAL_ERROR);
    },
  };

  const flow: Flow = {
    ended: gone.signal,
    room: () => (socket.writableNeedDrain ? new Promise((resolve) => socket.once("drain", resolve)) : null),
    connect: (path) => world.links.connect(path, flow),
  };
  const io = (asked: CommandRequest): CommandIo => ({
    argv: asked.argv,
    env: asked.env,
    cwd: asked.cwd,
    out: (text) => print("O", text),
    err: (text) => print("E", text),
    get stdin() {
      input ??= inputOf(asked.stdin_is_tty, () => {
        has_acted = true;
        if (!over) send("W");
      });
      return input as unknown as NodeJS.ReadStream;
    },
    stdoutIsTty: asked.stdout_is_tty,
    stderrIsTty: asked.stderr_is_tty,
    terminal: () => Promise.reject(new NeedsOwnProcess("the terminal is the launcher's")),
    flow,
  });

  const run = async (asked: CommandRequest, command: Command): Promise<void> => {
    try {
      finish("X", (await command(io(asked))) & 255);
    } catch (error) {
      if (error instanceof NeedsOwnProcess && !has_acted) finish("N");
      else session.fail(error);
    }
  };

  const begin = async (asked: CommandRequest): Promise<void> => {
    if (asked.circumstances !== world.circumstances || whyOwnProcess(asked) !== null || !world.admits()) return finish("N");
    request = asked;
    began = true;
    world.began(session);
    let command: Command;
    try {
      command = await world.load(asked.program);
    } catch {
      return finish("N");
    }
    // S1: the callback comes when the kernel has the frame, which it takes only while the launcher listens.
    socket.write(frameHead("A", 0), (error) => {
      if (!error && !over) world.within(session, () => void run(asked, command));
    });
  };

  const take = ({ letter, payload }: LauncherFrame): void => {
    if (letter === "Q" && request === null && !over) {
      clearTimeout(impatience);
      const asked = parseRequest(payload);
      if (asked === null) socket.destroy();
      else void begin(asked);
    } else if (letter !== "I" || input?.give(payload) !== true) socket.destroy();
  };

  socket.on("data", (bytes: Buffer) => {
    try {
      if (!over) for (const frame of read(bytes)) take(frame);
    } catch {
      // Not one of our launchers: it is owed nothing.
      socket.destroy();
    }
  });
  socket.on("error", () => undefined);
  // Not before: what the launcher has still to take must not be lost with the process.
  socket.on("close", () => {
    leave();
    if (began) world.ended(session);
  });
}

type Input = Readable & {
  /** A piece that was asked for; empty: the end. False: nobody asked. */
  give(piece: Buffer): boolean;
};

/** Standard input, a piece at a time. */
function inputOf(is_tty: boolean, want: () => void): Input {
  let wanted = false;
  const stream = new Readable({
    // No more than a piece is read ahead of the command.
    highWaterMark: 1,
    read() {
      if (wanted) return;
      wanted = true;
      want();
    },
  });
  // Whoever reads hears of it; with nobody reading it is no fault of the resident.
  stream.on("error", () => undefined);
  return Object.assign(stream, {
    ...(is_tty ? { isTTY: true } : {}),
    give(piece: Buffer): boolean {
      if (!wanted) return false;
      wanted = false;
      stream.push(piece.length === 0 ? null : piece);
      return true;
    },
  });
}
