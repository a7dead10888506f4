// `partita demo`: creates a temporary complex in user mode. With qmgr it adds a second scheduler that has its own partition.
// It then runs real jobs in both partitions, and shows the results. All output comes from the commands.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Conf } from "#support/conf.ts";
import { AdminError, complexConf } from "../complex/complex-home.ts";
import { complexEnv, daemonPid, killDaemons, programOf, startDaemons, stopDaemons, waitUntilUp } from "../complex/daemons.ts";
import { atReaderGone } from "../complex/reader-gone.ts";
import { init, vnodeDefinition } from "./init.ts";

const JOBS_PER_QUEUE = 4;
const LIMIT_S = 150;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The script of a job: it computes the prime numbers below a limit. */
const SCRIPT = `#!/bin/sh
#PBS -N primes
#PBS -l select=1:ncpus=1,walltime=00:02:00
#PBS -j oe
awk -v from="$FROM" 'BEGIN {
  for (n = from; n < from + 20000; n++) {
    prime = n > 1
    for (d = 2; d * d <= n; d++) if (n % d == 0) { prime = 0; break }
    count += prime
  }
  printf "%d primes from %d to %d\\n", count, from, from + 19999
}'
`;

export async function demo(say: (text: string) => void, keep: boolean): Promise<void> {
  const begin_ms = performance.now();
  const dir = mkdtempSync(join(tmpdir(), "partita-demo-"));
  let conf: Conf | null = null;
  let starting: Promise<unknown> = Promise.resolve();
  let ending: Promise<void> | null = null;
  const end = (): Promise<void> => {
    // First waits for daemons that are just starting: they could not be found later.
    ending ??= Promise.allSettled([starting]).then(async () => {
      if (conf !== null) await killDaemons(conf);
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    });
    return ending;
  };
  const onSignal = (): void => void end().finally(() => process.exit(130));
  for (const signal of SIGNALS) process.once(signal, onSignal);
  const unwatch = atReaderGone(end);
  try {
    init({ home: dir, system: false, prefix: undefined, server: undefined });
    conf = complexConf(dir);
    say(`A complex in user mode in ${dir}`);
    starting = startDaemons(conf);
    await starting;
    await waitUntilUp(conf);
    await new Demo(conf, dir, say).show();
    if (keep) {
      unwatch();
      say(`\nIt goes on running. Use it:  eval "$(partita env --home ${dir})"\nEnd it:  partita stop --home ${dir}`);
      return;
    }
    await stopDaemons(conf);
    await end();
    say(`\nStopped and removed. ${((performance.now() - begin_ms) / 1000).toFixed(1)} s in all.`);
  } catch (error) {
    const interrupted = ending !== null;
    await end();
    // A signal, or the end of the program that reads the output, has called end(). Errors here come from the removal of the complex and are ignored: whoever
    // called end() ends the process, too.
    if (interrupted) return await new Promise<never>(() => undefined);
    throw error;
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  }
}

/** Runs the commands of the demo in its directory, and shows their output. */
class Demo {
  readonly #conf: Conf;
  readonly #dir: string;
  readonly #say: (text: string) => void;

  constructor(conf: Conf, dir: string, say: (text: string) => void) {
    this.#conf = conf;
    this.#dir = dir;
    this.#say = say;
  }

