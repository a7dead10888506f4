// Starts a job's top process: opens its files with the owner's rights, takes on the owner's identity and the job's limits, and executes the program. No shell
// is involved.
//
// L1. The job's files and its directory are opened under the owner's identity, so that a link planted in spool or home gives the owner no additional rights.
// L2. With the starter's own identity the program is executed directly. Otherwise programs of the system set nice value, identity and limits: nice, then chroot
//     or setpriv (host/identity-words.ts), then prlimit, then the program. Each executes the next without a fork. In this order each of them still has the
//     right that it needs.
// L3. If a program cannot be executed, the job's stderr says so, and the job ends with 254 (docs/reference/execution.md 6).
// L4. Programs in this chain (L2) that still run as root get no variables of the user that could influence them. env sets
//     these variables once the identity is the owner's.
// L5. The start never waits for anything under the user's control: a FIFO in place of a file is refused, because the starter serves all jobs of the host.
// L6. A restart script belongs to the site, not to the job: it runs with the starter's identity, and only if no other user could have written it.

import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { EXEC_FAILED, JOB_EXEC } from "#model/exit-status.ts";
import { nth } from "#support/assert.ts";
import { codeOf, errnoOf, messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";

import { type IdentityTool, identityWords } from "../host/identity-words.ts";
import { actAs, asIdentity, errorText, executeError, makePipe, spawnSession } from "../host/posix.ts";
import { isPseudoTerminal } from "../host/pseudo-terminal.ts";
import { toolPath } from "../host/tool-path.ts";
import type { StartSpec } from "../job/starter-link.ts";

/** A process that was started. script: the real path of the script that was executed for a restart. */
export type Launched = { readonly pid: number; readonly script?: string };
export type LaunchFailure = { readonly exit_status: number; readonly text: string };

const EACCES = 13;
const ENOENT = 2;
const ENOEXEC = 8;
const TRY_AGAIN: ReadonlySet<number> = new Set([/* EAGAIN */ 11, /* ENOMEM */ 12, /* ENFILE */ 23, /* EMFILE */ 24]);

/** Starts the run's top process. Returns its pid, or the reason of a failure. terminal: path of a terminal to use in place of the run's files. */
export function launch(spec: StartSpec, terminal: string | null = null): Launched | LaunchFailure {
  const opened: number[] = [];
  try {
    return asIdentity(spec.owner, () => start(spec, terminal, opened));
  } catch (error) {
    return { exit_status: JOB_EXEC.FAIL2, text: messageOf(error) };
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

function start(spec: StartSpec, terminal: string | null, opened: number[]): Launched | LaunchFailure {
  const keep = (fd: number): number => {
    opened.push(fd);
    return fd;
  };
  const stdout = terminal === null ? openOutput(spec.stdout, keep) : openTerminal(terminal, spec, keep);
  const stderr = terminal !== null || spec.stderr === spec.stdout ? stdout : openOutput(spec.stderr, keep);
  const shown = terminal ?? (isPseudoTerminal(spec.stderr) ? spec.stderr : null);
  const tell = (text: string): void => (shown === null ? tellOwner(stderr, `${text}\n`) : tellTerminal(shown, `${text}\r\n`));
  const directory = openDirectory(spec.cwd);
  if (typeof directory === "string") {
    const text = `PBS: chdir to '${spec.cwd}' failed: ${directory}`;
    tell(text);
    return { exit_status: JOB_EXEC.FAIL2, text };
  }
  keep(directory);
  if (spec.by_mom === true)
    return restart(spec, { stdin: keep(openSync("/dev/null", constants.O_RDONLY)), stdout, stderr, directory }, tell);
  const path = spec.path.includes("/") ? spec.path : searchPath(spec.path, spec.env);
  const command = commandOf({ ...spec, path });
  // If no other program comes before this one, execve itself reports the error.
  const errno = isDirect(spec) ? 0 : programError(path);
  if (errno !== 0) return notExecuted(spec, errno, tell);
  const stdin = terminal !== null ? stdout : keep(spec.stdin === null ? openSync("/dev/null", constants.O_RDONLY) : filledPipe(spec.stdin));
  // The process is spawned with the starter's own file identity. With the owner's, the kernel would treat the program as set-id, and the C library would drop
  // TMPDIR and other variables.
  actAs(null);
  const mask = process.umask(spec.umask);
  const files = { stdin, stdout, stderr, ...(terminal === null ? {} : { terminal }) };
  let outcome = spawnSession({ ...command, ...files, directory });
  if ("errno" in outcome && outcome.errno === EACCES && spec.owner !== null) {
    // A file server may forbid root to enter the owner's home: the directory is then entered after the owner's identity was taken on.
    outcome = spawnSession({ ...commandOf({ ...spec, path }, toolPath, spec.cwd), ...files, directory: keep(openSync("/", O_PATH)) });
  }
  process.umask(mask);
  if ("pid" in outcome) return outcome;
  if (TRY_AGAIN.has(outcome.errno)) return { exit_status: JOB_EXEC.RETRY, text: `cannot start a process: ${errorText(outcome.errno)}` };
  return notExecuted(spec, outcome.errno, tell);
}

/**
 * Writes a message to the job's terminal. The terminal is opened again for this, because a write through the program's own file description would wait if the
 * user has stopped the terminal (L5).
 */
function tellTerminal(path: string, text: string): void {
  let fd: number;
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_NOCTTY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return;
  }
  try {
    tellOwner(fd, text);
  } finally {
    closeSync(fd);
  }
}

/** Writes a message to the owner. A device that accepts nothing at present is not waited for (L5). */
function tellOwner(fd: number, text: string): void {
  try {
    writeSync(fd, text);
  } catch (error) {
    if (!["EAGAIN", "EIO"].includes(codeOf(error) ?? "")) throw error;
  }
}

type Descriptors = { readonly stdin: number; readonly stdout: number; readonly stderr: number; readonly directory: number };

/** Starts the restart script (L6). If that fails, the job is requeued and runs from its beginning. */
function restart(spec: StartSpec, files: Descriptors, tell: (text: string) => void): Launched | LaunchFailure {
  actAs(null);
  const failed = (why: string): LaunchFailure => {
    const text = `pbs_mom, restart by ${spec.path} failed: ${why}`;
    tell(text);
    return { exit_status: JOB_EXEC.BADRESRT, text };
  };
  let path: string;
  try {
    path = trustedFile(spec.path, [0, process.geteuid?.() ?? 0]);
  } catch (error) {
    return failed(messageOf(error));
  }
  const mask = process.umask(spec.umask);
  const outcome = spawnSession({ ...commandOf({ ...spec, path, owner: null }), ...files });
  process.umask(mask);
  return "pid" in outcome ? { pid: outcome.pid, script: path } : failed(errorText(outcome.errno));
}

function notExecuted(spec: StartSpec, errno: number, tell: (text: string) => void): LaunchFailure {
  const text = `pbs_mom, exec of ${spec.path} failed with error: ${errorText(errno)}`;
  tell(text);
  return { exit_status: EXEC_FAILED, text };
}

/** Searches for a program name without slash in the job's PATH. A name that is not found is returned unchanged, and its execution then fails. */
function searchPath(name: string, env: readonly string[]): string {
  const path = env.find((entry) => entry.startsWith("PATH="))?.slice("PATH=".length) ?? "";
  for (const directory of path.split(":")) {
    if (directory.startsWith("/") && executeError(`${directory}/${name}`) === 0) return `${directory}/${name}`;
  }
  return name;
}

function openOutput(path: string, keep: (fd: number) => number): number {
  if (path === "/dev/null") return keep(openSync(path, constants.O_WRONLY));
  // A task writes to the terminal of an interactive job. The terminal must not become the starter's terminal, and programs on it expect blocking writes.
  if (isPseudoTerminal(path)) return keep(openSync(path, constants.O_WRONLY | constants.O_NOCTTY | constants.O_NOFOLLOW));
  const fd = keep(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  const stat = fstatSync(fd);
  if (!stat.isFile() && !stat.isCharacterDevice()) throw new Error(`${path} is not a file`);
  return fd;
}

/** Opens a terminal that a process of the owner named. It must belong to the owner, and does not become the terminal of the starter (terminals.ts T3). */
function openTerminal(path: string, { owner }: StartSpec, keep: (fd: number) => number): number {
  const fd = keep(openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  const stat = fstatSync(fd);
  if (!isatty(fd) || stat.uid !== (owner?.uid ?? process.geteuid?.())) throw new Error(`${path} is not a terminal of the job's owner`);
  return fd;
}

const O_PATH = 0o10000000;

/** Opens a directory. Returns a descriptor, or the text of the error. */
function openDirectory(path: string): number | string {
  const errno = executeError(path);
  if (errno !== 0) return errorText(errno);
  try {
    return openSync(path, O_PATH | constants.O_DIRECTORY);
  } catch (error) {
    return errorText(-(errnoOf(error) ?? 0));
  }
}

/** Returns a descriptor from which a short text can be read. */
function filledPipe(text: string): number {
  const [read, write] = makePipe();
  try {
    writeSync(write, text);
  } finally {
    closeSync(write);
  }
  return read;
}

type Command = Pick<StartSpec, "path" | "argv" | "login" | "env" | "owner" | "limits" | "nice">;
export type ExecChain = { readonly path: string; readonly argv: readonly string[]; readonly env: readonly string[] };

/**
 * Names of variables by which a user influences what a program loads or reads: those that the C library ignores in set-id programs, and those that name message
 * catalogues. Programs that still run as root must not get them (L4).
 */
const STEERING_NAMES: ReadonlySet<string> = new Set(
  "GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN LOCPATH NIS_PATH NLSPATH TZDIR LANGUAGE OUTPUT_CHARSET TEXTDOMAIN TEXTDOMAINDIR".split(
    " ",
  ),
);
const STEERING_FAMILIES = /^(LD|GLIBC|MALLOC|RES|RESOLV|MEMUSAGE|PCPROFILE|SEGFAULT)_/;
const steers = (entry: string): boolean => STEERING_FAMILIES.test(entry) || STEERING_NAMES.has(entry.slice(0, entry.indexOf("=")));

/**
 * Returns the first program to execute, with its arguments and environment (L2, L4). directory: entered before the program is executed; null: it has been
 * entered already.
 */
export function commandOf(spec: Command, find = toolPath, directory: string | null = null, tool?: IdentityTool): ExecChain {
  const limits = Object.entries(spec.limits);
  const wrapped: string[] = [];
  if (spec.nice !== null) wrapped.push(find("nice"), "-n", String(spec.nice));
  if (spec.owner !== null) wrapped.push(...identityWords(spec.owner, find, tool));
  if (directory !== null) wrapped.push(find("env"), `--chdir=${directory}`, "--");
  if (limits.length > 0) wrapped.push(find("prlimit"), ...limits.map(([name, amount]) => `--${name}=${amount}`), "--");
  const steering = spec.owner === null ? [] : spec.env.filter(steers);
  if (steering.length > 0) wrapped.push(find("env"), ...steering);
  // Before a program with = in its path, a nice without effect is inserted: env would take that path for a variable.
  if (steering.length > 0 && spec.path.includes("=")) wrapped.push(find("nice"), "-n", "0");
  const [, ...rest] = spec.argv;
  if (wrapped.length === 0) return { path: spec.path, argv: spec.login ? [`-${baseName(spec.path)}`, ...rest] : spec.argv, env: spec.env };
  // A program that executes another cannot give it an argv[0] with a dash. These shells accept -l instead.
  const login = spec.login && LOGIN_OPTION.has(baseName(spec.path)) ? ["-l"] : [];
  const env = steering.length > 0 ? spec.env.filter((entry) => !steers(entry)) : spec.env;
  return { path: nth(wrapped, 0), argv: [...wrapped, spec.path, ...login, ...rest], env };
}

/** Whether the program needs no other program that sets identity or limits. (Variables are withheld only from such other programs.) */
const isDirect = ({ owner, limits, nice }: Command): boolean => owner === null && nice === null && Object.keys(limits).length === 0;

const LOGIN_OPTION: ReadonlySet<string> = new Set([
  "sh",
  "bash",
  "dash",
  "ash",
  "busybox",
  "zsh",
  "ksh",
  "ksh93",
  "mksh",
  "fish",
  "csh",
  "tcsh",
]);
const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/**
 * Returns the error number with which execve would refuse the program to the present identity; 0: no error is foreseen. prlimit and the like, which would
 * execute the program, could not report the error in this form.
 */
function programError(path: string): number {
  const errno = executeError(path);
  if (errno !== 0) return errno;
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return ENOENT;
  if (!stat.isFile()) return EACCES;
  const start = firstBytes(path);
  if (start === null || start.startsWith("\x7fELF")) return 0;
  if (!start.startsWith("#!")) return ENOEXEC;
  const interpreter = /^#![ \t]*([^ \t\n]+)/.exec(start)?.[1];
  return interpreter === undefined ? ENOEXEC : executeError(interpreter);
}

/** Returns the beginning of a file, or null if this identity cannot read it (it may still be able to execute the file). */
function firstBytes(path: string): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const buffer = Buffer.alloc(256);
    return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
  } finally {
    closeSync(fd);
  }
}
