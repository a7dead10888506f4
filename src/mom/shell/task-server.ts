// The mom's socket for requests of tasks of jobs (src/protocol/task-link.ts). Turns frames into events, and answers into frames. run/tasks.ts decides which requests
// are granted. Requests of moms of other hosts come through the mom's TCP port (task-port.ts); requests for other hosts go to their moms (other-moms.ts).
//
// S1. A request to another mom whose connection was lost is repeated, so that a task outlives a cut of the network: for start_ms if the task has not been
//     reported as started, otherwise for lost_ms. By then the server has ended the job, unless the job tolerates the loss of a host.

import { randomBytes } from "node:crypto";
import { type FrameOf, frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { taskSocketPath } from "#protocol/task-link.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import type { LinkHandlers, LinkPeer } from "#protocol/wire/server-link.ts";
import { messageOf } from "#support/caught.ts";
import { ownerOf } from "../host/session-end.ts";
import type { TaskPlace } from "../job/sister.ts";
import type { MomEvent } from "../run/event.ts";
import type { MomAction } from "../run/state.ts";
import { taskChars, textFault } from "../run/task-bounds.ts";
import type { TaskAnswer, TaskAsker, TaskWanted } from "../run/task-question.ts";
import { tooManyTasks } from "../run/tasks.ts";
import type { Answer, Asked, OtherMoms } from "./other-moms.ts";

/** How long a request to another mom is repeated (S1). lost_ms is the default of $max_poll_downtime. */
const PATIENCE = { start_ms: 30_000, lost_ms: 300_000 } as const;
/** Interval between attempts: it doubles. */
const RETRY_MS_FIRST = 500;
const RETRY_MS_MAX = 10_000;

/** A request that is not finished. remote: the task that was requested for it from another mom; null: this mom answers it. */
type Question = { readonly link: ServerLink; readonly token: number | null; remote: Remote | null };

/** A task that was requested from another mom. owner: uid of the job's owner. chars: length of its text; 0: it was started, and the text is gone. */
type Remote = {
  readonly job: string;
  readonly owner: number;
  chars: number;
  readonly host: string;
  readonly place: TaskPlace;
  wanted: TaskWanted & { readonly kind: "spawn" };
  /** null: the connection was lost, and the request will be repeated */
  asked: Asked | null;
  /** the request may have arrived */
  is_sent: boolean;
  is_started: boolean;
  /** signals that wait for the connection */
  readonly signals: number[];
  /** the time of the loss by the monotonic clock; null: the connection exists, or is being made for the first time */
  lost_ms: number | null;
  retry_ms: number;
  timer: NodeJS.Timeout | null;
};

/** Answers after which a request is finished. */
const LAST: ReadonlySet<TaskAnswer["type"]> = new Set(["task-hosts", "task-exited", "task-done", "task-refused"]);

export type TaskServerOptions = {
  readonly home: string;
  readonly mode: "user" | "system";
  readonly happen: (event: MomEvent) => void;
  readonly complain: (text: string) => void;
  readonly others: OtherMoms;
  readonly patience?: { readonly start_ms: number; readonly lost_ms: number };
};

export class TaskServer {
  readonly path: string;
  /** called for the links of moms of other hosts, which come to the mom's TCP port (task-port.ts) */
  readonly handlers: LinkHandlers;
  readonly #options: TaskServerOptions;
  readonly #questions = new Map<number, Question>();
  /** number of requests forwarded to other hosts, by job */
  readonly #forwarded = new Map<string, number>();
  /** length of the text of the forwarded requests whose tasks have not been started, by job and by owner (task-bounds.ts) */
  readonly #job_chars = new Map<string, number>();
  readonly #user_chars = new Map<number, number>();
  /** makes the names of this mom's requests differ from the names that an earlier mom on this host has used */
  readonly #prefix = randomBytes(8).toString("hex");
  #next = 1;
  #server: LinkServer | null = null;
  #closed = false;

  /** Begins to listen. A failure is reported. */
  constructor(options: TaskServerOptions) {
    this.#options = options;
    this.path = taskSocketPath(options.home);
    this.handlers = {
      onFrame: (link, type, data) => this.#take(link, type, data),
      onClose: (link) => this.#desert(link),
      onProblem: (text, peer) => options.complain(`tasks: ${text}${peer === null ? "" : `, ${nameOf(peer)}`}`),
    };
    void this.#listen();
  }

  async #listen(): Promise<void> {
    const { mode, complain } = this.#options;
    try {
      const types = frameTypes("task-to-mom");
      const server = await listenLinks({ path: this.path, types, everyone: mode === "system", ...this.handlers });
      this.#server = server;
      if (this.#closed) void server.close();
    } catch (error) {
      complain(`${this.path}: ${messageOf(error)}: tasks of jobs cannot be asked for`);
    }
  }

  #take(link: ServerLink, type: string, data: unknown): void {
    const parsed = parseFrame("task-to-mom", type, data);
    if (parsed.ok) return this.#receive(link, parsed.frame);
    this.#options.complain(`${nameOf(link.peer)}: ${parsed.text}`);
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
    this.#questions.set(asked, { link, token, remote: null });
    this.#options.happen({ kind: "task-asked", asked, by: askerOf(link.peer), wanted });
  }

  #signal(link: ServerLink, { token, signal }: { readonly token: number; readonly signal: number }): void {
    for (const [asked, { link: of, token: own, remote }] of this.#questions) {
      if (of !== link || own !== token) continue;
      if (remote === null) this.#options.happen({ kind: "task-signal", asked, signal });
      else if (remote.asked !== null) remote.asked.signal(signal);
      else if (remote.signals.length < LIMITS.task_signals_max) remote.signals.push(signal);
    }
  }

  /** Drops the requests of a link that has ended: nobody waits for their answers. */
  #desert(link: ServerLink): void {
    for (const [asked, question] of this.#questions) {
      if (question.link !== link) continue;
      this.#forget(asked);
      if (question.remote === null) this.#options.happen({ kind: "task-deserted", asked });
    }
  }

  #forget(asked: number): void {
    const remote = this.#questions.get(asked)?.remote ?? null;
    this.#questions.delete(asked);
    if (remote === null) return;
    remote.asked?.close();
    if (remote.timer !== null) clearTimeout(remote.timer);
    this.#letGo(remote);
    const left = (this.#forwarded.get(remote.job) ?? 1) - 1;
    if (left > 0) this.#forwarded.set(remote.job, left);
    else this.#forwarded.delete(remote.job);
  }

  say(asked: number, answer: TaskAnswer): void {
    const question = this.#questions.get(asked);
    if (question === undefined) return;
    const { type, ...data } = answer;
    if (LAST.has(type)) this.#forget(asked);
    if (question.link.open) question.link.send(type, type === "task-hosts" ? data : { token: question.token, ...data });
  }

  /** Passes a request on to the mom of another host of the job, unless too many such requests of the job are open. */
  forward({ asked, place, run, wanted, owner, most, text_max }: Extract<MomAction, { kind: "task-forward" }>): void {
    const question = this.#questions.get(asked);
    if (question === undefined || wanted.kind !== "spawn") return;
    const open = this.#forwarded.get(run.job) ?? 0;
    if (open >= most) return this.say(asked, { type: "task-refused", text: tooManyTasks(run.job, "other hosts", most) });
    const chars = taskChars(wanted);
    const waiting = { job_chars: this.#job_chars.get(run.job) ?? 0, user_chars: this.#user_chars.get(owner) ?? 0 };
    const fault = textFault(run.job, chars, waiting, text_max);
    if (fault !== null) return this.say(asked, { type: "task-refused", text: fault });
    this.#forwarded.set(run.job, open + 1);
    this.#job_chars.set(run.job, waiting.job_chars + chars);
    this.#user_chars.set(owner, waiting.user_chars + chars);
    const remote: Remote = {
      job: run.job,
      owner,
      chars,
      host: wanted.host,
      place,
      wanted: { ...wanted, name: `${this.#prefix}.${asked}` },
      asked: null,
      is_sent: false,
      is_started: false,
      signals: [],
      lost_ms: null,
      retry_ms: RETRY_MS_FIRST,
      timer: null,
    };
    question.remote = remote;
    this.#request(asked, remote);
  }

  /** Called when the text of the task was sent and read, or nobody waits for the task: the text no longer counts. */
  #letGo(remote: Remote): void {
    if (remote.chars === 0) return;
    reduceBy(this.#job_chars, remote.job, remote.chars);
    reduceBy(this.#user_chars, remote.owner, remote.chars);
    remote.chars = 0;
  }

  #request(asked: number, remote: Remote): void {
    const again = remote.is_sent ? { again: true as const } : {};
    const frame = (token: number): FrameOf<"task-to-mom"> => {
      const { kind: _, ...wanted } = remote.wanted;
      return { type: "task-spawn", data: { ...wanted, ...again, token } };
    };
    const sent = this.#options.others.ask(
      remote.place,
      { job: remote.job, frame },
      {
        answered: (answer) => this.#pass(asked, remote, answer),
        lost: (why, is_sent) => this.#lost(asked, remote, why, is_sent),
      },
    );
    remote.asked = sent;
    for (const signal of remote.signals.splice(0)) sent.signal(signal);
  }

  /** Passes an answer of the other mom on to the client, unless it was passed on before. */
  #pass(asked: number, remote: Remote, answer: Answer): void {
    remote.lost_ms = null;
    remote.retry_ms = RETRY_MS_FIRST;
    switch (answer.type) {
      case "task-started":
        if (!remote.is_started) this.say(asked, { type: "task-started", task: answer.data.task });
        remote.is_started = true;
        // A repeated request is recognised by its name, so the text is not needed again.
        remote.wanted = { ...remote.wanted, argv: remote.wanted.argv.slice(0, 1).map((text) => text.slice(0, 1)), env: [] };
        this.#letGo(remote);
        return;
      case "task-exited":
        return this.say(asked, { type: "task-exited", status: answer.data.status });
      case "task-refused":
        return this.say(asked, { type: "task-refused", text: answer.data.text });
    }
  }

  /** Called when the connection to the other mom was lost: repeats the request or gives it up (S1). */
  #lost(asked: number, remote: Remote, why: string, is_sent: boolean): void {
    remote.asked = null;
    remote.is_sent ||= is_sent;
    const { patience = PATIENCE } = this.#options;
    const now_ms = performance.now();
    remote.lost_ms ??= now_ms;
    if (now_ms - remote.lost_ms > (remote.is_started ? patience.lost_ms : patience.start_ms))
      return this.say(asked, { type: "task-refused", text: `the mom of ${remote.host}: ${why}` });
    remote.timer = setTimeout(() => {
      remote.timer = null;
      this.#request(asked, remote);
    }, remote.retry_ms);
    remote.retry_ms = Math.min(2 * remote.retry_ms, RETRY_MS_MAX);
  }

  close(): void {
    this.#closed = true;
    for (const asked of [...this.#questions.keys()]) this.#forget(asked);
    void this.#server?.close();
  }
}

function reduceBy<K>(totals: Map<K, number>, key: K, chars: number): void {
  const left = (totals.get(key) ?? 0) - chars;
  if (left > 0) totals.set(key, left);
  else totals.delete(key);
}

function askerOf({ uid, host }: LinkPeer): TaskAsker {
  if (host !== undefined) return { uid, daemon: false, host };
  return { uid, daemon: uid === 0 || uid === process.getuid?.() };
}

const nameOf = ({ uid, pid, host }: LinkPeer): string => (host === undefined ? `uid ${uid}, pid ${pid}` : `host ${host.host}`);
