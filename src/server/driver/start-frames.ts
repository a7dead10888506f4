// Sends frames to moms. A frame that starts jobs is large, because it carries their scripts, and scripts are not kept in
// memory. Such frames are made and sent in turns of their own, so that the server's other work continues in between.
//
// F1. Frames of one mom keep their order.
// F2. While a scheduler's decisions come in, starts of jobs wait, because the scheduler waits for verdicts. No start waits
//     longer than START_WAIT_MS.
// F3. No frame has more than FRAME_CHARS, except the frame of a single large job: users decide how large scripts and
//     environments are, and a frame beyond the limit of the link would close the link at every attempt.

import { arrayIdOf } from "#model/job-id.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { encodeListFrame } from "#protocol/wire/frame.ts";
import { nth } from "#support/assert.ts";
import type { MomFrame } from "../engine/batch.ts";
import type { ClockPort, Done, Result } from "./ports.ts";

/** Length of text at which a frame is full. A job with more text gets a frame of its own. */
const FRAME_CHARS = 16 * 1024 * 1024;
/** Number of jobs that are sent in one turn. Their scripts are read together. */
const TURN_JOBS = 250;
const START_WAIT_MS = 1000;
/** Interval of the checks whether the scheduler's decisions have all come in. */
const LOOK_MS = 10;

export type StartFramesOptions = {
  /** the connection with that number; undefined: the mom is gone */
  readonly link: (number: number) => { send(type: string, data: unknown): void; sendText(text: string): void; destroy(): void } | undefined;
  /** reads the scripts of jobs; a job without a script is absent from the result */
  readonly scripts: (ids: readonly string[], done: Done<ReadonlyMap<string, string>>) => void;
  /** makes this number of secrets, each of 32 random hexadecimal digits */
  readonly cookies: (count: number) => string;
  /** the secret that only the moms of a run on several hosts know; always the same for the same run */
  readonly secret: (job: string, run_count: number) => string;
  readonly clock: Pick<ClockPort, "steady_ms" | "after" | "soon">;
  /** whether a scheduler's decisions are coming in (F2) */
  readonly isDeciding: () => boolean;
  readonly complain: (text: string) => void;
};

/** An entry of the queue: a job to start, or a frame that must be sent after such jobs (F1). at_ms: the time at which it was queued. */
type Waiting = { readonly link: number; readonly at_ms: number; readonly job: MomJob | null; readonly frame: MomFrame | null };
type WaitingJob = Waiting & { readonly job: MomJob };

export type StartFrames = {
  /** Sends a frame to a mom. A job is sent with the attributes that it has at that call (state/state.ts I4). */
  send(frame: MomFrame): void;
  /** whether frames for the mom of that connection wait */
  waits(link: number): boolean;
};

