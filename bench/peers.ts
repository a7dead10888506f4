// The same small work for the batch systems that are up on this machine, through their own commands, in the same run as ours. Nothing is started here:
// a peer is up when its command answers. Settings a peer's commands need (SLURM_CONF, SGE_ROOT, ...) come from the environment, or from files
// PEERS_STATE/NAME/env with lines `export KEY=VALUE` (default /var/tmp/peers). As root the work is done as the user batch1 when he exists.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export type PeerFigures = { readonly name: string; readonly submit_ms: number; readonly jobs_per_s: number };

type Peer = {
  readonly name: string;
  readonly folder: string;
  readonly up: readonly string[];
  readonly submit: readonly string[];
  /** lists the remaining jobs, one on each line after `header` lines */
  readonly left: readonly string[];
  readonly header: number;
};

const PEERS: readonly Peer[] = [
  {
    name: "Slurm",
    folder: "slurm",
    up: ["sinfo", "-h"],
    submit: ["sbatch", "--parsable", "-o", "/dev/null", "--wrap", "/bin/true"],
    left: ["squeue", "-h", "-r", "-o", "%i"],
    header: 0,
  },
  {
    name: "Grid Engine",
    folder: "gridengine",
    up: ["qconf", "-sh"],
    submit: ["qsub", "-terse", "-b", "y", "-o", "/dev/null", "-e", "/dev/null", "/bin/true"],
    left: ["qstat"],
    header: 2,
  },
];
const JOBS = 200;
const PEERS_STATE_DEFAULT = "/var/tmp/peers";
const USER = "batch1";

/** Figures of every peer that answers; the names of those that do not. */
export async function peerFigures(): Promise<{ readonly figures: readonly PeerFigures[]; readonly absent: readonly string[] }> {
  const figures: PeerFigures[] = [];
  const absent: string[] = [];
  for (const peer of PEERS) {
    const run = runner(peer);
    if (run(peer.up).status !== 0) {
      absent.push(peer.name);
      continue;
    }
    const left = (): number =>
      Math.max(
        0,
        run(peer.left)
          .stdout.split("\n")
          .filter((line) => line.trim() !== "").length - peer.header,
      );
    const begin = performance.now();
    const walls: number[] = [];
    for (let job = 0; job < JOBS; job++) {
      const start = performance.now();
      run(peer.submit);
      walls.push(performance.now() - start);
    }
    while (left() > 0) await sleep(100);
    walls.sort((a, b) => a - b);
    figures.push({ name: peer.name, submit_ms: walls[JOBS / 2] ?? Number.NaN, jobs_per_s: (JOBS / (performance.now() - begin)) * 1000 });
  }
  return { figures, absent };
}

/** Whether a peer answers on this machine. folder: its folder below PEERS_STATE. */
export function answers(folder: string): boolean {
  const peer = PEERS.find((each) => each.folder === folder);
  return peer !== undefined && runner(peer)(peer.up).status === 0;
}

/** The settings of a peer's commands. */
export function settingsOf(folder: string): NodeJS.ProcessEnv {
  const peer = PEERS.find((each) => each.folder === folder);
  return peer === undefined ? {} : settings(peer);
}

/** Runs single jobs of /bin/true in Slurm, each submitted by an sbatch of its own. Returns jobs per second, first submission to last end. */
export async function slurmAlone(jobs: number): Promise<number> {
  const peer = PEERS.find(({ folder }) => folder === "slurm");
  if (peer === undefined) return Number.NaN;
  const run = runner(peer);
  const begin = performance.now();
  for (let job = 0; job < jobs; job++) run(peer.submit);
  while (run(peer.left).stdout.trim() !== "") await sleep(100);
  return (jobs / (performance.now() - begin)) * 1000;
}

/** Runs a peer's command with its settings. The starter `setpriv` costs about a millisecond, which is part of the figures. */
function runner(peer: Peer): (words: readonly string[]) => { readonly status: number | null; readonly stdout: string } {
  // The system's commands, not ours of the same name.
  const env: NodeJS.ProcessEnv = { ...process.env, ...settings(peer), PATH: "/usr/bin:/bin:/usr/sbin:/sbin", HOME: "/tmp" };
  const become =
    process.geteuid?.() === 0 && spawnSync("id", [USER]).status === 0
      ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--init-groups"]
      : [];
  return (words) => {
    const all = [...become, ...words];
    const { status, stdout } = spawnSync(all[0] as string, all.slice(1), { env, cwd: "/tmp", encoding: "utf8", timeout: 60_000 });
    return { status, stdout: stdout ?? "" };
  };
}

function settings(peer: Peer): NodeJS.ProcessEnv {
  const file = join(process.env["PEERS_STATE"] ?? PEERS_STATE_DEFAULT, peer.folder, "env");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return Object.fromEntries([...text.matchAll(/^export (\w+)=(.*)$/gm)].map((match) => [match[1], match[2]]));
}
