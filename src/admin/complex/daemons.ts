// Starts and stops the daemons of a complex by their pid files (docs/reference/files.md 9). The server starts and stops
// schedulers.

import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { collectInto, connectServer, ServerUnreachable } from "#protocol/client.ts";
import type { StatusItem } from "#protocol/messages.ts";
import { KEEPER_LOCK, LOG_FAULT, NOT_REACHED, PLACE_OF_ROOT, PRIV_FAULT } from "#protocol/sched-link.ts";
import { connectWatched } from "#protocol/watched-link.ts";
import { WAITING } from "#server/shell/daemon-start.ts";
import type { Conf } from "#support/conf.ts";
import { isLocked, lockState, readPid } from "#support/libc/lock-file.ts";
import { AdminError, programTree } from "./complex-home.ts";
import { descendants, gone, isStopped, kill } from "./processes.ts";

export type DaemonName = "comm" | "mom" | "server";
/** The daemons of a complex on one host. */
export const DAEMONS: readonly DaemonName[] = ["comm", "mom", "server"];
const LOCK: Record<DaemonName, string> = { comm: "server_priv/comm.lock", mom: "mom_priv/mom.lock", server: "server_priv/server.lock" };
/** The lock of the server on the host that PBS_SECONDARY names. */
const SECONDARY_LOCK = "server_priv/server.lock.secondary";
/** If the server takes longer for an answer, it counts as not answering (its process may be suspended by SIGSTOP, for example). */
const ANSWER_S_MAX = 20;
/** If a scheduler has been down for this long and has reported a reason, the caller stops waiting for it. */
const SCHED_DOWN_S_MAX = 10;
/** Environment variables that name the descriptor on which a daemon in the background reports that it is ready. */
const READY_VARIABLE: Record<DaemonName, string> = { comm: "PARTITA_COMM_READY", mom: "PARTITA_MOM_READY_FD", server: "PARTITA_READY_FD" };

/**
 * Returns the pid of a daemon that runs: it is the process that has the lock on the daemon's pid file. A pid in a file without a lock is ignored. A zombie has
 * no lock.
 */
export const daemonPid = (conf: Conf, daemon: DaemonName): number | null =>
  lockHolder(lockOf(conf, daemon)) ?? (daemon === "server" && conf.pair !== null ? lockHolder(join(conf.home, SECONDARY_LOCK)) : null);

/** Whether the caller may not know if a daemon runs: in system mode, ordinary users cannot read its lock. */
export const isClosed = (conf: Conf, daemon: DaemonName): boolean => lockState(lockOf(conf, daemon)) === "closed";

const lockOf = (conf: Conf, daemon: DaemonName): string => join(daemon === "mom" ? conf.mom_home : conf.home, LOCK[daemon]);

export const lockHolder = (path: string): number | null => (isLocked(path) ? readPid(path) : null);

/** Returns the path of a program in the installation of the complex. */
export function programOf(conf: Conf, name: string): string {
  const candidates = [join(conf.exec, "sbin", name), join(conf.exec, "bin", name), join(programTree(), "bin", name)];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new AdminError(`${name} is missing in ${conf.exec}`);
  return found;
}

/** Returns the environment for programs of the complex. It has no variables of the caller that would override pbs.conf. */
export function complexEnv(conf: Conf): NodeJS.ProcessEnv {
  const decided = /^PBS_(HOME|EXEC|SERVER|DEFAULT|SERVER_HOST_NAME|START_\w+|MOM_\w+|\w+_PORT)$/;
  const kept = Object.entries(process.env).filter(([name]) => !decided.test(name));
  return { ...Object.fromEntries(kept), PBS_CONF_FILE: conf.file };
}

/** Starts those daemons that do not run, all at the same time. If one fails to start, throws AdminError with its message. */
export async function startDaemons(conf: Conf, wanted: readonly DaemonName[] = enabledDaemons(conf)): Promise<readonly DaemonName[]> {
  const missing = wanted.filter((daemon) => daemonPid(conf, daemon) === null);
  const results = await Promise.all(missing.map(async (daemon) => ({ daemon, ...(await startDaemon(conf, daemon)) })));
  const failed = results.find(({ status }) => status !== 0);
  if (failed !== undefined) throw new AdminError(`pbs_${failed.daemon} did not start (exit ${failed.status}): ${failed.output.trim()}`);
  return missing;
}

type Outcome = { readonly status: number; readonly output: string };

/**
 * Starts a daemon. If it belongs to this installation, its program is started directly, in the form that the daemon's own command uses for the background (on
 * descriptor 3 it reports that it is ready). This saves two processes. Other daemons are started by their commands.
 */
