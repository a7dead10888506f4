// pbs_runners: the controller of the backends. The server starts it; it takes no arguments. It ends when the server has been away for AWAY_MS_MAX: the next server starts it
// again, and everything it needs is in the server's store and in the backends.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBackend } from "#backends/open-backend.ts";
import { ownerOf } from "#backends/shell/users.ts";
import { ANOTHER_RUNS, RUNNERS_LOCK, type RunnersToServer } from "#protocol/runner-link.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { connectLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { messageOf } from "#support/caught.ts";
import { type Conf, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { homeFault } from "#support/trusted-home.ts";
import { Controller } from "./controller.ts";

const AWAY_MS_MAX = 15_000;
const LOOK_MS = 1000;

async function main(): Promise<number> {
  closeForeignDescriptors();
  process.title = "pbs_runners";
  const conf = readConf();
  const fault = homeFault(conf, conf.home);
  if (fault !== null) return failed(fault);
  const directory = join(conf.home, "runner_priv");
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  const lock = takeLock(join(directory, RUNNERS_LOCK), 0o644);
  if ("owner_pid" in lock) return ANOTHER_RUNS;
  mkdirSync(join(conf.home, "runner_logs"), { recursive: true, mode: 0o755 });
  const log = openLog({ dir: join(conf.home, "runner_logs"), daemon: "pbs_runners", mask: LOG_MASK.server, highres: conf.log_highres });
  const note = (text: string, event: number = LOG_EVENT.SYSTEM): void => log.record(event, "Svr", "pbs_runners", text);
  note(`starting, pid ${process.pid}`);
  process.on("SIGHUP", () => log.reopen());
  try {
    await serve(conf, directory, note);
    return 0;
  } catch (error) {
    note(`ended by an error: ${error instanceof Error ? error.stack : messageOf(error)}`, LOG_EVENT.ERROR);
    return 1;
  } finally {
    note("ends");
    log.close();
    lock.held.release();
  }
}

/** Serves until the server, or a signal, ends this process. */
async function serve(conf: Conf, directory: string, note: (text: string, event?: number) => void): Promise<void> {
  const ended = Promise.withResolvers<void>();
  let away_ms = performance.now();
  const link = connectLink({
    path: serverSocketPath(conf.home),
    types: frameTypes("server-to-runners"),
    onOpen() {
      away_ms = Number.POSITIVE_INFINITY;
      controller.connected();
    },
    onFrame(type, data) {
      if (type === "refused") return note(`the server refuses the connection: ${JSON.stringify(data)}`, LOG_EVENT.ERROR);
      const parsed = parseFrame("server-to-runners", type, data);
      if (!parsed.ok) {
        note(`the server sent what is not a message: ${parsed.text}`, LOG_EVENT.ERROR);
        return link.reconnect();
      }
      if (!controller.hear(parsed.frame)) ended.resolve();
    },
    onClose() {
      away_ms = performance.now();
      controller.disconnected();
    },
  });
  const controller = new Controller({
    complex: complexKey(conf),
    user: conf.mode === "user" ? userInfo().username : null,
    directory,
    argv: [process.execPath, runnerProgram()],
    env: { PBS_CONF_FILE: conf.file },
    ownerOf,
    open: openBackend,
    finished: () => ended.resolve(),
    note,
    send: <T extends keyof RunnersToServer>(type: T, data: RunnersToServer[T]) => link.send(type, data),
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ended.resolve());
  const watch = setInterval(() => {
    if (performance.now() - away_ms > AWAY_MS_MAX || !existsSync(directory)) ended.resolve();
  }, LOOK_MS);
  await ended.promise;
  clearInterval(watch);
  link.close();
  await controller.close();
}

/** Identifies the complex among all that use the same backends. */
function complexKey({ own_server, home }: Conf): string {
  return `p${createHash("sha256").update(`${own_server}\0${home}`).digest("hex").slice(0, 11)}`;
}

/** Returns the path of pbs_runner, which is beside this program: the bundle in dist/, or the source file. */
function runnerProgram(): string {
  const from = import.meta.url;
  return fileURLToPath(new URL(from.endsWith(".ts") ? "./pilot-main.ts" : "./pbs_runner.mjs", from));
}

function failed(text: string): number {
  process.stderr.write(`pbs_runners: ${text}\n`);
  return 1;
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => process.exit(failed(error instanceof Error ? (error.stack ?? error.message) : String(error))),
);
