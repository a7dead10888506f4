// The caller's own residents (src/resident): processes that run commands, so that Node.js need not be started for each
// command. A resident is found by its mark, a file on which it has a lock.

import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isLocked } from "#support/libc/lock-file.ts";
import { programTree } from "./complex-home.ts";

/** A resident that runs. bundle: path of its program, which shows to which installation it belongs. */
export type Resident = { readonly pid: number; readonly mark: string; readonly bundle: string };

const STOP_MS_MAX = 5000;

/** Returns the directories in which launchers keep sockets and marks (find_paths of native/launcher.c). Only the caller can write to them. */
function directories(): readonly string[] {
  const uid = process.geteuid?.() ?? 0;
  const runtime = process.env["XDG_RUNTIME_DIR"] ?? "";
  const places = [...(runtime.startsWith("/") ? [join(runtime, "partita")] : []), `/tmp/partita-${uid}`];
  return places.filter((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat?.isDirectory() === true && stat.uid === uid && (stat.mode & 0o077) === 0;
  });
}

/** Returns the caller's residents of this installation. */
export function ownResidents(): readonly Resident[] {
  const bundle = residentBundle();
  return directories().flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => name.endsWith(".mark"))
      .flatMap((name) => residentOf(join(directory, name)) ?? [])
      .filter((resident) => resident.bundle === bundle),
  );
}

function residentOf(mark: string): Resident | null {
  try {
    const [pid = "", bundle = ""] = readFileSync(mark, "utf8").split("\n");
    return /^[1-9]\d*$/.test(pid) && isLocked(mark) ? { pid: Number(pid), mark, bundle } : null;
  } catch {
    return null;
  }
}

function residentBundle(): string {
  const path = join(programTree(), "dist", "pbs_resident.mjs");
  return existsSync(path) ? realpathSync(path) : path;
}

/** Tells the residents to end after the commands that they run, and waits a short time until they have. Returns how many there were. */
export async function stopResidents(): Promise<number> {
  const residents = ownResidents();
  for (const { pid } of residents) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // The resident has ended by itself.
    }
  }
  const deadline_ms = performance.now() + STOP_MS_MAX;
  while (performance.now() < deadline_ms && residents.some(({ mark }) => isLocked(mark))) await sleep(10);
  return residents.length;
}
