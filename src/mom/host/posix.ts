// System calls that Node does not offer: spawning with an exact setup, waiting with resource usage, file work under another identity.
//
// P1. posix_spawn makes the child with vfork's semantics, so its cost does not grow with the memory of this process.
// P2. An identity taken with actAs() holds only for the calling thread and for synchronous file calls. Asynchronous file work always has the process' own rights,
//     in threads that must have been made under the process' own identity (the first such work is therefore done at the start).

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

/** null: the C library is older than the function. */
function optional<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}

/** The C library's words for an error number: `No such file or directory`. */
export const errorText = (errno: number): string => String(calls().strerror(errno));

// ---- identity of file work ----

/** setgroups as this thread's own system call: the C library's function would change every thread. */
const SETGROUPS: { readonly [arch: string]: number } = { x64: 116, arm64: 159, riscv64: 159, loong64: 159, ppc64: 81, s390x: 206 };
let ownGroups: readonly number[] | null = null;
let current: FileIdentity | null = null;

/**
 * From here on synchronous file calls of this thread have the rights of the given user; null: they have the process'
 * own rights again. If the kernel refuses, the function throws and the process' own rights are in force: `current`
 * never names an identity that does not hold.
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
  // Neither call reports a failure; a call with an impossible id returns the present one.
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

/** Does synchronous file work under an identity (null: that of the process), and then restores that of the process. */
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

/** 0: the present identity may execute (or enter) the path; else the error number. */
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
  /** descriptors for 0, 1, 2 and the starting directory */
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
  readonly directory: number;
  /** a terminal that becomes the session's own, and its descriptors 0, 1 and 2 */
  readonly terminal?: string;
};

const O_RDWR = 2;

/** Starts a program in a session of its own with default signals. Returns its pid, or the error number. */
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
      // The first terminal that the leader of a new session opens becomes its controlling one.
      native.actionsOpen(actions, 0, request.terminal, O_RDWR, 0);
      native.actionsDup(actions, 0, 1);
      native.actionsDup(actions, 0, 2);
    }
    native.actionsChdir(actions, request.directory);
    // All descriptors of this process are closed on exec; those that a library may have opened otherwise are closed here (C library 2.34 and later).
    native.actionsCloseFrom?.(actions, 3);
    const pid = [0];
    const errno = Number(native.spawn(pid, request.path, actions, native.attributes, [...request.argv, null], [...request.env, null]));
    return errno === 0 ? { pid: pid[0] ?? 0 } : { errno };
  } finally {
    native.actionsDestroy(actions);
  }
}

const O_CLOEXEC = 0o2000000;

/** A pipe: [read end, write end], both closed on exec. */
export function makePipe(): readonly [number, number] {
  const native = calls();
  const ends = new Int32Array(2);
  if (Number(native.pipe2(ends, O_CLOEXEC)) !== 0) throw new Error(`pipe: ${errorText(Number(native.errno()))}`);
  return [nth(ends, 0), nth(ends, 1)];
}

const PR_SET_CHILD_SUBREAPER = 36;

/** Orphans among the descendants become children of this process, so that no process of a job can hide behind init. */
export function becomeSubreaper(): void {
  const native = calls();
  if (Number(native.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) !== 0) throw new Error(`prctl: ${errorText(Number(native.errno()))}`);
}

const RLIMIT_NOFILE = 7;

/** Node raises its limit on descriptors to the maximum. Children get the usual limit back (and may raise it themselves). */
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
/** position of si_pid in a siginfo_t, in units of an int: it follows three ints and a gap */
const SIGINFO_PID_AT = 4;

/** The pid of a child that has ended and is not yet reaped (so that its number and process group are still its own); 0: none at present. */
export function endedChild(): number {
  const native = calls();
  const info = new Int32Array(32);
  if (Number(native.waitid(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT)) !== 0) return 0;
  return info[SIGINFO_PID_AT] ?? 0;
}

export type Reaped = {
  readonly status: WaitStatus;
  /** cpu seconds of the process and the children it waited for */
  readonly cput_s: number;
  /** the peak memory of the process or of a child that it waited for; at least that of the parent when it forked */
  readonly peak_kb: number;
};

/** position of ru_maxrss in a rusage, counted in longs: two times precede it */
const RUSAGE_MAXRSS_AT = 4;

/** Reaps one ended child; null: it is not a child, or has not ended. */
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
