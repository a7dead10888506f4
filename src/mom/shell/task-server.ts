// The mom's socket for requests of tasks of jobs (src/protocol/task-link.ts), and the mom's connections to other moms of a
// job. Turns frames into events, and answers into frames. run/tasks.ts decides which requests are granted.

import { connect } from "node:net";
import { type FrameOf, frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { type MomToTask, type TaskToMom, taskSocketPath } from "#protocol/task-link.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { socketAddress } from "#protocol/wire/socket-path.ts";
import { messageOf } from "#support/caught.ts";
import { frameLink, type Link, type LinkHandlers } from "../host/frame-link.ts";
import { ownerOf } from "../host/session-end.ts";
import type { MomEvent } from "../run/event.ts";
import type { MomAction } from "../run/state.ts";
import type { TaskAnswer, TaskWanted } from "../run/task-question.ts";
import { tooManyTasks } from "../run/tasks.ts";

/**
 * A request that is not finished. forwarded: its job, if another host answers it; null: this host answers it. remote: the connection to the mom of that host.
 */
type Question = { readonly link: ServerLink; readonly token: number | null; remote: Link<TaskToMom> | null; forwarded: string | null };

/** Answers after which a request is finished. */
const LAST: ReadonlySet<TaskAnswer["type"]> = new Set(["task-hosts", "task-exited", "task-done", "task-refused"]);

export type TaskServerOptions = {
  readonly home: string;
  readonly mode: "user" | "system";
  readonly happen: (event: MomEvent) => void;
  readonly complain: (text: string) => void;
};

export class TaskServer {
  readonly path: string;
  readonly #options: TaskServerOptions;
  readonly #questions = new Map<number, Question>();
  /** number of requests forwarded to other hosts, by job */
  readonly #forwarded = new Map<string, number>();
  #next = 1;
  #server: LinkServer | null = null;
  #closed = false;

  /** Begins to listen. A failure is reported. */
  constructor(options: TaskServerOptions) {
    this.#options = options;
    this.path = taskSocketPath(options.home);
    void this.#listen();
  }

  async #listen(): Promise<void> {
    const { mode, complain } = this.#options;
    try {
      const server = await listenLinks({
        path: this.path,
        types: frameTypes("task-to-mom"),
        everyone: mode === "system",
        onFrame: (link, type, data) => this.#take(link, type, data),
        onClose: (link) => this.#desert(link),
        onProblem: (text) => complain(`tasks: ${text}`),
      });
      this.#server = server;
      if (this.#closed) void server.close();
    } catch (error) {
      complain(`${this.path}: ${messageOf(error)}: tasks of jobs cannot be asked for`);
    }
  }

  #take(link: ServerLink, type: string, data: unknown): void {
    const parsed = parseFrame("task-to-mom", type, data);
    if (parsed.ok) return this.#receive(link, parsed.frame);
    this.#options.complain(`uid ${link.peer.uid}, pid ${link.peer.pid}: ${parsed.text}`);
    link.destroy();
  }

  #receive(link: ServerLink, { type, data }: FrameOf<"task-to-mom">): void {
    switch (type) {
      case "task-nodes":
        return this.#ask(link, null, { kind: "nodes", ...data });
      case "task-spawn": {
        const { token, ...rest } = data;
        return this.#ask(link, token, { kind: "spawn", ...rest });
      }
      case "task-attach": {
        const { token, ...rest } = data;
        return this.#ask(link, token, { kind: "attach", ...rest, owner_uid: ownerOf(rest.pid) });
      }
      case "task-output": {
        const { token, ...rest } = data;
        return this.#ask(link, token, { kind: "output", ...rest });
      }
      case "task-signal":
        return this.#signal(link, data);
      default: {
        const unreachable: never = type;
        return unreachable;
      }
    }
  }

  #ask(link: ServerLink, token: number | null, wanted: TaskWanted): void {
    const asked = this.#next++;
    this.#questions.set(asked, { link, token, remote: null, forwarded: null });
    const { uid } = link.peer;
    this.#options.happen({ kind: "task-asked", asked, by: { uid, daemon: uid === 0 || uid === process.getuid?.() }, wanted });
  }

  #signal(link: ServerLink, { token, signal }: { readonly token: number; readonly signal: number }): void {
    for (const [asked, question] of this.#questions) {
      if (question.link !== link || question.token !== token) continue;
      if (question.remote === null) this.#options.happen({ kind: "task-signal", asked, signal });
      else question.remote.send("task-signal", { token: 1, signal });
    }
  }

  /** Drops the requests of a link that has ended: nobody waits for their answers. */
  #desert(link: ServerLink): void {
    for (const [asked, question] of this.#questions) {
      if (question.link !== link) continue;
      this.#forget(asked);
      if (question.remote === null) this.#options.happen({ kind: "task-deserted", asked });
      else question.remote.close();
    }
  }

  #forget(asked: number): void {
    const job = this.#questions.get(asked)?.forwarded ?? null;
    this.#questions.delete(asked);
    if (job === null) return;
    const left = (this.#forwarded.get(job) ?? 1) - 1;
    if (left > 0) this.#forwarded.set(job, left);
    else this.#forwarded.delete(job);
  }

  say(asked: number, answer: TaskAnswer): void {
    const question = this.#questions.get(asked);
    if (question === undefined) return;
    const { type, ...data } = answer;
    if (LAST.has(type)) this.#forget(asked);
    if (question.link.open) question.link.send(type, type === "task-hosts" ? data : { token: question.token, ...data });
  }

  /** Passes a request on to the mom of another host of the job, unless too many of the job are open there. */
  forward({ asked, socket, run, wanted, most }: Extract<MomAction, { kind: "task-forward" }>): void {
    const question = this.#questions.get(asked);
    if (question === undefined || wanted.kind !== "spawn") return;
    const open = this.#forwarded.get(run.job) ?? 0;
    if (open >= most) return this.say(asked, { type: "task-refused", text: tooManyTasks(run.job, "other hosts", most) });
    question.forwarded = run.job;
    this.#forwarded.set(run.job, open + 1);
    const { kind: _, ...rest } = wanted;
    dialMom(
      socket,
      this.#answersTo(asked),
      (link) => {
        question.remote = link;
        link.send("task-spawn", { token: 1, ...rest });
      },
      (why) => this.say(asked, { type: "task-refused", text: `the mom of ${wanted.host}: ${why}` }),
    );
  }

  /** Returns the handlers that pass the answers of the other mom on to the client. */
  #answersTo(asked: number): LinkHandlers<MomToTask> {
    return {
      "task-started": ({ task }) => this.say(asked, { type: "task-started", task }),
      "task-exited": ({ status }) => this.say(asked, { type: "task-exited", status }),
      "task-refused": ({ text }) => this.say(asked, { type: "task-refused", text }),
      "task-done": () => undefined,
      "task-hosts": () => undefined,
    };
  }

  close(): void {
    this.#closed = true;
    void this.#server?.close();
  }
}

