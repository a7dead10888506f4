// pbs_resident SOCKET MARK: runs the commands of one user, so that Node.js need not be started for each command. A launcher
// (native/launcher.c) starts the resident. It passes the circumstances, the limits, and, as descriptor 3, the mark with its
// lock (README.md explains circumstances and mark). The resident ends by itself.
//
// R1. Only the process that has the lock on the mark removes or creates the socket. When the process ends, for whatever
//     reason, the lock is released.
// R2. Only connections of the resident's own user are accepted (SO_PEERCRED).
// R3. After an error that no command caught, no further command is accepted.

import { AsyncLocalStorage } from "node:async_hooks";
import { chmodSync, fstatSync, ftruncateSync, futimesSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { isLocked } from "#support/libc/lock-file.ts";
import { loadCommand } from "./commands.ts";
import { serverLinks } from "./server-links.ts";
import { type Session, serve } from "./session.ts";
import { settingsOf } from "./settings.ts";

const MARK_FD = 3;
/**
 * if this many bytes of output wait for a launcher, the resident reads no more answers of the server to that launcher's command until the launcher has taken the output
 */
const WAITING_BYTES_MAX = 1 << 18;
/** how often the resident checks its own size, and whether its bundle still exists */
const LOOK_MS = 10_000;
const COMMANDS_PER_LOOK = 64;
const FORGOTTEN_MS = 24 * 3600 * 1000;

const [, bundle = "", socket_path = "", mark_path = ""] = process.argv;
const circumstances = process.env["PARTITA_CIRCUMSTANCES"] ?? "";
const settings = settingsOf(process.env);
const sessions = new Set<Session>();
const links = serverLinks();
const current = new AsyncLocalStorage<Session>();
let commands = 0;
let retiring = false;
let idle: NodeJS.Timeout | undefined;

if (!holdsMark() || circumstances === "") {
  process.stderr.write("pbs_resident is started by the launchers of the PBS commands\n");
  process.exit(1);
}
const built = identity(bundle);

const server = createServer({ highWaterMark: WAITING_BYTES_MAX }, (socket) => {
  const peer = peerCredentials(socket);
  if (peer === null || peer.uid !== process.geteuid?.()) return void socket.destroy();
  serve(socket, {
    circumstances,
    admits: () => !retiring && sessions.size < settings.at_once_max,
    load: loadCommand,
    links,
    within: (session, action) => current.run(session, action),
    began(session) {
      sessions.add(session);
      clearTimeout(idle);
    },
    ended(session) {
      sessions.delete(session);
      commands += 1;
      if (commands >= settings.commands_max || (commands % COMMANDS_PER_LOOK === 0 && isLarge())) retire();
      rest();
    },
  });
});

process.on("uncaughtException", breakDown);
process.on("unhandledRejection", breakDown);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, retire);
// A resident that had this mark before may have left its socket.
rmSync(socket_path, { force: true });
server.on("error", retire);
server.listen(socket_path, () => {
  chmodSync(socket_path, 0o600);
  ftruncateSync(MARK_FD, 0);
  writeSync(MARK_FD, `${process.pid}\n${bundle}\n`, 0);
  sweep();
  rest();
});
setInterval(() => {
  if (identity(bundle) !== built || isLarge()) retire();
}, LOOK_MS).unref();

const isLarge = (): boolean => process.memoryUsage.rss() > settings.memory_mb_max * 1_000_000;

/** Whether descriptor 3 is the mark. That proves that a launcher has started this process. */
function holdsMark(): boolean {
  try {
    const [held, named] = [fstatSync(MARK_FD), statSync(mark_path)];
    return held.isFile() && held.ino === named.ino && held.dev === named.dev;
  } catch {
    return false;
  }
}

/** Removes marks and sockets that have not been used for a day: each build and each login may leave some, because its circumstances do not occur again. */
function sweep(): void {
  const directory = dirname(mark_path);
  for (const name of readdirSync(directory)) {
    const mark = join(directory, name);
    const age_ms = Date.now() - (statSync(mark, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (!name.endsWith(".mark") || mark === mark_path || age_ms < FORGOTTEN_MS || isLocked(mark)) continue;
    rmSync(mark, { force: true });
    rmSync(mark.replace(/mark$/, "sock"), { force: true });
  }
}

/** Returns the identity of a file as it is now, or null if it does not exist. */
function identity(path: string): string | null {
  try {
    const { dev, ino, size, mtimeMs } = statSync(path);
    return `${dev} ${ino} ${size} ${mtimeMs}`;
  } catch {
    return null;
  }
}

/** If no command runs: ends after the idle time, or at once if the resident accepts no more commands. */
function rest(): void {
  if (sessions.size > 0) return;
  if (retiring) setImmediate(end);
  else idle = setTimeout(retire, settings.idle_s * 1000);
}

/** Stops accepting commands. The resident ends when the last running command has ended. */
function retire(): void {
  if (retiring) return;
  retiring = true;
  clearTimeout(idle);
  server.close();
  rmSync(socket_path, { force: true });
  rest();
}

function end(): void {
  if (sessions.size > 0) return;
  ftruncateSync(MARK_FD, 0);
  // The time of the mark says when a command last ran without a resident. With time 0, the next command counts as the first of a series and starts no resident.
  futimesSync(MARK_FD, 0, 0);
  process.exit(0);
}

/** Fails the command that caused an error outside of its promise, and accepts no more commands (R3). */
function breakDown(error: unknown): void {
  current.getStore()?.fail(error);
  retire();
}
