// System calls that Node.js does not offer: they spawn a process with an exact setup, wait for a process and return its resource usage, and do file work under
// another identity.
//
// P1. posix_spawn makes the child with vfork's semantics, so its cost does not grow with the memory of this process.
// P2. An identity taken with actAs() applies only to the calling thread and to synchronous file calls. Asynchronous file work always has the process' own
//     rights. Its threads must have been created under the process' own identity; so the first such work is done at the start.

import { nth } from "#support/assert.ts";
import { libc } from "#support/libc/libc.ts";
import type { FileIdentity, WaitStatus } from "../job/process.ts";

type Native = ReturnType<typeof declare>;
let native: Native | null = null;
const calls = (): Native => {
  native ??= declare();
  return native;
};

const SPAWN_SETSIGDEF = 0x04;
const SPAWN_SETSIGMASK = 0x08;
const SPAWN_SETSID = 0x80;

function declare() {
  const { koffi, libc: library } = libc();
  const attributes = Buffer.alloc(1024);
  const all = Buffer.alloc(128, 0xff);
  const none = Buffer.alloc(128);
  library.func("int posix_spawnattr_init(void *)")(attributes);
  library.func("int posix_spawnattr_setflags(void *, short)")(attributes, SPAWN_SETSID | SPAWN_SETSIGDEF | SPAWN_SETSIGMASK);
  library.func("int posix_spawnattr_setsigdefault(void *, void *)")(attributes, all);
  library.func("int posix_spawnattr_setsigmask(void *, void *)")(attributes, none);
  return {
    errno: () => koffi.errno(),
    attributes,
    spawn: library.func(
      "int posix_spawn(_Out_ int *pid, const char *path, void *actions, void *attributes, const char **argv, const char **envp)",
    ),
    actionsInit: library.func("int posix_spawn_file_actions_init(void *)"),
    actionsDup: library.func("int posix_spawn_file_actions_adddup2(void *, int, int)"),
    actionsOpen: library.func("int posix_spawn_file_actions_addopen(void *, int, const char *path, int flags, uint32_t mode)"),
    actionsChdir: library.func("int posix_spawn_file_actions_addfchdir_np(void *, int)"),
    actionsCloseFrom: optional(() => library.func("int posix_spawn_file_actions_addclosefrom_np(void *, int)")),
    actionsDestroy: library.func("int posix_spawn_file_actions_destroy(void *)"),
    wait4: library.func("int wait4(int pid, _Out_ int *status, int options, void *usage)"),
    waitid: library.func("int waitid(int type, int id, void *info, int options)"),
    getrlimit: library.func("int getrlimit(int resource, void *limits)"),
    setrlimit: library.func("int setrlimit(int resource, void *limits)"),
    prctl: library.func("int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)"),
    setfsuid: library.func("int setfsuid(uint32_t uid)"),
    setfsgid: library.func("int setfsgid(uint32_t gid)"),
    setgroups: library.func("long syscall(long number, long count, uint32_t *groups)"),
    faccessat: library.func("int faccessat(int dir, const char *path, int mode, int flags)"),
    strerror: library.func("const char *strerror(int error)"),
    pipe2: library.func("int pipe2(_Out_ int *ends, int flags)"),
  };
}

/** Returns null if the C library is too old to have the function. */
function optional<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}

/** Returns the C library's text for an error number: `No such file or directory`. */
export const errorText = (errno: number): string => String(calls().strerror(errno));

// ---- identity of file work ----

/** Number of the system call setgroups, which changes only the calling thread. The C library's function would change every thread. */
const SETGROUPS: { readonly [arch: string]: number } = { x64: 116, arm64: 159, riscv64: 159, loong64: 159, ppc64: 81, s390x: 206 };
let ownGroups: readonly number[] | null = null;
let current: FileIdentity | null = null;

/**
 * Gives later synchronous file calls of this thread the rights of a user; null: the process' own rights. If the kernel refuses, the function throws and the
 * process' own rights apply, so `current` never names an identity that is not in force.
 */
export function actAs(identity: FileIdentity | null): void {
  if (sameIdentity(identity, current)) return;
  const native = calls();
  ownGroups ??= process.getgroups?.() ?? [];
  if (current !== null) beOurselves(native);
  if (identity === null) return;
  setThreadGroups(native, identity.groups);
  native.setfsgid(identity.gid);
  native.setfsuid(identity.uid);
  // setfsuid and setfsgid do not report a failure. A call with an impossible id changes nothing and returns the present id.
  const uid = Number(native.setfsuid(IMPOSSIBLE_ID)) >>> 0;
  const gid = Number(native.setfsgid(IMPOSSIBLE_ID)) >>> 0;
  if (uid !== identity.uid || gid !== identity.gid) {
    beOurselves(native);
    throw new Error(`cannot take the identity of uid ${identity.uid}, gid ${identity.gid}`);
  }
  current = identity;
}

const IMPOSSIBLE_ID = 0xffffffff;

function beOurselves(native: Native): void {
  native.setfsuid(process.geteuid?.() ?? 0);
  native.setfsgid(process.getegid?.() ?? 0);
  current = null;
  setThreadGroups(native, ownGroups ?? []);
}

function setThreadGroups(native: Native, groups: readonly number[]): void {
  const number = SETGROUPS[process.arch];
  if (number === undefined) throw new Error(`file work under another identity is not known on ${process.arch}`);
  if (Number(native.setgroups(number, groups.length, Uint32Array.from(groups))) !== 0)
    throw new Error(`setgroups: ${errorText(native.errno())}`);
}

