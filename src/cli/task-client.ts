// The client for commands that run inside a job and request tasks from the mom of their host (src/protocol/task-link.ts).
// This file loads only node:net and the code for frames.

import type { Socket } from "node:net";
import { dirname } from "node:path";
import { type MomToTask, type TaskRun, type TaskToMom, taskSocketPath } from "#protocol/task-link.ts";
import { encodeFrame, type Frame, frameDecoder } from "#protocol/wire/frame.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { connectUnix } from "#protocol/wire/unix-connect.ts";
import { versionTalk } from "#protocol/wire/versions.ts";
import { messageOf } from "#support/caught.ts";
import type { CommandIo } from "./command.ts";
import type { Complex } from "./complex.ts";

/** The error for a request that failed. Its message comes from the mom, or says why no mom could be reached. */
export class TaskRefused extends Error {
  override readonly name = "TaskRefused";
}

export type SpawnWish = {
  readonly host: string;
  readonly argv: readonly string[];
  readonly env?: readonly string[];
  readonly shell?: boolean;
};

export type TaskClient = {
  /** returns the lines of the node file, and the hosts of the job */
  nodes(): Promise<MomToTask["task-hosts"]>;
  /** starts a task. Resolves when the task runs. exited: resolves with its exit status (for a signal, 256 plus its number). Both reject with TaskRefused */
  spawn(wish: SpawnWish): Promise<{ readonly task: number; readonly exited: Promise<number> }>;
  attach(pid: number): Promise<void>;
  close(): void;
};

/** Finds the job in which a command runs, by its environment. Returns null outside of jobs. */
export function runOf(env: CommandIo["env"]): TaskRun | null {
  const { PBS_JOBID: job, PBS_JOBCOOKIE: cookie } = env;
  return job === undefined || job === "" || cookie === undefined || cookie === "" ? null : { job, run_count: null, cookie };
}

/**
 * Returns the directories PBS_HOME in which the mom of this job may be found: first the one that contains the job's node file, then the directory of the configuration.
 */
function homes(io: CommandIo, complex: Complex): string[] {
  const nodefile = io.env["PBS_NODEFILE"] ?? "";
  const found = nodefile.startsWith("/") ? [dirname(dirname(nodefile))] : [];
  try {
    const { values, home } = complex.conf();
    found.push(values["PBS_MOM_HOME"] ?? home);
  } catch {
    // The job may be unable to read pbs.conf.
  }
  return found;
}

/** Connects to the mom of this host. Throws TaskRefused. */
export async function connectMom(io: CommandIo, complex: Complex, run: TaskRun): Promise<TaskClient> {
  let why = "no mom is known";
  for (const home of homes(io, complex)) {
    try {
      return new TaskConnection(await connectUnix(taskSocketPath(home)), run);
    } catch (error) {
      why = messageOf(error);
    }
  }
  throw new TaskRefused(`cannot connect to the mom of this host: ${why}`);
}

type Waiter = {
  readonly answered: (answer: { readonly type: keyof MomToTask; readonly data: unknown }) => void;
  readonly failed: (error: TaskRefused) => void;
};

class TaskConnection implements TaskClient {
  readonly #socket: Socket;
  readonly #run: TaskRun;
  readonly #versions = versionTalk();
  /** requests that are not answered and tasks that have not ended, each by its token; the request for the nodes has null in place of a token */
  readonly #waiting = new Map<number | null, Waiter>();
  #next = 1;
  #broken: TaskRefused | null = null;

  constructor(socket: Socket, run: TaskRun) {
    const decoder = frameDecoder(LIMITS.daemon_frame_chars_max);
    this.#socket = socket;
    this.#run = run;
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      try {
        decoder.push(chunk as unknown as string, (frame) => this.#receive(frame));
      } catch (error) {
        this.#fail(messageOf(error));
      }
    });
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail("the connection to the mom was lost"));
  }

  nodes(): ReturnType<TaskClient["nodes"]> {
    return this.#once(null, () => this.#send("task-nodes", this.#run));
  }

  async attach(pid: number): Promise<void> {
    const token = this.#next++;
    await this.#once(token, () => this.#send("task-attach", { ...this.#run, token, pid }));
  }

  spawn({ host, argv, env = [], shell = false }: Parameters<TaskClient["spawn"]>[0]): ReturnType<TaskClient["spawn"]> {
    const token = this.#next++;
    const ended = Promise.withResolvers<number>();
    // A caller that does not wait for the end of the task must not get an unhandled rejection.
    ended.promise.catch(() => undefined);
    return new Promise((resolve, reject) => {
      if (this.#broken !== null) return reject(this.#broken);
      this.#waiting.set(token, {
        answered: ({ type, data }) => {
          if (type === "task-started") return resolve({ task: (data as MomToTask["task-started"]).task, exited: ended.promise });
          this.#waiting.delete(token);
          ended.resolve((data as MomToTask["task-exited"]).status);
        },
        failed(error) {
          reject(error);
          ended.reject(error);
        },
      });
      this.#send("task-spawn", { ...this.#run, token, host, argv, env, shell });
    });
  }

  close(): void {
    this.#fail("closed");
  }

  #fail(why: string): void {
    this.#broken ??= new TaskRefused(why);
    this.#socket.destroy();
    for (const { failed } of this.#waiting.values()) failed(this.#broken);
    this.#waiting.clear();
  }

  #receive(frame: Frame): void {
    const { type, data } = frame;
    const strange = this.#versions.incoming(frame);
    if (strange !== null) return this.#fail(strange);
    if (type === "refused") return this.#fail((data as { readonly text?: string }).text ?? "refused");
    const token = type === "task-hosts" ? null : ((data as { readonly token: number | null }).token ?? null);
    const waiter = this.#waiting.get(token);
    if (waiter === undefined) return;
    if (type !== "task-refused") return waiter.answered({ type: type as keyof MomToTask, data });
    this.#waiting.delete(token);
    waiter.failed(new TaskRefused((data as MomToTask["task-refused"]).text));
  }

  #send<T extends keyof TaskToMom>(type: T, data: TaskToMom[T]): void {
    this.#socket.write(this.#versions.outgoing(encodeFrame(type, data)));
  }

  #once<T>(token: number | null, say: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== null) return reject(this.#broken);
      this.#waiting.set(token, {
        answered: ({ data }) => {
          this.#waiting.delete(token);
          resolve(data as T);
        },
        failed: reject,
      });
      say();
    });
  }
}

/** Returns an exit status as shells report it: 128 plus the number of the signal if there was one. */
export const exitOf = (status: number): number => (status >= 256 ? 128 + (status - 256) : status);
