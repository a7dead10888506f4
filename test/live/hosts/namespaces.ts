// Hosts of a test: network namespaces joined by a bridge, each with its own address, host name and /etc. They share processes and other files with this machine.

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type NetHost = {
  readonly name: string;
  readonly address: string;
  /** runs a command on this host and waits for it */
  run(words: readonly string[]): SpawnSyncReturns<string>;
  /** as run(); throws unless the status is 0 */
  must(...words: readonly string[]): string;
  /** pulls the network cable, or plugs it in */
  cable(state: "up" | "down"): void;
};

export type Net = {
  /** a directory that all hosts see */
  readonly dir: string;
  readonly hosts: readonly NetHost[];
  /** ends all processes of the hosts, and removes everything */
  close(): void;
};

const COMMAND_MS_MAX = 300_000;
/** Own mounts and an own host name, then the command. */
const ENTER = 'mount --bind "$1" /etc && echo "$2" >/proc/sys/kernel/hostname && shift 2 && exec "$@"';

function call(...words: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8", cwd: "/", timeout: COMMAND_MS_MAX });
}

function must(...words: readonly string[]): string {
  const { status, stdout, stderr, error } = call(...words);
  if (status !== 0) throw new Error(`${words.join(" ")}: ${error ?? `status ${status}: ${stdout}${stderr}`}`);
  return stdout;
}

/** The reason why this machine cannot have such hosts, for `skip`; false: it can. */
export function lackOfNamespaces(): string | false {
  if (process.geteuid?.() !== 0) return "needs root: hosts are network namespaces";
  const name = `partita-probe-${process.pid}`;
  try {
    must("ip", "netns", "add", name);
    must("ip", "-n", name, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1");
    must("ip", "-n", name, "link", "add", "probe2", "type", "bridge");
    must("ip", "netns", "exec", name, "unshare", "--mount", "--uts", "sh", "-c", ENTER, "sh", "/etc", name, "true");
    return false;
  } catch (error) {
    return `needs network namespaces: ${(error as Error).message.trim().slice(0, 200)}`;
  } finally {
    call("ip", "netns", "del", name);
  }
}

/** Hosts of these names. The caller must close the net. */
export function makeNet(names: readonly string[]): Net {
  const dir = mkdtempSync(join(tmpdir(), "partita-net-"));
  must("chmod", "755", dir);
  const space = (name: string): string => `partita-${process.pid}-${name}`;
  const made = ["switch", ...names].map(space);
  const close = (): void => {
    process.off("exit", close);
    for (const each of made) {
      const pids = call("ip", "netns", "pids", each).stdout.split("\n").map(Number);
      for (const pid of pids.filter((number) => number > 1)) call("kill", "-9", String(pid));
      call("ip", "netns", "del", each);
    }
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once("exit", close);
  for (const each of made) must("ip", "netns", "add", each);
  must("ip", "-n", space("switch"), "link", "add", "bridge0", "type", "bridge");
  must("ip", "-n", space("switch"), "link", "set", "bridge0", "up");
  const hosts = names.map((name, at) =>
    makeHost({ name, address: `10.99.0.${at + 1}`, space: space(name), dir, port: `port${at}`, bridge: space("switch") }),
  );
  const lines = ["127.0.0.1 localhost", ...hosts.map((host) => `${host.address} ${host.name}`), ""];
  for (const { name } of hosts) writeFileSync(join(dir, name, "etc/hosts"), lines.join("\n"));
  return { dir, hosts, close };
}

type HostFacts = {
  readonly name: string;
  readonly address: string;
  /** its network namespace, and that of the bridge */
  readonly space: string;
  readonly bridge: string;
  readonly dir: string;
  readonly port: string;
};

function makeHost({ name, address, space, bridge, dir, port }: HostFacts): NetHost {
  const etc = join(dir, name, "etc");
  mkdirSync(join(dir, name));
  cpSync("/etc", etc, { recursive: true, verbatimSymlinks: true, filter: (path) => path !== "/etc/pbs.conf" });
  writeFileSync(join(etc, "hostname"), `${name}\n`);
  must("ip", "-n", bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space);
  must("ip", "-n", bridge, "link", "set", port, "master", "bridge0", "up");
  must("ip", "-n", space, "addr", "add", `${address}/24`, "dev", "eth0");
  for (const device of ["lo", "eth0"]) must("ip", "-n", space, "link", "set", device, "up");
  const within = ["ip", "netns", "exec", space, "unshare", "--mount", "--uts", "sh", "-c", ENTER, "sh", etc, name];
  return {
    name,
    address,
    run: (words) => call(...within, ...words),
    must: (...words) => must(...within, ...words),
    cable: (state) => void must("ip", "-n", space, "link", "set", "eth0", state),
  };
}
