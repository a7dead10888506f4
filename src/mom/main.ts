// pbs_mom: command line, pid file, background or foreground.
//
// Without -N the mom runs in the background, as a child process. The command returns when that mom knows its jobs and begins
// to connect to the server.

import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import { messageOf, nameOf } from "#support/caught.ts";
import { type Conf, ConfError, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PBS_VERSION } from "#support/version.ts";
import { type MomOptions, parseMomOptions, USAGE } from "./config/options.ts";
import { siblingProgram } from "./host/sibling.ts";
import { vnodeFileCommand } from "./shell/vnode-files.ts";

const READY = "ready\n";
/** Names the descriptor on which a mom in the background reports that it has started. */
const READY_VARIABLE = "PARTITA_MOM_READY_FD";

const ready_fd = Number(process.env[READY_VARIABLE] ?? -1);
delete process.env[READY_VARIABLE];

/** Writes a message to stderr. A mom in the background also sends it to the process that waits for its start. */
function say(text: string): void {
  writeSync(2, text);
  if (ready_fd > 2) writeSync(ready_fd, text);
}

async function main(argv: readonly string[]): Promise<number> {
  closeForeignDescriptors(...(ready_fd > 2 ? [ready_fd] : []));
  if (argv.length === 1 && argv[0] === "--help") {
    writeSync(1, USAGE);
    return 0;
  }
  const options = parseMomOptions(argv);
  if (typeof options === "string") {
    say(`pbs_mom: ${options}\n${USAGE}`);
    return 1;
  }
  if (options.version) {
    writeSync(1, `pbs_version = ${PBS_VERSION}\n`);
    return 0;
  }
  const conf = readConf();
  if (conf.mode === "system" && process.getuid?.() !== 0) {
    say("pbs_mom: Must be run by root\n");
    return 1;
  }
  const home = options.home ?? conf.mom_home;
  const fault = homeFault(conf, home);
  if (fault !== null) {
    say(`pbs_mom: ${fault}\n`);
    return 1;
  }
  if (options.vnodes !== null) {
    return vnodeFileCommand(`${home}/mom_priv/config.d`, options.vnodes, { out: (text) => void writeSync(1, text), err: say });
  }
  return options.foreground ? serve(conf, options, home) : background(argv, home);
}

async function serve(conf: Conf, options: MomOptions, home: string): Promise<number> {
  if (options.nice !== null) setPriority(options.nice);
  mkdirSync(`${home}/mom_priv`, { recursive: true, mode: 0o751 });
  const lock = takeLock(`${home}/mom_priv/mom.lock`, 0o600);
  if ("owner_pid" in lock) {
    say(`pbs_mom: another mom is running${lock.owner_pid === null ? "" : `, pid ${lock.owner_pid}`}\n`);
    return 1;
  }
  const [{ Mom }, { MomStartError }] = await Promise.all([import("./shell/mom.ts"), import("./shell/setup.ts")]);
  try {
    const mom = new Mom(conf, options);
    await mom.ready;
    if (ready_fd > 2) {
      writeSync(ready_fd, READY);
      closeSync(ready_fd);
    }
    return await mom.ended;
  } catch (error) {
    if (!(error instanceof MomStartError) && nameOf(error) !== "CredentialsError") throw error;
    say(`pbs_mom: ${messageOf(error)}\n`);
    return 1;
  } finally {
    lock.held.release();
  }
}

/** Starts the mom in the background and waits until it reports that it has started. Its messages until then are written to stderr of this process. */
function background(argv: readonly string[], home: string): Promise<number> {
  mkdirSync(`${home}/mom_priv`, { recursive: true, mode: 0o751 });
  const log = openSync(`${home}/mom_priv/mom.out`, "a", 0o600);
  const child = spawn(process.execPath, [siblingProgram("mom"), "-N", ...argv], {
    argv0: "pbs_mom",
    detached: true,
    cwd: "/",
    stdio: ["ignore", log, log, "pipe"],
    env: { ...process.env, [READY_VARIABLE]: "3" },
  });
  closeSync(log);
  return new Promise((resolve) => {
    child.stdio[3]?.on("data", (text: Buffer) => (text.toString() === READY ? resolve(0) : say(text.toString())));
    child.once("error", (error) => {
      say(`pbs_mom: ${error.message}\n`);
      resolve(1);
    });
    child.once("exit", (status, signal) => {
      if (signal !== null) say(`pbs_mom: ended by ${signal}\n`);
      resolve(status ?? 1);
    });
  });
}

main(process.argv.slice(2)).then(
  (status) => process.exit(status),
  (error: unknown) => {
    say(`pbs_mom: ${error instanceof ConfError ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
