// Serves one launcher: its command from the request to the exit status.
//
// S1. A command begins only after the kernel has accepted the frame `A` for the launcher. If the launcher has ended or given
//     up before that, the command is never run.
// S2. If the launcher ends, the command's connections are closed, its output is dropped, and reading its standard input
//     fails. That is an error and not the end of the input, so that half a script cannot become a job.
// S3. The amount of output that the launcher has not read is limited: beyond the limit, the command gets no more data from
//     the server. Standard input is requested one piece at a time.

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
  /** connects commands to servers */
  readonly links: ServerLinks;
  /** calls a function so that errors that it causes later are attributed to the session */
  within<T>(session: Session, action: () => T): T;
  began(session: Session): void;
  /** called once for each session that `began` was called for */
  ended(session: Session): void;
};

export type Session = {
  /** Ends the command after an error that its promise did not report. */
  fail(error: unknown): void;
};

/** A launcher sends its request immediately. If none has arrived after this time, the connection is closed. */
const REQUEST_MS_MAX = 5000;
const INTERNAL_ERROR = 255;
/** The error with which every cancelled command fails. It is made once, because nobody needs its stack. */
const LAUNCHER_GONE = new Error("the command's launcher has gone");

/** Serves one connection. The caller has checked that the process at the other end is of our own user. */
export function serve(socket: Socket, world: SessionWorld): void {
  new LauncherSession(socket, world);
}

/** The connection to a launcher, from the accept until it closes. */
class LauncherSession implements Session {
  readonly #socket: Socket;
  readonly #world: SessionWorld;
  readonly #read = frameReader();
  /** aborted when the launcher has ended, or has received its answer (S2) */
  readonly #gone = new AbortController();
  readonly #impatience: NodeJS.Timeout;
  readonly #flow: Flow;
  #request: CommandRequest | null = null;
  #input: Input | null = null;
  #began = false;
  #over = false;
  /** whether the command has printed something or asked for input: then it cannot be run a second time */
  #has_acted = false;

  constructor(socket: Socket, world: SessionWorld) {
    this.#socket = socket;
    this.#world = world;
    this.#impatience = setTimeout(() => socket.destroy(), REQUEST_MS_MAX);
    const flow: Flow = {
      ended: this.#gone.signal,
      room: () => (socket.writableNeedDrain ? new Promise((resolve) => socket.once("drain", resolve)) : null),
      connect: (place) => world.links.connect(place, flow),
    };
    this.#flow = flow;
    socket.on("data", (bytes: Buffer) => this.#takeBytes(bytes));
    socket.on("error", () => undefined);
    // The session ends only when the connection is closed: if the process exited before, output that the launcher has not read would be lost.
    socket.on("close", () => {
      this.#leave();
      if (this.#began) world.ended(this);
    });
  }

  fail(error: unknown): void {
    if (this.#request !== null) this.#print("E", internalError(this.#request.program, error));
    this.#finish("X", INTERNAL_ERROR);
  }

  #takeBytes(bytes: Buffer): void {
    try {
      if (!this.#over) for (const frame of this.#read(bytes)) this.#take(frame);
    } catch {
      // The process at the other end is not one of our launchers and gets no answer.
      this.#socket.destroy();
    }
  }

  #take({ letter, payload }: LauncherFrame): void {
    if (letter === "Q" && this.#request === null && !this.#over) {
      clearTimeout(this.#impatience);
      const asked = parseRequest(payload);
      if (asked === null) this.#socket.destroy();
      else void this.#begin(asked);
    } else if (letter !== "I" || this.#input?.give(payload) !== true) this.#socket.destroy();
  }

  async #begin(asked: CommandRequest): Promise<void> {
    const world = this.#world;
    if (asked.circumstances !== world.circumstances || whyOwnProcess(asked) !== null || !world.admits()) return this.#finish("N");
    this.#request = asked;
    this.#began = true;
    world.began(this);
    let command: Command;
    try {
      command = await world.load(asked.program);
    } catch {
      return this.#finish("N");
    }
    // S1: the callback is called when the kernel has accepted the frame. The kernel does so only while the launcher has the connection open.
    this.#socket.write(frameHead("A", 0), (error) => {
      if (!error && !this.#over) world.within(this, () => void this.#run(asked, command));
    });
  }

  async #run(asked: CommandRequest, command: Command): Promise<void> {
    try {
      this.#finish("X", (await command(this.#io(asked))) & 255);
    } catch (error) {
      if (error instanceof NeedsOwnProcess && !this.#has_acted) this.#finish("N");
      else this.fail(error);
    }
  }

  #io(asked: CommandRequest): CommandIo {
    const stdin = (): Input => this.#stdin(asked.stdin_is_tty);
    return {
      argv: asked.argv,
      env: asked.env,
      cwd: asked.cwd,
      out: (text) => this.#print("O", text),
      err: (text) => this.#print("E", text),
      get stdin() {
        return stdin() as unknown as NodeJS.ReadStream;
      },
      stdoutIsTty: asked.stdout_is_tty,
      stderrIsTty: asked.stderr_is_tty,
      terminal: () => Promise.reject(new NeedsOwnProcess("the terminal is the launcher's")),
      flow: this.#flow,
    };
  }

  #stdin(is_tty: boolean): Input {
    this.#input ??= inputOf(is_tty, () => {
      this.#has_acted = true;
      if (!this.#over) this.#send("W");
    });
    return this.#input;
  }

  #print(letter: "O" | "E", text: string): void {
    if (this.#over || text === "") return;
    this.#has_acted = true;
    // Output and the status that follows it are sent together, so that the launcher wakes up only once.
    this.#socket.cork();
    for (const bytes of outputFrames(letter, text)) this.#socket.write(bytes);
    process.nextTick(() => this.#socket.uncork());
  }

  #send(letter: ResidentLetter, ...payload: number[]): void {
    this.#socket.write(Buffer.concat([frameHead(letter, payload.length), Buffer.from(payload)]));
  }

  #finish(letter: "N" | "X", ...payload: number[]): void {
    if (this.#over) return;
    this.#over = true;
    this.#send(letter, ...payload);
    this.#socket.end();
    this.#leave();
  }

  #leave(): void {
    this.#over = true;
    clearTimeout(this.#impatience);
    if (!this.#gone.signal.aborted) this.#gone.abort(LAUNCHER_GONE);
    this.#input?.destroy(LAUNCHER_GONE);
    this.#input = null;
  }
}

type Input = Readable & {
  /** Passes on a piece of input that was requested; an empty piece is the end. Returns false if no piece was requested. */
  give(piece: Buffer): boolean;
};

/** Makes a command's standard input, which requests one piece at a time. */
function inputOf(is_tty: boolean, want: () => void): Input {
  let wanted = false;
  const stream = new Readable({
    // At most one piece is requested before the command reads it.
    highWaterMark: 1,
    read() {
      if (wanted) return;
      wanted = true;
      want();
    },
  });
  // If the command reads the stream, it receives the error. If it does not, the error must not count as a fault of the resident.
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
