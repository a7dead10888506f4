// Users and groups of the system as the name service knows them (getpwnam_r and related functions through koffi), with brief
// caching. If the C library cannot be loaded, /etc/passwd and /etc/group are read.
//
// U1. An answer is at most CACHE_MS old. U2. Nothing is guessed: for an unknown user the answer is null.

import { readFileSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { realClock } from "./clock.ts";
import { libc } from "./libc/libc.ts";

export type SystemUser = {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell: string;
};
export type SystemGroup = { readonly name: string; readonly gid: number };

/** Looks up users and groups. */
export type UserDatabase = {
  userByName(name: string): SystemUser | null;
  userByUid(uid: number): SystemUser | null;
  groupByName(name: string): SystemGroup | null;
  groupByGid(gid: number): SystemGroup | null;
  /** group ids of a user: the primary group first, then the supplementary groups */
  gidsOf(user: SystemUser): readonly number[];
  /** names of a user's groups; a group without a name is given by its number */
  groupsOf(user: SystemUser): readonly string[];
};

const CACHE_MS = 60_000;
const CACHE_ENTRIES_MAX = 10_000;

/**
 * Returns the users of the system; answers are cached. For a text that cannot be a user name (empty, with NUL, `:` or `/`, or longer than 256 characters) the
 * answer is null, without a look-up.
 */
export function systemUsers(options: { readonly clock?: Clock; readonly source?: UserSource } = {}): UserDatabase {
  const clock = options.clock ?? realClock;
  const source = options.source ?? bestSource();
  const cache = new Map<string, { readonly value: unknown; readonly until_ms: number }>();
  const cached = <T>(key: string, ask: () => T): T => {
    const now_ms = clock.monotonic_ms();
    const hit = cache.get(key);
    if (hit !== undefined && now_ms < hit.until_ms) return hit.value as T;
    const value = ask();
    if (cache.size >= CACHE_ENTRIES_MAX) cache.clear();
    cache.set(key, { value, until_ms: now_ms + CACHE_MS });
    return value;
  };
  const database: UserDatabase = {
    userByName: (name) => (isName(name) ? cached(`u:${name}`, () => source.userByName(name)) : null),
    userByUid: (uid) => (isId(uid) ? cached(`U:${uid}`, () => source.userByUid(uid)) : null),
    groupByName: (name) => (isName(name) ? cached(`g:${name}`, () => source.groupByName(name)) : null),
    groupByGid: (gid) => (isId(gid) ? cached(`G:${gid}`, () => source.groupByGid(gid)) : null),
    gidsOf: (user) => cached(`s:${user.name}:${user.gid}`, () => source.gidsOf(user)),
    groupsOf: (user) => database.gidsOf(user).map((gid) => database.groupByGid(gid)?.name ?? String(gid)),
  };
  return database;
}

const isName = (name: string): boolean => name.length > 0 && name.length <= 256 && !/[\0:/\n]/.test(name);
const isId = (id: number): boolean => Number.isInteger(id) && id >= 0 && id <= 0xffff_ffff;

export type UserSource = Omit<UserDatabase, "groupsOf">;

function bestSource(): UserSource {
  try {
    return libcSource();
  } catch {
    return fileSource(
      () => readFileSync("/etc/passwd", "utf8"),
      () => readFileSync("/etc/group", "utf8"),
    );
  }
}

type PasswdStruct = {
  readonly pw_name: string;
  readonly pw_uid: number;
  readonly pw_gid: number;
  readonly pw_dir: string;
  readonly pw_shell: string;
};
type GroupStruct = { readonly gr_name: string; readonly gr_gid: number };
type LookUp = (key: string | number, out: unknown, buffer: Buffer, size: number, result: unknown[]) => number;

const ERANGE = 34;
const BUFFER_MAX = 1 << 20;

let declared: UserSource | null = null;

/** Looks up through the C library (getpwnam_r, getpwuid_r, getgrnam_r, getgrgid_r, getgrouplist), which uses every source of nsswitch.conf. */
export function libcSource(): UserSource {
  if (declared !== null) return declared;
  const { koffi, libc: library } = libc();
  const passwd = koffi.struct("partita_passwd", {
    pw_name: "str",
    pw_passwd: "void *",
    pw_uid: "uint32_t",
    pw_gid: "uint32_t",
    pw_gecos: "void *",
    pw_dir: "str",
    pw_shell: "str",
  });
  const group = koffi.struct("partita_group", { gr_name: "str", gr_passwd: "void *", gr_gid: "uint32_t", gr_mem: "void *" });
  const passwdSize = koffi.sizeof(passwd);
  const groupSize = koffi.sizeof(group);
  const declare = (name: string, key: string): LookUp =>
    library.func(name, "int", [key, "void *", "void *", "size_t", koffi.out(koffi.pointer("void *"))]) as LookUp;
  const byName = { user: declare("getpwnam_r", "str"), group: declare("getgrnam_r", "str") };
  const byId = { user: declare("getpwuid_r", "uint32_t"), group: declare("getgrgid_r", "uint32_t") };
  const getgrouplist = library.func("int getgrouplist(const char *user, uint32_t group, _Out_ uint32_t *groups, _Inout_ int *count)");

  const ask = <T>(lookUp: LookUp, key: string | number, type: typeof passwd, size: number): T | null => {
    for (let room = 4096; room <= BUFFER_MAX; room *= 4) {
      const out = Buffer.alloc(size);
      const buffer = Buffer.alloc(room);
      const result: unknown[] = [null];
      const status = lookUp(key, out, buffer, room, result);
      if (status === ERANGE) continue;
      return status === 0 && result[0] !== null ? (koffi.decode(out, type) as T) : null;
    }
    return null;
  };
  const user = (found: PasswdStruct | null): SystemUser | null =>
    found === null ? null : { name: found.pw_name, uid: found.pw_uid, gid: found.pw_gid, home: found.pw_dir, shell: found.pw_shell };
  const groupOf = (found: GroupStruct | null): SystemGroup | null => (found === null ? null : { name: found.gr_name, gid: found.gr_gid });

  declared = {
    userByName: (name) => user(ask<PasswdStruct>(byName.user, name, passwd, passwdSize)),
    userByUid: (uid) => user(ask<PasswdStruct>(byId.user, uid, passwd, passwdSize)),
    groupByName: (name) => groupOf(ask<GroupStruct>(byName.group, name, group, groupSize)),
    groupByGid: (gid) => groupOf(ask<GroupStruct>(byId.group, gid, group, groupSize)),
    gidsOf(of) {
      for (let room = 64; room <= 65536; room *= 4) {
        const gids = new Uint32Array(room);
        const count = [room];
        if ((getgrouplist(of.name, of.gid, gids, count) as number) >= 0) return [...gids.subarray(0, count[0])];
      }
      return [of.gid];
    },
  };
  return declared;
}

/** Looks users and groups up in the two files, which it reads again at every look-up (systemUsers caches the answers). */
export function fileSource(readPasswd: () => string, readGroup: () => string): UserSource {
  const users = (): SystemUser[] => parsePasswd(readPasswd());
  const groups = () => parseGroup(readGroup());
  return {
    userByName: (name) => users().find((user) => user.name === name) ?? null,
    userByUid: (uid) => users().find((user) => user.uid === uid) ?? null,
    groupByName: (name) => groups().find((group) => group.name === name) ?? null,
    groupByGid: (gid) => groups().find((group) => group.gid === gid) ?? null,
    gidsOf: (user) => [
      user.gid,
      ...groups()
        .filter((group) => group.gid !== user.gid && group.members.includes(user.name))
        .map((group) => group.gid),
    ],
  };
}

/** Parses the lines of passwd(5). Malformed lines are skipped. */
export function parsePasswd(text: string): SystemUser[] {
  const users: SystemUser[] = [];
  for (const line of text.split("\n")) {
    const [name, , uid, gid, , home, shell] = line.split(":");
    if (!name || name.startsWith("#") || !isNumber(uid) || !isNumber(gid) || shell === undefined) continue;
    users.push({ name, uid: Number(uid), gid: Number(gid), home: home ?? "", shell });
  }
  return users;
}

/** Parses the lines of group(5). */
export function parseGroup(text: string): (SystemGroup & { readonly members: readonly string[] })[] {
  const groups: (SystemGroup & { readonly members: readonly string[] })[] = [];
  for (const line of text.split("\n")) {
    const [name, , gid, members] = line.split(":");
    if (!name || name.startsWith("#") || !isNumber(gid)) continue;
    groups.push({ name, gid: Number(gid), members: (members ?? "").split(",").filter((member) => member !== "") });
  }
  return groups;
}

const isNumber = (text: string | undefined): boolean => text !== undefined && /^\d+$/.test(text);
