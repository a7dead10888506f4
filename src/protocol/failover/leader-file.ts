// The newest leader of which a daemon has heard (leader.ts), in the file `leader` of its private directory, so that the daemon knows it when it was started again.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "#support/guards.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import { type Leader, leaderText, parseLeader } from "./leader.ts";

const fileIn = (directory: string): string => join(directory, "leader");

/** Returns the leader in the file; null: none is known. directory: mom_priv or sched_priv */
export function readLeader(directory: string): Leader | null {
  try {
    return parseLeader(readFileSync(fileIn(directory), "utf8").trim());
  } catch {
    return null;
  }
}

/** Notes the leader; null: the complex has one server. Throws the file system's error. */
export function noteLeader(directory: string, leader: Leader | null): void {
  if (leader === null) removeIfThere(fileIn(directory));
  else writeWholeFile(fileIn(directory), `${leaderText(leader)}\n`, 0o644);
}

/** Returns the leader that the data of a frame name; null: they name none. */
export function leaderIn(data: unknown): Leader | null {
  const text = isRecord(data) ? data["leader"] : undefined;
  return typeof text === "string" ? parseLeader(text) : null;
}
