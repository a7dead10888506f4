// What the server learns from jobs that ended well: how long jobs of one kind run, and what they use; and requests that follow from it, or grow after a failure.
//
// L1. Jobs of one kind have the same user, project and name, or the same user and `estgroup`. Keys are compared exactly: a group whose name begins like another's is another group.
// L2. Durations are learned from all jobs. Memory and time for requests are learned only from jobs on runners and from jobs with `override`, so that other sites pay nothing.
// L3. A request follows what was learned only if the job, or else a backend of its partition, has `override` (docs/runners.md). The amounts that the job asked for itself are
//     kept (own.asked), so that each new estimate starts from them.
// L4. After a failure for memory or time, the request grows (model/request/estimates.ts), unless override is `always`. It then no longer follows what is learned.
// L5. What is kept of a kind of jobs has a bounded size: SAMPLES_MAX uses, COMMANDS_MAX commands. The number of kinds is bounded in state/apply.ts.

import type { ResourceValues } from "#model/attribute.ts";
import { textOf } from "#model/attribute-reader.ts";
import { JOB_EXEC } from "#model/exit-status.ts";
import { decidedAmount, grownMemory, grownTime, learnedAmount, MEM_STEP_KB, type Override, walltimeFor } from "#model/request/estimates.ts";
import { alterRequest, isOldStyle, type ResolvedRequest, type ResourceChanges } from "#model/request/job-request.ts";
import { pairOf, readSelect, selectText } from "#model/request/select.ts";
import { compareResourceValues } from "#model/values/resource-value.ts";
import { kbText, sizeKb } from "#model/values/size.ts";
import { hashText } from "#support/prng.ts";
import type { Transaction } from "../engine/transaction.ts";
import { partitionOf, partitionOfBackend } from "../state/partitions.ts";
import type { Attrs, Job, JobAttrs, Queue, RunTime, ServerState } from "../state/state.ts";

/** Number of jobs up to which the average duration is a true mean; after that, a new duration counts for 1/WEIGHT_MAX (as in open-lmake). */
const WEIGHT_MAX = 100;
const SAMPLES_MAX = 100;
const COMMANDS_MAX = 50;

/** The key under which a job is learned from (L1). */
export function learningKey(attrs: JobAttrs): string {
  const group = textOf(attrs, "estgroup");
  return group === undefined ? `${attrs.euser}\n${attrs.project}\n${attrs.Job_Name}` : `${attrs.euser}\n\n${group}`;
}

/** A name for the command of a job without script; undefined: the job has a script. */
function commandOf(attrs: Attrs): string | undefined {
  const executable = textOf(attrs, "executable");
  return executable === undefined ? undefined : hashText(`${executable}\n${textOf(attrs, "argument_list") ?? ""}`).toString(36);
}

/** The expected duration of a job: that of the last success of the same command, else the average of its kind; undefined: nothing is known. In seconds. */
export function learnedTime({ run_times }: ServerState, { attrs }: Pick<Job, "attrs">): number | undefined {
  const known = run_times.get(learningKey(attrs));
  if (known === undefined) return undefined;
  const command = known.commands === undefined ? undefined : commandOf(attrs);
  return (command === undefined ? undefined : known.commands?.[command]) ?? known.seconds;
}

const keepLast = (uses: readonly number[] | undefined, use: number): readonly number[] => [...(uses ?? []), use].slice(-SAMPLES_MAX);