  async show(): Promise<void> {
    await this.#divideHost();
    await this.#makeScheduler();
    await this.#reserve();
    const jobs = await this.#submit();
    await until("all jobs have finished", async () => Object.values(await this.#detail(jobs)).every((job) => job.job_state === "F"));
    this.#tellJobs(jobs, await this.#detail(jobs));
  }

  #run(command: string, args: readonly string[], cwd = this.#dir): Promise<string> {
    return runCommand(this.#conf, command, args, cwd);
  }

  async #divideHost(): Promise<void> {
    const host = this.#conf.mom_node_name;
    this.#say(`\nTwo vnodes on this host, ${host}[0] and ${host}[1]:`);
    const definition = join(this.#dir, "vnodes");
    const cpus = Math.max(2, availableParallelism());
    writeFileSync(definition, vnodeDefinition(host, 2, { cpus, mem_kb: null }));
    await this.#run("pbs_mom", ["-s", "insert", "demo", definition]);
    const mom = daemonPid(this.#conf, "mom");
    if (mom !== null) process.kill(mom, "SIGHUP");
    await until("the vnodes are known", async () => (await this.#run("pbsnodes", ["-av"])).includes(`${host}[1]`));
  }

  async #makeScheduler(): Promise<void> {
    this.#say("\nA scheduler of its own for partition p1, through qmgr:");
    const lines = [
      "create sched multi_sched_1",
      "set sched multi_sched_1 partition = p1",
      "set sched multi_sched_1 scheduling = True",
      "create queue wq1 queue_type = execution, partition = p1, enabled = True, started = True",
      `set node ${this.#conf.mom_node_name}[1] partition = p1`,
      "set server job_history_enable = True",
    ];
    for (const line of lines) {
      this.#say(`  qmgr -c "${line}"`);
      const answer = await this.#run("qmgr", ["-c", line]);
      if (answer !== "") this.#say(answer);
    }
    const areUp = async (): Promise<boolean> => (await this.#schedStates()).filter((text) => !text.endsWith(" down")).length === 2;
    await until("both schedulers are up", areUp);
    this.#say("\nThe schedulers:");
    for (const text of await this.#schedStates()) this.#say(`  ${text}`);
  }

  async #schedStates(): Promise<readonly string[]> {
    const listed = await this.#run("qmgr", ["-c", "list sched @default state"]);
    return [...listed.matchAll(/^Sched (\S+)\n\s+state = (\S+)$/gm)].map(([, name, state]) => `${name} ${state}`);
  }

  async #reserve(): Promise<void> {
    this.#say("\nA reservation of one cpu an hour from now, which the scheduler of p1 confirms:");
    const start = new Date(Date.now() + 3_600_000).toISOString().replace(/[-:T]|\.\d+Z$/g, "");
    const args = ["-p", "p1", "-I", String(LIMIT_S), "-R", `${start.slice(0, 12)}.${start.slice(12)}`, "-D", "1800"];
    const resv = await runCommand(this.#conf, "pbs_rsub", args, this.#dir, { TZ: "UTC" });
    this.#say(`  pbs_rsub -p p1 -R ... -D 1800\n  ${resv.trim()}`);
    this.#say(await this.#run("pbs_rstat", []));
    if (!resv.includes("CONFIRMED") || resv.includes("UNCONFIRMED")) throw new AdminError(`the reservation was not confirmed: ${resv}`);
  }

  async #submit(): Promise<readonly DemoJob[]> {
    this.#say(`\n${JOBS_PER_QUEUE} jobs to each partition's queue, each counts primes:`);
    const work = this.#work;
    mkdirSync(work);
    writeFileSync(join(work, "primes.sh"), SCRIPT);
    const jobs: DemoJob[] = [];
    for (let at = 0; at < JOBS_PER_QUEUE; at++) {
      for (const queue of ["workq", "wq1"]) {
        const id = (await this.#run("qsub", ["-q", queue, "-v", `FROM=${jobs.length * 20_000}`, "primes.sh"], work)).trim();
        jobs.push({ id, queue });
      }
    }
    this.#say(await this.#run("qstat", []));
    return jobs;
  }

  get #work(): string {
    return join(this.#dir, "work");
  }

  async #detail(jobs: readonly DemoJob[]): Promise<Jobs> {
    const listed: { readonly Jobs: Jobs } = JSON.parse(await this.#run("qstat", ["-x", "-f", "-F", "json", ...jobs.map(({ id }) => id)]));
    return listed.Jobs;
  }

  /** Shows where the jobs ran. Throws if a job failed or ran outside of its partition. */
  #tellJobs(jobs: readonly DemoJob[], done: Jobs): void {
    this.#say("Where they ran, and what they printed:");
    const failed = jobs.filter((job) => !this.#tellJob(job, done[job.id]));
    if (failed.length > 0) throw new AdminError(`${failed.length} of ${jobs.length} jobs failed`);
    const second = `${this.#conf.mom_node_name}[1]`;
    const strayed = jobs.filter(({ id, queue }) => (done[id]?.exec_vnode ?? "").includes(second) !== (queue === "wq1"));
    if (strayed.length > 0) throw new AdminError(`jobs ran outside their partition: ${strayed.map(({ id }) => id).join(", ")}`);
  }

  /** Shows one job. Returns whether it succeeded. */
  #tellJob({ id, queue }: DemoJob, job: Jobs[string] | undefined): boolean {
    // The output may have other lines, which the profile of the login shell wrote.
    const lines = readFileSync(join(this.#work, `primes.o${Number.parseInt(id, 10)}`), "utf8").split("\n");
    const printed = lines.find((line) => /^\d+ primes from/.test(line));
    const { exec_vnode = "?", Exit_status } = job ?? {};
    this.#say(`  ${id.padEnd(14)} ${queue.padEnd(6)} ${exec_vnode.padEnd(26)} exit ${Exit_status ?? "?"}  ${printed ?? lines.join(" | ")}`);
    return Exit_status === 0 && printed !== undefined;
  }
}

type DemoJob = { readonly id: string; readonly queue: string };
type Jobs = { readonly [id: string]: { readonly job_state: string; readonly exec_vnode?: string; readonly Exit_status?: number } };

function runCommand(
  conf: Conf,
  command: string,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      programOf(conf, command),
      args,
      { env: { ...complexEnv(conf), ...more }, cwd, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new AdminError(`${command} ${args.join(" ")}: exit ${error.code ?? error.signal}\n${stdout}${stderr}`));
      },
    );
  });
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end_ms = performance.now() + LIMIT_S * 1000;
  while (!(await holds())) {
    if (performance.now() > end_ms) throw new AdminError(`not within ${LIMIT_S} s: ${what}`);
    await sleep(200);
  }
}