function startDaemon(conf: Conf, daemon: DaemonName): Promise<Outcome> {
  const tree = programTree();
  const bundle = join(tree, "dist", `pbs_${daemon}.mjs`);
  const ours = conf.exec === tree || join(conf.exec, "lib/partita") === tree;
  if (!ours || !existsSync(bundle)) return runToEnd(programOf(conf, `pbs_${daemon}`), [], conf);
  const output = daemon === "mom" ? openSync(join(conf.mom_home, "mom_priv/mom.out"), "a", 0o600) : "ignore";
  const child = spawn(process.execPath, [bundle, ...(daemon === "mom" ? ["-N"] : [])], {
    argv0: `pbs_${daemon}`,
    detached: true,
    cwd: "/",
    stdio: ["ignore", output, output, "pipe"],
    env: { ...complexEnv(conf), [READY_VARIABLE[daemon]]: "3" },
  });
  if (typeof output === "number") closeSync(output);
  return new Promise((resolve) => {
    let said = "";
    child.stdio[3]?.on("data", (text: Buffer) => {
      said = withoutWaits(said + text.toString());
      if (said.includes("ready\n")) settle({ status: 0, output: "" });
    });
    child.once("error", (error) => settle({ status: 127, output: error.message }));
    child.once("exit", (status) => setImmediate(() => settle({ status: status ?? 255, output: said || "see its log" })));
    const settle = (outcome: Outcome): void => {
      child.unref();
      child.stdio[3]?.destroy();
      resolve(outcome);
    };
  });
}

/** Shows the lines with which a daemon tells why it still waits, and returns the rest of its output. */
function withoutWaits(text: string): string {
  if (!text.startsWith(WAITING)) return text;
  const end = text.indexOf("\n") + 1;
  process.stderr.write(text.slice(0, end));
  return end === 0 ? text : withoutWaits(text.slice(end));
}

export function enabledDaemons(conf: Conf): readonly DaemonName[] {
  return DAEMONS.filter((daemon) => conf.start[daemon]);
}

/** Runs a program of the complex and waits for its end. output: the text that it has printed. */
export function runToEnd(
  program: string,
  args: readonly string[],
  conf: Conf,
): Promise<{ readonly status: number; readonly output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env: complexEnv(conf), stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const collect = (text: Buffer): void => {
      output = withoutWaits(output + text.toString());
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("error", (error) => resolve({ status: 127, output: error.message }));
    child.once("exit", (status) => resolve({ status: status ?? 255, output }));
  });
}

export type Seen = {
  readonly server: readonly StatusItem[];
  readonly scheds: readonly StatusItem[];
  readonly nodes: readonly StatusItem[];
};

/** Asks the server for its data about itself, its schedulers and its vnodes. Returns null if it does not answer in time. */
export async function askServer(conf: Conf): Promise<Seen | null> {
  const pid = daemonPid(conf, "server");
  if (pid !== null && isStopped(pid)) return null;
  try {
    const link = await connectServer(conf, { flow: { ended: AbortSignal.timeout(ANSWER_S_MAX * 1000), room: () => null } });
    const ask = async (object: "server" | "sched" | "node"): Promise<readonly StatusItem[]> => {
      const items: StatusItem[] = [];
      await link.request({ kind: "status", object, ids: [] }, { onPart: collectInto(items) });
      return items;
    };
    const [server, scheds, nodes] = await Promise.all([ask("server"), ask("sched"), ask("node")]);
    link.close();
    return { server, scheds, nodes };
  } catch {
    return null;
  }
}

/**
 * Waits until the server answers, its enabled schedulers are up and the vnodes of this host are known. Throws AdminError at
 * once if a daemon that should run does not run, and after a short time if a scheduler is down and has reported a reason.
 * Returns sentences about schedulers on other hosts that are down, because starting this host does not start them.
 */
export async function waitUntilUp(conf: Conf, limit_s = 120): Promise<readonly string[]> {
  const begin_ms = performance.now();
  for (;;) {
    const seen = await askServer(conf);
    const missing = seen === null ? { text: "the server does not answer", is_told: false } : notUp(seen, conf);
    if (missing === null) return farDown(seen);
    const dead = enabledDaemons(conf).filter((daemon) => daemonPid(conf, daemon) === null);
    const stopped = runningDaemons(conf).filter(([, pid]) => isStopped(pid));
    if (stopped.length > 0)
      throw new AdminError(stopped.map(([name, pid]) => `${name} (pid ${pid}) is stopped: kill -CONT ${pid} continues it`).join("; "));
    if (dead.length > 0) throw new AdminError(dead.map((daemon) => endOf(conf, daemon)).join("; "));
    const waited_s = (performance.now() - begin_ms) / 1000;
    if (missing.is_told && waited_s > SCHED_DOWN_S_MAX)
      throw new AdminError(`${missing.text}; everything else is up. The reason is in ${conf.home}/server_logs`);
    if (waited_s > limit_s)
      throw new AdminError(`not up after ${limit_s} s: ${missing.text}; see ${conf.home}/server_logs, sched_logs and mom_logs`);
    await sleep(20);
  }
}