/** Called when a job has ended with Exit_status 0: learns from its duration and its use (L2). */
export function learnFrom(tx: Transaction, { attrs }: Job): void {
  const used = attrs["resources_used"];
  const ran_s = used?.["walltime"];
  if (typeof ran_s !== "number" || !Number.isFinite(ran_s)) return;
  const key = learningKey(attrs);
  const known = tx.state.run_times.get(key);
  const weight = Math.min((known?.weight ?? (known === undefined ? 0 : 1)) + 1, WEIGHT_MAX);
  const seconds = known === undefined ? ran_s : known.seconds + (ran_s - known.seconds) / weight;
  const command = commandOf(attrs);
  const samples = attrs["runner"] !== undefined || attrs["override"] !== undefined;
  const isSame = known !== undefined && weight === known.weight && Math.abs(seconds - known.seconds) < 0.01 * Math.max(1, known.seconds);
  // An average that has changed by less than 1 % is not written.
  if (isSame && !samples && (command === undefined || known.commands?.[command] === ran_s)) return;
  const value: RunTime = {
    seconds: Math.round(seconds * 100) / 100,
    weight,
    ...(known?.mem_kb === undefined ? {} : { mem_kb: known.mem_kb }),
    ...(known?.time_s === undefined ? {} : { time_s: known.time_s }),
    ...(command === undefined
      ? known?.commands === undefined
        ? {}
        : { commands: known.commands }
      : { commands: lastCommands(known, command, ran_s) }),
    ...(samples ? { time_s: keepLast(known?.time_s, ran_s), mem_kb: keepLast(known?.mem_kb, kbOf(used?.["mem"])) } : {}),
  };
  const moved = samples && amountsText(known) !== amountsText(value) ? ({ moved: true } as const) : {};
  tx.apply({ kind: "run-time-learned", key, value, ...moved });
}

function lastCommands(known: RunTime | undefined, command: string, ran_s: number): { readonly [hash: string]: number } {
  const { [command]: _before, ...others } = known?.commands ?? {};
  return Object.fromEntries([...Object.entries(others), [command, ran_s] as const].slice(-COMMANDS_MAX));
}

const kbOf = (size: unknown): number => (typeof size === "string" ? sizeKb(size) : 0);
const learnedMemory = ({ mem_kb }: RunTime): number | undefined =>
  learnedAmount(
    (mem_kb ?? []).filter((kb) => kb > 0),
    MEM_STEP_KB,
  );
const learnedWalltime = ({ time_s }: RunTime): number | undefined => {
  const learned_s = learnedAmount(time_s ?? [], 1);
  return learned_s === undefined ? undefined : walltimeFor(learned_s);
};
const amountsText = (known: RunTime | undefined): string =>
  known === undefined ? "" : `${learnedMemory(known)} ${learnedWalltime(known)}`;

/** How learned amounts count for a job in a queue (L3); undefined: not at all. */
export function overrideOf(state: ServerState, attrs: Attrs, queue: Queue): Override | undefined {
  const own = attrs["override"];
  if (own !== undefined) return own as Override;
  if (state.backends.size === 0) return undefined;
  const partition = partitionOf(queue);
  for (const backend of state.backends.values()) {
    const override = backend.attrs["override"];
    if (override !== undefined && partitionOfBackend(backend) === partition) return override as Override;
  }
  return undefined;
}

/** The amounts that a job asked for itself, before anything was learned (L3). */
export type Asked = { readonly mem_kb?: number; readonly walltime_s?: number };

const askedBy = ({ Resource_List: { mem, walltime } }: JobAttrs): Asked => ({
  ...(mem === undefined ? {} : { mem_kb: kbOf(mem) }),
  ...(typeof walltime === "number" ? { walltime_s: walltime } : {}),
});

/** The request of a waiting job after what was learned (L3); null: it stays as it is. before: what the job asked for itself, if its request was changed before. */
export function learnedRequest(
  state: ServerState,
  queue: Queue,
  attrs: JobAttrs,
  before?: Asked,
): (ResolvedRequest & { readonly asked: Asked }) | null {
  const override = overrideOf(state, attrs, queue);
  const known = override === undefined ? undefined : state.run_times.get(learningKey(attrs));
  if (override === undefined || known === undefined) return null;
  const asked = before ?? askedBy(attrs);
  const mem_kb = decidedAmount(override, asked.mem_kb, learnedMemory(known));
  const walltime_s = decidedAmount(override, asked.walltime_s, learnedWalltime(known));
  const { mem, walltime } = attrs.Resource_List;
  const changes: { [resource: string]: string | number } = {};
  if (mem_kb !== undefined && mem_kb !== (mem === undefined ? undefined : kbOf(mem)))
    changes["mem"] = withinMaximum(state, queue, "mem", kbText(mem_kb));
  if (walltime_s !== undefined && walltime_s !== walltime) changes["walltime"] = withinMaximum(state, queue, "walltime", walltime_s);
  const altered = alteredRequest(state, queue, attrs.Resource_List, changes);
  return altered === null ? null : { ...altered, asked };
}

