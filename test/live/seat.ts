// A user at a terminal: a pseudo terminal of the test with a command as the leader of its session, and the contents of the
// screen.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { ReadStream } from "node:tty";
import { openPseudoTerminal, terminalWriter } from "#mom/host/pseudo-terminal.ts";
import { setWindowSize, terminalSettings } from "#support/libc/terminal-modes.ts";
import { until } from "./complex.ts";

export type Seat = {
  readonly pid: number;
  /** everything that was written to the terminal */
  readonly text: string;
  type(text: string): void;
  resize(rows: number, columns: number): void;
  /** waits until the terminal shows the text after all text found before */
  see(what: RegExp): Promise<string>;
  /** exit status, or the signal */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** whether the modes are the same as before the command */
  readonly restored: boolean;
  /** hangs up the terminal */
  hangUp(): void;
  leave(): void;
};

/** words: the command; becoming() before it gives it to another user. */
export function takeSeat(
  words: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string; readonly rows?: number; readonly columns?: number },
): Seat {
  const { master, path } = openPseudoTerminal();
  setWindowSize(master, { rows: options.rows ?? 24, columns: options.columns ?? 80 });
  const slave = openSync(path, constants.O_RDWR | constants.O_NOCTTY);
  const before = terminalSettings(slave);
  const child: ChildProcess = spawn("setsid", ["--ctty", "--wait", ...words], {
    stdio: [slave, slave, slave],
    env: options.env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (status, signal) => resolve(status ?? signal ?? -1));
  });
  let text = "";
  let seen = 0;
  let open = true;
  const terminal = new ReadStream(master);
  terminal.setEncoding("utf8");
  terminal.on("data", (chunk: string) => {
    text += chunk;
  });
  terminal.on("error", () => undefined);
  terminal.resume();
  const writer = terminalWriter(master, () => undefined);
  const leave = (): void => {
    if (!open) return;
    open = false;
    writer.close();
    terminal.destroy();
    closeSync(slave);
  };
  return {
    pid: child.pid ?? 0,
    get text() {
      return text;
    },
    type: (typed) => void writer.write(Buffer.from(typed)),
    resize: (rows, columns) => setWindowSize(slave, { rows, columns }),
    async see(what) {
      const found = await until(`${what} on the terminal, which shows ${JSON.stringify(text.slice(-500))}`, () => {
        const match = what.exec(text.slice(seen));
        if (match === null) return undefined;
        seen += match.index + match[0].length;
        return match[0];
      }).catch((error: Error) => {
        throw new Error(`${error.message}; at last it showed ${JSON.stringify(text.slice(-2000))}`);
      });
      return found;
    },
    ended,
    get restored() {
      return terminalSettings(slave).equals(before);
    },
    hangUp: leave,
    leave,
  };
}
