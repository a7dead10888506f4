// `partita demo`: a throw-away complex in user mode, configured through qmgr with a second scheduler for a partition of its own, real jobs in both
// partitions, and what came of them. Everything shown is what the commands printed.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Conf } from "#support/conf.ts";
import { AdminError, complexConf } from "./complex-home.ts";
import { complexEnv, daemonPid, killDaemons, programOf, startDaemons, stopDaemons, waitUntilUp } from "./daemons.ts";
import { init, vnodeDefinition } from "./init.ts";
import { atReaderGone } from "./reader-gone.ts";

const JOBS_PER_QUEUE = 4;
const LIMIT_S = 150;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A piece of real work: the prime numbers below a bound. */
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
    // Daemons that are just being started are waited for: nobody would find them later.
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
    await show(conf, dir, say);
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
    // What failed because the complex was taken away is no fault of its own; whoever took it away ends the process.
    if (interrupted) return await new Promise<never>(() => undefined);
    throw error;
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  }
}

async function show(conf: Conf, dir: string, say: (text: string) => void): Promise<void> {
  const run = (command: string, args: readonly string[], cwd = dir): Promise<string> => runCommand(conf, command, args, cwd);
  const host = conf.mom_node_name;

  say(`\nTwo vnodes on this host, ${host}[0] and ${host}[1]:`);
  const definition = join(dir, "vnodes");
  const cpus = Math.max(2, availableParallelism());
  writeFileSync(definition, vnodeDefinition(host, 2, { cpus, mem_kb: null }));
  await run("pbs_mom", ["-s", "insert", "demo", definition]);
  const mom = daemonPid(conf, "mom");
  if (mom !== null) process.kill(mom, "SIGHUP");
  await until("the vnodes are known", async () => (await run("pbsnodes", ["-av"])).includes(`${host}[1]`));

  say("\nA scheduler of its own for partition p1, through qmgr:");
  const lines = [
    "create sched multi_sched_1",
    "set sched multi_sched_1 partition = p1",
    "set sched multi_sched_1 scheduling = True",
    "create queue wq1 queue_type = execution, partition = p1, enabled = True, started = True",
    `set node ${host}[1] partition = p1`,
    "set server job_history_enable = True",
  ];
  for (const line of lines) {
    say(`  qmgr -c "${line}"`);
    const answer = await run("qmgr", ["-c", line]);
    if (answer !== "") say(answer);
  }
  const states = async (): Promise<string[]> =>
    [...(await run("qmgr", ["-c", "list sched @default state"])).matchAll(/^Sched (\S+)\n\s+state = (\S+)$/gm)].map(
      (found) => `${found[1]} ${found[2]}`,
    );
  await until("both schedulers are up", async () => (await states()).filter((text) => !text.endsWith(" down")).length === 2);
  say("\nThe schedulers:");
  for (const text of await states()) say(`  ${text}`);

  say("\nA reservation of one cpu an hour from now, which the scheduler of p1 confirms:");
  const start = new Date(Date.now() + 3_600_000).toISOString().replace(/[-:T]|\.\d+Z$/g, "");
  const resv = await runCommand(
    conf,
    "pbs_rsub",
    ["-p", "p1", "-I", String(LIMIT_S), "-R", `${start.slice(0, 12)}.${start.slice(12)}`, "-D", "1800"],
    dir,
    {
      TZ: "UTC",
    },
  );
  say(`  pbs_rsub -p p1 -R ... -D 1800\n  ${resv.trim()}`);
  say(await run("pbs_rstat", []));
  if (!resv.includes("CONFIRMED") || resv.includes("UNCONFIRMED")) throw new AdminError(`the reservation was not confirmed: ${resv}`);

  say(`\n${JOBS_PER_QUEUE} jobs to each partition's queue, each counts primes:`);
  const work = join(dir, "work");
  mkdirSync(work);
  writeFileSync(join(work, "primes.sh"), SCRIPT);
  const jobs: { readonly id: string; readonly queue: string }[] = [];
  for (let at = 0; at < JOBS_PER_QUEUE; at++) {
    for (const queue of ["workq", "wq1"]) {
      const id = (await run("qsub", ["-q", queue, "-v", `FROM=${jobs.length * 20_000}`, "primes.sh"], work)).trim();
      jobs.push({ id, queue });
    }
  }
  say(await run("qstat", []));
  const detail = async (): Promise<Jobs> =>
    (JSON.parse(await run("qstat", ["-x", "-f", "-F", "json", ...jobs.map(({ id }) => id)])) as { readonly Jobs: Jobs }).Jobs;
  await until("all jobs have finished", async () => Object.values(await detail()).every((job) => job.job_state === "F"));

  say("Where they ran, and what they printed:");
  const done = await detail();
  let failed = 0;
  for (const { id, queue } of jobs) {
    const job = done[id];
    // A login shell's profile may have something to say, too.
    const lines = readFileSync(join(work, `primes.o${Number.parseInt(id, 10)}`), "utf8").split("\n");
    const output = lines.find((line) => /^\d+ primes from/.test(line)) ?? lines.join(" | ");
    if (job?.Exit_status !== 0 || !/^\d+ primes from/.test(output)) failed++;
    say(`  ${id.padEnd(14)} ${queue.padEnd(6)} ${(job?.exec_vnode ?? "?").padEnd(26)} exit ${job?.Exit_status ?? "?"}  ${output}`);
  }
  if (failed > 0) throw new AdminError(`${failed} of ${jobs.length} jobs failed`);
  const strayed = jobs.filter(({ id, queue }) => (done[id]?.exec_vnode ?? "").includes(`${host}[1]`) !== (queue === "wq1"));
  if (strayed.length > 0) throw new AdminError(`jobs ran outside their partition: ${strayed.map(({ id }) => id).join(", ")}`);
}

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
