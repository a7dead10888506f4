// Starting a job's top process: opens its files with its owner's rights, takes on his identity and limits, executes. No shell is involved.
//
// L1. Files and directory are opened under the owner's identity, so a link planted in spool or home gives him nothing he could not open himself.
// L2. As ourselves the program is executed directly; identity, limits and nice value are otherwise put on by programs of the system (exec, no fork), in an
//     order in which each still may: nice, chroot or setpriv (host/identity-words.ts), prlimit, program.
// L3. A program that cannot be executed is told on the job's stderr and ends with 254 (docs/reference/execution.md 6).
// L4. What runs as root on the way sees nothing of the user's that could steer it: such variables are set by env once the identity is the owner's.
// L5. Nothing a user puts in our way is waited for: a FIFO where a file should be is refused, for the starter serves all jobs of the host.
// L6. A restart script is the site's, not the job's: it runs as ourselves, and only one that nobody else could have written.

import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { EXEC_FAILED, JOB_EXEC } from "#model/exit-status.ts";
import { trustedFile } from "#support/trusted-file.ts";

import { type IdentityTool, identityWords } from "../host/identity-words.ts";
import { actAs, asIdentity, errorText, executeError, makePipe, spawnSession } from "../host/posix.ts";
import { isPseudoTerminal } from "../host/pseudo-terminal.ts";
import { toolPath } from "../host/tool-path.ts";
import type { StartSpec } from "../job/starter-link.ts";

/** script: what was executed for a restart, where it really is. */
export type Launched = { readonly pid: number; readonly script?: string };
export type LaunchFailure = { readonly exit_status: number; readonly text: string };

const EACCES = 13;
const ENOENT = 2;
const ENOEXEC = 8;
const TRY_AGAIN: ReadonlySet<number> = new Set([/* EAGAIN */ 11, /* ENOMEM */ 12, /* ENFILE */ 23, /* EMFILE */ 24]);

