// Further hosts of a complex on this machine: moms with separate homes, names and TMPDIRs at the same server.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Complex, until } from "./complex.ts";
import { ROOT } from "./shared.ts";

export type Host = {
  readonly name: string;
  /** its PBS_MOM_HOME */
  readonly home: string;
  readonly pid: number;
  /** ends the mom by a signal and waits for its end */
  end(signal: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  log(): string;
  /** ends mom and starter */
  close(): Promise<void>;
};

/** config: mom_priv/config. within: words before the mom's command, a program that becomes its parent. */
export type HostOptions = { readonly ncpus?: number; readonly config?: string; readonly within?: readonly string[] };

/** Adds a host of that name; its node is created and free. The caller must close it before the complex is stopped. */
export async function addHost(complex: Complex, name: string, { ncpus = 4, config, within = [] }: HostOptions = {}): Promise<Host> {
  const top = join(complex.home, "..", `host-${name}`);
  const home = join(top, "pbs");
  mkdirSync(join(home, "mom_priv"), { recursive: true });
  chmodSync(join(home, "mom_priv"), 0o751);
  if (config !== undefined) writeFileSync(join(home, "mom_priv", "config"), config);
  mkdirSync(join(top, "tmp"));
  chmodSync(join(top, "tmp"), 0o1777);
  const own = { PBS_MOM_HOME: home, PBS_MOM_NODE_NAME: name, PBS_TMPDIR: join(top, "tmp") };
  const lines = readFileSync(join(complex.home, "pbs.conf"), "utf8")
    .split("\n")
    .filter((line) => !Object.keys(own).some((key) => line.startsWith(`${key}=`)));
  const conf = join(top, "pbs.conf");
  writeFileSync(conf, [...lines, ...Object.entries(own).map(([key, value]) => `${key}=${value}`), ""].join("\n"));
  let child: ChildProcess | null = null;
  const states = (): string =>
    (JSON.parse(complex.must("pbsnodes", ["-F", "json", name])) as { nodes: Record<string, { state: string }> }).nodes[name]?.state ?? "";
  const host: Host = {
    name,
    home,
    get pid() {
      const first = child?.pid ?? 0;
      return first === 0 || within.length === 0 ? first : Number(readFileSync(`/proc/${first}/task/${first}/children`, "utf8").trim());
    },
    async start() {
      const words = [...within, process.execPath, join(ROOT, "src/mom/main.ts"), "-N"];
      child = spawn(words[0] as string, words.slice(1), {
        stdio: ["ignore", "inherit", "inherit"],
        cwd: "/",
        env: { ...process.env, PBS_CONF_FILE: conf },
      });
      await until(`node ${name} up`, () => !/down|state-unknown/.test(states()));
    },
    async end(signal) {
      const [ending, mom] = [child, host.pid];
      child = null;
      if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
      const gone = new Promise((resolve) => ending.once("exit", resolve));
      process.kill(mom, signal);
      await gone;
    },
    log() {
      const now = new Date();
      const two = (value: number): string => String(value).padStart(2, "0");
      return readFileSync(join(home, "mom_logs", `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`), "utf8");
    },
    async close() {
      await host.end("SIGTERM");
      try {
        process.kill(Number(readFileSync(join(home, "mom_priv", "starter.lock"), "utf8")), "SIGKILL");
      } catch {
        // The process has ended with its mom.
      }
    },
  };
  complex.qmgr(`create node ${name}`, `set node ${name} resources_available.ncpus = ${ncpus}`);
  await host.start();
  return host;
}
