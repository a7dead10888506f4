// Jobs of campaigns on a PBS complex (Partita's or OpenPBS's), through its commands. The complex must keep a history (job_history_enable), because the exit codes
// of ended jobs are read from it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#support/caught.ts";
import { parseConfText } from "#support/conf.ts";
import type { ClusterAdapter, ClusterSettings, JobBatch, JobRef, JobSighting } from "../contract/cluster.ts";
import { actingFor, chosenOptions, lostJob, secondSubmissions, submittedJobs } from "../contract/cluster-jobs.ts";
import { BackendError } from "../contract/fault.ts";
import { batchesOf } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import { ownerOf } from "../shell/users.ts";
import { qdelFailures, runnerId, submittedId } from "./answer.ts";
import { queueOfPartition, readCapacity, readJobs } from "./cluster-answer.ts";
import { batchArgs, batchScript, outcomeArgs } from "./cluster-request.ts";
import { pbsKind } from "./faults.ts";

/** Largest number of jobs in one command line. */
const IDS_MAX = 400;
/** Largest number of jobs in one array. Servers allow this number if max_array_size is not set. */
const ARRAY_MAX = 10_000;
/** Time after which the queue of a partition is asked for again. */
const QUEUE_MS = 60_000;

export function openPbsCluster(settings: ClusterSettings): ClusterAdapter {
  const pbs = new PbsCluster(settings);
  return {
    type: settings.type,
    probe: () => pbs.probe(),
    submit: (batch) => pbs.submit(batch),
    release: (jobs) => pbs.release(jobs),
    list: () => pbs.list(),
    outcomes: (jobs) => pbs.outcomes(jobs),
    cancel: (jobs, { queued_only = false } = {}) => (queued_only ? pbs.cancelQueued(jobs) : pbs.cancel(jobs)),
    capacity: () => pbs.capacity(),
    close: async () => undefined,
  };
}

