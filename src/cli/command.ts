// The shape of every command: a function of arguments, environment, directory and streams that returns an exit status, free of process globals
// (docs/resident.md), so that tests and the admin shell run commands in-process and a launcher can hand them to a resident agent.

import type { Flow } from "#protocol/client.ts";
import type { Terminal } from "./terminal.ts";

/** The world a command sees. out and err are written with complete texts; stdin is read only by commands that need it. */
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
  /** the terminal of standard input and output, for interactive work; absent: there is none to be had */
  readonly terminal?: () => Promise<Terminal>;
  /** for the command's links: how much they may bring, and when they end; absent: as much as comes, as long as the process lives */
  readonly flow?: Flow;
};

/** A command finds out before it has done anything that it cannot be run where it is: the resident hands it back to its launcher. */
export class NeedsOwnProcess extends Error {
  override readonly name = "NeedsOwnProcess";
}

/** What is told when a command fails in a way that nobody thought of; the status is 255. */
export function internalError(name: string, error: unknown): string {
  return `${name}: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

/** Exit status 0..255. */
export type Command = (io: CommandIo) => Promise<number>;