/** The request of a job that failed because it needed more memory or time (L4); null: it stays as it is. what: for the log. */
export function grownRequest(state: ServerState, job: Job, exit_status: number): (ResolvedRequest & { readonly what: string }) | null {
  const queue = state.queues.get(job.attrs.queue);
  if (queue === undefined || overrideOf(state, job.attrs, queue) === "always") return null;
  const { Resource_List: list, resources_used: used } = job.attrs;
  const name = GROWING[exit_status];
  if (name === undefined || list[name] === undefined) return null;
  const ran_s = Number(used?.["walltime"] ?? 0);
  const value =
    name === "walltime"
      ? grownTime(Math.max(ran_s, Number(list[name])))
      : kbText(grownMemory(Math.max(kbOf(used?.[name]), kbOf(list[name]))));
  const altered = alteredRequest(state, queue, list, { [name]: withinMaximum(state, queue, name, value) });
  return altered === null ? null : { ...altered, what: `${name} grows from ${list[name]} to ${altered.Resource_List[name]}` };
}
const GROWING: { readonly [exit_status: number]: "mem" | "vmem" | "walltime" } = {
  [JOB_EXEC.KILL_MEM]: "mem",
  [JOB_EXEC.KILL_VMEM]: "vmem",
  [JOB_EXEC.KILL_WALLTIME]: "walltime",
};

/** The largest amount that the queue and the server allow, if the given one is larger. */
function withinMaximum(state: ServerState, queue: Queue, name: string, value: string | number): string | number {
  const def = state.resources.get(name);
  return [queue.attrs["resources_max"], state.server["resources_max"]].reduce<string | number>((least, limits) => {
    const limit = (limits as ResourceValues | undefined)?.[name];
    if (def === undefined || (typeof limit !== "string" && typeof limit !== "number")) return least;
    return (compareResourceValues(def, least, limit) ?? 0) > 0 ? limit : least;
  }, value);
}

/** A request with other amounts; null: nothing changes. Memory is changed only if it is known which chunk needs it: if there is one. */
function alteredRequest(
  state: ServerState,
  queue: Queue,
  list: JobAttrs["Resource_List"],
  changes: ResourceChanges,
): ResolvedRequest | null {
  const defaults = { queue: queue.attrs, server: state.server };
  const wanted: { [resource: string]: string | number } = {};
  for (const [name, value] of Object.entries(changes)) {
    if ((typeof value !== "string" && typeof value !== "number") || list[name] === value) continue;
    if (name === "walltime" || isOldStyle(list, defaults, state.resources)) wanted[name] = value;
    else {
      const select = selectWith(String(wanted["select"] ?? list["select"]), name, String(value));
      if (select !== null) wanted["select"] = select;
    }
  }
  if (Object.keys(wanted).length === 0) return null;
  return alterRequest(list, wanted, defaults, state.resources);
}

/** A select of one chunk with another amount; null: it has several. */
function selectWith(text: string, name: string, value: string): string | null {
  const select = readSelect(text);
  const [chunk] = select?.chunks ?? [];
  if (chunk === undefined || select?.chunks.length !== 1 || (chunk.count ?? 1) !== 1) return null;
  const pairs = [...chunk.pairs.filter((pair) => pair.name !== name), pairOf(name, value)];
  return selectText({ chunks: [{ ...chunk, pairs }] });
}
