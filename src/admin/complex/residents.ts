// The caller's own residents (src/resident): processes that run commands, so that a command need not start Node. They are found
// by their marks, whose locks they hold.

import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isLocked } from "#support/libc/lock-file.ts";
import { programTree } from "./complex-home.ts";

/** bundle: the program from which it was started, which identifies the installation. */
export type Resident = { readonly pid: number; readonly mark: string; readonly bundle: string };

const STOP_MS_MAX = 5000;

/** The directories of sockets and marks of launchers (find_paths of native/launcher.c). Only the caller can write to them. */
function directories(): readonly string[] {
  const uid = process.geteuid?.() ?? 0;
  const runtime = process.env["XDG_RUNTIME_DIR"] ?? "";
  const places = [...(runtime.startsWith("/") ? [join(runtime, "partita")] : []), `/tmp/partita-${uid}`];
  return places.filter((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat?.isDirectory() === true && stat.uid === uid && (stat.mode & 0o077) === 0;
  });
}

/** The running residents of this installation. */
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

/** Ends them after the commands that they run, and waits a short time for their end. Returns their number. */
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
