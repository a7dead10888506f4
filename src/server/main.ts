// pbs_server: reads options and configuration, and goes into the background. The service itself is in
// shell/open-home.ts and shell/daemon.ts. They are separate bundles, so that a process that only waits for the
// service does not load them.
//
// Without -N the server runs in the background. The command returns when the server answers (exit 0), or reports why it does not.

import { spawn } from "node:child_process";
import { existsSync, readSync, statSync, writeSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { confLimits } from "#protocol/wire/limit-keys.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import { nth } from "#support/assert.ts";
import { type Conf, ConfError, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PBS_VERSION } from "#support/version.ts";
import { parseOptions, type ServerOptions, USAGE } from "./core/options.ts";
import { READY_ENV, READY_FD, tellStarter, WAITING } from "./shell/daemon-start.ts";

async function main(): Promise<number> {
  closeForeignDescriptors(...(process.env[READY_ENV] === undefined ? [] : [READY_FD]));
  const argv = process.argv.slice(2);
  if (argv.length === 1 && argv[0]?.toLowerCase() === "--version") return say(1, `pbs_version = ${PBS_VERSION}\n`, 0);
  if (argv.length === 1 && argv[0] === "--help") return say(1, USAGE, 0);
  const parsed = parseOptions(argv);
  if (!parsed.ok) return refused(`${parsed.message}\n${USAGE}`);
  const { options } = parsed;
  const conf = readConfiguration(options);
  if (typeof conf === "string") return refused(`${conf}\n`);
  const fault = mayRun(conf);
  if (fault !== null) return refused(`pbs_server: ${fault}\n`);
  if (process.env[READY_ENV] === undefined && isDestructive(options, conf) && !confirmed(options)) return 1;
  if (!options.foreground && process.env[READY_ENV] === undefined) return intoBackground(argv);
  cacheCompiled(conf);
  const { openHome } = await import("./shell/open-home.ts");
  const home = await openHome(conf, options.start === "create");
  if (typeof home === "string") return refused(`pbs_server: ${home}\n`);
  const { serve } = await import("./shell/daemon.ts");
  return serve(options, conf, home);
}

function readConfiguration(options: ServerOptions): Conf | string {
  try {
    const conf = readConf();
    storeKind(conf);
    const limits = confLimits(conf.values);
    if (!limits.ok) return `${conf.file}: ${limits.fault}`;
    return options.home === undefined ? conf : { ...conf, home: options.home };
  } catch (error) {
    if (error instanceof ConfError) return error.message;
    throw error;
  }
}

/**
 * Uses the code that V8 compiled at an earlier start of this program. Only the server's user can write to the
 * directory of the cache, so the cache is as trusted as the program itself.
 */
function cacheCompiled(conf: Conf): void {
  const directory = join(conf.home, "server_priv");
  if (!existsSync(directory)) return;
  enableCompileCache(join(directory, "compile_cache"));
  setTimeout(flushCompileCache, CACHE_AFTER_MS).unref();
}
/**
 * Time from the start of the server until it writes the cache of compiled code. By then, the functions that a start needs
 * have been compiled. A server that is killed later leaves a useful cache.
 */
const CACHE_AFTER_MS = 5000;

/** Checks who runs the server: root, or in user mode the owner of PBS_HOME. Returns the refusal, or null. */
function mayRun(conf: Conf): string | null {
  const uid = process.getuid?.() ?? 0;
  if (conf.mode === "system" && uid !== 0) return "must be run by root";
  if (!existsSync(conf.home)) return `PBS_HOME ${conf.home} does not exist`;
  if (statSync(conf.home).uid !== uid && uid !== 0) return `PBS_HOME ${conf.home} belongs to another user`;
  return homeFault(conf);
}

const isDestructive = (options: ServerOptions, conf: Conf): boolean =>
  (options.start === "create" || options.start === "cold") && (storeKind(conf) === "postgres" || existsSync(storeFile(conf)));

/** Asks on stdin whether a start with `-t create` or `-t cold` may delete data. Returns the answer. */
function confirmed(options: ServerOptions): boolean {
  const what = options.start === "create" ? "create mode and server database exists" : "cold start: all jobs are purged";
  writeSync(1, `pbs_server: ${what},\ndo you wish to continue y/(n)?`);
  const buffer = Buffer.alloc(16);
  try {
    const length = readSync(0, buffer);
    if (/^y/i.test(buffer.toString("utf8", 0, length))) return true;
  } catch {
    // If there is no stdin, the answer is no.
  }
  writeSync(2, "PBS server not started\n");
  return false;
}

/** Reports to the parent process why the server does not start. */
function refused(text: string): number {
  tellStarter(text);
  return 1;
}

function say(fd: number, text: string, status: number): number {
  writeSync(fd, text);
  return status;
}

/** Starts this program again in the background, and waits until the new process reports how its start went. */
function intoBackground(argv: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, nth(process.argv, 1), ...argv], {
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { ...process.env, [READY_ENV]: String(READY_FD) },
  });
  return new Promise((resolve) => {
    let text = "";
    const channel = nth(child.stdio, READY_FD);
    channel.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      // The reason of a wait is shown at once, and is no part of the outcome.
      for (let end = text.indexOf("\n"); text.startsWith(WAITING) && end >= 0; end = text.indexOf("\n")) {
        writeSync(2, text.slice(0, end + 1));
        text = text.slice(end + 1);
      }
    });
    channel.on("end", () => {
      child.unref();
      if (text.startsWith("ready\n")) return resolve(0);
      resolve(say(2, text === "" ? "pbs_server: ended before it answered; see the server's log\n" : text, 1));
    });
  });
}

process.exitCode = await main();
if (process.exitCode !== undefined) process.exit();
