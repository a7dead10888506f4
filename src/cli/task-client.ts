// Client of commands that run inside a job and ask the mom of their host for tasks (src/protocol/task-link.ts). Loads only
// node:net and the code for frames.

import type { Socket } from "node:net";
import { dirname } from "node:path";
import { type MomToTask, type TaskRun, type TaskToMom, taskSocketPath } from "#protocol/task-link.ts";
import { encodeFrame, type Frame, frameDecoder } from "#protocol/wire/frame.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { connectUnix } from "#protocol/wire/unix-connect.ts";
import { messageOf } from "#support/caught.ts";
import type { CommandIo } from "./command.ts";
import type { Complex } from "./complex.ts";

/** The request failed. The message comes from the mom, or explains why no mom could be reached. */
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
  /** lines of the node file, and the hosts of the job */
  nodes(): Promise<MomToTask["task-hosts"]>;
  /** resolves when the task runs; exited: its exit status (256 plus the number of a signal). Both reject with TaskRefused */
  spawn(wish: SpawnWish): Promise<{ readonly task: number; readonly exited: Promise<number> }>;
  attach(pid: number): Promise<void>;
  close(): void;
};

/** The job in which a command runs, from its environment. Returns null outside jobs. */
export function runOf(env: CommandIo["env"]): TaskRun | null {
  const { PBS_JOBID: job, PBS_JOBCOOKIE: cookie } = env;
  return job === undefined || job === "" || cookie === undefined || cookie === "" ? null : { job, run_count: null, cookie };
}

/** The homes of moms that may have the job: first that of its node file, then that of the configuration. */
function homes(io: CommandIo, complex: Complex): string[] {
  const nodefile = io.env["PBS_NODEFILE"] ?? "";
  const found = nodefile.startsWith("/") ? [dirname(dirname(nodefile))] : [];
  try {
    const { values, home } = complex.conf();
    found.push(values["PBS_MOM_HOME"] ?? home);
  } catch {
    // pbs.conf may not be accessible in a job.
  }
  return found;
}

/** Connects to the mom of this host. Throws TaskRefused. */
export async function connectMom(io: CommandIo, complex: Complex, run: TaskRun): Promise<TaskClient> {
  let why = "no mom is known";
  for (const home of homes(io, complex)) {
    try {
      return converse(await connectUnix(taskSocketPath(home)), run);
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

function converse(socket: Socket, run: TaskRun): TaskClient {
  const waiting = new Map<number | null, Waiter>();
  const decoder = frameDecoder(LIMITS.daemon_frame_chars_max);
  let next = 1;
  let broken: TaskRefused | null = null;
  const fail = (why: string): void => {
    broken ??= new TaskRefused(why);
    socket.destroy();
    for (const { failed } of waiting.values()) failed(broken);
    waiting.clear();
  };
  const receive = ({ type, data }: Frame): void => {
    if (type === "refused") return fail((data as { readonly text?: string }).text ?? "refused");
    const token = type === "task-hosts" ? null : ((data as { readonly token: number | null }).token ?? null);
    const waiter = waiting.get(token);
    if (waiter === undefined) return;
    if (type !== "task-refused") return waiter.answered({ type: type as keyof MomToTask, data });
    waiting.delete(token);
    waiter.failed(new TaskRefused((data as MomToTask["task-refused"]).text));
  };
  socket.setEncoding("utf8");
  socket.on("data", (chunk) => {
    try {
      decoder.push(chunk as unknown as string, receive);
    } catch (error) {
      fail(messageOf(error));
    }
  });
  socket.on("error", (error) => fail(error.message));
  socket.on("close", () => fail("the connection to the mom was lost"));
  const send = <T extends keyof TaskToMom>(type: T, data: TaskToMom[T]): void => void socket.write(encodeFrame(type, data));
  const once = <T>(token: number | null, say: () => void): Promise<T> =>
    new Promise((resolve, reject) => {
      if (broken !== null) return reject(broken);
      waiting.set(token, {
        answered: ({ data }) => {
          waiting.delete(token);
          resolve(data as T);
        },
        failed: reject,
      });
      say();
    });

  return {
    nodes: () => once(null, () => send("task-nodes", run)),
    attach: async (pid) => {
      const token = next++;
      await once(token, () => send("task-attach", { ...run, token, pid }));
    },
    spawn({ host, argv, env = [], shell = false }) {
      const token = next++;
      const ended = Promise.withResolvers<number>();
      // A caller that does not wait for the end must not get an unhandled rejection.
      ended.promise.catch(() => undefined);
      return new Promise((resolve, reject) => {
        if (broken !== null) return reject(broken);
        waiting.set(token, {
          answered({ type, data }) {
            if (type === "task-started") return resolve({ task: (data as MomToTask["task-started"]).task, exited: ended.promise });
            waiting.delete(token);
            ended.resolve((data as MomToTask["task-exited"]).status);
          },
          failed(error) {
            reject(error);
            ended.reject(error);
          },
        });
        send("task-spawn", { ...run, token, host, argv, env, shell });
      });
    },
    close: () => fail("closed"),
  };
}

/** The exit status as a shell reports it: for a signal, 128 plus its number. */
export const exitOf = (status: number): number => (status >= 256 ? 128 + (status - 256) : status);
