// pbs_comm: a stand-in for PBS' communication daemon. There is nothing to route, because the daemons of one host communicate
// over unix sockets, and those of different hosts directly. But tools of sites look for a pbs_comm process, its pid file and
// its log (docs/reference/files.md 9). This small process provides these, says in its log what it is, and handles signals. It
// listens on no socket. On a host of a complex that has no mom, it keeps the process that takes files of jobs (docs/files.md).

import { spawn } from "node:child_process";
import { closeSync, existsSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nth } from "#support/assert.ts";
import { type Conf, ConfError, readConf, shortHostName } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { LOG_EVENT, openLog } from "#support/log.ts";
import { type KeptProcess, keepProcess } from "#support/process/kept-process.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PBS_VERSION } from "#support/version.ts";
import { type CommOptions, parseCommOptions, USAGE } from "./options.ts";

/** The descriptor on which the background process reports that it is ready, or why it failed. */
const READY_FD = 3;
const READY_ENV = "PARTITA_COMM_READY";

async function main(argv: readonly string[]): Promise<number> {
  closeForeignDescriptors(...(process.env[READY_ENV] === undefined ? [] : [READY_FD]));
  if (argv.length === 1 && argv[0]?.toLowerCase() === "--version") return say(1, `pbs_version = ${PBS_VERSION}\n`, 0);
  if (argv.length === 1 && argv[0] === "--help") return say(1, USAGE, 0);
  const options = parseCommOptions(argv);
  if (typeof options === "string") return say(2, `pbs_comm: ${options}\n${USAGE}`, 1);
  const conf = readConf();
  if (conf.mode === "system" && process.getuid?.() !== 0) return say(2, "pbs_comm: must be run by root\n", 1);
  const fault = homeFault(conf);
  if (fault !== null) return say(2, `pbs_comm: ${fault}\n`, 1);
  return options.foreground || process.env[READY_ENV] !== undefined ? serve(conf, options) : intoBackground(argv);
}

function say(fd: number, text: string, status: number): number {
  writeSync(fd, text);
  return status;
}

/** Starts this program again, detached, and waits for its report. */
function intoBackground(argv: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, nth(process.argv, 1), ...argv], {
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...process.env, [READY_ENV]: "1" },
  });
  return new Promise((resolve) => {
    let text = "";
    const channel = nth(child.stdio, READY_FD);
    channel.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    channel.on("end", () => {
      child.unref();
      resolve(text === "ready\n" ? 0 : say(2, text === "" ? "pbs_comm: ended at its start\n" : text, 1));
    });
  });
}

function tellStarter(text: string): void {
  if (process.env[READY_ENV] === undefined) {
    if (text !== "ready\n") writeSync(2, text);
    return;
  }
  writeSync(READY_FD, text);
  closeSync(READY_FD);
}

/** Runs until the signal TERM or INT. */
function serve(conf: Conf, options: CommOptions): Promise<number> {
  const outcome = takeLock(join(conf.home, "server_priv/comm.lock"));
  if (!("held" in outcome)) {
    tellStarter(`pbs_comm: another pbs_comm is running (pid ${outcome.owner_pid ?? "unknown"})\n`);
    return Promise.resolve(1);
  }
  const daemon = `Comm@${shortHostName(hostname())}`;
  const log = openLog({
    dir: join(conf.home, "comm_logs"),
    daemon,
    highres: conf.log_highres,
    mask: options.log_events ?? (Number(conf.values["PBS_COMM_LOG_EVENTS"]) || 511),
    header: [`hostname=${hostname()};pbs_leaf_name=N/A;pbs_mom_node_name=${conf.mom_node_name}`],
  });
  const note = (text: string): void => log.record(LOG_EVENT.SYSTEM, "Svr", daemon, text);
  note(`${process.argv[1]} ready (pid=${process.pid}): a stand-in, nothing is routed on one host`);
  // Tools of sites wait for this message, which pbs_comm of PBS logs for its first thread.
  log.record(LOG_EVENT.SYSTEM, "TPP", `${daemon}(Thread 0)`, "Thread ready");
  log.flush();
  tellStarter("ready\n");
  const files = keepFileServer(conf, note);
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals): void => {
      files.close();
      note(`Exiting on ${signal}`);
      log.close();
      outcome.held.release();
      resolve(0);
    };
    process.once("SIGTERM", end);
    process.once("SIGINT", end);
    process.on("SIGHUP", () => {
      log.reopen();
      note("Processing SIGHUP");
    });
  });
}

/** Keeps pbs_file_server on a host of a complex without a mom. With a mom, the mom keeps it. */
function keepFileServer(conf: Conf, say: (text: string) => void): KeptProcess {
  const { home, servers, own_server, port, mode, start } = conf;
  const beside = import.meta.url.endsWith(".ts") ? "../mom/files/file-server-main.ts" : "./pbs_file_server.mjs";
  return keepProcess({
    program: fileURLToPath(new URL(beside, import.meta.url)),
    name: "pbs_file_server",
    order: { home, servers, server: own_server, mode, port: port.manager },
    isWanted: () => !start.mom && existsSync(join(home, "identity/host.pem")),
    say,
  });
}

main(process.argv.slice(2)).then(
  (status) => process.exit(status),
  (error: unknown) => {
    const text = error instanceof ConfError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
    tellStarter(`pbs_comm: ${text}\n`);
    process.exit(1);
  },
);
