// The server as a process: the real core, with a shell that does in virtual time what main.ts does in real time. Rows are committed in groups, and only then do
// answers, frames and actions leave (ARCHITECTURE.md). It can be killed at any event, also between commit and effects.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import { PBSE } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { Decision } from "#protocol/sched-link.ts";
import { parseRequest } from "#protocol/schema.ts";
import { type Core, createCore } from "#server/core/core.ts";
import { prepareStart } from "#server/core/first-start.ts";
import type { Batch, ClientFrame, ShellAction } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ServerConfig } from "#server/engine/transaction.ts";
import type { SchedSight } from "#server/scheds/heartbeat.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import { jobOfHistory, rowsOf } from "#server/state/rows.ts";
import type { Job } from "#server/state/state.ts";
import type { StoreFault } from "#store/store.ts";
import { type Disk, loadDisk } from "./disk.ts";
import { playHook } from "./hook-play.ts";
import type { Cable, Link, Network } from "./network.ts";
import { START_MS, type World } from "./world.ts";

export const HOST = "svr";
/** A scheduler whose connection broke is looked for after this. */
const LOOK_AFTER_MS = 200;

/** `Fri Nov 20 09:26:28 2026`, as ctime without a time zone */
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
function ctime(epoch_s: number): string {
  const since_s = epoch_s - START_MS / 1000 + 9 * 3600 + 26 * 60 + 28;
  const [day, rest] = [Math.floor(since_s / 86_400), ((since_s % 86_400) + 86_400) % 86_400];
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return `${DAYS[(((5 + day) % 7) + 7) % 7]} Nov ${String(20 + day).padStart(2)} ${two(rest / 3600)}:${two((rest / 60) % 60)}:${two(rest % 60)} 2026`;
}

export const USERS = ["alice", "bob", "carol"] as const;
export const CONFIG: ServerConfig = {
  host: HOST,
  home: "/home/pbs",
  pbs_version: "23.06.06",
  own_user: null,
  ctime,
  timeZone: (name) => (name === "UTC" ? { name, offset: () => 0 } : null),
  userExists: (name) => name === "root" || (USERS as readonly string[]).includes(name),
};

export type Answer =
  | { readonly ok: true; readonly value?: unknown }
  | { readonly ok: false; readonly code: number; readonly text: string | null }
  | { readonly ok: "lost" };
export type SchedLink = Link<"server-to-sched", "sched-to-server">;
export type MomEnd = Link<"server-to-mom", "mom-to-server">;

/** What the checks hear of. */
export type ServerObserver = {
  /** the core has taken something in: nothing is committed yet */
  stepped(core: Core): void;
  /** decisions of a scheduler were served; their verdicts are in the outbox */
  decided(core: Core, link: number, decisions: readonly Decision[]): void;
  /** a batch leaves the core */
  taken(core: Core, batch: Batch): void;
  committed(core: Core, batch: Batch): void;
  /** the server came up from the disk */
  loaded(core: Core): void;
  /** what a hook will have answered */
  hooked(hook: HookRun, outcome: HookOutcome): void;
};

export type ServerOptions = {
  readonly commit_ms_max: number;
  /** asked when a server that runs wants a scheduler's process */
  startSched(name: string, parent: number): void;
  stopSched(name: string, parent: number, pid: number): void;
  isAlive(name: string, pid: number): boolean;
  lookAtSched(name: string, pid: number): SchedSight;
  /** SIGKILL; returns whether nobody but this server tells of its end: it is no child of `parent` */
  killSched(name: string, pid: number, parent: number): boolean;
};

export type ServerProcess = ReturnType<typeof createServerProcess>;