export function startFrames(options: StartFramesOptions): StartFrames {
  const { link, scripts, cookies, secret, clock, isDeciding, complain } = options;
  let queue: Waiting[] = [];
  let head = 0;
  /** number of jobs and frames that wait, by the connection of their mom */
  const counts = new Map<number, number>();
  let going = false;

  const add = (number: number, waiting: readonly Waiting[]): void => {
    for (const one of waiting) queue.push(one);
    counts.set(number, (counts.get(number) ?? 0) + waiting.length);
    if (going) return;
    going = true;
    clock.soon(turn);
  };

  const turn = (): void => {
    const first = nth(queue, head);
    if (isDeciding() && clock.steady_ms() - first.at_ms < START_WAIT_MS) {
      clock.after(LOOK_MS, turn);
      return;
    }
    const some = queue.slice(head, head + TURN_JOBS);
    const wanted = new Set<string>();
    for (const waiting of some) if (needsScript(waiting)) wanted.add(scriptId(waiting.job));
    if (wanted.size === 0) send(some, { ok: true, value: new Map() });
    else scripts([...wanted], (found) => send(some, found));
  };

  const send = (some: readonly Waiting[], found: Result<ReadonlyMap<string, string>>): void => {
    if (found.ok) deliver(some, textsOf(some, found.value));
    else {
      complain(`scripts cannot be read: ${found.error.message}`);
      // The moms of jobs with a script are disconnected; after their next hello they get the starts again. The other moms stay connected.
      const without = new Set(some.filter(needsScript).map((waiting) => waiting.link));
      for (const number of without) link(number)?.destroy();
      const ready = some.filter((waiting) => !without.has(waiting.link));
      deliver(ready, textsOf(ready, new Map()));
    }
    for (const { link: number } of some) {
      const left = (counts.get(number) ?? 0) - 1;
      if (left > 0) counts.set(number, left);
      else counts.delete(number);
    }
    head += some.length;
    // The sent entries are removed here and not when the queue is empty, because it may not become empty for a long time.
    if (2 * head >= queue.length) {
      queue = queue.slice(head);
      head = 0;
    }
    if (queue.length === 0) going = false;
    else clock.soon(turn);
  };

  const sistersOf = ({ id, run_count, sisters }: MomJob): Pick<MomJob, "sisters"> =>
    sisters === undefined ? {} : { sisters: { ...sisters, secret: secret(id, run_count) } };

  /**
   * Returns one text for each entry of the list, in the same order: for a job the text that starts it, for any other entry "". The text has the script (if the job has
   * one of its own), a cookie, and for a run on several hosts the secret of the run.
   */
  const textsOf = (some: readonly Waiting[], found: ReadonlyMap<string, string>): readonly string[] => {
    const hex = cookies(some.length);
    return some.map((waiting, at) => {
      const { job } = waiting;
      if (job === null) return "";
      const script = needsScript(waiting) ? (found.get(scriptId(job)) ?? null) : null;
      return JSON.stringify({ ...job, script, cookie: hex.slice(32 * at, 32 * at + 32), ...sistersOf(job) });
    });
  };

  const deliver = (some: readonly Waiting[], texts: readonly string[]): void => {
    const starts = new Map<number, string[]>();
    const flush = (number: number): void => {
      for (const list of bySize(starts.get(number) ?? [])) link(number)?.sendText(encodeListFrame("mom-start", "jobs", list));
      starts.delete(number);
    };
    some.forEach(({ link: number, frame }, at) => {
      if (frame === null) {
        const list = starts.get(number);
        if (list === undefined) starts.set(number, [nth(texts, at)]);
        else list.push(nth(texts, at));
        return;
      }
      flush(number);
      link(number)?.send(frame.type, frame.data);
    });
    for (const number of [...starts.keys()]) flush(number);
  };

  const sendFrame = (frame: MomFrame): void => {
    const waits = { link: frame.link, at_ms: Math.trunc(clock.steady_ms()) };
    if (frame.type === "mom-start")
      add(
        frame.link,
        frame.data.jobs.map((job) => ({ ...waits, job, frame: null })),
      );
    else if (counts.has(frame.link)) add(frame.link, [{ ...waits, job: null, frame }]);
    else link(frame.link)?.send(frame.type, frame.data);
  };
  return { send: sendFrame, waits: (number) => counts.has(number) };
}

const needsScript = (waiting: Waiting): waiting is WaitingJob => waiting.job !== null && waiting.job.attrs["executable"] === undefined;

/** The id under which the job's script is stored. The script of a subjob is stored under the id of its array. */
const scriptId = (job: MomJob): string => arrayIdOf(job.id) ?? job.id;

/** Splits texts into lists, each of which fits into a frame. */
export function bySize(texts: readonly string[]): string[][] {
  const lists: string[][] = [];
  let room = 0;
  for (const text of texts) {
    if (text.length > room) {
      lists.push([]);
      room = FRAME_CHARS;
    }
    room -= text.length;
    lists.at(-1)?.push(text);
  }
  return lists;
}
