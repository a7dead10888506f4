// Runs the scripts of `$action` and keeps the directories of checkpoints (run/checkpoint.ts). Scripts run with the
// mom's identity, in their own session, without a shell.
//
// F1. At any moment either the old or the new checkpoint is complete: the script writes into `ID.CK.new`. Then `ID.CK` is
//     renamed to `ID.CK.old`, and `ID.CK.new` to `ID.CK`.

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import { PELOG, type ScriptEnd } from "../job/pelog.ts";
import type { MomAction } from "../run/state.ts";
import { endOf } from "./script-run.ts";

type Request = Extract<MomAction, { kind: "run-action" }>;

/** Returns the users whose files may be run as scripts: root and the mom's own user. */
export const trustedOwners = (): readonly number[] => [0, process.geteuid?.() ?? 0];

export async function runAction(request: Request): Promise<ScriptEnd> {
  const { argv, checkpoint } = request;
  try {
    const program = trustedFile(argv[0] ?? "", trustedOwners());
    if (checkpoint === null) return await run(program, request);
    mkdirSync(dirname(checkpoint), { recursive: true, mode: 0o700 });
    await rm(`${checkpoint}.new`, { recursive: true, force: true });
    await mkdir(`${checkpoint}.new`, { mode: 0o700 });
    const end = await run(program, request);
    if (end.kind === "ended" && end.code === 0) await putInPlace(checkpoint);
    else await rm(`${checkpoint}.new`, { recursive: true, force: true });
    return end;
  } catch (error) {
    return { kind: "ended", code: PELOG.PERMISSION, text: messageOf(error) };
  }
}

function run(program: string, { argv, env, alarm_s }: Request): Promise<ScriptEnd> {
  return endOf(spawn(program, argv.slice(1), { detached: true, cwd: "/", env: { ...env }, stdio: "ignore" }), alarm_s);
}

async function putInPlace(path: string): Promise<void> {
  await rm(`${path}.old`, { recursive: true, force: true });
  await rename(path, `${path}.old`).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rename(`${path}.new`, path);
  await rm(`${path}.old`, { recursive: true, force: true });
}

export async function removeCheckpoint(path: string): Promise<void> {
  for (const suffix of ["", ".new", ".old"]) await rm(path + suffix, { recursive: true, force: true });
}

/**
 * Returns the jobs with a checkpoint in the directory. An interrupted replacement of a checkpoint is completed first. A missing directory has no checkpoints.
 */
export function foundCheckpoints(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  const there = new Set(names);
  for (const name of names) {
    const whole = /^(.+\.CK)\.(new|old)$/.exec(name);
    if (whole === null) continue;
    const [, path = "", suffix] = whole;
    if (suffix === "old" && !there.has(path)) {
      renameSync(`${directory}/${name}`, `${directory}/${path}`);
      there.add(path);
    } else rmSync(`${directory}/${name}`, { recursive: true, force: true });
  }
  return [...there].flatMap((name) => /^(.+)\.CK$/.exec(name)?.[1] ?? []);
}
