// A complex whose head is one host of a net (namespaces.ts), and what its tests ask it.

import { appendFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../shared.ts";
import type { Net, NetHost } from "./namespaces.ts";

export type Bed = {
  readonly net: Net;
  readonly head: NetHost;
  readonly mode: Mode;
  /** lines of pbs.conf of every host */
  readonly lines: string;
  /** a command of PBS on the head, as root or as a user */
  pbs(words: readonly string[], user?: string): string;
  /** words that run a command of PBS on a host, there */
  wordsAt(host: NetHost, words: readonly string[], user?: string): readonly string[];
  partita(host: NetHost, ...words: readonly string[]): string;
  job(id: string): Readonly<Record<string, unknown>>;
  state(node: string): string;
  homeOf(host: NetHost): string;
  log(host: NetHost, directory: string): string;
};

/** In system mode with programs of its own in the net, in user mode with those of the checkout. */
export type Mode = "system" | "user";

/** Makes a complex. The head runs a server and no mom. lines: for pbs.conf of every host, for example the socket of a munged. */
export function makeBed(net: Net, head: NetHost, mode: Mode = "system", lines = ""): Bed {
  const exec = mode === "system" ? join(net.dir, "opt") : ROOT;
  const homeOf = ({ name }: NetHost): string => join(net.dir, name, "complex");
  const confOf = (host: NetHost): string => join(homeOf(host), "pbs.conf");
  const program = (name: string): string => join(exec, "bin", name);
  head.must(join(ROOT, "bin/partita"), "init", ...(mode === "system" ? ["--system", "--prefix", exec] : []), "--home", homeOf(head));
  appendFileSync(confOf(head), `PARTITA_RESIDENT=no\nPBS_START_MOM=0\n${lines}`);
  const wordsAt: Bed["wordsAt"] = (host, [name = "", ...args], user) => {
    const become = user === undefined ? [] : ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups"];
    return [...become, "env", `PBS_CONF_FILE=${confOf(host)}`, "PARTITA_RESIDENT=no", program(name), ...args];
  };
  const pbs: Bed["pbs"] = (words, user) => head.must(...wordsAt(head, words, user));
  return {
    net,
    head,
    mode,
    lines,
    pbs,
    wordsAt,
    partita: (host, ...words) => host.must(program("partita"), ...words, "--home", homeOf(host)),
    job(id) {
      const { Jobs } = JSON.parse(pbs(["qstat", "-x", "-f", "-F", "json", id])) as { Jobs: Record<string, Record<string, unknown>> };
      return Jobs[id] ?? {};
    },
    state(node) {
      const { nodes } = JSON.parse(pbs(["pbsnodes", "-F", "json", node])) as { nodes: Record<string, { state: string }> };
      return nodes[node]?.state ?? "";
    },
    homeOf,
    log(host, directory) {
      const path = join(homeOf(host), "pbs", directory);
      return readdirSync(path)
        .map((name) => readFileSync(join(path, name), "utf8"))
        .join("");
    },
  };
}

export const tokenIn = (text: string): string => /partita1\.\S+/.exec(text)?.[0] ?? "";

/** Lets a host join, with a token for its name. */
export function joins(bed: Bed, host: NetHost, ...options: readonly string[]): void {
  const token = tokenIn(bed.partita(bed.head, "cert", "token", "--host", host.name));
  const prefix = bed.mode === "system" ? ["--prefix", join(bed.net.dir, "opt")] : [];
  bed.partita(host, "join", bed.head.name, "--token", token, ...prefix, ...options);
  appendFileSync(join(bed.homeOf(host), "pbs.conf"), bed.lines);
}

/** Ends the daemons of all hosts, and removes everything. */
export function closeBed({ dir, hosts, close }: Net): void {
  const installed = join(dir, "opt/bin/partita");
  const partita = existsSync(installed) ? installed : join(ROOT, "bin/partita");
  for (const host of [...hosts].reverse()) host.run([partita, "stop", "--home", join(dir, host.name, "complex")]);
  close();
}