function sameIdentity(a: FileIdentity | null, b: FileIdentity | null): boolean {
  if (a === null || b === null) return a === b;
  return (
    a === b ||
    (a.uid === b.uid && a.gid === b.gid && a.groups.length === b.groups.length && a.groups.every((group, at) => group === b.groups[at]))
  );
}

/** Does synchronous file work under an identity (null: the identity of the process), and then returns to the identity of the process. */
export function asIdentity<T>(identity: FileIdentity | null, work: () => T): T {
  actAs(identity);
  try {
    return work();
  } finally {
    actAs(null);
  }
}

const AT_FDCWD = -100;
const AT_EACCESS = 0x200;
const X_OK = 1;

/** Returns 0 if the present identity may execute the file (or enter the directory), otherwise the error number. */
export function executeError(path: string): number {
  const native = calls();
  return Number(native.faccessat(AT_FDCWD, path, X_OK, AT_EACCESS)) === 0 ? 0 : Number(native.errno());
}

// ---- processes ----

export type SpawnRequest = {
  readonly path: string;
  readonly argv: readonly string[];
  /** `NAME=value` */
  readonly env: readonly string[];
  /** the descriptors that the program gets as 0, 1 and 2, and the descriptor of its working directory */
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
  readonly directory: number;
  /** path of a terminal. It becomes the session's controlling terminal and is opened as 0, 1 and 2, in place of the three descriptors above */
  readonly terminal?: string;
};

const O_RDWR = 2;

/** Starts a program in a session of its own, with default handling of signals. Returns its pid, or the error number. */
export function spawnSession(request: SpawnRequest): { readonly pid: number } | { readonly errno: number } {
  const native = calls();
  const actions = Buffer.alloc(256);
  native.actionsInit(actions);
  try {
    if (request.terminal === undefined) {
      native.actionsDup(actions, request.stdin, 0);
      native.actionsDup(actions, request.stdout, 1);
      native.actionsDup(actions, request.stderr, 2);
    } else {
      // The first terminal that the leader of a new session opens becomes the controlling terminal.
      native.actionsOpen(actions, 0, request.terminal, O_RDWR, 0);
      native.actionsDup(actions, 0, 1);
      native.actionsDup(actions, 0, 2);
    }
    native.actionsChdir(actions, request.directory);
    // Descriptors of this process are closed on exec. A library may have opened some without that flag: they are closed here (C library 2.34 and later).
    native.actionsCloseFrom?.(actions, 3);
    const pid = [0];
    const errno = Number(native.spawn(pid, request.path, actions, native.attributes, [...request.argv, null], [...request.env, null]));
    return errno === 0 ? { pid: pid[0] ?? 0 } : { errno };
  } finally {
    native.actionsDestroy(actions);
  }
}

const O_CLOEXEC = 0o2000000;

/** Makes a pipe. Returns [read end, write end]; both are closed on exec. */
export function makePipe(): readonly [number, number] {
  const native = calls();
  const ends = new Int32Array(2);
  if (Number(native.pipe2(ends, O_CLOEXEC)) !== 0) throw new Error(`pipe: ${errorText(Number(native.errno()))}`);
  return [nth(ends, 0), nth(ends, 1)];
}

const PR_SET_CHILD_SUBREAPER = 36;

/** Makes this process the parent of orphans among its descendants, so that no process of a job can hide by becoming a child of init. */
export function becomeSubreaper(): void {
  const native = calls();
  if (Number(native.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) !== 0) throw new Error(`prctl: ${errorText(Number(native.errno()))}`);
}

const RLIMIT_NOFILE = 7;

/** Sets the soft limit on open files back to the usual count. Node.js raises it to the maximum, and children inherit it (they may raise it themselves). */
export function lowerFileLimit(count: number): void {
  const native = calls();
  const limits = new BigUint64Array(2);
  if (Number(native.getrlimit(RLIMIT_NOFILE, limits)) !== 0) return;
  limits[0] = limits[0] !== undefined && limits[0] < BigInt(count) ? limits[0] : BigInt(count);
  native.setrlimit(RLIMIT_NOFILE, limits);
}

const P_ALL = 0;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x01000000;
/** index of si_pid in a siginfo_t that is read as ints: three ints and a gap precede it */
const SIGINFO_PID_AT = 4;

/** Returns the pid of a child that has ended and is not reaped yet, so that its number and process group cannot be reused; 0: there is none at present. */
export function endedChild(): number {
  const native = calls();
  const info = new Int32Array(32);
  if (Number(native.waitid(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT)) !== 0) return 0;
  return info[SIGINFO_PID_AT] ?? 0;
}

export type Reaped = {
  readonly status: WaitStatus;
  /** cpu seconds of the process and of the children that it waited for */
  readonly cput_s: number;
  /** peak memory of the process or of a child that it waited for. It is never less than the memory of the parent at the fork */
  readonly peak_kb: number;
};

/** index of ru_maxrss in a rusage that is read as longs: two times precede it */
const RUSAGE_MAXRSS_AT = 4;

/** Reaps a child that has ended. Returns null if it is not a child, or has not ended. */
export function reap(pid: number): Reaped | null {
  const native = calls();
  const status = new Int32Array(1);
  const usage = new BigInt64Array(18);
  if (Number(native.wait4(pid, status, WNOHANG, usage)) !== pid) return null;
  const word = status[0] ?? 0;
  const seconds = (at: number): number => Number(usage[at]) + Number(usage[at + 1]) / 1e6;
  const signal = word & 0x7f;
  const peak_kb = Number(usage[RUSAGE_MAXRSS_AT]);
  return { status: signal === 0 ? { code: (word >> 8) & 0xff } : { signal }, cput_s: seconds(0) + seconds(2), peak_kb };
}
