// The mom's end of the link to its file agents: it starts them, restarts them when they die, and repeats requests without an answer.
//
// N1. The main agent does quick work for all owners. Slow work (big output, stage lists, other hosts, directories with many files) is
//     done by a few further agents; an owner always has the same one, so that an owner whose files are copied for hours delays only itself. They are started when
//     needed and end when nothing is left.

import { spawn } from "node:child_process";
import { steady_ms } from "#support/clock.ts";
import { frameLink, type Link } from "../host/frame-link.ts";
import { siblingProgram } from "../host/sibling.ts";
import type { AgentToMom, DropRequest, FilePlan, FinishRequest, MomToAgent, PrepareRequest } from "../job/agent-link.ts";

export type AgentHandlers = { readonly [T in Exclude<keyof AgentToMom, "agent-bulky">]: (data: AgentToMom[T]) => void } & {
  readonly complain: (text: string) => void;
};

export type AgentClient = {
  prepare(request: PrepareRequest): void;
  finish(request: FinishRequest): void;
  append(file: MomToAgent["agent-append"]["files"][number]): void;
  /** not repeated: a later run of the job may have its output there by then */
  drop(request: DropRequest): void;
  /** time in ms for which a request is unanswered; 0 if there is none */
  silent_ms(): number;
  /** lets it finish its requests, then ends it */
  close(): Promise<void>;
};

const AGAIN_MS = 100;
const AGAIN_MS_MAX = 10_000;
/** Greatest number of agents besides the main one. */
const BULK_AGENTS_MAX = 8;

type Waiting = {
  prepare: PrepareRequest[];
  finish: FinishRequest[];
  append: MomToAgent["agent-append"]["files"][number][];
  drop: DropRequest[];
};
const nothing = (): Waiting => ({ prepare: [], finish: [], append: [], drop: [] });

export function startAgent(handlers: AgentHandlers): AgentClient {
  const bulk = new Map<number, AgentClient>();
  const bulkFor = ({ owner }: FilePlan): AgentClient => {
    const number = (owner?.uid ?? 0) % BULK_AGENTS_MAX;
    let lane = bulk.get(number);
    if (lane === undefined) {
      const done = (): void => {
        bulk.delete(number);
        void lane?.close();
      };
      bulk.set(number, (lane = startLane("bulk", handlers, { onBulky: () => undefined, onIdle: done })));
    }
    return lane;
  };
  const main = startLane("main", handlers, { onBulky: (request) => bulkFor(request.plan).finish(request), onIdle: () => undefined });
  return {
    ...main,
    prepare: (request) => (request.plan.stagein.length > 0 ? bulkFor(request.plan) : main).prepare(request),
    finish: (request) => (request.plan.stagein.length + request.plan.stageout.length > 0 ? bulkFor(request.plan) : main).finish(request),
    async close() {
      await main.close();
      // They finish their copies before they notice the end of the mom; the next mom requests the rest.
      for (const lane of bulk.values()) void lane.close();
    },
  };
}

type LaneHandlers = {
  readonly onBulky: (request: FinishRequest) => void /** all that was asked is answered */;
  readonly onIdle: () => void;
};

function startLane(lane: "main" | "bulk", handlers: AgentHandlers, { onBulky, onIdle }: LaneHandlers): AgentClient {
  const open = { prepare: new Map<string, PrepareRequest>(), finish: new Map<string, FinishRequest>() };
  let link: Link<MomToAgent> | null = null;
  let waiting = nothing();
  let order: (keyof Waiting)[] = [];
  let scheduled = false;
  let pause_ms = AGAIN_MS;
  let ended: (() => void) | null = null;

  /** time since which a request is unanswered */
  let waits_since_ms: number | null = null;
  const answered = (): void => {
    waits_since_ms = open.prepare.size + open.finish.size > 0 ? steady_ms() : null;
  };

  const key = (job: string, run_count: number): string => `${job} ${run_count}`;

  const restWhenIdle = (): void => {
    if (open.prepare.size + open.finish.size + order.length === 0) onIdle();
  };

  const launch = (): void => {
    const child = spawn(process.execPath, [siblingProgram("file-agent"), lane], {
      argv0: "pbs_file_agent",
      stdio: ["pipe", "pipe", "inherit"],
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    child.once("error", (error) => handlers.complain(`file agent: ${error.message}`));
    link = frameLink<AgentToMom, MomToAgent>(
      { input: child.stdout, output: child.stdin },
      {
        "agent-prepared": (data) => {
          pause_ms = AGAIN_MS;
          for (const each of data.jobs) open.prepare.delete(key(each.job, each.run_count));
          answered();
          handlers["agent-prepared"](data);
          restWhenIdle();
        },
        "agent-finished": (data) => {
          pause_ms = AGAIN_MS;
          for (const each of data.jobs) open.finish.delete(key(each.job, each.run_count));
          answered();
          handlers["agent-finished"](data);
          restWhenIdle();
        },
        "agent-appended": handlers["agent-appended"],
        "agent-dropped": handlers["agent-dropped"],
        "agent-bulky": (data) => {
          for (const each of data.jobs) {
            const id = key(each.job, each.run_count);
            const request = open.finish.get(id);
            open.finish.delete(id);
            if (request !== undefined) onBulky(request);
          }
          answered();
        },
        "agent-complaint": handlers["agent-complaint"],
      },
      () => {
        link = null;
        if (ended !== null) return ended();
        handlers.complain("the file agent ended and is started again");
        setTimeout(repeat, pause_ms);
        pause_ms = Math.min(pause_ms * 2, AGAIN_MS_MAX);
      },
    );
  };
  const repeat = (): void => {
    launch();
    if (open.prepare.size > 0) link?.send("agent-prepare", { jobs: [...open.prepare.values()] });
    if (open.finish.size > 0) link?.send("agent-finish", { jobs: [...open.finish.values()] });
  };

  /** Kinds are sent in the order of their first request. */
  const flush = (): void => {
    scheduled = false;
    const now = waiting;
    const kinds = order;
    waiting = nothing();
    order = [];
    for (const kind of kinds) {
      if (kind === "prepare") link?.send("agent-prepare", { jobs: now.prepare });
      else if (kind === "finish") link?.send("agent-finish", { jobs: now.finish });
      else if (kind === "append") link?.send("agent-append", { files: now.append });
      else link?.send("agent-drop", { jobs: now.drop });
    }
  };
  const add = <K extends keyof Waiting>(kind: K, ...items: Waiting[K]): void => {
    if (waiting[kind].length === 0) order.push(kind);
    // Requests about one job stay in order: a kind with others after it starts a new round.
    else if (order.at(-1) !== kind) {
      flush();
      order.push(kind);
    }
    (waiting[kind] as unknown[]).push(...items);
    if (!scheduled) setImmediate(flush);
    scheduled = true;
  };
  launch();
  return {
    prepare(request) {
      open.prepare.set(key(request.plan.job, request.plan.run_count), request);
      waits_since_ms ??= steady_ms();
      add("prepare", request);
    },
    finish(request) {
      open.finish.set(key(request.plan.job, request.plan.run_count), request);
      waits_since_ms ??= steady_ms();
      add("finish", request);
    },
    append: (file) => add("append", file),
    drop: (request) => add("drop", request),
    silent_ms: () => (waits_since_ms === null ? 0 : steady_ms() - waits_since_ms),
    close() {
      flush();
      return new Promise((resolve) => {
        ended = resolve;
        if (link === null) resolve();
        else link.finish();
      });
    },
  };
}
