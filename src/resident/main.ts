// pbs_resident SOCKET MARK: runs the commands of one user, so that a command need not start Node. A launcher
// (native/launcher.c) starts it and passes the locked mark as descriptor 3, the circumstances and the limits. The resident ends
// by itself.
//
// R1. Only the process that holds the lock of the mark removes or creates the socket. The lock ends with the process, however
//     it ends.
// R2. Only connections of our own user are accepted (SO_PEERCRED).
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
/** output in bytes that waits for its launcher before the server's answers are held back */
const WAITING_BYTES_MAX = 1 << 18;
/** interval at which the resident checks its own size and whether its bundle still exists */
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
// A former holder of the mark may have left a socket.
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

/** Whether the descriptor is that of the mark, which proves that a launcher started us. */
function holdsMark(): boolean {
  try {
    const [held, named] = [fstatSync(MARK_FD), statSync(mark_path)];
    return held.isFile() && held.ino === named.ino && held.dev === named.dev;
  } catch {
    return false;
  }
}

/** Removes old marks and sockets of circumstances that no longer occur: every build and every login may leave some. */
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

/** Identity of the file as it was built, or null if it has gone. */
function identity(path: string): string | null {
  try {
    const { dev, ino, size, mtimeMs } = statSync(path);
    return `${dev} ${ino} ${size} ${mtimeMs}`;
  } catch {
    return null;
  }
}

/** There is no command: ends after the idle time, or at once if no more commands are accepted. */
function rest(): void {
  if (sessions.size > 0) return;
  if (retiring) setImmediate(end);
  else idle = setTimeout(retire, settings.idle_s * 1000);
}

/** Accepts no more commands, and ends with the last running one. */
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
  // A mark without a time makes the next command count as the first.
  futimesSync(MARK_FD, 0, 0);
  process.exit(0);
}

/** R3. */
function breakDown(error: unknown): void {
  current.getStore()?.fail(error);
  retire();
}
