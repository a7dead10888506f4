// Checks the processes of jobs on their hosts (K3, K4, K8, K9 of checks.ts).

import { positionOf } from "#model/array-indices.ts";
import { isDependent } from "#model/depend.ts";
import { arrayIdOf, jobIdText, parseJobId, subjobIndex } from "#model/job-id.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { placeOf } from "#model/request/place.ts";
import { isWithMom } from "#server/state/job-phase.ts";
import { hostOf, isExclusive } from "#server/state/placement.ts";
import type { Job, JobAttrs, ServerState } from "#server/state/state.ts";
import { fail } from "./violation.ts";

/** The process of a job on a host. run_count: which start of the job it belongs to. */
export type SeatedProcess = {
  readonly job: string;
  readonly run_count: number;
  readonly host: string;
  /** true: the process is stopped and uses no cpu */
  readonly stopped: boolean;
};

/** A process, and the attributes of its job on its mom. They may change, because a job may release vnodes while it runs. */
type Seat = { readonly process: SeatedProcess; attrs(): JobAttrs };
/** What processes use of a vnode. by_hand: an operator placed one of them. */
type Use = { ncpus: number; readonly seats: Seat[]; by_hand: boolean };

export class Seats {
  readonly #seats = new Set<Seat>();
  /** `job/run_count` of the starts that the server has given up without a report of the end */
  readonly #given_up = new Set<string>();
  readonly #forced = new Set<string>();
  readonly #let_go = new Set<string>();
  /** `job/run_count/host` of every process so far */
  readonly #been = new Set<string>();

  /** Number of running processes of jobs, including those that the server has given up. */
  get size(): number {
    return this.#seats.size;
  }

  /** Called when a request ends a job without a report of its mom. */
  force(id: string): void {
    this.#forced.add(id);
  }

  /** Called when somebody has allowed the job to run although it still waits for other jobs (K8). */
  letGo(id: string): void {
    this.#let_go.add(id);
  }

  /** Called when the server gives up the present start of the job. Its earlier starts are then also given up. */
  giveUp(id: string, job: Job | undefined): void {
    const run = job?.attrs.run_count;
    for (const { process } of this.#seats)
      if (process.job === id && (run === undefined || process.run_count <= run)) this.#given_up.add(`${id}/${process.run_count}`);
    // The mom-start may still be on its way to the mom, so that there is no process yet.
    if (run !== undefined) this.#given_up.add(`${id}/${run}`);
  }

  /** Adds and checks a new process. attrsOnMom: the mom's attributes of the job. state: the state of the server; null: no server is up. */
  add(process: SeatedProcess, attrsOnMom: () => JobAttrs, state: ServerState | null): void {
    const attrs = attrsOnMom();
    const { job, run_count, host } = process;
    if (isDependent(attrs["depend"]) && !this.#let_go.has(job)) fail(`K8 ${job} runs and waits for ${attrs["depend"]}`);
    for (const seat of this.#seats) if (seat.process.job === job) this.#checkOther(process, attrs, seat.process);
    this.#seats.add({ process, attrs: attrsOnMom });
    this.#been.add(`${job}/${run_count}/${host}`);
    const [mother, ...sisters] = hostsOf(attrs.exec_host ?? "");
    for (const sister of host === mother ? sisters : [])
      if (!this.#been.has(`${job}/${run_count}/${sister}`))
        fail(`K9 ${job}: run ${run_count} starts on ${mother} before ${sister} has joined`);
    if (state !== null) this.#checkVnodes(process, state);
  }

  remove(process: SeatedProcess): void {
    for (const seat of this.#seats) if (seat.process === process) this.#seats.delete(seat);
  }

  /** Checks K3 for a new process. other: a living process of the same job. */
  #checkOther(process: SeatedProcess, attrs: JobAttrs, other: SeatedProcess): void {
    const { job, run_count, host } = process;
    if (other.run_count === run_count && other.host !== host && hostsOf(attrs.exec_host ?? "").includes(host)) return;
    const begins = `K3 ${job}: run ${run_count} starts on ${host} while run ${other.run_count}`;
    // The start of a run that was given up may reach its mom late. The order to end it follows on the same connection.
    if (other.run_count === run_count || (other.run_count > run_count && !this.#isGivenUp(process))) fail(`${begins} is on ${other.host}`);
    if (other.run_count < run_count && !this.#isGivenUp(other)) fail(`${begins} still lives on ${other.host}`);
  }

  #isGivenUp({ job, run_count }: SeatedProcess): boolean {
    if (this.#given_up.has(`${job}/${run_count}`) || this.#forced.has(job)) return true;
    return [...this.#forced].some((id) => isNamedBy(job, id));
  }

  /** Checks K4: compares what the processes on the vnodes of a new process use with the resources of these vnodes. */
  #checkVnodes(process: SeatedProcess, state: ServerState): void {
    for (const [name, use] of this.#uses(state)) {
      const vnode = state.vnodes.get(name);
      if (vnode === undefined || use.by_hand || !use.seats.some((seat) => seat.process === process)) continue;
      const available = (vnode.attrs["resources_available"] as { ncpus?: number } | undefined)?.ncpus;
      const jobs = use.seats.map((seat) => seat.process.job).join(" ");
      if (available !== undefined && use.ncpus > available)
        fail(`K4 vnode ${name} has ${available} cpus, ${use.ncpus} are used by ${jobs}`);
      const alone = use.seats.filter((seat) => isExclusive(vnode, placeOf(seat.attrs().Resource_List["place"])));
      if (alone.length > 0 && use.seats.length > 1)
        fail(`K4 ${alone.map((seat) => seat.process.job)} wants vnode ${name} alone, there are ${jobs}`);
    }
  }

  /** Returns what processes use of each vnode. */
  #uses(state: ServerState): ReadonlyMap<string, Use> {
    const uses = new Map<string, Use>();
    for (const seat of this.#seats) {
      const job = state.jobs.get(seat.process.job);
      if (job === undefined || !isCounted(seat.process, job)) continue;
      for (const { vnode, pairs } of parseExecVnode(seat.attrs().exec_vnode ?? "").flat()) {
        const on = state.vnodes.get(vnode);
        if (on !== undefined && hostOf(on) !== seat.process.host) continue;
        const use = uses.get(vnode) ?? { ncpus: 0, seats: [], by_hand: false };
        use.ncpus += Number(pairs.find((pair) => pair.name === "ncpus")?.text ?? 0);
        if (!use.seats.some((other) => other.process === seat.process)) use.seats.push(seat);
        use.by_hand ||= job.own.placed_by_hand === true;
        uses.set(vnode, use);
      }
    }
    return uses;
  }
}

/** Returns whether the server counts the vnodes of a process as used by the same start of the job. */
function isCounted({ run_count, stopped }: SeatedProcess, job: Job): boolean {
  return isWithMom(job) && job.attrs.run_count === run_count && job.attrs.job_state !== "S" && !stopped;
}

/** Returns whether the id of an array or of a range of subjobs includes the subjob. */
function isNamedBy(subjob: string, id: string): boolean {
  const parsed = parseJobId(id);
  if (arrayIdOf(subjob) === null || parsed === null || jobIdText({ ...parsed, kind: "array" }) !== arrayIdOf(subjob)) return false;
  return parsed.kind === "array" || (parsed.kind === "range" && parsed.ranges.some((range) => positionOf(range, subjobIndex(subjob)) >= 0));
}