/** Connects to another mom of the complex. It must run as the same user as this one. onLost: called once when the connection ends or fails, for any reason. */
export function dialMom(
  path: string,
  handlers: LinkHandlers<MomToTask>,
  onOpen: (link: Link<TaskToMom>) => void,
  onLost: (why: string) => void,
): void {
  let address: ReturnType<typeof socketAddress>;
  try {
    address = socketAddress(path);
  } catch (error) {
    return onLost(messageOf(error));
  }
  const socket = connect(address.address);
  socket.once("error", (error) => {
    address.release();
    onLost(error.message);
  });
  socket.once("connect", () => {
    address.release();
    const peer = peerCredentials(socket);
    socket.removeAllListeners("error");
    if (peer === null || (peer.uid !== 0 && peer.uid !== process.getuid?.())) {
      socket.destroy();
      return onLost("its socket is not a mom's");
    }
    const link = frameLink<MomToTask, TaskToMom>(socket, checked(handlers), () => onLost("the connection was lost"));
    onOpen(link);
  });
}

/** Adds a check to handlers: malformed frames are ignored. */
function checked(handlers: LinkHandlers<MomToTask>): LinkHandlers<MomToTask> {
  const guard = (type: keyof MomToTask) => (data: unknown) => {
    const parsed = parseFrame("mom-to-task", type, data);
    if (parsed.ok) (handlers[type] as (data: unknown) => void)(parsed.frame.data);
  };
  return {
    "task-hosts": guard("task-hosts"),
    "task-started": guard("task-started"),
    "task-exited": guard("task-exited"),
    "task-done": guard("task-done"),
    "task-refused": guard("task-refused"),
  };
}
