// Jobs of campaigns on OAR, through its REST API (option url) or its commands.
//
// I1. A batch is an array of held jobs. If the batch may have been submitted before, the adapter first searches for live jobs with its tag. No such job can have started,
//     because jobs are released only after their ids are recorded. If two arrays have the same tag, the array that was accepted first is kept.
// I2. The index of a job is the last word of its command (request.ts O2). It does not follow from the id.

import type { Owner } from "../contract/backend.ts";
import type { ClusterAdapter, ClusterSettings, JobBatch, JobRef, JobSighting } from "../contract/cluster.ts";
import { actingFor, submittedJobs } from "../contract/cluster-jobs.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { isTagOf } from "../contract/tag.ts";
import { ownerOf } from "../shell/users.ts";
import { lostJob, type OarJob, sightingOf, submittedIds } from "./answer.ts";
import { oarCommands } from "./commands.ts";
import { oarKind } from "./faults.ts";
import type { OarAction, OarLink, Place } from "./link.ts";
import { type OarOptions, oarOptions } from "./options.ts";
import { ARRAY_MAX, arrayOf, WAITING_STATES } from "./request.ts";
import { oarRest } from "./rest.ts";

/** From this number on, jobs are acted on by whole arrays where possible. */
const MANY = 4;
const HOLD_MS_MAX = 15_000;
const LOOK_MS = 1000;

export function openOarCluster(settings: ClusterSettings): ClusterAdapter {
  const options = oarOptions(settings);
  const of = { grid: settings.grid, cluster: settings.name, user: settings.user };
  const oar = new OarCluster(
    settings,
    options,
    options.url === null ? oarCommands(options, of) : oarRest({ ...options, url: options.url }, of),
  );
  return {
    type: "oar",
    probe: () => oar.probe(),
    submit: (batch) => oar.submit(batch),
    release: (jobs) => oar.act("resume", jobs),
    list: () => oar.list(),
    outcomes: (jobs) => oar.outcomes(jobs),
    cancel: (jobs, { queued_only = false }: { readonly queued_only?: boolean } = {}) => oar.cancel(jobs, queued_only),
    capacity: () => oar.capacity(),
    close: async () => undefined,
  };
}

class OarCluster {
  readonly #settings: ClusterSettings;
  readonly #options: OarOptions;
  readonly #link: OarLink;
  /** the places of live jobs that were submitted or listed before. They are kept because the API takes long to describe jobs */
  #known: ReadonlyMap<string, Place> = new Map();

  constructor(settings: ClusterSettings, options: OarOptions, link: OarLink) {
    this.#settings = settings;
    this.#options = options;
    this.#link = link;
  }

  async probe(): ReturnType<ClusterAdapter["probe"]> {
    return { text: `oar ${await this.#link.probe()}`, jobs_max: ARRAY_MAX };
  }