/** Returns a message that the daemon has ended, with the last line of its log. */
function endOf(conf: Conf, daemon: DaemonName): string {
  const directory = join(daemon === "mom" ? conf.mom_home : conf.home, `${daemon}_logs`);
  try {
    const last = readdirSync(directory).sort().at(-1) ?? "";
    const lines = readFileSync(join(directory, last), "utf8").trimEnd().split("\n");
    return `pbs_${daemon} has ended; the end of ${join(directory, last)}:\n  ${lines.slice(-3).join("\n  ")}`;
  } catch {
    return `pbs_${daemon} has ended; see ${directory}`;
  }
}

/** Returns a sentence about each scheduler on another host that the server cannot reach, with the reason. */
function farDown(seen: Seen | null): readonly string[] {
  return seen === null ? [] : downScheds(seen).flatMap(({ name, why }) => (isFar(why) ? [`scheduler ${name} is down: ${why}`] : []));
}

const isFar = (why: string | null): boolean => why?.startsWith(NOT_REACHED) === true;

/** What is not up yet, and why. is_told: the scheduler has reported the reason, which will not change while the caller waits. */
type NotUp = { readonly text: string; readonly is_told: boolean };

function notUp(seen: Seen, conf: Conf): NotUp | null {
  const sched = downScheds(seen).find(({ why }) => !isFar(why));
  if (sched !== undefined)
    return { text: `scheduler ${sched.name} is down${sched.why === null ? "" : `: ${sched.why}`}`, is_told: sched.why !== null };
  const state = conf.start.mom ? downNode(seen, conf) : null;
  return state === null ? null : { text: `node ${conf.mom_node_name} is ${state}`, is_told: false };
}

/** Comments with which the server itself sets scheduling to False. A scheduler with such a comment should run nevertheless. */
const SWITCHED_OFF: readonly string[] = [PRIV_FAULT, LOG_FAULT];

/** Returns the schedulers that should run but do not. */
export function downScheds(seen: Seen): readonly { readonly name: string; readonly why: string | null }[] {
  return seen.scheds.flatMap((item) => {
    if (!("attrs" in item)) return [];
    const { scheduling, partition, state, comment } = item.attrs;
    const isWanted = scheduling === "True" || SWITCHED_OFF.includes(String(comment));
    const isDown = isWanted && partition !== undefined && state === "down";
    return isDown ? [{ name: item.id, why: comment === undefined ? null : String(comment) }] : [];
  });
}

/** Returns the state of this host's vnode if its mom is not connected to the server. Returns null if it is connected, or if the server has no such vnode. */
export function downNode(seen: Seen, conf: Conf): string | null {
  const node = seen.nodes.find((item) => item.id === conf.mom_node_name);
  const state = node !== undefined && "attrs" in node ? String(node.attrs["state"]) : "";
  return /down|state-unknown/.test(state) ? state : null;
}

function runningDaemons(conf: Conf): readonly (readonly [name: string, pid: number])[] {
  return DAEMONS.flatMap((daemon) => {
    const pid = daemonPid(conf, daemon);
    return pid === null ? [] : [[`pbs_${daemon}`, pid] as const];
  });
}

/** Returns a sentence about the daemons that run, such as `pbs_comm (pid 12) and pbs_mom (pid 13) run: partita stop ends them`; "": no daemon runs. */
export function runningText(conf: Conf): string {
  const names = runningDaemons(conf).map(([name, pid]) => `${name} (pid ${pid})`);
  if (names.length === 0) return "";
  const last = names.pop();
  return names.length === 0 ? `${last} runs: partita stop ends it` : `${names.join(", ")} and ${last} run: partita stop ends them`;
}

/** Returns the pids of the daemons that run, schedulers included, by name. */
export function runningProcesses(conf: Conf): Map<string, number> {
  const pids = new Map(runningDaemons(conf));
  // Keepers come first: a keeper that is ended before its scheduler does not start it again.
  for (const { name, pid } of keeperPids(conf)) pids.set(`pbs_sched_keeper ${name}`, pid);
  for (const { name, pid } of schedPids(conf)) pids.set(`pbs_sched ${name}`, pid);
  return pids;
}

/**
 * Sends qterm -s, and then TERM to the daemons that remain. Returns when the processes no longer exist. waits: called from time to time with the processes that
 * still exist. mom_signal SIGINT: the mom ends, but its jobs continue, and the next mom takes them over.
 */
