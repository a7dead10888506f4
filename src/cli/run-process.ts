// Runs a command as a process of its own. Only here does a command get what belongs to the whole process, such as its
// arguments and environment. Output is written immediately and completely, without process.stdout, whose set-up takes a
// tenth of the time of a short command.

import { fstatSync, writeSync } from "node:fs";
import { codeOf, messageOf } from "#support/caught.ts";
import { type Command, type CommandIo, internalError } from "./command.ts";

/** Runs the command with this process's arguments, environment and streams, and ends the process with the status it returns. */
export function runProcess(name: string, run: Command): void {
  run(processIo()).then(
    (status) => process.exit(status),
    (error: unknown) => {
      writeAll(2, internalError(name, error));
      process.exit(255);
    },
  );
}

function processIo(): CommandIo {
  return {
    argv: process.argv.slice(2),
    env: process.env,
    cwd: workingDirectory(),
    out: (text) => writeAll(1, text),
    err: (text) => writeAll(2, text),
    get stdin() {
      return process.stdin;
    },
    get stdoutIsTty() {
      return isTerminal(1);
    },
    get stderrIsTty() {
      return isTerminal(2);
    },
    terminal: async () => (await import("./own-terminal.ts")).ownTerminal(),
  };
}

/** Returns the working directory. If it has been removed, returns PWD, which still has its name, or else /, which always exists. */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return process.env["PWD"] ?? "/";
  }
}

/** Whether a descriptor is a terminal. Only a character device can be one, so node:tty is loaded only for these. */
function isTerminal(fd: number): boolean {
  try {
    if (!fstatSync(fd).isCharacterDevice()) return false;
  } catch {
    return false;
  }
  return (fd === 1 ? process.stdout : process.stderr).isTTY === true;
}

/** Writes a text. If nobody can read it any more, the process ends as if by SIGPIPE. If a non-blocking pipe is full, waits. */
function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const code = codeOf(error);
      if (code === "EAGAIN") pause(1);
      else if (code === "EPIPE" || code === "ECONNRESET") process.exit(141);
      else if (fd === 2) return;
      else {
        writeAll(2, `cannot write output: ${messageOf(error)}\n`);
        process.exit(1);
      }
    }
  }
}

function pause(time_ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time_ms);
}
