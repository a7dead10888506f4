// Small universes for tests, written as text.
//   nodes    `a ncpus=4 mem=8gb; b ncpus=4 host=h1 :offline :queue=q1 :sharing=force_excl`      (host: several vnodes on one host)
//   jobs     `1 ncpus=2; 2 2:ncpus=1 scatter @q2 u=bob g=staff p=proj prio=5 walltime=60 lic=1; 9 R (a:ncpus=2); 10 in=R1 ncpus=1`
//            `ptime=5` preempted then; `norerun`, `nocheckpoint`; `used=walltime:60`
//            an array: `5[] sub=1-5,7%2/1 ncpus=1` (indices that wait, max_run_subjobs, subjobs that run)
//   resvs    `R1 RN ncpus=6 100-200=(a:ncpus=6)` runs; `S2 2:ncpus=1 scatter 100-200=(a:ncpus=1)+(b:ncpus=1) 300-400=(...)`; asked for: `R3 ncpus=4 ?100-200`,
//            `R4 ncpus=4 100-200=(a:ncpus=4) alter ?100-300`, `R5 reconfirm ...`, `R6 asap=60 ncpus=2`, `part=p1`

import { parseResourceGroup } from "#model/resource-group.ts";
import { sizeKb } from "#model/values/size.ts";
import type { ResvAsk, SchedJob, SchedNode, SchedQueue, SchedResource, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleInput, CycleResult } from "#sched/cycle/result.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { MODULES_DEFAULT } from "#sched/modules/index.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { logText } from "#sched/shapes/reasons.ts";
import type { Universe } from "#sched/shapes/universe.ts";

export type World = {
  nodes: string;
  jobs: string;
  resvs?: string;
  queues?: readonly SchedQueue[];
  server?: Record<string, unknown>;
  assigned?: Record<string, number>;
  resources?: readonly SchedResource[];
  sched?: Record<string, unknown>;
  /** the scheduler's; default: default */
  name?: string;
};

export const QUEUE: SchedQueue = { name: "workq", attrs: { queue_type: "Execution", started: true, enabled: true } };

export function queue(name: string, attrs: Record<string, unknown> = {}): SchedQueue {
  return { name, attrs: { ...QUEUE.attrs, ...attrs } };
}

export function snapshotOf(world: World): Snapshot {
  const jobs = entries(world.jobs).map((text, at) => jobOf(text, at + 1));
  const resvs = entries(world.resvs ?? "").map((text, at) => resvOf(text, at));
  const nodes = entries(world.nodes).map((text, at) => nodeOf(text, at + 1, jobs, resvs));
  return {
    revision: 1,
    server: { name: "svr", attrs: world.server ?? {}, assigned: world.assigned ?? {} },
    sched: { name: world.name ?? "default", attrs: { log_events: 2047, ...world.sched } },
    resources: world.resources ?? [],
    queues: world.queues ?? [QUEUE],
    nodes,
    jobs,
    resvs,
  };
}

export function book(policy: Partial<Policy> = {}, more: Partial<PolicyBook> = {}): PolicyBook {
  const all: Policy = { ...POLICY_DEFAULT, ...policy };
  return {
    prime: all,
    non_prime: all,
    holidays: ALWAYS_PRIME,
    dedicated: [],
    fairshare: parseResourceGroup("", 0).tree,
    modules: MODULES_DEFAULT,
    local: UTC,
    ...more,
  };
}

export function universeOf(world: World, policies: PolicyBook = book()): Universe {
  return createUniverse(snapshotOf(world), { policy: policies.prime, times_matter: policies.dedicated.length > 0 });
}

export function run(
  world: World,
  policy: Partial<Policy> = {},
  input: Partial<CycleInput> = {},
  more: Partial<PolicyBook> = {},
): CycleResult {
  const policies = book(policy, more);
  return cycle(universeOf(world, policies), policies, { now_s: 1_000_000, command: SCHED_COMMAND.TIME, ...input });
}

/** `1=(a:ncpus=2)` for a start, `2: Not Running: ...` for a comment, `1 SCR for 2` for a preemption, in the order of decisions. */
export function decisionTexts(result: CycleResult): string[] {
  return result.decisions.map((decision) => {
    switch (decision.kind) {
      case "run":
        return `${decision.job}=${decision.exec_vnode}`;
      case "comment":
        return `${decision.job}: ${decision.comment}`;
      case "qrun-refused":
        return `${decision.job} refused: ${decision.text}`;
      case "preempt":
        return `${decision.job} ${decision.methods} for ${decision.for}`;
      case "confirm-resv": {
        const { occurrences, places, partition } = decision;
        const times = occurrences.map(({ start_s, end_s, place }) => `${start_s}-${end_s}=${places[place]}`);
        return `${decision.resv} ${partition === "pbs-default" ? "" : `${partition} `}${times.join(" ")}`;
      }
      case "deny-resv":
        return `${decision.resv}: ${logText(decision.why)}`;
      default:
        return `${decision.kind}`;
    }
  });
}

