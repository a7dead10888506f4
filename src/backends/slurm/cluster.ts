// Jobs of campaigns on Slurm, through its commands. The ends of jobs are read from squeue, which shows ended jobs for the time MinJobAge of slurm.conf (300 s if
// unset). If a job ended earlier than that and the grid has not seen its end, its ending is `lost`.

import { randomBytes } from "node:crypto";
import type { ClusterAdapter, ClusterSettings, JobBatch, JobRef, JobSighting } from "../contract/cluster.ts";
import { actingFor, chosenOptions, lostJob, secondSubmissions, submittedJobs } from "../contract/cluster-jobs.ts";
import { BackendError } from "../contract/fault.ts";
import { batchesOf } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import { ownerOf } from "../shell/users.ts";
import { readConfig, readSqueue, submittedId } from "./answer.ts";
import { type JobEnd, readCpus, readEnds } from "./cluster-answer.ts";
import { batchArgs, batchScript, endArgs, sinfoArgs } from "./cluster-request.ts";
import { slurmKind } from "./faults.ts";
import { scancelArgs, squeueArgs } from "./request.ts";

/** Largest number of jobs in one command line. */
const IDS_MAX = 1000;

export function openSlurmCluster(settings: ClusterSettings): ClusterAdapter {
  const slurm = new SlurmCluster(settings);
  return {
    type: "slurm",
    probe: () => slurm.probe(),
    submit: (batch) => slurm.submit(batch),
    release: (jobs) => slurm.release(jobs),
    list: () => slurm.list(),
    outcomes: (jobs) => slurm.outcomes(jobs),
    cancel: (jobs, { queued_only = false } = {}) => slurm.cancel(jobs, queued_only),
    capacity: () => slurm.capacity(),
    close: async () => undefined,
  };
}

class SlurmCluster {
  readonly #settings: ClusterSettings;
  readonly #partition: string | null;
  readonly #account: string | null;
  readonly #programs: Programs;
  readonly #timeout_ms: number;
  /** ends of jobs that squeue still shows */
  #ends: ReadonlyMap<string, JobEnd> = new Map();

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    const { conf, bin, partition, account, timeout_ms } = chosenOptions(settings, ["conf", "bin", "partition", "account"]);
    this.#partition = partition ?? null;
    this.#account = account ?? null;
    this.#timeout_ms = timeout_ms;
    this.#programs = programs({ bin: bin ?? null, env: conf === undefined ? {} : { SLURM_CONF: conf }, timeout_ms });
  }

  async probe(): ReturnType<ClusterAdapter["probe"]> {
    const { version, array_max } = readConfig(await this.#run("scontrol", ["show", "config"]));
    return { text: `slurm ${version}`, jobs_max: array_max };
  }

  async submit(batch: JobBatch): Promise<readonly JobSighting[]> {
    if (!batch.isFirst) {
      const { kept, surplus } = secondSubmissions(batch, await this.list());
      if (surplus.length > 0) await this.cancel(surplus, false);
      if (kept.length > 0) return kept;
    }
    const args = batchArgs(batch, this.#partition, this.#account);
    const stdout = await this.#run("sbatch", args, { owner: batch.owner, input: batchScript(batch) }, true);
    const id = submittedId(stdout);
    if (id === null)
      throw new BackendError({ kind: "transient", text: `sbatch printed no job id: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return submittedJobs(batch, this.#settings.user, (index) => `${id}_${index}`);
  }

  async release(jobs: readonly JobRef[]): Promise<void> {
    const arrays = [...new Map(jobs.map((job) => [job.id.split("_")[0] ?? job.id, job]))];
    for (const [user, own] of Map.groupBy(arrays, ([, job]) => job.user)) {
      const owner = actingFor(user, this.#settings.user, ownerOf);
      for (const [id] of own) {
        const ran = await this.#programs.run("scontrol", ["release", id], { owner });
        // A job that has ended need not be released. Slurm may not know it any more.
        if (ran.status === 0 || (!ran.timed_out && /Invalid job id|already completed|Job is no longer pending/i.test(ran.stderr))) continue;
        throw failureOf("scontrol", ran, { timeout_ms: this.#timeout_ms, kindOf: slurmKind });
      }
    }
  }

  async list(): Promise<readonly JobSighting[]> {
    const { user, grid, name } = this.#settings;
    const separator = `|${randomBytes(9).toString("base64url")}|`;
    const stdout = await this.#run("squeue", squeueArgs(separator, user, null));
    const all = readSqueue(stdout, separator, { complex: grid, backend: name, prefix: "" });
    const ended = all.filter(({ state }) => state === "ended").map(({ id }) => id);
    this.#ends = new Map([...this.#ends].filter(([id]) => ended.includes(id)));
    await this.#askEnds(ended.filter((id) => !this.#ends.has(id)));
    return all.map((each): JobSighting => {
      const { tag, index, id, user: owner, state, reason, host, fault } = each;
      const end = this.#ends.get(id) ?? { exit_code: null, ending: null, run_s: null };
      return { tag, index, id, user: owner, state, reason, host, fault, mem_kb: null, ...end };
    });
  }

  async #askEnds(ids: readonly string[]): Promise<void> {
    const found = new Map(this.#ends);
    for (const batch of batchesOf(ids, IDS_MAX)) {
      const ran = await this.#programs.run("squeue", endArgs(batch));
      if (ran.status !== 0 && !/Invalid job id/i.test(ran.stderr))
        throw failureOf("squeue", ran, { timeout_ms: this.#timeout_ms, kindOf: slurmKind });
      for (const [id, end] of readEnds(ran.stdout)) found.set(id, end);
    }
    this.#ends = found;
  }

  async outcomes(jobs: readonly JobRef[]): Promise<readonly JobSighting[]> {
    await this.#askEnds(jobs.map(({ id }) => id));
    return jobs.map((job) => ({ ...lostJob(job), ...(this.#ends.get(job.id) ?? {}) }));
  }

  async cancel(jobs: readonly JobRef[], queued_only: boolean): Promise<void> {
    for (const [user, own] of Map.groupBy(jobs, (job) => job.user)) {
      const owner = actingFor(user, this.#settings.user, ownerOf);
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ids = batch.map(({ id }) => id);
        await this.#run("scancel", scancelArgs(ids, queued_only, null), { owner });
      }
    }
  }

  async capacity(): ReturnType<ClusterAdapter["capacity"]> {
    return readCpus(await this.#run("sinfo", sinfoArgs(this.#partition)));
  }

  /** Runs a program and returns what it printed. isSubmission: a failure that is not a clear refusal is uncertain. */
  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw failureOf(name, ran, { timeout_ms: this.#timeout_ms, kindOf: slurmKind, isSubmission });
  }
}
