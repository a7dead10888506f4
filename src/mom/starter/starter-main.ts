// The program pbs_starter: runs starter.ts. Argument: the mom_priv directory. The mom starts it, detached; it continues when
// the mom ends.
//
// M1. There is one starter for each mom_priv (lock file), and it serves one mom at a time: a new connection replaces the old
//     one.
// M2. If its mom_priv is removed (the complex is gone), no mom can connect any more: the starter kills its jobs and ends.
// M3. Only root and the starter's own user may connect: the socket has mode 0600, and the credentials of the peer are
//     checked.
// M5. A starter with the argument `bound` (the starter of a runner) has a pipe to its mom as descriptor 3. When the pipe is closed, because the mom has ended in whatever way, the
//     starter kills its jobs and ends.
// M4. From the time at which the starter listens, an internal error is reported and the starter continues, because its end
//     would lose all its jobs.

import { chmodSync, readFileSync, statSync, unlinkSync, writeSync } from "node:fs";
import { createServer, Socket } from "node:net";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { socketAddress } from "#protocol/wire/socket-path.ts";
import { steady_ms } from "#support/clock.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { openGroups } from "../host/cgroup.ts";
import { frameLink, type Link } from "../host/frame-link.ts";
import { identityTool } from "../host/identity-words.ts";
import { becomeSubreaper, lowerFileLimit } from "../host/posix.ts";
import { type MomToStarter, STARTER_SOCKET, type StarterToMom } from "../job/starter-link.ts";
import { openJournal } from "./journal.ts";
import { settleLostRuns } from "./lost-runs.ts";
import { Starter } from "./starter.ts";

/** How long the starter waits for a mom while it has no jobs. */
const IDLE_END_MS = 60_000;
const DIRECTORY_CHECK_MS = 2000;
/** The pipe to the mom of a bound starter. */
const LIFE_FD = 3;
/** Soft limit on open files of the starter. Every job inherits it. */
const FILES_MAX = 1024;

function main(directory: string, bound: boolean): void {
  closeForeignDescriptors(...(bound ? [LIFE_FD] : []));
  const lock = takeLock(`${directory}/starter.lock`);
  if ("owner_pid" in lock) process.exit(3);
  process.chdir("/");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);
  // The tool is determined now, so that no job has to wait for that at its start.
  if (process.geteuid?.() === 0) identityTool();
  becomeSubreaper();
  lowerFileLimit(FILES_MAX);
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  const { journal, state } = openJournal(`${directory}/starter.journal`);
  const groups = openGroups(directory, complain);
  settleLostRuns(state, boot, groups);
  const present = { ...state, boot };
  journal.compact(present);
  const starter = new Starter({ journal, state: present, now_ms: steady_ms, groups, complain });
  process.on("SIGCHLD", () => starter.reapAll());
  const own = inodeOf(directory);
  setInterval(() => {
    const now = inodeOf(directory);
    if (now === own || now === null) return;
    complain(`${directory} is gone: jobs are killed`);
    starter.killAll();
    process.exit(0);
  }, DIRECTORY_CHECK_MS);
  if (bound) endWithMom(starter);
  // Whatever ends the process, the empty group directories are removed.
  process.on("exit", () => groups?.dissolve());
  listen(directory, starter);
  // The starter continues after an internal error (M4).
  process.on("uncaughtException", (error) => complain(`internal error: ${error.stack ?? error.message}`));
}

/** Ends the jobs and this process when the mom at the other end of the pipe has ended (M5). */
function endWithMom(starter: Starter): void {
  const life = new Socket({ fd: LIFE_FD, readable: true, writable: false });
  const end = (): void => {
    complain("the mom has ended: jobs are killed");
    starter.killAll();
    process.exit(0);
  };
  life.once("close", end);
  life.on("error", () => undefined);
  life.resume();
}

/** Writes to stderr. process.stderr is not used: on a full disk it would raise another error. */
function complain(text: string): void {
  try {
    writeSync(2, `${new Date().toISOString()} pbs_starter: ${text}\n`);
  } catch {
    // The error cannot be reported anywhere.
  }
}

/** Returns the identity of a directory; "": it does not exist; null: it cannot be examined at present. */
function inodeOf(path: string): string | null {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
  } catch {
    return null;
  }
}

function listen(directory: string, starter: Starter): void {
  const path = `${directory}/${STARTER_SOCKET}`;
  let mom: Link<StarterToMom> | null = null;
  let idle: NodeJS.Timeout | null = null;
  const quit = (): never => process.exit(0);
  const restIfIdle = (): void => {
    if (idle !== null) clearTimeout(idle);
    idle = setTimeout(() => (mom === null && starter.active === 0 ? quit() : restIfIdle()), IDLE_END_MS);
  };
  const server = createServer((socket) => {
    const peer = peerCredentials(socket);
    if (peer === null || (peer.uid !== 0 && peer.uid !== process.getuid?.())) {
      complain(`connection refused: uid ${peer?.uid ?? "unknown"}`);
      socket.destroy();
      return;
    }
    const link: Link<StarterToMom> = frameLink<MomToStarter, StarterToMom>(
      socket,
      {
        "starter-hello": () => {
          const before = mom;
          mom = link;
          before?.close();
          starter.attach(link);
        },
        "starter-start": (data) => mom === link && starter.start(data),
        "starter-signal": (data) => mom === link && starter.signal(data),
        "starter-adopt": (data) => mom === link && starter.adopt(data),
        "starter-forget": (data) => mom === link && starter.forget(data),
        "starter-lease": (data) => mom === link && starter.lease(data),
        "starter-ping": () => link.send("starter-pong", {}),
        "starter-quit": () => mom === link && starter.active === 0 && quit(),
      },
      () => {
        if (mom !== link) return;
        mom = null;
        starter.attach(null);
        restIfIdle();
      },
    );
  });
  try {
    unlinkSync(path);
  } catch {
    // There was no old socket to remove.
  }
  server.once("error", (error) => {
    complain(`${path}: ${error.message}`);
    process.exit(1);
  });
  const mask = process.umask(0o177);
  const { address } = socketAddress(path);
  server.listen(address, () => {
    process.umask(mask);
    chmodSync(path, 0o600);
    server.removeAllListeners("error");
    process.stdout.write("ready\n");
  });
  restIfIdle();
}

const [directory, word] = process.argv.slice(2);
if (directory === undefined || !directory.startsWith("/")) {
  process.stderr.write("usage: pbs_starter MOM_PRIV [bound]\n");
  process.exit(2);
}
main(directory, word === "bound");
