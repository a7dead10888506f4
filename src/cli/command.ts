// The form of every command: a function of arguments, environment, directory and streams that returns an exit status and uses
// no process globals (docs/resident.md). Tests and the admin shell can therefore run commands in-process, and a launcher can
// pass them to a resident.

import type { Flow } from "#protocol/client.ts";
import type { Terminal } from "./terminal.ts";

/** The environment in which a command runs. out and err receive complete texts; only commands that need stdin read it. */
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
  /** opens the terminal of standard input and output for interactive work; absent: there is none */
  readonly terminal?: () => Promise<Terminal>;
  /** flow control of the command's links, and their end; absent: no limit, and links live as long as the process */
  readonly flow?: Flow;
};

/**
 * Thrown by a command, before it has done anything, that must run in its own process. The resident then hands the command back
 * to its launcher.
 */
export class NeedsOwnProcess extends Error {
  override readonly name = "NeedsOwnProcess";
}

/** The message of a command that fails unexpectedly. The exit status is 255. */
export function internalError(name: string, error: unknown): string {
  return `${name}: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

/** Returns the exit status 0..255. */
export type Command = (io: CommandIo) => Promise<number>;