/** Starts the run's top process and returns its pid, or why there is none. terminal: what it runs on instead of its files. */
export function launch(spec: StartSpec, terminal: string | null = null): Launched | LaunchFailure {
  const opened: number[] = [];
  try {
    return asIdentity(spec.owner, () => start(spec, terminal, opened));
  } catch (error) {
    return { exit_status: JOB_EXEC.FAIL2, text: (error as Error).message };
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
  // Executed directly, the kernel itself says what is wrong.
  const errno = isDirect(spec) ? 0 : programError(path);
  if (errno !== 0) return notExecuted(spec, errno, tell);
  const stdin = terminal !== null ? stdout : keep(spec.stdin === null ? openSync("/dev/null", constants.O_RDONLY) : filledPipe(spec.stdin));
  // Executed with our own identity: the kernel would take a differing one for a set-id program and the C library would drop TMPDIR and others.
  actAs(null);
  const mask = process.umask(spec.umask);
  const files = { stdin, stdout, stderr, ...(terminal === null ? {} : { terminal }) };
  let outcome = spawnSession({ ...command, ...files, directory });
  if ("errno" in outcome && outcome.errno === EACCES && spec.owner !== null) {
    // A home that a file server closes to root: the directory is entered after the owner's identity was taken.
    outcome = spawnSession({ ...commandOf({ ...spec, path }, toolPath, spec.cwd), ...files, directory: keep(openSync("/", O_PATH)) });
  }
  process.umask(mask);
  if ("pid" in outcome) return outcome;
  if (TRY_AGAIN.has(outcome.errno)) return { exit_status: JOB_EXEC.RETRY, text: `cannot start a process: ${errorText(outcome.errno)}` };
  return notExecuted(spec, outcome.errno, tell);
}

/** By a description of our own: the program's waits when its user has stopped the terminal, and we must not (L5). */
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

/** A device that takes nothing just now is not waited for (L5). */
function tellOwner(fd: number, text: string): void {
  try {
    writeSync(fd, text);
  } catch (error) {
    if (!["EAGAIN", "EIO"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

type Descriptors = { readonly stdin: number; readonly stdout: number; readonly stderr: number; readonly directory: number };

/** L6. A failure sends the job back to be run from its beginning. */
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
    return failed((error as Error).message);
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

/** A bare name is looked for in the job's PATH; one not found stays as it is and fails to execute. */
function searchPath(name: string, env: readonly string[]): string {
  const path = env.find((entry) => entry.startsWith("PATH="))?.slice("PATH=".length) ?? "";
  for (const directory of path.split(":")) {
    if (directory.startsWith("/") && executeError(`${directory}/${name}`) === 0) return `${directory}/${name}`;
  }
  return name;
}

function openOutput(path: string, keep: (fd: number) => number): number {
  if (path === "/dev/null") return keep(openSync(path, constants.O_WRONLY));
  // The terminal of an interactive job, for a task of it: it must not become ours, and its programs expect it to wait.
  if (isPseudoTerminal(path)) return keep(openSync(path, constants.O_WRONLY | constants.O_NOCTTY | constants.O_NOFOLLOW));
  const fd = keep(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  const stat = fstatSync(fd);
  if (!stat.isFile() && !stat.isCharacterDevice()) throw new Error(`${path} is not a file`);
  return fd;
}

/** A terminal that was named by a process of the owner's: it must be his, and does not become ours (terminals.ts T3). */
function openTerminal(path: string, { owner }: StartSpec, keep: (fd: number) => number): number {
  const fd = keep(openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  const stat = fstatSync(fd);
  if (!isatty(fd) || stat.uid !== (owner?.uid ?? process.geteuid?.())) throw new Error(`${path} is not a terminal of the job's owner`);
  return fd;
}

const O_PATH = 0o10000000;

/** A descriptor, or the words of the error. */
function openDirectory(path: string): number | string {
  const errno = executeError(path);
  if (errno !== 0) return errorText(errno);
  try {
    return openSync(path, O_PATH | constants.O_DIRECTORY);
  } catch (error) {
    const { errno: negative = 0 } = error as NodeJS.ErrnoException;
    return errorText(-negative);
  }
}

/** A short text as something to read to its end. */
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
 * Variables by which a user decides what a program loads or reads: what the C library itself ignores in set-id programs, and message catalogues.
 * The programs that still run as root must not see them (L4).
 */
const STEERING_NAMES: ReadonlySet<string> = new Set(
  "GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN LOCPATH NIS_PATH NLSPATH TZDIR LANGUAGE OUTPUT_CHARSET TEXTDOMAIN TEXTDOMAINDIR".split(
    " ",
  ),
);
const STEERING_FAMILIES = /^(LD|GLIBC|MALLOC|RES|RESOLV|MEMUSAGE|PCPROFILE|SEGFAULT)_/;
const steers = (entry: string): boolean => STEERING_FAMILIES.test(entry) || STEERING_NAMES.has(entry.slice(0, entry.indexOf("=")));

/** The first program executed, its arguments and environment (L2, L4). directory: entered on the way; null: it is entered already. */
export function commandOf(spec: Command, find = toolPath, directory: string | null = null, tool?: IdentityTool): ExecChain {
  const limits = Object.entries(spec.limits);
  const wrapped: string[] = [];
  if (spec.nice !== null) wrapped.push(find("nice"), "-n", String(spec.nice));
  if (spec.owner !== null) wrapped.push(...identityWords(spec.owner, find, tool));
  if (directory !== null) wrapped.push(find("env"), `--chdir=${directory}`, "--");
  if (limits.length > 0) wrapped.push(find("prlimit"), ...limits.map(([name, amount]) => `--${name}=${amount}`), "--");
  const steering = spec.owner === null ? [] : spec.env.filter(steers);
  if (steering.length > 0) wrapped.push(find("env"), ...steering);
  // env would take a program with = in its path for a variable.
  if (steering.length > 0 && spec.path.includes("=")) wrapped.push(find("nice"), "-n", "0");
  const [, ...rest] = spec.argv;
  if (wrapped.length === 0) return { path: spec.path, argv: spec.login ? [`-${baseName(spec.path)}`, ...rest] : spec.argv, env: spec.env };
  // A wrapper cannot give argv[0] a dash; these shells take -l for it.
  const login = spec.login && LOGIN_OPTION.has(baseName(spec.path)) ? ["-l"] : [];
  const env = steering.length > 0 ? spec.env.filter((entry) => !steers(entry)) : spec.env;
  return { path: wrapped[0] as string, argv: [...wrapped, spec.path, ...login, ...rest], env };
}

/** Nothing is put on by a program of its own. (Variables that steer are withheld from such programs only.) */
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

/** Why the present identity could not execute the program: the error number execve would give; 0: nothing seen. A wrapper could not tell it our way. */
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

/** null: not readable by this identity (it may be executable all the same). */
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
