// The server's shell: sockets, store, clock and child processes round the core (design.md 4). Everything that happens is told to the core; what gathers there
// is committed in batches; only then replies, frames and actions leave.
//
// I1. One commit is under way at a time; meanwhile the next batch gathers.
// I2. Nothing of a batch leaves before its commit. A commit that fails refuses every request of the batch (15010) and starts again from the store.
// I3. While the store takes nothing (a full disk) questions are answered from what is stored, changes are refused, schedulers and moms wait outside.
// I4. Requests of clients are served in turns by user and connection, for a slice of time; then what waits of schedulers, moms and the store goes on.
// I5. Frames of one mom keep their order (start-frames.ts). Replies to clients: replies.ts.

import { lookup } from "node:dns";
import { join } from "node:path";
import { PBSE, pbseText } from "#model/pbse.ts";
import { limitOf } from "#model/server-limits.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/ipc-transport.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomToServer } from "#protocol/mom-link.ts";
import type { SchedToServer } from "#protocol/sched-link.ts";
import { parseRequest } from "#protocol/schema.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { serverSocketPath } from "#protocol/socket-path.ts";
import type { Loaded, Store, Batch as StoreBatch } from "#store/store.ts";
import { isStoreError } from "#store/store.ts";
import type { AccountingLog } from "#support/accounting-log.ts";
import type { Conf } from "#support/conf.ts";
import { keepFormulaFile } from "#support/formula-file.ts";
import type { Log } from "#support/log.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { UserDatabase } from "#support/passwd.ts";
import { type Core, createCore } from "../core/core.ts";
import type { Batch, ShellAction } from "../engine/batch.ts";
import type { ServerConfig } from "../engine/transaction.ts";
import { shared } from "../state/intern.ts";
import { rowsOf, stateOfRows } from "../state/rows.ts";
import type { ServerState } from "../state/state.ts";
import { coreClock } from "./core-clock.ts";
import { historyWork } from "./history.ts";
import { hookFiles } from "./hook-files.ts";
import { hookRuns } from "./hook-runs.ts";
import { type Connection, connections, linkLimits } from "./links.ts";
import { createShares, isListing } from "./listings.ts";
import { mailer } from "./mailer.ts";
import { replies } from "./replies.ts";
import { keepResourceFile } from "./resource-file.ts";
import { isAlive, schedProcesses } from "./sched-processes.ts";
import { startFrames } from "./start-frames.ts";
import { createTurns } from "./turns.ts";
import { unprivilegedUser } from "./unprivileged.ts";

export type ServiceOptions = {
  readonly conf: Conf;
  readonly config: ServerConfig;
  readonly store: Store;
  readonly log: Log;
  readonly accounting: AccountingLog;
  readonly users: UserDatabase;
  readonly state: ServerState;
  /** called once with the new core, before anything else happens: core/first-start.ts */
  readonly prepare: (core: Core) => void;
  /** everything is closed: the process may end */
  readonly ended: () => void;
};

/** A batch on its way. at_s: its time in the accounting file. */
type Taken = { readonly batch: Batch; readonly at_s: number; readonly rows: StoreBatch | null };

export type Service = {
  /** qterm -t quick by signal */
  stop(): void;
  /** SIGHUP */
  reopenLogs(): void;
};

/** After a commit that failed, how long the next one waits: a full disk is not hammered. */
const FAULT_PAUSE_MS = 200;
/** How often a store that took nothing is tried again. */
const PROBE_MS = 1000;
/** What can be answered without writing; a shutdown must be possible, too. */
const WITHOUT_STORE: ReadonlySet<Request["kind"]> = new Set(["status", "select-jobs", "locate-job", "backup", "shutdown"]);
/** Requests are served so long before what they made is written and new ones are read. */
const SLICE_MS = 10;
/** Work on requests that gathers at most while a batch is being written. */
const GATHER_MS = 50;
/** A process whose connection broke is looked for after this. */
const LOOK_AFTER_MS = 200;

