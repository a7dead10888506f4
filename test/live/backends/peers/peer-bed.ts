// Real cluster managers for tests: the scripts of the shared folder start and stop them. They are for root, and for one at a time on a machine.

import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Backend, BackendType, Owner, RunnerOrder } from "#backends/contract/backend.ts";
import type { BackendSettings } from "#backends/contract/settings.ts";
import { openBackend } from "#backends/open-backend.ts";
import { systemUsers } from "#support/passwd.ts";
import { order } from "../../../backends/order.ts";
import { SHARED } from "../../shared.ts";

/** Where the scripts keep files and logs. */
export const STATE = process.env["PEERS_STATE"] ?? "/var/tmp/peers";
/** The user that the scripts make; runners belong to this user. */
export const USER = "batch1";
const START_MS_MAX = 900_000;

/** undefined if the peer can be started here, otherwise the reason for skipping. */
export function whyNoPeer(name: string): string | undefined {
  if (process.geteuid?.() !== 0) return `${name} is started by root only`;
  const script = join(SHARED, "peers", `start-${name}`);
  try {
    accessSync(script, constants.X_OK);
  } catch {
    return `no script ${script}`;
  }
  return spawnSync("apt-get", ["--version"]).status === 0
    ? undefined
    : `${name} is installed from packages of Debian, and there is no apt-get`;
}

/** Starts a peer, or finds it running. Throws what the script said if it fails. */
export function startPeer(name: string, env: Readonly<Record<string, string>> = {}): void {
  const { status, stdout, stderr } = spawnSync(join(SHARED, "peers", `start-${name}`), {
    env: { ...process.env, ...env },
    encoding: "utf8",
    timeout: START_MS_MAX,
  });
  if (status !== 0) throw new Error(`start-${name}: ${stdout}\n${stderr.slice(-2000)}`);
}

/** Starts a peer without anything that an earlier run or a person left in it. */
export function startFreshPeer(name: string, env: Readonly<Record<string, string>> = {}): void {
  stopPeer(name);
  startPeer(name, env);
}

export function stopPeer(name: string): void {
  execFileSync(join(SHARED, "peers", `stop-${name}`), ["--purge"], { stdio: "ignore", timeout: START_MS_MAX });
}

/** NAME=VALUE of the lines `export NAME=VALUE` that a start script wrote. */
export function peerEnv(name: string): Readonly<Record<string, string>> {
  const text = readFileSync(join(STATE, name, "env"), "utf8");
  return Object.fromEntries([...text.matchAll(/^export ([A-Z_]+)=(.*)$/gm)].map(([, key = "", value = ""]) => [key, value]));
}

export function owner(): Owner {
  const users = systemUsers();
  const user = users.userByName(USER);
  if (user === null) throw new Error(`no user ${USER}`);
  return { name: USER, uid: user.uid, gid: user.gid, groups: users.gidsOf(user) };
}

export type Bed = {
  /** a directory that the user of the runners can reach and write */
  readonly dir: string;
  readonly open: (attributes: BackendSettings["attributes"]) => Backend;
  /** an order of this user; its serial number is new */
  readonly order: (parts?: Partial<RunnerOrder>) => RunnerOrder;
};

/** A directory and backends of one type; at the end of the test its runners are cancelled. */
export function bed(t: TestContext, type: BackendType): Bed {
  const state_dir = mkdtempSync(join(tmpdir(), "partita-peer-"));
  chmodSync(state_dir, 0o711);
  const dir = mkdtempSync(join(tmpdir(), "partita-peer-out-"));
  chmodSync(dir, 0o1777);
  const complex = `t${process.pid.toString(36)}${Math.floor(Math.random() * 36 ** 4).toString(36)}`;
  const opened: Backend[] = [];
  let serial = 0;
  t.after(async () => {
    const [first] = opened;
    if (first !== undefined) await first.cancel((await first.list()).filter(({ state }) => state !== "ended"));
    for (const backend of opened) await backend.close();
    for (const each of [state_dir, dir]) rmSync(each, { recursive: true, force: true });
  });
  return {
    dir,
    open(attributes) {
      const backend = openBackend({ name: "b", type, complex, user: null, attributes, state_dir });
      opened.push(backend);
      return backend;
    },
    order: (parts = {}) => order({ tag: `${complex}.b.${++serial}`, owner: owner(), ...parts }),
  };
}
