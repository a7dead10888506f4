// Seats of the real cluster managers for test/live/backends/mixed-jobs.ts. Their complexes belong to an ordinary user: Grid Engine runs no jobs of root, and no server of a
// cloud is started for root.

import { execFileSync } from "node:child_process";
import { chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, until } from "../../complex.ts";
import type { Seat } from "../mixed-jobs.ts";
import { type FakeBoots, OPENRC } from "./fake-boots.ts";
import { owner, peerEnv, STATE, startPeer, USER } from "./peer-bed.ts";

/** Ends a daemon by the file with its pid, as an administrator who stops it would. */
async function end(...path: readonly string[]): Promise<void> {
  const pid = Number(readFileSync(join(STATE, ...path), "latin1"));
  process.kill(pid, "SIGTERM");
  await until(`the end of ${path.at(-1)}`, () => !isAlive(pid));
}

const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");

const SLURM_CONF = join(STATE, "slurm", "slurm.conf");

/** env: knobs of start-slurm. */
export const slurmSeat = (env: Readonly<Record<string, string>> = {}): Seat => ({
  type: "slurm",
  owner: USER,
  attributes: () => [`config=${SLURM_CONF}`],
  stop: () => end("slurm", "run", "slurmctld.pid"),
  resume: async () => startPeer("slurm", env),
  tells: true,
  left: async () => lines(execFileSync("squeue", ["-h"], { env: { PATH: "/usr/bin:/bin", SLURM_CONF }, encoding: "utf8" })),
});

const GRID_ENGINE = "/usr/lib/gridengine";

export const gridEngineSeat: Seat = {
  type: "gridengine",
  owner: USER,
  attributes() {
    const { SGE_ROOT, SGE_CELL } = peerEnv("gridengine");
    return [
      `bin=${GRID_ENGINE}`,
      `root=${SGE_ROOT}`,
      `cell=${SGE_CELL}`,
      `config=${join(STATE, "gridengine", "env")}`,
      "parallel_env=make",
    ];
  },
  stop: () => end("gridengine", "qmaster", "qmaster.pid"),
  resume: async () => startPeer("gridengine", { SGE_TUNED: "1" }),
  tells: true,
  left: async () => lines(execFileSync(join(GRID_ENGINE, "qstat"), ["-u", "*"], { env: peerEnv("gridengine"), encoding: "utf8" })),
};

export const openStackSeat = (boots: FakeBoots): Seat => ({
  type: "openstack",
  owner: USER,
  attributes(complex) {
    const path = join(complex.work(), "credentials");
    writeFileSync(path, readFileSync(OPENRC), { mode: 0o600 });
    chownSync(path, owner().uid, owner().gid);
    return [`credentials=${path}`, "networks=none", "flavors=peer[.].*", "keep_alive=5"];
  },
  stop: () => end("openstack", "run", "nova-api.pid"),
  resume: async () => startPeer("openstack"),
  tells: true,
  left: async (_complex, backend) => (await boots.servers()).filter(({ name }) => name.includes(`.${backend}.`)).map(({ id }) => id),
});
