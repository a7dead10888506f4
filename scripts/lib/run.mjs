// Child processes of the scripts: one kind runs to its end with a progress report, the other takes the place of this process.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { ROOT } from "./paths.mjs";

/** Says something about the work itself: always on stderr, so that output of programs stays clean. */
export function say(text) {
  process.stderr.write(`partita: ${text}\n`);
}

/** A failure that people can act on: its message is all that is printed. */
export class Problem extends Error {}

/**
 * Runs a program to its end, its output kept back and a line of progress every ten seconds.
 * @returns {Promise<{status: number, output: string, seconds: number}>} status 127 when the program is missing
 */
export function runQuietly(what, program, args, { env = process.env, cwd = ROOT, limit_s = 0 } = {}) {
  return new Promise((done) => {
    const started = Date.now();
    const seconds = () => Math.round((Date.now() - started) / 100) / 10;
    let output = "";
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const progress = setInterval(() => say(`${what} ... ${Math.round(seconds())} s`), 10_000);
    const limit = limit_s > 0 ? setTimeout(() => child.kill("SIGKILL"), limit_s * 1000) : undefined;
    const finish = (status) => {
      clearInterval(progress);
      clearTimeout(limit);
      done({ status, output, seconds: seconds() });
    };
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (output += data));
    child.once("error", (error) => {
      output += `${error.message}\n`;
      finish(127);
    });
    child.once("close", (code, signal) => finish(code ?? 128 + constants.signals[signal]));
  });
}

/** Runs a program with our own terminal, passes signals on to it, and returns its exit status as a shell would show it. */
export function runInOurPlace(program, args, { env = process.env, cwd = ROOT } = {}) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, { cwd, env, stdio: "inherit" });
    const pass = (signal) => child.kill(signal);
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, pass);
    child.once("error", failed);
    child.once("close", (code, signal) => {
      for (const name of signals) process.off(name, pass);
      done(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** The last lines of a program's output, for a message. */
export function tail(output, lines = 30) {
  return output.trimEnd().split("\n").slice(-lines).join("\n");
}
