// A grid for tests: pbs_grid in a directory of its own, beside no complex.

import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, lockHolder, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

/** A campaign as `gridstat -F json ID` shows it. */
export type Campaign = {
  readonly id: number;
  readonly state: string;
  readonly total_jobs: number;
  readonly finished_jobs: number;
  readonly running_jobs: number;
  readonly waiting_jobs: number;
  readonly event_jobs: number;
  readonly clusters: readonly {
    readonly cluster: string;
    readonly terminated: number;
    readonly waiting: number;
    readonly running: number;
  }[];
};
export type Job = {
  readonly id: number;
  readonly state: string;
  readonly cluster: string;
  readonly parameters: string;
  readonly exit_code: number | null;
};

export type Grid = {
  readonly home: string;
  /** a directory for files of jobs */
  readonly work: string;
  run(command: string, args: readonly string[], become?: readonly string[]): SpawnSyncReturns<string>;
  /** as run(), but a status other than 0 throws an error with all output */
  must(command: string, args: readonly string[], become?: readonly string[]): string;
  /** submits a campaign and returns its id */
  submit(jdl: object, ...options: readonly string[]): number;
  campaign(id: number): Campaign;
  jobs(id: number): readonly Job[];
  untilState(id: number, state: string): Promise<Campaign>;
  start(): void;
  pid(): number | null;
  /** stops the daemon and removes everything */
  stop(): void;
};

/** system: the daemon acts as the users of campaigns (root only). */
export function startGrid({ system = false }: { readonly system?: boolean } = {}): Grid {
  const directory = mkdtempSync(join(tmpdir(), "partita-grid-"));
  chmodSync(directory, 0o755);
  const home = join(directory, "grid");
  const work = join(directory, "work");
  spawnSync("mkdir", [work]);
  const partita = (...args: readonly string[]): string =>
    check(spawnSync(join(ROOT, "bin/partita"), [...args, "--home", home], { encoding: "utf8" }));
  const env = { ...process.env, PBS_CONF_FILE: "", PARTITA_HOME: home };
  const run: Grid["run"] = (command, args, become = []) => {
    // The environment does not survive a change of the user.
    const [program = "", ...words] = [...become, "env", `PARTITA_HOME=${home}`, join(ROOT, "bin", command), ...args];
    return spawnSync(program, words, { env, encoding: "utf8", cwd: work });
  };
  const must: Grid["must"] = (command, args, become) => check(run(command, args, become), `${command} ${args.join(" ")}`);
  const campaign = (id: number): Campaign => JSON.parse(must("gridstat", ["-F", "json", String(id)]));
  const dispose = (): void => {
    spawnSync(join(ROOT, "bin/partita"), ["grid", "stop", "--home", home]);
    rmSync(directory, { recursive: true, force: true });
  };
  process.once("exit", dispose);
  partita("grid", "start", ...(system ? ["--system"] : []));
  appendFileSync(join(home, "pbs.conf"), "PARTITA_RESIDENT=no\n");
  return {
    home,
    work,
    run,
    must,
    submit(jdl, ...options) {
      const file = join(work, "campaign.json");
      writeFileSync(file, JSON.stringify(jdl));
      return Number(must("gridsub", [...options, file]).trim());
    },
    campaign,
    jobs: (id) => (JSON.parse(must("gridstat", ["-f", "-F", "json", String(id)])) as { readonly jobs: readonly Job[] }).jobs,
    untilState: (id, state) =>
      until(`campaign ${id} in state ${state}`, () => {
        const seen = campaign(id);
        return seen.state === state && seen;
      }),
    start: () => void partita("grid", "start"),
    pid: () => lockHolder(join(home, "pbs/grid_priv/grid.lock")),
    stop() {
      process.off("exit", dispose);
      dispose();
    },
  };
}

export const linesOf = (file: string): readonly string[] => readFileSync(file, "utf8").trim().split("\n");

/** Returns the lines of a file, sorted as numbers. */
export const numbersIn = (file: string): readonly number[] =>
  linesOf(file)
    .map(Number)
    .sort((a, b) => a - b);
