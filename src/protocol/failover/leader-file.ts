// The newest leader of which a daemon has heard (leader.ts), in the file `leader` of its private directory, so that the daemon knows it when it was started again.
//
// N1. A daemon obeys a leader even if the file cannot be written: otherwise a full disk would end the daemon's jobs at a take-over. The file is then written as soon as that
//     is possible. A daemon that is started again before that may connect to the server that was replaced; that server neither answers nor commands while it is not
//     certain that it leads.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#support/caught.ts";
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

/** How long a daemon waits before it tries again to write the file (N1). */
const AGAIN_MS = 2000;

/** Keeps the file of a daemon up to date (N1). fault: writes a line into the log */
export class LeaderNote {
  readonly #directory: string;
  readonly #fault: (text: string) => void;
  #timer: NodeJS.Timeout | null = null;
  /** whether the log says that the file cannot be written */
  #is_said = false;

  constructor(directory: string, fault: (text: string) => void) {
    this.#directory = directory;
    this.#fault = fault;
  }

  /** Notes the leader; null: the complex has one server. */
  keep(leader: Leader | null): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    try {
      noteLeader(this.#directory, leader);
      if (this.#is_said) this.#fault("the leader is noted");
      this.#is_said = false;
    } catch (error) {
      if (!this.#is_said) this.#fault(`the leader cannot be noted: ${messageOf(error)}`);
      this.#is_said = true;
      this.#timer = setTimeout(() => this.keep(leader), AGAIN_MS).unref();
    }
  }

  /** Makes no further attempt. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
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