/** `0040;Job;1;text`; a decision's line is `run 1`. */
export function logTexts(result: CycleResult, least = 0xffff): string[] {
  return result.log.flatMap((record) => {
    if ("decision" in record) {
      const decision = result.decisions[record.decision];
      return decision?.kind === "run"
        ? [`run ${decision.job}`]
        : decision?.kind === "confirm-resv"
          ? [`0200;Resv;${decision.resv};confirmed`]
          : [];
    }
    return (record.event & least) === 0
      ? []
      : [`${record.event.toString(16).padStart(4, "0")};${record.class};${record.object};${record.text}`];
  });
}

export function jobOf(text: string, rank: number): SchedJob {
  const words = text.split(/\s+/);
  const resources: Record<string, string | number | boolean> = {};
  const job: Record<string, unknown> = {
    id: words.shift() ?? "",
    state: "Q",
    substate: 10,
    queue: "workq",
    rank,
    user: "alice",
    group: "users",
    project: "_pbs_project_default",
    name: "j",
    priority: 0,
    schedselect: "1:ncpus=1",
    place: "free",
    resources,
    ctime_s: 0,
    qtime_s: 0,
    run_count: 0,
    rerunable: true,
  };
  for (const word of words) jobWord(job, resources, word);
  for (const chunk of String(job["schedselect"]).split("+")) addChunk(resources, chunk);
  return job as SchedJob;
}

const SUBSTATES: Record<string, number> = { R: 42, S: 45 };
const SHORT: Record<string, string> = { opts: "backend_opts", u: "user", g: "group", p: "project" };
const PLACE_WORDS = /^(free|pack|scatter|vscatter|shared|excl|exclhost|group=\w+)(:|$)/;

function jobWord(job: Record<string, unknown>, resources: Record<string, string | number | boolean>, word: string): void {
  const [key = "", value = ""] = word.split("=");
  if (/^[A-Z]$/.test(word)) Object.assign(job, { state: word }, SUBSTATES[word] === undefined ? {} : { substate: SUBSTATES[word] });
  else if (word.startsWith("@")) job["queue"] = word.slice(1);
  else if (word.startsWith("(")) {
    job["exec_vnode"] = word;
    job["schedselect"] = word
      .replaceAll(/[()]/g, "")
      .split("+")
      .map((piece) => `1:${piece.slice(piece.indexOf(":") + 1)}`)
      .join("+");
  } else if (PLACE_WORDS.test(word)) job["place"] = word;
  else if (key === "in") Object.assign(job, { resv: value, queue: value });
  else if (key === "est") job["estimated"] = { start_time: Number.parseInt(word.slice(4), 10), exec_vnode: word.slice(word.indexOf("(")) };
  else if (key === "sub") {
    // sub=1-5,7 sub=1-5%2 sub=1-5%2/1: waiting indices, max_run_subjobs, running subjobs
    const [, indices_remaining = "-", most, running = "0"] = /^([^%/]+)(?:%(\d+))?(?:\/(\d+))?$/.exec(value) ?? [];
    job["array"] = { indices_remaining, running: Number(running), ...(most === undefined ? {} : { max_run_subjobs: Number(most) }) };
  } else if (key in SHORT) job[SHORT[key] as string] = value;
  else if (key === "prio") job["priority"] = Number(value);
  else if (key === "rank") job["rank"] = Number(value);
  else if (key === "stime") job["stime_s"] = Number(value);
  else if (key === "ptime") job["sched_preempted_s"] = Number(value);
  else if (word === "norerun") job["rerunable"] = false;
  else if (word === "nocheckpoint") job["no_checkpoint"] = true;
  else if (key === "used") job["resources_used"] = { [value.split(":")[0] ?? ""]: Number(value.split(":")[1]) };
  else if (key === "walltime" || key === "lic") resources[key] = Number(value);
  else if (key.startsWith("%")) resources[key.slice(1)] = /^-?\d+$/.test(value) ? Number(value) : word.slice(key.length + 1);
  else job["schedselect"] = /^\d+(:|$)/.test(word) ? word : `1:${word}`.replaceAll(/\+(?!\d+:)/g, "+1:");
}

function addChunk(resources: Record<string, string | number | boolean>, chunk: string): void {
  const parts = chunk.split(":");
  const count = /^\d+$/.test(parts[0] ?? "") ? Number(parts.shift()) : 1;
  for (const part of parts) {
    const [name = "", value = ""] = part.split("=");
    if (name === "host" || name === "vnode") continue;
    if (/^\d+$/.test(value)) resources[name] = Number(resources[name] ?? 0) + count * Number(value);
    else if (/^\d+[kmgt]b$/.test(value)) resources[name] = `${sizeKb(String(resources[name] ?? "0kb")) + count * sizeKb(value)}kb`;
  }
}

