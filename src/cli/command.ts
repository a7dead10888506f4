// The form of every command: a function that takes arguments, environment, directory and streams, and returns an exit
// status. The function uses nothing that belongs to the whole process, such as process.env. So tests and the admin shell can
// run commands in their own process, and a launcher can pass them to a resident (docs/resident.md).

import type { Flow } from "#protocol/client.ts";
import type { Terminal } from "./terminal.ts";

/** What a command gets from the process that runs it. out and err receive complete texts. Standard input is read only by commands that need it. */
export type CommandIo = {
  /** arguments after the command's name */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly stdin: NodeJS.ReadStream;
  readonly stdoutIsTty: boolean;
  readonly stderrIsTty: boolean;
  /** opens the terminal of standard input and output for interactive work; absent: the command has no terminal */
  readonly terminal?: () => Promise<Terminal>;
  /**
   * holds back what the command's connections deliver while nobody has read its output yet, and ends them if the command is cancelled; absent: no limit, and
   * connections live as long as the process
   */
  readonly flow?: Flow;
};

/** Thrown by a command that must run in its own process. The command has done nothing yet. The resident then hands the command back to its launcher. */
export class NeedsOwnProcess extends Error {
  override readonly name = "NeedsOwnProcess";
}

/** Returns the message of a command that fails with an unexpected error. The exit status is then 255. */
export function internalError(name: string, error: unknown): string {
  return `${name}: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

/** A command. It resolves with the exit status, 0 to 255. */
export type Command = (io: CommandIo) => Promise<number>;