class PbsCluster {
  readonly #settings: ClusterSettings;
  readonly #partition: string | null;
  readonly #queue: string | null;
  readonly #programs: Programs;
  readonly #timeout_ms: number;
  #found: { readonly queue: string; readonly until_ms: number } | null = null;

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    const { conf, bin, queue, partition, timeout_ms } = chosenOptions(settings, ["conf", "bin", "queue", "partition"]);
    this.#partition = partition ?? null;
    this.#queue = queue ?? null;
    this.#timeout_ms = timeout_ms;
    const env = conf === undefined ? {} : { PBS_CONF_FILE: conf };
    this.#programs = programs({ bin: bin ?? (conf === undefined ? null : binOf(conf)), env, timeout_ms });
  }

  async probe(): ReturnType<ClusterAdapter["probe"]> {
    const server = await this.#run("qstat", ["-B", "-f"]);
    if (!/job_history_enable = True/i.test(server))
      throw new BackendError({
        kind: "configuration",
        text: "the complex keeps no history, so exit codes of ended jobs cannot be read; consider there: qmgr -c 'set server job_history_enable=True'",
      });
    const version = /pbs_version = (\S+)/.exec(server)?.[1] ?? "unknown version";
    const jobs_max = Number(/max_array_size = (\d+)/.exec(server)?.[1] ?? ARRAY_MAX);
    await this.#queueFor(null);
    return { text: `pbs ${version}`, jobs_max };
  }

  async submit(batch: JobBatch): Promise<readonly JobSighting[]> {
    if (!batch.isFirst) {
      const there = await this.#jobsOf(batch);
      if (there.length > 0) return there;
    }
    const args = batchArgs(batch, await this.#queueFor(batch.queue));
    const stdout = await this.#run("qsub", args, { owner: batch.owner, input: batchScript(batch) }, true);
    const id = submittedId(stdout);
    if (id === null)
      throw new BackendError({ kind: "transient", text: `qsub printed no job id: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return submittedJobs(batch, this.#settings.user, (index) => runnerId(id, index));
  }

  /** Returns the jobs, live or ended, of a batch that may have been submitted before. Deletes the jobs of a second submission, which are still held. */
  async #jobsOf(batch: JobBatch): Promise<readonly JobSighting[]> {
    const all = await this.#read(["-x", "-t", "-f", "-F", "json"]);
    const { kept, surplus } = secondSubmissions(batch, all);
    if (surplus.length > 0) await this.cancel(surplus);
    return kept;
  }

  /** Ends jobs that wait. The jobs are held while their states are read, so that no job can start between the reading and its deletion. */
  async cancelQueued(jobs: readonly JobRef[]): Promise<void> {
    await this.#switch("qhold", jobs);
    const waiting = new Set((await this.list()).filter(({ state }) => state === "queued").map(({ id }) => id));
    await this.cancel(jobs.filter(({ id }) => waiting.has(id)));
    await this.release(jobs);
  }

  release(jobs: readonly JobRef[]): Promise<void> {
    return this.#switch("qrls", jobs);
  }

  /** Calls qhold or qrls. An array is held and released as a whole. */
  async #switch(program: "qhold" | "qrls", jobs: readonly JobRef[]): Promise<void> {
    const wholes = [...new Map(jobs.map((job) => [job.id.replace(/\[\d+\]/, "[]"), job] as const))];
    for (const [user, own] of Map.groupBy(wholes, ([, job]) => job.user)) {
      const owner = actingFor(user, this.#settings.user, ownerOf);
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ids = batch.map(([id]) => id);
        const ran = await this.#programs.run(program, ids, { owner });
        if (ran.status === 0 || (!ran.timed_out && qdelFailures(ran.stderr) === "")) continue;
        throw failureOf(program, ran, { timeout_ms: this.#timeout_ms, kindOf: pbsKind });
      }
    }
  }

  async list(): Promise<readonly JobSighting[]> {
    return this.#read(["-t", "-f", "-F", "json"]);
  }

  async #read(args: readonly string[]): Promise<readonly JobSighting[]> {
    const { grid, name, user } = this.#settings;
    const all = readJobs(await this.#run("qstat", args), { complex: grid, backend: name });
    return user === null ? all : all.filter((each) => each.user === user);
  }

  async outcomes(jobs: readonly JobRef[]): Promise<readonly JobSighting[]> {
    const { grid, name } = this.#settings;
    const found: JobSighting[] = [];
    for (const batch of batchesOf(jobs, IDS_MAX)) {
      const ran = await this.#programs.run("qstat", outcomeArgs(batch.map(({ id }) => id)));
      // If one of the jobs is unknown, qstat shows the others and ends with a status other than 0.
      const is_partial = !ran.timed_out && ran.status !== null && /Unknown Job Id/i.test(ran.stderr) && qdelFailures(ran.stderr) === "";
      if (ran.status !== 0 && !is_partial) throw failureOf("qstat", ran, { timeout_ms: this.#timeout_ms, kindOf: pbsKind });
      const seen = new Map(readJobs(ran.stdout, { complex: grid, backend: name }).map((each) => [each.id, each]));
      found.push(...batch.map((ref) => seen.get(ref.id) ?? lostJob(ref)));
    }
    return found;
  }

  async cancel(jobs: readonly JobRef[]): Promise<void> {
    for (const [user, own] of Map.groupBy(jobs, (job) => job.user)) {
      const owner = actingFor(user, this.#settings.user, ownerOf);
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ran = await this.#programs.run("qdel", ["-W", "suppress_email=-1", ...batch.map(({ id }) => id)], { owner });
        if (ran.status === 0 || (!ran.timed_out && qdelFailures(ran.stderr) === "")) continue;
        throw failureOf("qdel", ran, { timeout_ms: this.#timeout_ms, kindOf: pbsKind });
      }
    }
  }

  async capacity(): ReturnType<ClusterAdapter["capacity"]> {
    return readCapacity(await this.#run("pbsnodes", ["-a", "-v", "-F", "json"]), this.#partition);
  }

  /** Returns the queue for a batch: the queue that the campaign names, else the queue of the cluster, else a queue of its partition. null: the complex's default queue. */
  async #queueFor(wanted: string | null): Promise<string | null> {
    if (wanted !== null || this.#queue !== null || this.#partition === null) return wanted ?? this.#queue;
    if (this.#found !== null && performance.now() < this.#found.until_ms) return this.#found.queue;
    const queue = queueOfPartition(await this.#run("qstat", ["-Q", "-f", "-F", "json"]), this.#partition);
    if (queue === null)
      throw new BackendError({ kind: "configuration", text: `partition ${this.#partition} has no queue that takes and starts jobs` });
    this.#found = { queue, until_ms: performance.now() + QUEUE_MS };
    return queue;
  }

  /** Runs a program and returns what it printed. isSubmission: a failure that is not a clear refusal is uncertain. */
  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw failureOf(name, ran, { timeout_ms: this.#timeout_ms, kindOf: pbsKind, isSubmission });
  }
}

/** Returns the directory of the programs of a complex, from its pbs.conf. */
function binOf(conf: string): string {
  try {
    const exec = parseConfText(readFileSync(conf, "utf8"))["PBS_EXEC"];
    if (exec !== undefined) return join(exec, "bin");
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `${conf} cannot be read: ${messageOf(error)}` });
  }
  throw new BackendError({ kind: "configuration", text: `${conf} has no PBS_EXEC` });
}
