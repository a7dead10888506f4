// Adds the output of tasks on a sister to the job's own output on the mother superior. The sister sends the contents of its
// spool files there piece by piece while tasks run, and all of it before it reports the end of a task.
//
// O1. A piece counts as sent when the mother superior has accepted it. The number of bytes sent so far is noted on the disk,
//     so that a restarted mom sends nothing twice.
// O2. A file in spool is read only if it is a plain file of the job's owner, because all users may write in spool.
// O3. drain() waits for the output that was written before the call, not for output that is written later.

import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { hostsOf } from "#model/request/host-entry.ts";
import type { TaskToMom } from "#protocol/task-link.ts";
import { messageOf } from "#support/caught.ts";
import type { Link } from "../host/frame-link.ts";
import { isSister } from "../job/sister.ts";
import type { MomState, Run } from "../run/state.ts";
import { dialMom } from "./task-server.ts";

const PIECE_BYTES = 256 * 1024;
const EXTENSION = ".SO";

export type TaskOutput = {
  /** sends all output that exists now. Resolves when it was accepted, or cannot be accepted now */
  drain(job: string): Promise<void>;
  /** looks for new output of all runs for which this mom is a sister */
  tick(): void;
};

type Carried = { o: number; e: number };

export function carryOutput(home: string, state: MomState, complain: (text: string) => void): TaskOutput {
  const offsets = new Map<string, Carried>();
  const underway = new Map<string, Promise<void>>();
  const keeper = (job: string): string => `${home}/mom_priv/jobs/${job}${EXTENSION}`;

  const carriedOf = (job: string): Carried => {
    let carried = offsets.get(job);
    if (carried === undefined) {
      carried = readOffsets(keeper(job));
      offsets.set(job, carried);
    }
    return carried;
  };
  const carry = async (run: Run, upTo: Carried): Promise<void> => {
    const { id, run_count } = run.job;
    const socket = run.job.tasks?.[hostsOf(run.job.exec_host)[0] ?? ""];
    const carried = carriedOf(id);
    const more = (): { letter: "o" | "e"; bytes: Buffer } | null => {
      for (const letter of ["o", "e"] as const) {
        const { path } = letter === "o" ? run.plan.stdout : run.plan.stderr;
        const bytes = readPiece(path, carried[letter], upTo[letter], uidOf(run));
        if (bytes !== null) return { letter, bytes };
      }
      return null;
    };
    if (socket === undefined || more() === null) return;
    await new Promise<void>((done) => {
      let token = 0;
      let sent: { letter: "o" | "e"; bytes: Buffer } | null = null;
      let link: Link<TaskToMom> | null = null;
      const end = (): void => {
        link?.close();
        done();
      };
      const next = (): void => {
        sent = more();
        if (sent === null) return end();
        const { letter, bytes } = sent;
        link?.send("task-output", { job: id, run_count, cookie: null, token: ++token, letter, content: bytes.toString("base64") });
      };
      const ignore = (): void => undefined;
      dialMom(
        socket,
        {
          "task-done": () => {
            if (sent === null) return;
            carried[sent.letter] += sent.bytes.length;
            try {
              // The new file replaces the old one by a rename, so that a process that reads it always finds a complete text.
              writeFileSync(`${keeper(id)}.new`, JSON.stringify(carried), { mode: 0o600 });
              renameSync(`${keeper(id)}.new`, keeper(id));
            } catch (error) {
              complain(`${keeper(id)}: ${messageOf(error)}`);
            }
            next();
          },
          "task-refused": end,
          "task-started": ignore,
          "task-exited": ignore,
          "task-hosts": ignore,
        },
        (open) => {
          link = open;
          next();
        },
        end,
      );
    });
  };

  const drain = (job: string): Promise<void> => {
    const run = state.runs.get(job);
    if (run === undefined || !isSister(run.job, state.config.host)) return Promise.resolve();
    const upTo = { o: sizeOf(run.plan.stdout.path, uidOf(run)), e: sizeOf(run.plan.stderr.path, uidOf(run)) };
    // This transfer follows the present one: more output may have been written since that began.
    const before = underway.get(job) ?? Promise.resolve();
    const work = before.then(() => carry(run, upTo));
    underway.set(job, work);
    return work.finally(() => {
      if (underway.get(job) === work) underway.delete(job);
    });
  };

  return {
    drain,
    tick() {
      for (const run of state.runs.values())
        if (run.phase.name === "running" && run.next_task > 2 && !underway.has(run.job.id)) void drain(run.job.id);
      for (const job of offsets.keys()) {
        if (state.runs.has(job)) continue;
        offsets.delete(job);
        removeQuietly(keeper(job));
      }
    },
  };
}

/** Removes the notes on how much output was sent, if their runs no longer exist. */
export function removeOldOffsets(home: string, state: MomState): void {
  for (const name of readdirSync(`${home}/mom_priv/jobs`)) {
    const old = name.endsWith(EXTENSION) && !state.runs.has(name.slice(0, -EXTENSION.length));
    if (old || name.endsWith(`${EXTENSION}.new`)) removeQuietly(`${home}/mom_priv/jobs/${name}`);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // There was no such file.
  }
}

function readOffsets(path: string): Carried {
  try {
    const { o, e } = JSON.parse(readFileSync(path, "utf8")) as Carried;
    return { o: Number(o) || 0, e: Number(e) || 0 };
  } catch {
    return { o: 0, e: 0 };
  }
}

const uidOf = (run: Run): number | undefined => run.plan.owner?.uid ?? process.geteuid?.();

/** Reads the next piece of a file, from `offset` to at most `end`. Returns null if there is nothing to read. */
function readPiece(path: string, offset: number, end: number, uid: number | undefined): Buffer | null {
  if (offset >= end) return null;
  return withFile(path, uid, null, (fd, size) => {
    const length = Math.min(PIECE_BYTES, Math.min(size, end) - offset);
    if (length <= 0) return null;
    const bytes = Buffer.alloc(length);
    const read = readSync(fd, bytes, 0, length, offset);
    return read === 0 ? null : bytes.subarray(0, read);
  });
}

const sizeOf = (path: string, uid: number | undefined): number => withFile(path, uid, 0, (_, size) => size);

/** Opens the file if O2 allows it, and returns the result of `work`. otherwise: the result if the file cannot be read. */
function withFile<T>(path: string, uid: number | undefined, otherwise: T, work: (fd: number, size: number) => T): T {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return otherwise;
  }
  try {
    const stat = fstatSync(fd);
    return stat.isFile() && stat.uid === uid && stat.nlink === 1 ? work(fd, stat.size) : otherwise;
  } catch {
    return otherwise;
  } finally {
    closeSync(fd);
  }
}