/** Resolves when the server answers. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { conf, config, store, log, accounting, users } = options;
  const own_uid = process.getuid?.() ?? 0;
  const system = conf.mode === "system";
  const listings = createShares<Connection>(() => limitOf(core.state, "max_user_listings"));
  const conns = connections({ users, host: config.host, own_uid, system, listings });
  const to_clients = replies(conns);
  const { refuse } = to_clients;
  const logName = `Server@${config.host}`;
  let core = createCore(options.state, config, Date.now());
  let underway: Promise<void> | null = null;
  let scheduled = false;
  let ending = false;
  let reloading = false;
  /** why the store takes nothing; null: it does (I3) */
  let fault: string | null = null;
  let closing = false;
  let lost_records = 0;
  let timer: NodeJS.Timeout | null = null;

  const now = coreClock((by_ms, at_ms) => core.clockSet(by_ms, at_ms));
  const note = (event: number, text: string): void => log.record(event, "Svr", logName, text);
  const processes = schedProcesses({
    home: config.home,
    exec: conf.exec,
    system,
    users,
    attrsOf: (name) => core.state.scheds.get(name)?.attrs,
    exited(name, how) {
      guarded(() => core.schedExited(name, how, now()));
    },
    unfit: (name, text) => guarded(() => core.schedUnfit(name, text, now())),
    log: (name, text) => log.record(LOG_EVENT.SYSTEM, "Sched", name, text),
  });

  const hook_files = hookFiles(`${config.home}/server_priv/hooks`, (text) => note(LOG_EVENT.ERROR, text));

  const keepResources = (): void => {
    const fault = keepResourceFile(`${config.home}/server_priv`, core.state.resources.values());
    if (fault !== null) note(LOG_EVENT.ERROR, fault);
  };

  // --- batches

  /** Requests are served in turns (turns.ts). Whatever is done in this turn of the event loop goes into one batch. */
  const soon = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      const more = serveTurns();
      pump();
      if (more) soon();
    });
  };
  /** Time spent on requests whose batch was not taken yet. While one is being written not too much gathers for the next: whoever asks waits for both. */
  let gathered_ms = 0;
  const serveTurns = (): boolean => {
    if (reloading || ending || (underway !== null && gathered_ms >= GATHER_MS)) return false;
    const begin_ms = performance.now();
    const more = turns.serve(SLICE_MS);
    gathered_ms += performance.now() - begin_ms;
    return more;
  };
  const turns = createTurns(() => performance.now());
  const inTurn = (connection: Connection, work: () => void): void => {
    turns.add(connection.link.peer.uid, connection.link.id, work);
    soon();
  };

  const pump = (): void => {
    while (underway === null && !ending && !reloading) {
      const next = nextBatch();
      if (next === null) break;
      const { batch, rows, at_s } = next;
      if (rows === null) {
        deliver(batch, at_s);
        continue;
      }
      underway = store.commit(rows).then(
        () => {
          underway = null;
          deliver(batch, at_s);
          pump();
          soon();
        },
        (error: unknown) => {
          underway = null;
          void commitFailed(next, error);
        },
      );
    }
    arm();
  };

  const nextBatch = (): Taken | null => {
    let taken: Taken | null = null;
    guarded(() => {
      const batch = core.take();
      gathered_ms = 0;
      const at_s = Math.floor(Date.now() / 1000);
      if (batch !== null)
        taken = {
          batch,
          at_s,
          rows: rowsOf(
            core.state,
            batch.changes,
            batch.accounting.map((record) => ({ at_s, ...record })),
          ),
        };
    }, false);
    return taken;
  };

  const arm = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const next = core.nextTick();
    if (next === null || ending || fault !== null) return;
    timer = setTimeout(() => guarded(() => core.tick(now())), Math.min(Math.max(0, next - Date.now()), 2 ** 31 - 1));
  };

  const commitFailed = async ({ batch, at_s }: Taken, error: unknown): Promise<void> => {
    if (!isStoreError(error)) throw error;
    // A server that can write nothing can still be ended.
    if (fault !== null && batch.actions.some(({ kind }) => kind === "shutdown")) return deliver(batch, at_s);
    note(LOG_EVENT.ERROR, `commit failed: ${error.message}`);
    const text = `${pbseText(PBSE.SYSTEM) ?? ""}${error.message}`;
    for (const frame of batch.clients) if (frame.kind !== "part") refuse(frame.token, PBSE.SYSTEM, text);
    fault = text;
    await startOver(PBSE.SYSTEM, text);
  };

  /** Runs something of the core. A programmer's error there must not end the server for everybody: what was not committed is given up instead. */
  const guarded = (work: () => void, then_commit = true): void => {
    if (reloading || ending) return;
    try {
      work();
      if (then_commit) soon();
    } catch (error) {
      note(LOG_EVENT.ERROR, `internal error: ${error instanceof Error ? error.stack : String(error)}`);
      void startOver(PBSE.INTERNAL, pbseText(PBSE.INTERNAL) ?? "");
    }
  };

  /** Memory holds what was not written: it is thrown away, the store is the truth. Open requests are refused, daemons say hello again. */
  const startOver = async (code: number, text: string): Promise<void> => {
    if (reloading) return;
    reloading = true;
    const open = [...conns.tokens()];
    // What is being written now may succeed: its answers go out as they are.
    await underway;
    for (const token of open) refuse(token, code, text);
    for (const connection of conns.all()) if (connection.role !== "client") connection.link.destroy();
    await new Promise((resolve) => setTimeout(resolve, FAULT_PAUSE_MS));
    const state = await loadFromStore(store, config.host);
    if (ending) return;
    core = createCore(state, config, Date.now());
    note(LOG_EVENT.SYSTEM, "state loaded again from the store");
    reloading = false;
    if (fault === null) guarded(() => core.start(now()));
    else probeSoon();
    pump();
    soon();
  };

  const probeSoon = (): void => {
    setTimeout(() => void probe(), PROBE_MS).unref();
  };
  const probe = async (): Promise<void> => {
    if (ending || reloading) return;
    try {
      await store.commit({ counters: { probed: Date.now() } });
    } catch {
      return probeSoon();
    }
    fault = null;
    note(LOG_EVENT.SYSTEM, "the store can be written again");
    guarded(() => core.start(now()));
  };

  const mails = mailer({
    domain: conf.values["PBS_MAIL_HOST_NAME"],
    identity: system ? unprivilegedUser(users, "PBS_MAIL_USER", conf.values["PBS_MAIL_USER"]) : null,
    problem: (text) => note(LOG_EVENT.ERROR, text),
  });
  const hook_runs = hookRuns({ conf, system, users, core: () => core, guarded, complain: (text) => note(LOG_EVENT.ERROR, text) });

  // --- what leaves after a commit

  const deliver = (batch: Batch, at_s: number): void => {
    log.records(batch.logs);
    for (const { type, id, text } of batch.accounting) accounting.record(type, id, text, at_s);
    // With the next batch the store forgets these records: they must be in the file by then (accounting-recovery.ts).
    if (batch.accounting.length > 0) {
      accounting.flush();
      if (accounting.lost > lost_records)
        note(LOG_EVENT.ERROR, `${accounting.lost - lost_records} accounting records lost: cannot be written`);
      lost_records = accounting.lost;
    }
    if (batch.changes.resources.size > 0) keepResources();
    if (batch.changes.server) server?.setLimits(linkLimits(core.state));
    for (const name of batch.changes.hooks) hook_files.write(name, core.state.hooks.get(name));
    // Who made a scheduler may write its files as soon as it is answered.
    for (const action of batch.actions) if (action.kind === "prepare-sched") processes.prepare(action.sched);
    to_clients.answer(batch.clients);
    for (const { link, type, data } of batch.scheds) {
      const connection = conns.byNumber(link);
      connection?.link.send(type, data);
      if (type === "sched-refused") connection?.link.end();
    }
    for (const frame of batch.moms) sendToMom(frame);
    for (const action of batch.actions) act(action);
    if (batch.changes.purged_arrays.size > 0) inBackground(0, history.count());
  };

  const sendToMom = startFrames({
    link: (number) => conns.byNumber(number)?.link,
    scripts: (ids) => store.scripts(ids),
    isDeciding: () => [...core.kernel.scheds.values()].some(({ more }) => more),
    complain: (text) => note(LOG_EVENT.ERROR, text),
  });

  const act = (action: ShellAction): void => {
    switch (action.kind) {
      case "start-sched":
        processes.start(action.sched);
        break;
      case "stop-sched":
        processes.stop(action.sched, action.pid);
        break;
      case "prepare-sched":
        break;
      case "say-sched":
        processes.say(action.sched, action.text);
        break;
      case "drop-link":
        conns.byNumber(action.link)?.link.end();
        break;
      case "log-events":
        log.mask = action.mask;
        break;
      case "formula": {
        const fault = keepFormulaFile(join(config.home, "server_priv"), action.text);
        if (fault !== null) note(LOG_EVENT.ERROR, fault);
        break;
      }
      case "send-mail":
        mails.send(action.mail);
        break;
      case "read-history":
        inBackground(action.token, history.read(action.token, action.ids));
        break;
      case "page-history":
        inBackground(action.token, history.page(action.token, action.walk));
        break;
      case "go-on":
        inBackground(action.token, history.slices(action.token));
        break;
      case "purge-history":
        inBackground(0, history.purge(action.before_s));
        break;
      case "run-hook":
        hook_runs.run(action.run, action.hook);
        break;
      case "resolve-host":
        lookup(action.host, (error) => {
          guarded(() => core.hostResolved(action.token, action.host, error === null, now()));
        });
        break;
      case "backup":
        store.backup(action.file).then(
          () => to_clients.value(action.token),
          (error: Error) => refuse(action.token, PBSE.SYSTEM, `${pbseText(PBSE.SYSTEM) ?? ""}${error.message}`),
        );
        break;
      case "shutdown":
        void end(action.scheds);
        break;
      default: {
        const unreachable: never = action;
        return unreachable;
      }
    }
  };

  const history = historyWork({
    store,
    core: (work) => guarded(() => work(core)),
    async taken(token) {
      pump();
      await to_clients.taken(token);
    },
    async turn(token, work) {
      const link = conns.peek(token)?.connection.link;
      if (link === undefined) return false;
      const done = turns.wait(link.peer.uid, link.id, () => {
        const is_open = conns.peek(token) !== undefined;
        if (is_open) work();
        return is_open;
      });
      soon();
      return done;
    },
    uidOf: (token) => conns.peek(token)?.connection.link.peer.uid,
    rows_max: () => limitOf(core.state, "max_history_rows"),
  });

  const inBackground = (token: number, work: Promise<void>): void => {
    work.catch((error: unknown) => {
      const why = (error as Error).message;
      note(LOG_EVENT.ERROR, `history: ${why}`);
      if (token !== 0) refuse(token, PBSE.SYSTEM, `${pbseText(PBSE.SYSTEM) ?? ""}${why}`);
    });
  };

  // --- what comes in

  const onRequest = (connection: Connection, data: unknown): void => {
    const parsed = parseRequest(data);
    if (!parsed.ok) {
      note(LOG_EVENT.SECURITY, `${parsed.text} from uid ${connection.link.peer.uid}`);
      if (parsed.id === null) return connection.link.destroy();
      return connection.link.reply({ id: parsed.id, ok: false, code: parsed.code, text: parsed.text });
    }
    if (connection.peer === null) {
      return connection.link.reply({ id: parsed.id, ok: false, code: PBSE.BADCRED, text: pbseText(PBSE.BADCRED) });
    }
    const { peer } = connection;
    const { id, request } = parsed;
    const ask = (token: number): void => {
      if (conns.peek(token) === undefined) return; // refused while the state was being loaded again
      if (fault !== null && !WITHOUT_STORE.has(request.kind)) return refuse(token, PBSE.SYSTEM, fault);
      guarded(() => core.request(peer, request, token, now(), connection.link.id));
    };
    if (!isListing(request)) return ask(conns.open(connection, id));
    // Without a share the connection waits, with what is behind this request, until another listing of the user is over.
    connection.link.hold();
    listings.take(peer.uid, connection, () => {
      const token = conns.open(connection, id, true);
      connection.link.release();
      inTurn(connection, () => ask(token));
    });
  };

  const onSched = (connection: Connection, type: string, data: unknown): void => {
    if (reloading || fault !== null) return connection.link.destroy();
    const parsed = parseFrame("sched-to-server", type, data);
    const hello = parsed.ok && parsed.frame.type === "sched-hello";
    const name = hello ? (parsed.frame.data as SchedToServer["sched-hello"]).name : "";
    const sched_user = core.state.scheds.get(name)?.attrs["sched_user"];
    if (!parsed.ok || (hello ? !conns.mayBeSched(connection, sched_user) : connection.role !== "sched")) return intruder(connection, type);
    if (hello) {
      connection.role = "sched";
      connection.link.welcome();
    }
    const { type: kind, data: said } = parsed.frame;
    // The process we may have to end one day: by the kernel's word, not by its own.
    const content = hello ? { ...said, pid: connection.pid } : said;
    guarded(() => core.sched(connection.link.id, kind, content as never, now()));
  };

  const onMom = (connection: Connection, type: string, data: unknown): void => {
    if (reloading || fault !== null) return connection.link.destroy();
    const parsed = parseFrame("mom-to-server", type, data);
    const hello = parsed.ok && parsed.frame.type === "mom-hello";
    if (!parsed.ok || (hello ? !conns.mayBeDaemon(connection) : connection.role !== "mom")) return intruder(connection, type);
    if (hello) {
      connection.role = "mom";
      connection.link.welcome();
    }
    const { type: kind, data: content } = parsed.frame;
    guarded(() => core.mom(connection.link.id, kind as keyof MomToServer, content as never, now()));
  };

  const intruder = (connection: Connection, type: string): void => {
    note(LOG_EVENT.SECURITY, `${type.slice(0, 40)} refused from uid ${connection.link.peer.uid}, pid ${connection.pid}`);
    connection.link.destroy();
  };

  const serveLink = (connection: Connection): void => {
    if (connection.link.serveNext()) inTurn(connection, () => serveLink(connection));
  };

  const sched_types = new Set(frameTypes("sched-to-server"));
  const onClose = (link: ServerLink): void => {
    const connection = conns.remove(link);
    if (connection === undefined || ending) return;
    turns.drop(link.peer.uid, link.id);
    to_clients.forget(connection.tokens);
    guarded(() => {
      core.clientLost([...connection.tokens]);
      if (connection.role === "mom") core.momLost(link.id, now());
      if (connection.role === "sched") schedLost(connection);
    });
  };

  /** A scheduler that is no child of ours may have died: nobody else tells. */
  const schedLost = (connection: Connection): void => {
    const name = [...core.kernel.scheds.values()].find((runtime) => runtime.link === connection.link.id)?.name;
    core.schedLost(connection.link.id, now());
    if (name === undefined || processes.isChild(connection.pid)) return;
    setTimeout(() => {
      if (!isAlive(connection.pid))
        guarded(() => core.schedExited(name, { code: null, signal: "unknown", stopped: false, pid: connection.pid }, now()));
    }, LOOK_AFTER_MS).unref();
  };

  // --- the end

  let server: LinkServer | null = null;
  const end = async (scheds: boolean): Promise<void> => {
    if (closing) return;
    closing = true;
    if (scheds) {
      // A scheduler ends when its cycle is over, for which it needs our verdicts: they are given until then.
      for (const runtime of core.kernel.scheds.values()) processes.stop(runtime.name, runtime.link === null ? 0 : runtime.pid);
      await processes.stopped();
    }
    // What was answered in this batch is on its way; what came in since is refused by the closed connection.
    ending = true;
    if (timer !== null) clearTimeout(timer);
    await underway;
    hook_runs.close();
    note(LOG_EVENT.SYSTEM | LOG_EVENT.FORCE, "Server has been shut down");
    for (const connection of conns.all()) connection.link.end();
    await server?.close();
    await store.close();
    options.ended();
  };

  // --- the start

  hook_files.prepare(core.state.hooks.values());
  keepResources();
  options.prepare(core);
  log.mask = typeof core.state.server["log_events"] === "number" ? core.state.server["log_events"] : log.mask;
  server = await listenLinks({
    path: serverSocketPath(config.home),
    types: ["request", ...frameTypes("sched-to-server"), ...frameTypes("mom-to-server")],
    everyone: system,
    limits: linkLimits(core.state),
    onLink: (link) => void conns.add(link),
    onReady(link) {
      const connection = conns.of(link);
      if (connection !== undefined) inTurn(connection, () => serveLink(connection));
    },
    onFrame(link, type, data) {
      const connection = conns.of(link);
      if (connection === undefined || ending) return;
      if (type === "request") onRequest(connection, data);
      else if (sched_types.has(type)) onSched(connection, type, data);
      else onMom(connection, type, data);
    },
    onClose,
    onProblem: (text, peer) => note(LOG_EVENT.SECURITY, `connection ended: ${text}${peer === null ? "" : `, uid ${peer.uid}`}`),
  });
  core.start(now());
  pump();

  return {
    stop: () => void end(false),
    reopenLogs() {
      log.reopen();
      accounting.reopen();
    },
  };
}

/** State of the store as it is now. onLoaded: sees the rows as well. */
export async function loadFromStore(store: Store, name: string, onLoaded?: (loaded: Loaded) => void): Promise<ServerState> {
  const history_count = await store.history.count();
  const loaded = await store.load(shared);
  onLoaded?.(loaded);
  return stateOfRows(name, loaded, history_count);
}