export async function stopDaemons(
  conf: Conf,
  waits: (text: string) => void = () => undefined,
  wanted: readonly DaemonName[] = DAEMONS,
  mom_signal: "SIGTERM" | "SIGINT" = "SIGTERM",
): Promise<readonly string[]> {
  const isWanted = (name: string): boolean =>
    name.startsWith("pbs_sched") ? wanted.includes("server") : wanted.some((daemon) => name === `pbs_${daemon}`);
  const pids = new Map([...runningProcesses(conf)].filter(([name]) => isWanted(name)));
  const server = pids.get("pbs_server");
  // A process that is suspended (SIGSTOP) receives the signal only after it has been continued.
  for (const [name, pid] of pids)
    if (isStopped(pid)) {
      waits(`${name} (pid ${pid}) was stopped: it is continued to end`);
      kill(pid, "SIGCONT");
    }
  const told = server !== undefined && (await shutDown(conf));
  if (server !== undefined && !told) kill(server, "SIGTERM");
  // Schedulers get the signal even if the server was told to stop them: a scheduler without a connection at that moment would not learn of it, and would wait
  // for the next server.
  for (const [name, pid] of pids) if (name !== "pbs_server") kill(pid, name === "pbs_mom" ? mom_signal : "SIGTERM");
  await gone([...pids], { burial: true, waits });
  return [...pids.keys()];
}

/** Sends the request that qterm -t quick -s sends. Returns false if the server does not answer, or refuses the request. */
async function shutDown(conf: Conf): Promise<boolean> {
  let is_silent = false;
  try {
    const patience = { notice_s: ANSWER_S_MAX, limit_s: 0 };
    const link = await connectWatched(conf, {
      patience,
      silent: () => {
        is_silent = true;
        link.close();
      },
    });
    const reply = await link.request({ kind: "shutdown", manner: "quick", scheds: true, moms: false });
    link.close();
    return reply.ok;
  } catch (error) {
    // The server may end before its answer arrives: its silence then means success.
    return !is_silent && error instanceof ServerUnreachable && error.line === "Communication failure.";
  }
}

/** Sends KILL to all processes of the complex, including those of running jobs. */
export async function killDaemons(conf: Conf): Promise<void> {
  const pids = runningProcesses(conf);
  const starter = lockHolder(join(conf.mom_home, "mom_priv/starter.lock"));
  const mom = pids.get("pbs_mom");
  // Children of the server are included: a scheduler that was just started does not have its lock yet.
  const roots = [starter, mom, pids.get("pbs_server")].filter((pid) => pid !== null && pid !== undefined);
  // SIGSTOP suspends these processes first. They then cannot start others, so that the list of descendants is complete.
  for (const pid of roots) kill(pid, "SIGSTOP");
  for (const pid of pids.values()) kill(pid, "SIGKILL");
  for (const [index, pid] of descendants(roots).entries()) pids.set(`child process ${index}`, pid);
  if (starter !== null) pids.set("pbs_starter", starter);
  for (const pid of pids.values()) kill(pid, "SIGKILL");
  await gone([...pids], { burial: false });
}

/** Returns the schedulers of this host that run, found by the locks in the sched_priv directories below PBS_HOME. */
export const schedPids = (conf: Conf): readonly SchedPid[] => lockedScheds(conf, "sched.lock");

/** Returns the schedulers of this host that are started again after a crash, with the pids of their keepers. */
export const keeperPids = (conf: Conf): readonly SchedPid[] => lockedScheds(conf, KEEPER_LOCK);

type SchedPid = { readonly name: string; readonly pid: number };

function lockedScheds({ home }: Conf, file: string): readonly SchedPid[] {
  return [...directoriesIn(home, "sched_priv"), ...directoriesIn(join(home, "identity"), PLACE_OF_ROOT)].flatMap(({ path, rest }) => {
    const pid = lockHolder(join(path, file));
    const name = rest === "" ? "default" : rest.replace(/^_/, "");
    return pid !== null && isOwnerOf(path, pid) ? [{ name, pid }] : [];
  });
}

/** Returns the entries of a directory whose names begin with a word, with the rest of their names. */
function directoriesIn(directory: string, word: string): readonly { readonly path: string; readonly rest: string }[] {
  return namesIn(directory)
    .filter((name) => name.startsWith(word))
    .map((name) => ({ path: join(directory, name), rest: name.slice(word.length) }));
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // There is no such directory, or the caller may not read it.
    return [];
  }
}

/** Whether a process runs as the owner of a directory: the owner could write any pid into a lock file there. */
function isOwnerOf(directory: string, pid: number): boolean {
  const uid = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
  return uid !== undefined && uid === statSync(directory).uid;
}