function resvOf(text: string, order: number): SchedResv {
  const [id = "", ...words] = text.split(/\s+/);
  const list: Record<string, unknown> = { place: "free" };
  const attrs: Record<string, unknown> = { queue: id, Resource_List: list, schedselect: "1:ncpus=1" };
  const [held, places, wanted]: [SchedResv["held"][number][], string[], { start_s: number; end_s: number }[]] = [[], [], []];
  const ask: { -readonly [K in keyof ResvAsk]: ResvAsk[K] } = { kind: "confirm", asked_s: order, occurrences: wanted };
  for (const word of words) {
    const time = /^([?]?)(\d+)-(\d+)(?:=(.*))?$/.exec(word);
    const span = { start_s: Number(time?.[2]), end_s: Number(time?.[3]) };
    if (time?.[1] === "?") wanted.push(span);
    else if (time !== null) {
      const place = time[4] ?? "";
      if (!places.includes(place)) places.push(place);
      held.push({ ...span, place: places.indexOf(place) });
    } else if (word === "alter" || word === "reconfirm") ask.kind = word;
    else if (word.startsWith("asap=")) ask.duration_s = Number(word.slice(5));
    else if (word.startsWith("part=")) attrs["partition"] = word.slice(5);
    else if (word.startsWith("lic=")) list["lic"] = Number(word.slice(4));
    else if (PLACE_WORDS.test(word)) list["place"] = word;
    else if (word !== "RN") attrs["schedselect"] = /^\d+(:|$)/.test(word) ? word : `1:${word}`.replaceAll(/\+(?!\d+:)/g, "+1:");
  }
  const asked = wanted.length > 0 || ask.duration_s !== undefined ? { ask } : {};
  return { id, attrs, running: words.includes("RN"), held, places, ...asked };
}

function nodeOf(text: string, order: number, jobs: readonly SchedJob[], resvs: readonly SchedResv[]): SchedNode {
  const [name = "", ...words] = text.split(/\s+/);
  const available: Record<string, unknown> = { arch: "linux", host: name, vnode: name };
  const attrs: Record<string, unknown> = { resources_available: available, state: [] as string[], sharing: "default_shared" };
  for (const word of words) {
    const [, key = "", value = ""] = /^:?([^=]*)=?(.*)$/.exec(word) ?? [];
    const typed = value === "True" ? true : value === "False" ? false : /^-?\d+$/.test(value) ? Number(value) : value;
    if (!word.startsWith(":")) available[key] = typed;
    else if (key.startsWith("site."))
      attrs["site_resources"] = { ...(attrs["site_resources"] as object), [key.slice("site.".length)]: typed };
    else if (value === "") (attrs["state"] as string[]).push(key);
    else attrs[key] = typed;
  }
  const assigned: Record<string, number> = {};
  let jobCpus = 0;
  const here: string[] = [];
  for (const job of jobs) {
    if (job.state !== "R" || job.exec_vnode === undefined) continue;
    for (const piece of job.exec_vnode.replaceAll(/[()]/g, "").split("+")) {
      const [vnode, ...parts] = piece.split(":");
      if (vnode !== name) continue;
      here.push(job.id);
      jobCpus += Number(parts.find((part) => part.startsWith("ncpus="))?.slice(6) ?? 0);
      const held = resvs.find((resv) => resv.running && resv.id === job.resv)?.places[0] ?? "";
      addAssigned(
        assigned,
        parts.filter((part) => !held.includes(`:${part.split("=")[0]}=`)),
      );
      if (job.place.includes("excl") && job.resv === undefined) (attrs["state"] as string[]).push("job-exclusive");
    }
  }
  for (const {
    running,
    places,
    attrs: { Resource_List },
  } of resvs) {
    for (const piece of running ? (places[0] ?? "").replaceAll(/[()]/g, "").split("+") : []) {
      const [vnode, ...parts] = piece.split(":");
      if (vnode !== name) continue;
      addAssigned(assigned, parts);
      if (String((Resource_List as { place: string }).place).includes("excl")) (attrs["state"] as string[]).push("resv-exclusive");
    }
  }
  // A reservation does not make a vnode busy; only jobs do.
  if (jobCpus > 0 && jobCpus === available["ncpus"]) (attrs["state"] as string[]).push("job-busy");
  return { name, order, attrs, assigned, jobs: here };
}

function addAssigned(assigned: Record<string, number>, parts: readonly string[]): void {
  for (const part of parts) {
    const [resource = "", value = ""] = part.split("=");
    assigned[resource] = (assigned[resource] ?? 0) + (/b$/.test(value) ? sizeKb(value) : Number(value));
  }
}

function entries(text: string): string[] {
  return text
    .split(/[;\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
