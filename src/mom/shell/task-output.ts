// Adds the output of tasks on a sister to the job's own output on the mother superior. The sister sends the contents of its
// spool files there piece by piece while tasks run, and all of it before it reports the end of a task.
//
// O1. A piece counts as sent when the mother superior has accepted it. The number of bytes sent so far is noted on the disk,
//     so that a restarted mom sends nothing twice.
// O2. A file in spool is read only if it is a plain file of the job's owner, because all users may write in spool.
// O3. drain() waits for the output that was written before the call, not for output that is written later.
// O4. Each piece is sent with its position, so that the mother superior adds it only once, even if the connection was lost
//     before the answer came.

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
import { messageOf } from "#support/caught.ts";
import { isSister, placeOf } from "../job/sister.ts";
import type { MomState, Run } from "../run/state.ts";
import type { OtherMoms } from "./other-moms.ts";

const PIECE_BYTES = 256 * 1024;
const EXTENSION = ".SO";
/** How long the end of a run waits until its output has reached the mother superior. */
const LAST_DRAIN_MS = 10_000;

/** The outcome of sending output: it was accepted, the mother superior accepts no more output of this run, or it could not be reached. */
export type Carriage = "accepted" | "refused" | "unreachable";

export type TaskOutput = {
  /** sends all output that exists now */
  drain(job: string): Promise<Carriage>;
  /** does the same as drain, but gives up after LAST_DRAIN_MS. Resolves with false if the mother superior could not be reached */
  drainLast(job: string): Promise<boolean>;
  /** looks for new output of all runs for which this mom is a sister */
  tick(): void;
};

type Carried = { o: number; e: number };

export function carryOutput(home: string, state: MomState, others: OtherMoms, complain: (text: string) => void): TaskOutput {
  const offsets = new Map<string, Carried>();
  const underway = new Map<string, Promise<Carriage>>();
  const keeper = (job: string): string => `${home}/mom_priv/jobs/${job}${EXTENSION}`;

  const carriedOf = (job: string): Carried => {
    let carried = offsets.get(job);
    if (carried === undefined) {
      carried = readOffsets(keeper(job));
      offsets.set(job, carried);
    }
    return carried;
  };
  const noteCarried = (job: string, carried: Carried): void => {
    try {
      // The new file replaces the old one by a rename, so that a process that reads it always finds a complete text.
      writeFileSync(`${keeper(job)}.new`, JSON.stringify(carried), { mode: 0o600 });
      renameSync(`${keeper(job)}.new`, keeper(job));
    } catch (error) {
      complain(`${keeper(job)}: ${messageOf(error)}`);
    }
  };
  /** Sends one piece of the output. */
  const send = ({ job }: Run, letter: "o" | "e", offset: number, bytes: Buffer): Promise<Carriage> => {
    const place = placeOf(job, hostsOf(job.exec_host)[0] ?? "");
    if (place === null) return Promise.resolve("unreachable");
    const { id, run_count, sisters } = job;
    const cookie = place.kind === "host" ? (sisters?.secret ?? null) : null;
    const piece = { job: id, run_count, cookie, letter, from: state.config.host, offset, content: bytes.toString("base64") };
    return new Promise((resolve) => {
      const frame = (token: number) => ({ type: "task-output", data: { ...piece, token } }) as const;
      others.ask(
        place,
        { job: id, frame },
        {
          answered: ({ type }) => resolve(type === "task-done" ? "accepted" : "refused"),
          lost: () => resolve("unreachable"),
        },
      );
    });
  };
  const carry = async (run: Run, upTo: Carried): Promise<Carriage> => {
    const carried = carriedOf(run.job.id);
    for (const letter of ["o", "e"] as const) {
      const { path } = letter === "o" ? run.plan.stdout : run.plan.stderr;
      for (;;) {
        const bytes = readPiece(path, carried[letter], upTo[letter], uidOf(run));
        if (bytes === null) break;
        const outcome = await send(run, letter, carried[letter], bytes);
        if (outcome !== "accepted") return outcome;
        carried[letter] += bytes.length;
        noteCarried(run.job.id, carried);
      }
    }
    return "accepted";
  };

  const drain = (job: string): Promise<Carriage> => {
    const run = state.runs.get(job);
    if (run === undefined || !isSister(run.job, state.config.host)) return Promise.resolve("accepted");
    const upTo = { o: sizeOf(run.plan.stdout.path, uidOf(run)), e: sizeOf(run.plan.stderr.path, uidOf(run)) };
    // Another transfer follows the present one, because more output may have been written since the present one began.
    const before: Promise<unknown> = underway.get(job) ?? Promise.resolve();
    const work = before.then(() => carry(run, upTo));
    underway.set(job, work);
    return work.finally(() => {
      if (underway.get(job) === work) underway.delete(job);
    });
  };

  return {
    drain,
    async drainLast(job) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<Carriage>((resolve) => {
        timer = setTimeout(() => resolve("unreachable"), LAST_DRAIN_MS);
      });
      const outcome = await Promise.race([drain(job), late]);
      clearTimeout(timer);
      return outcome !== "unreachable";
    },
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

/** Opens the file if O2 allows it, and returns the result of `work`. otherwise: is returned if the file cannot be read. */
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