export function createServerProcess(world: World, network: Network, disk: Disk, options: ServerOptions, observer: ServerObserver) {
  const random = world.random.split("server");
  let core: Core | null = null;
  /** number of this process: what an earlier one had planned is void */
  let life = 0;
  let writing = false;
  let timer_ms: number | null = null;
  let next_link = 1;
  let next_token = 1;
  /** the next commit is followed by a kill before anything leaves; it comes back after so long */
  let doomed: number | null = null;
  const scheds = new Map<number, { readonly end: SchedLink; name: string; readonly cable: Cable }>();
  const moms = new Map<number, { readonly end: MomEnd; readonly cable: Cable }>();
  const clients = new Map<number, { readonly answer: (answer: Answer) => void; readonly parts: unknown[] }>();

  /** stopped (SIGSTOP) since then; what happens to it meanwhile, and by how much its clock is set */
  let paused_ms: number | null = null;
  let missed: (() => void | Promise<void>)[] = [];
  let set_ms = 0;

  /** Does it now, or when the process goes on: in order, after its timers. */
  const awake = (act: () => void | Promise<void>): void | Promise<void> => {
    if (paused_ms === null) return act();
    missed.push(act);
  };

  /** Runs something in the core and lets what follows go its way. */
  const enter = (act: (core: Core) => void): void =>
    void awake(() => {
      if (core === null) return;
      act(core);
      observer.stepped(core);
      pump();
    });

  const goOn = async (): Promise<void> => {
    if (paused_ms === null) return;
    world.trace.add("server", "goes-on", `after ${world.now_ms - paused_ms} ms`);
    paused_ms = null;
    const by_ms = set_ms;
    set_ms = 0;
    if (by_ms !== 0) enter((running) => running.clockSet(by_ms, world.wall_ms));
    enter((running) => running.tick(world.wall_ms));
    for (const act of missed.splice(0)) await act();
  };

  const pump = (): void => {
    const now = core;
    if (now === null || writing) return;
    const batch = now.take();
    if (batch === null) {
      armTimer();
      return;
    }
    observer.taken(now, batch);
    const rows = rowsOf(now.state, batch.changes);
    if (rows === null) {
      letGo(batch);
      pump();
      return;
    }
    writing = true;
    const mine = life;
    const written = async (): Promise<void> => {
      if (mine !== life) return;
      try {
        await disk.store.commit(rows);
      } catch (error) {
        commitFailed((error as Error).message);
        return;
      }
      disk.accounting.push(...batch.accounting);
      world.trace.add("server", "commit", () => batchText(batch));
      observer.committed(now, batch);
      if (doomed !== null) {
        const away_ms = doomed;
        kill("killed between commit and effects");
        world.after(away_ms, start);
        return;
      }
      const leave = (): void => {
        if (mine !== life) return;
        writing = false;
        letGo(batch);
        pump();
      };
      world.after(random.int(0, 2), () => awake(leave));
    };
    world.after(random.int(0, options.commit_ms_max), () => awake(written));
  };

  const armTimer = (): void => {
    const due = core?.nextTick() ?? null;
    if (due === null || due === timer_ms) return;
    timer_ms = due;
    const mine = life;
    world.after(due - world.wall_ms, () => {
      if (mine !== life || timer_ms !== due) return;
      timer_ms = null;
      enter((running) => running.tick(world.wall_ms));
    });
  };

  // --- effects

  const letGo = (batch: Batch): void => {
    for (const frame of batch.clients) reply(frame);
    for (const { link, type, data } of batch.scheds) {
      scheds.get(link)?.end.send(type, data as never);
      if (type === "sched-refused") closeSched(link);
    }
    for (const { link, type, data } of batch.moms) moms.get(link)?.end.send(type, data as never);
    for (const action of batch.actions) carryOut(action);
  };

  /** The shell of the server tells the core of every link that ends, also of those it ends itself. */
  const closeSched = (link: number): void => {
    const entry = scheds.get(link);
    entry?.end.close();
    if (!scheds.delete(link)) return;
    world.after(0, () => enter((running) => running.schedLost(link, world.wall_ms)));
  };
  const closeMom = (link: number): void => {
    moms.get(link)?.end.close();
    if (!moms.delete(link)) return;
    world.after(0, () => enter((running) => running.momLost(link, world.wall_ms)));
  };

  const reply = (frame: ClientFrame): void => {
    const client = clients.get(frame.token);
    if (client === undefined) return;
    if (frame.kind === "part") {
      client.parts.push(...frame.items);
      return;
    }
    clients.delete(frame.token);
    const answer: Answer =
      frame.kind === "ok"
        ? { ok: true, value: client.parts.length > 0 ? client.parts : frame.value }
        : { ok: false, code: frame.code, text: frame.text };
    world.after(network.delay(), () => client.answer(answer));
  };

  const carryOut = (action: ShellAction): void => {
    world.trace.add("server", "action", action);
    const mine = life;
    const later = (act: () => void | Promise<void>): void =>
      world.after(random.int(0, 3), () => awake(() => (mine === life ? act() : undefined)));
    switch (action.kind) {
      case "start-sched":
        options.startSched(action.sched, mine);
        break;
      case "stop-sched":
        options.stopSched(action.sched, mine, action.pid);
        break;
      case "look-at-sched":
        later(() => enter((running) => running.schedSeen(action.sched, options.lookAtSched(action.sched, action.pid), world.wall_ms)));
        break;
      case "kill-sched":
        if (options.killSched(action.sched, action.pid, mine)) lookAfter(action.sched, action.pid, null);
        break;
      case "prepare-sched":
      case "say-sched":
        break;
      case "drop-link": {
        closeSched(action.link);
        closeMom(action.link);
        break;
      }
      case "read-history":
        later(async () => {
          const rows = await Promise.all(action.ids.map((id) => disk.store.history.get(id)));
          enter((running) =>
            running.historyRead(
              action.token,
              new Map(action.ids.map((id, at) => [id, rows[at] ? jobOfHistory(rows[at]) : null])),
              world.wall_ms,
            ),
          );
        });
        break;
      case "page-history":
        later(async () => {
          const all: Job[] = [];
          for await (const page of disk.store.history.pages(action.walk)) all.push(...page.map(jobOfHistory));
          enter((running) => running.historyPage(action.token, all, true, world.wall_ms));
        });
        break;
      case "go-on":
        later(() =>
          enter((running) => {
            while (running.slice(action.token, world.wall_ms));
          }),
        );
        break;
      case "purge-history":
        later(async () => {
          const gone = await disk.store.history.purge(action.before_s);
          enter((running) => running.historyPurged(gone.length));
        });
        break;
      case "resolve-host":
        later(() => enter((running) => running.hostResolved(action.token, action.host, !action.host.startsWith("nowhere"), world.wall_ms)));
        break;
      case "run-hook": {
        const { outcome, delay_ms } = playHook(random, action.hook);
        observer.hooked(action.hook, outcome);
        world.after(delay_ms, () => {
          if (mine === life) enter((running) => running.hookEnded(action.run, outcome, world.wall_ms));
        });
        break;
      }
      case "shutdown":
      case "send-mail":
      case "backup":
      case "log-events":
      case "formula":
        break;
      default: {
        const unreachable: never = action;
        void unreachable;
      }
    }
  };

  /** A scheduler that is no child of this server may have died: nobody else tells. */
  const lookAfter = (name: string, pid: number, parent: number | null): void => {
    if (parent === life) return;
    const mine = life;
    world.after(LOOK_AFTER_MS, () => {
      if (mine === life && !options.isAlive(name, pid))
        enter((running) => running.schedExited(name, { code: null, signal: "unknown", stopped: false, pid }, world.wall_ms));
    });
  };

  // --- life and death

  const start = async (): Promise<void> => {
    if (core !== null) return;
    const mine = ++life;
    const state = await loadDisk(disk, HOST);
    const fresh = state.scheds.size === 0;
    if (mine !== life) return;
    writing = false;
    doomed = null;
    timer_ms = null;
    core = createCore(state, CONFIG, world.wall_ms);
    world.trace.add("server", "start", fresh ? "fresh" : `${state.jobs.size} jobs`);
    observer.loaded(core);
    enter((running) => {
      prepareStart(running, { start: "warm", fresh, node: null });
      running.start(world.wall_ms);
    });
  };

  const kill = (why: string): void => {
    if (core === null) return;
    world.trace.add("server", "killed", why);
    core = null;
    life++;
    writing = false;
    paused_ms = null;
    missed = [];
    set_ms = 0;
    for (const { cable } of [...scheds.values(), ...moms.values()]) cable.killed(1);
    scheds.clear();
    moms.clear();
    const lost = [...clients.values()];
    clients.clear();
    for (const client of lost) world.after(network.delay(), () => client.answer({ ok: "lost" }));
  };

  /** The disk refused: everybody is told so, and the server goes on from what the disk holds (ARCHITECTURE.md, The server). */
  const commitFailed = (text: string): void => {
    world.trace.add("server", "commit-failed", text);
    const refused = [...clients.values()];
    clients.clear();
    kill("state is loaded again");
    for (const client of refused) world.after(network.delay(), () => client.answer({ ok: false, code: PBSE.SYSTEM, text }));
    world.after(1, start);
  };

  return {
    get core() {
      return core;
    },
    get idle() {
      return core !== null && !writing && paused_ms === null;
    },
    /** work of the process: done now, or when it goes on; not at all when it is killed before */
    awake: (act: () => void): void => void awake(act),
    /** number of the process, for its children */
    get life() {
      return life;
    },
    start,
    kill,
    /** the next commit is the last thing this server does; it is started again after so long */
    killAtNextCommit(away_ms: number): void {
      doomed = away_ms;
    },
    /** stopped, and goes on after so long; nobody's connection ends */
    pause(for_ms: number): void {
      if (core === null || paused_ms !== null) return;
      world.trace.add("server", "stopped", `for ${for_ms} ms`);
      paused_ms = world.now_ms;
      const mine = life;
      world.after(for_ms, () => (mine === life ? goOn() : undefined));
    },
    /** what was to go wrong does not; goes on if it is stopped */
    async behave(): Promise<void> {
      doomed = null;
      disk.store.failCommits("io", 0);
      await goOn();
    },
    /** the wall clock of its host was set: it shows what world.wall_ms says */
    clockSet(by_ms: number): void {
      timer_ms = null;
      if (paused_ms !== null) set_ms += by_ms;
      else enter((running) => running.clockSet(by_ms, world.wall_ms));
    },
    failCommits(fault: StoreFault, times: number): void {
      disk.store.failCommits(fault, times);
    },

    /** null: nobody listens */
    dialSched(name: string, pid: number, parent: number): Link<"sched-to-server", "server-to-sched"> | null {
      if (core === null) return null;
      const { a, b, cable } = network.connect("sched", name, "sched-to-server", "server-to-sched");
      const link = next_link++;
      scheds.set(link, { end: b, name, cable });
      b.listen({
        receive: ({ type, data }) => {
          enter((running) => {
            running.sched(link, type, data as never, world.wall_ms);
            if (type === "sched-decisions") observer.decided(running, link, data.decisions);
          });
        },
        lost: () => {
          scheds.delete(link);
          world.trace.add("server", "sched-lost", name);
          enter((running) => running.schedLost(link, world.wall_ms));
          lookAfter(name, pid, parent);
        },
      });
      return a;
    },

    dialMom(host: string): Link<"mom-to-server", "server-to-mom"> | null {
      if (core === null) return null;
      const { a, b, cable } = network.connect("mom", host, "mom-to-server", "server-to-mom");
      const link = next_link++;
      moms.set(link, { end: b, cable });
      b.listen({
        receive: ({ type, data }) => enter((running) => running.mom(link, type, data as never, world.wall_ms)),
        lost: () => {
          moms.delete(link);
          world.trace.add("server", "mom-lost", host);
          enter((running) => running.momLost(link, world.wall_ms));
        },
      });
      return a;
    },

    /** A child of this process has ended; a later server does not hear of it. */
    schedExited(name: string, parent: number, how: SchedEnd): void {
      if (parent !== life) return;
      enter((running) => running.schedExited(name, how, world.wall_ms));
    },

    /** A client's request on a connection of its own. The returned function hangs up. */
    request(peer: Peer, request: Request, answer: (answer: Answer) => void): () => void {
      const token = next_token++;
      const mine = life;
      let gone = false;
      world.after(network.delay(), () => {
        if (core === null || mine !== life) {
          answer({ ok: "lost" });
          return;
        }
        const parsed = parseRequest({ id: token, ...(JSON.parse(JSON.stringify(request)) as object) });
        if (!parsed.ok) {
          answer({ ok: false, code: parsed.code, text: parsed.text });
          return;
        }
        world.trace.add(peer.user, request.kind, request);
        if (!gone) clients.set(token, { answer, parts: [] });
        enter((running) => running.request(peer, parsed.request, token, world.wall_ms));
      });
      return () => {
        gone = true;
        if (!clients.delete(token)) return;
        enter((running) => running.clientLost([token]));
      };
    },
  };
}

function batchText({ changes, scheds, moms, clients, accounting }: Batch): string {
  const names = [...changes.jobs, ...changes.vnodes, ...changes.queues, ...changes.scheds].join(" ");
  const records = accounting.map(({ type, id }) => `${type};${id}`).join(" ");
  return `${names} | ${records} | ${clients.length} replies ${scheds.length} to schedulers ${moms.length} to moms`;
}