  async submit(batch: JobBatch): Promise<readonly JobSighting[]> {
    if (!batch.isFirst) {
      const there = await this.#jobsOf(batch);
      if (there.length > 0) return there;
    }
    const printed = await this.#link.submit(arrayOf(batch, this.#options.queue), batch.owner);
    const ids = submittedIds(printed);
    if (ids.length === 0)
      throw new BackendError(
        { kind: oarKind(printed), text: cleanText(`oarsub printed no id: ${printed.slice(-300)}`) },
        { uncertain: true },
      );
    if (ids.length !== batch.jobs.length)
      throw new BackendError(
        { kind: "transient", text: `oarsub printed ${ids.length} ids for ${batch.jobs.length} jobs` },
        { uncertain: true },
      );
    const array_id = Number(ids[0]);
    this.#known = new Map([...this.#known, ...ids.map((id, index) => [id, { index, array_id }] as const)]);
    return submittedJobs(batch, this.#settings.user, (index) => ids[index] ?? "");
  }

  /** Returns the live jobs of a batch that may have been submitted before (I1). Deletes further arrays with the same tag. */
  async #jobsOf({ tag, owner }: JobBatch): Promise<readonly JobSighting[]> {
    const all = (await this.#live()).filter((job) => job.name === tag && (owner === null || job.owner === owner.name));
    const first = Math.min(...all.map(({ array_id, id }) => array_id ?? Number(id)));
    const isKept = (job: OarJob): boolean => (job.array_id ?? Number(job.id)) === first;
    const surplus = all.filter((job) => !isKept(job) && WAITING_STATES.has(job.state)).map(({ id }) => id);
    if (surplus.length > 0) await this.#link.act("delete", surplus, owner);
    return all.filter(isKept).flatMap(sightingsOf);
  }

  async list(): Promise<readonly JobSighting[]> {
    const of = { complex: this.#settings.grid, backend: this.#settings.name };
    const all = await this.#live();
    return all.filter(({ name, owner }) => isTagOf(name, of) && this.#isOwn(owner)).flatMap(sightingsOf);
  }

  /** Returns the live jobs with their places, and remembers the places. */
  async #live(): Promise<readonly OarJob[]> {
    const known = this.#known;
    const all = (await this.#link.live(known)).map((job) => ({ ...job, ...(job.index === null ? known.get(job.id) : undefined) }));
    this.#known = new Map(
      all.flatMap(({ id, index, array_id }) => (index === null || array_id === null ? [] : [[id, { index, array_id }]])),
    );
    return all;
  }

  #isOwn(owner: string): boolean {
    return this.#settings.user === null || this.#settings.user === owner;
  }

  async outcomes(jobs: readonly JobRef[]): Promise<readonly JobSighting[]> {
    const seen = new Map((await this.#link.jobs(jobs.map(({ id }) => id))).map((job) => [job.id, job]));
    return jobs.map((ref) => {
      const job = seen.get(ref.id);
      return job === undefined || job.name !== ref.tag ? lostJob(ref) : sightingOf(job, ref.index);
    });
  }

  async act(action: OarAction, jobs: readonly JobRef[]): Promise<void> {
    for (const [user, own] of Map.groupBy(jobs, (job) => job.user)) {
      const owner = actingFor(user, this.#settings.user, ownerOf);
      const rest = own.length > MANY ? await this.#actOnArrays(action, own, owner) : own;
      if (rest.length > 0)
        await this.#link.act(
          action,
          rest.map(({ id }) => id),
          owner,
        );
    }
  }

  /**
   * queued_only: a job that has started continues. The waiting jobs are held first, so that none starts between the look and the deletion. OAR holds a job some seconds
   * after it was asked to; jobs that wait without being held after HOLD_MS_MAX stay, and are cancelled when the caller asks again.
   */
  async cancel(jobs: readonly JobRef[], queued_only: boolean): Promise<void> {
    if (!queued_only) return this.act("delete", jobs);
    await this.act("hold", jobs);
    const until_ms = performance.now() + HOLD_MS_MAX;
    const ids = jobs.map(({ id }) => id);
    let seen = await this.#link.jobs(ids);
    while (seen.some(({ state }) => WAITING_STATES.has(state) && state !== "Hold") && performance.now() < until_ms) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      seen = await this.#link.jobs(ids);
    }
    const held = new Set(seen.filter(({ state }) => state === "Hold").map(({ id }) => id));
    await this.act(
      "delete",
      jobs.filter(({ id }) => held.has(id)),
    );
  }

  /** Acts on the arrays of which all live jobs are among these. Returns the jobs of other arrays. */
  async #actOnArrays(action: OarAction, jobs: readonly JobRef[], owner: Owner | null): Promise<readonly JobRef[]> {
    const wanted = new Set(jobs.map(({ id }) => id));
    const live = (await this.#link.live(new Map())).filter(
      ({ array_id, owner: user }) => array_id !== null && (owner === null || user === owner.name),
    );
    const alive = new Set(live.map(({ id }) => id));
    const done = new Set<string>();
    for (const [array_id, own] of Map.groupBy(live, (job) => job.array_id ?? 0)) {
      if (own.length < MANY || !own.every(({ id }) => wanted.has(id))) continue;
      await this.#link.actOnArray(action, array_id, owner);
      for (const { id } of own) done.add(id);
    }
    return jobs.filter(({ id }) => !done.has(id) && alive.has(id));
  }

  capacity(): ReturnType<ClusterAdapter["capacity"]> {
    return this.#link.capacity();
  }
}

const sightingsOf = (job: OarJob): JobSighting[] => (job.index === null ? [] : [sightingOf(job, job.index)]);
