// Hosts of a test: network namespaces joined by a bridge, each with its own address, host name and /etc. They share processes and other files with this machine.

import { type ChildProcess, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { ROOT } from "../shared.ts";
import type { Rule, SwitchCounts } from "./weather.ts";

export type NetHost = {
  readonly name: string;
  readonly address: string;
  /** words before those of a command that is to run on this host */
  readonly within: readonly string[];
  /** runs a command on this host and waits for it */
  run(words: readonly string[]): SpawnSyncReturns<string>;
  /** as run(); throws unless the status is 0 */
  must(...words: readonly string[]): string;
  /** as must(), while other commands run */
  later(words: readonly string[], options?: { readonly input?: string; readonly env?: NodeJS.ProcessEnv }): Promise<string>;
  /** pids of its processes */
  pids(): readonly number[];
  /** pulls the network cable, or plugs it in */
  cable(state: "up" | "down"): void;
  /** only in a net with weather: the rules of its cable from now on; returns what has passed and was lost there before */
  weather(...rules: readonly Rule[]): Promise<SwitchCounts>;
};

export type NetOptions = {
  /** the hosts are joined by switch.ts, not by a bridge of the kernel: it can lose and delay what passes, but takes more time for it */
  readonly weather?: boolean;
  /** directories of the root file system of which each host has its own, beside /etc; they are empty at first */
  readonly own?: readonly string[];
  /** the hosts share a /home of their own (`Net.home`), so that nothing of other tests is in it: with a directory for each user who has one in /home */
  readonly home?: boolean;
};

export type Net = {
  /** a directory that all hosts see */
  readonly dir: string;
  /** what the hosts see as /home */
  readonly home: string;
  readonly hosts: readonly NetHost[];
  /** ends all processes of the hosts, and removes everything */
  close(): void;
};

const COMMAND_MS_MAX = 300_000;
const OUTPUT_BYTES_MAX = 1 << 28;
/** Own mounts and an own host name, then the command: NAME SOURCE PATH ... -- COMMAND... */
const ENTER =
  'echo "$1" >/proc/sys/kernel/hostname || exit; shift; while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit; shift 2; done; shift; exec "$@"';
/** Waits for the end of its standard input, and then removes what a test may have left behind: DIRECTORY NAMESPACE... */
const CARE =
  'cat >/dev/null; dir=$1; shift; for each; do for pid in $(ip netns pids "$each" 2>/dev/null); do kill -9 "$pid"; done; ip netns del "$each" 2>/dev/null; done; rm -rf "$dir"';
const START_MS_MAX = 120_000;

function call(...words: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8", cwd: "/", timeout: COMMAND_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX });
}

function must(...words: readonly string[]): string {
  const { status, stdout, stderr, error } = call(...words);
  if (status !== 0) throw new Error(`${words.join(" ")}: ${error ?? `status ${status}: ${stdout}${stderr}`}`);
  return stdout;
}

const pidsIn = (space: string): readonly number[] =>
  call("ip", "netns", "pids", space)
    .stdout.split("\n")
    .map(Number)
    .filter((pid) => pid > 1);

/** The reason why this machine cannot have such hosts, for `skip`; false: it can. */
export function lackOfNamespaces(): string | false {
  if (process.geteuid?.() !== 0) return "needs root: hosts are network namespaces";
  const name = `partita-probe-${process.pid}`;
  try {
    must("ip", "netns", "add", name);
    must("ip", "-n", name, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1");
    must("ip", "-n", name, "link", "add", "probe2", "type", "bridge");
    must("ip", "netns", "exec", name, "unshare", "--mount", "--uts", "sh", "-c", ENTER, "sh", name, "/etc", "/etc", "--", "true");
    return false;
  } catch (error) {
    return `needs network namespaces: ${(error as Error).message.trim().slice(0, 200)}`;
  } finally {
    call("ip", "netns", "del", name);
  }
}

/** The reason why this machine cannot have nets with weather, for `skip`; false: it can. */
export const lackOfWeather = (): string | false =>
  !existsSync("/dev/net/tun") && "needs /dev/net/tun: the cables of hosts are devices of it";

let nets_made = 0;

/** Hosts of these names. The caller must close the net. */
export function makeNet(names: readonly string[], { weather = false, own = [], home = false }: NetOptions = {}): Net {
  const dir = mkdtempSync(join(tmpdir(), "partita-net-"));
  must("chmod", "755", dir);
  const number = ++nets_made;
  const space = (name: string): string => `partita-${process.pid}${number === 1 ? "" : `-${number}`}-${name}`;
  const made = ["switch", ...names].map(space);
  // If this process is killed, nothing of it can clean up.
  const caretaker = spawn("sh", ["-c", CARE, "sh", dir, ...made], { detached: true, stdio: ["pipe", "ignore", "ignore"], cwd: "/" });
  unhold(caretaker);
  const close = (): void => {
    process.off("exit", close);
    for (const each of made) {
      for (const pid of pidsIn(each)) call("kill", "-9", String(pid));
      call("ip", "netns", "del", each);
    }
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    caretaker.kill("SIGKILL");
    caretaker.stdin?.end();
  };
  process.once("exit", close);
  for (const each of made) must("ip", "netns", "add", each);
  const shared = home ? makeHomes(join(dir, "home")) : "/home";
  const port = (at: number): string => `port${at}`;
  const control = join(dir, "switch.sock");
  if (weather)
    startSwitch(
      space("switch"),
      control,
      names.map((_, at) => port(at)),
    );
  else {
    must("ip", "-n", space("switch"), "link", "add", "bridge0", "type", "bridge");
    must("ip", "-n", space("switch"), "link", "set", "bridge0", "up");
  }
  const hosts = names.map((name, at) =>
    makeHost({
      name,
      address: `10.99.0.${at + 1}`,
      space: space(name),
      dir,
      port: port(at),
      bridge: space("switch"),
      control: weather ? control : null,
      own,
      home: shared,
    }),
  );
  const lines = ["127.0.0.1 localhost", ...hosts.map((host) => `${host.address} ${host.name}`), ""];
  for (const { name } of hosts) writeFileSync(join(dir, name, "etc/hosts"), lines.join("\n"));
  return { dir, home: shared, hosts, close };
}

function makeHomes(home: string): string {
  mkdirSync(home, { mode: 0o755 });
  for (const { name } of readdirSync("/home", { withFileTypes: true }).filter((each) => each.isDirectory())) {
    const { uid, gid } = statSync(join("/home", name));
    mkdirSync(join(home, name), { mode: 0o755 });
    chownSync(join(home, name), uid, gid);
  }
  return home;
}

/** This process can end before the child. */
function unhold(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
}

/** The switch ends with this process. */
function startSwitch(space: string, control: string, ports: readonly string[]): void {
  const words = [join(ROOT, "node_modules/node/bin/node"), join(import.meta.dirname, "switch.ts"), control, ...ports];
  // A thread waits for each cable.
  const env = { ...process.env, UV_THREADPOOL_SIZE: String(ports.length + 4), NODE_OPTIONS: "" };
  const child = spawn("ip", ["netns", "exec", space, ...words], { stdio: ["pipe", "ignore", "inherit"], cwd: "/", env });
  unhold(child);
  for (const begin_ms = performance.now(); !existsSync(control); call("sleep", "0.02"))
    if (performance.now() - begin_ms > START_MS_MAX) throw new Error("the switch does not start");
}

type HostFacts = {
  readonly name: string;
  readonly address: string;
  /** its network namespace, and that of the bridge or switch */
  readonly space: string;
  readonly bridge: string;
  readonly dir: string;
  readonly port: string;
  /** where the switch takes orders; null: a bridge */
  readonly control: string | null;
  readonly own: readonly string[];
  readonly home: string;
};

function makeHost(facts: HostFacts): NetHost {
  const { name, address, space, dir, own, home } = facts;
  const etc = join(dir, name, "etc");
  for (const path of ["/etc", ...own]) {
    // Without an init system, nothing has made the directory in which a package's daemon has its socket. The daemon has the name of its user.
    if (!existsSync(path)) must("install", "-d", "-o", basename(path), "-g", basename(path), path);
    mkdirSync(join(dir, name, path), { recursive: true });
    for (const change of ["chown", "chmod"]) must(change, `--reference=${path}`, join(dir, name, path));
  }
  must("cp", "-a", "/etc/.", etc);
  rmSync(join(etc, "pbs.conf"), { force: true });
  writeFileSync(join(etc, "hostname"), `${name}\n`);
  plugIn(facts);
  const mounts = ["/etc", ...own].flatMap((path) => [join(dir, name, path), path]);
  const enter = ["sh", "-c", ENTER, "sh", name, ...mounts, ...(home === "/home" ? [] : [home, "/home"]), "--"];
  const within = ["ip", "netns", "exec", space, "unshare", "--mount", "--uts", ...enter];
  return {
    name,
    address,
    within,
    run: (words) => call(...within, ...words),
    must: (...words) => must(...within, ...words),
    later: (words, options) => later({ name, within }, words, options),
    pids: () => pidsIn(space),
    cable: (state) => void must("ip", "-n", space, "link", "set", "eth0", state),
    weather: (...rules) => order(facts, rules),
  };
}

/** Makes the cable from the host to the bridge or the switch. */
function plugIn({ bridge, port, space, address, control }: HostFacts): void {
  if (control !== null) must("ip", "-n", bridge, "link", "set", port, "netns", space, "name", "eth0");
  else {
    must("ip", "-n", bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space);
    must("ip", "-n", bridge, "link", "set", port, "master", "bridge0", "up");
  }
  must("ip", "-n", space, "addr", "add", `${address}/24`, "dev", "eth0");
  for (const device of ["lo", "eth0"]) must("ip", "-n", space, "link", "set", device, "up");
}

async function order({ control, port, name }: HostFacts, rules: readonly Rule[]): Promise<SwitchCounts> {
  if (control === null) throw new Error(`${name}: this net has no weather`);
  const socket = connect(control);
  socket.write(`${JSON.stringify({ cable: port, rules })}\n`);
  return JSON.parse(await text(socket)) as SwitchCounts;
}

async function later(
  { name, within }: Pick<NetHost, "name" | "within">,
  command: readonly string[],
  { input = "", env = process.env }: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const words = [...within, ...command];
  const child = spawn(words[0] ?? "", words.slice(1), { stdio: "pipe", cwd: "/", env, timeout: COMMAND_MS_MAX });
  child.stdin.on("error", () => undefined).end(input);
  const ended = new Promise<string>((resolve) => child.once("close", (status, signal) => resolve(String(status ?? signal))));
  const [status, out, err] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (status !== "0") throw new Error(`${name}: ${command.join(" ")}: status ${status}: ${out}${err}`);
  return out;
}
