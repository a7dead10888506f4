// The command of one launcher, from the request to the status.
//
// S1. A command begins only after the launcher's side has taken `A`. If the launcher has gone or given up before that, the
//     command is never run.
// S2. If the launcher goes, the command's links end, its reads fail, and its output is dropped. A read fails instead of ending,
//     so that half a script cannot become a job.
// S3. Output that the launcher has not read yet is bounded: links to the server then deliver no more. Standard input is
//     requested one piece at a time.

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
  /** opens connections to servers for a command */
  readonly links: ServerLinks;
  /** runs a function so that its later errors can be attributed to the session */
  within<T>(session: Session, action: () => T): T;
  began(session: Session): void;
  /** called once for each session that began */
  ended(session: Session): void;
};

export type Session = {
  /** The command failed in a way that its promise did not report. */
  fail(error: unknown): void;
};

/** A launcher sends its request at once. A connection without a request is closed after this time. */
const REQUEST_MS_MAX = 5000;
const INTERNAL_ERROR = 255;
/** Created once: every command ends with this error, and its stack is not needed. */
const LAUNCHER_GONE = new Error("the command's launcher has gone");

/** Serves one connection. The peer must already be known to be our own user. */
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
    // The last output and the status after it wake the launcher only once.
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
    // S1: the callback comes when the kernel has accepted the frame, which it does only while the launcher has the connection
    // open.
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
      // The peer is not one of our launchers and gets no answer.
      socket.destroy();
    }
  });
  socket.on("error", () => undefined);
  // The process must not exit earlier, because unread output would be lost with it.
  socket.on("close", () => {
    leave();
    if (began) world.ended(session);
  });
}

type Input = Readable & {
  /** Passes a requested piece; an empty piece is the end. Returns false if no piece was requested. */
  give(piece: Buffer): boolean;
};

/** Standard input, one piece at a time. */
function inputOf(is_tty: boolean, want: () => void): Input {
  let wanted = false;
  const stream = new Readable({
    // Only one piece is read ahead of the command.
    highWaterMark: 1,
    read() {
      if (wanted) return;
      wanted = true;
      want();
    },
  });
  // A reader of the stream receives the error. Without a reader the error is not a fault of the resident.
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
