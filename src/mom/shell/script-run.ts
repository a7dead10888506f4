// Runs the prologue or the epilogue (docs/reference/files.md 7): with the mom's identity, in its own session, with the job's files as its output.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, openSync, type Stats, statSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import { asIdentity } from "../host/posix.ts";
import { PELOG, PELOG_TEXTS, type ScriptEnd } from "../job/pelog.ts";
import type { FileIdentity } from "../job/process.ts";
import type { MomAction } from "../run/state.ts";

type Request = Extract<MomAction, { kind: "run-script" }>;

const NOT_THE_OWNERS = 0o022;
const EXECUTABLE = 0o100;

/**
 * Runs a script. path: its path. system: the script must belong to root; otherwise to the mom's own user. running: called
 * when the script exists and was started.
 */
export function runScript(path: string, system: boolean, request: Request, running: () => void): Promise<ScriptEnd> {
  const stat = look(path);
  if (stat === null) return Promise.resolve({ kind: "none" });
  if (!isTrusted(path, stat, system)) return Promise.resolve(ended(PELOG.PERMISSION, PELOG_TEXTS.permission));
  running();
  const files: number[] = [];
  try {
    files.push(openAppend(request.owner, request.files.stdout), openAppend(request.owner, request.files.stderr));
    const child = spawn(path, [...request.args], {
      detached: true,
      cwd: "/",
      env: { ...request.env },
      stdio: ["ignore", files[0], files[1]],
    });
    return endOf(child, request.alarm_s);
  } catch (error) {
    return Promise.resolve(ended(PELOG.NO_INPUT, messageOf(error)));
  } finally {
    for (const file of files) closeSync(file);
  }
}

/** Returns null if there is no script. */
function look(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

function isTrusted(path: string, stat: Stats, system: boolean): boolean {
  const owner = system ? 0 : process.getuid?.();
  if (!stat.isFile() || stat.uid !== owner || (stat.mode & NOT_THE_OWNERS) !== 0 || (stat.mode & EXECUTABLE) === 0) return false;
  try {
    if (system) trustedFile(path, [0]);
    return true;
  } catch {
    return false;
  }
}

/** Opens an output file of the job with the owner's rights, because its path may lead anywhere. */
function openAppend(owner: FileIdentity | null, path: string): number {
  const { O_WRONLY, O_APPEND, O_NOFOLLOW, O_NONBLOCK } = constants;
  return asIdentity(owner, () => openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK));
}

const ended = (code: number, text: string): ScriptEnd => ({ kind: "ended", code, text });

/** Waits for the end of a script. If it has not ended after alarm_s seconds, its whole process group is killed. */
export function endOf(child: ChildProcess, alarm_s: number): Promise<ScriptEnd> {
  return new Promise((resolve) => {
    const alarm = setTimeout(() => killGroup(child), alarm_s * 1000);
    const end = (outcome: ScriptEnd): void => {
      clearTimeout(alarm);
      resolve(outcome);
    };
    child.once("error", (error) => end(ended(PELOG.PERMISSION, error.message)));
    child.once("exit", (code) => {
      if (code === null) end(ended(PELOG.WAIT_FAILED, PELOG_TEXTS.wait));
      else end(ended(code, code === 0 ? "" : PELOG_TEXTS.nonzero));
    });
  });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The process group no longer exists.
  }
}
