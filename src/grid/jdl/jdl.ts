// Reads a campaign file (JDL), which is JSON with the keys of CiGri, and checks it against the clusters of a grid. Pure.
//
// J1. Every fault is reported with its path, line and column. No key is ignored silently.
// J2. The request of a campaign is translated here into the terms of each of its clusters (resources.ts), so that a campaign that cannot run on a cluster is refused at once.

import type { CheckpointPace } from "../plan/checkpoints.ts";
import type { Campaign, CampaignKind } from "../shapes/campaign.ts";
import { JDL_SHAPE } from "./fields.ts";
import { JsonFault, type JsonNode, parseLocatedJson, placeOf } from "./located-json.ts";
import { countedParameters, type ParameterLimits, type Parameters, parametersOf } from "./parameters.ts";
import { type ClusterRequest, type ClusterType, mapResources, readResources } from "./resources.ts";
import { Section } from "./section.ts";
import { type ShapeFault, shapeFaults } from "./shape.ts";

/** A cluster of the grid, as campaigns are checked against it. default_resources: a select or a hierarchy; null: one cpu. resource_unit: OAR's property for one cpu. */
export type ClusterFacts = {
  readonly name: string;
  readonly type: ClusterType;
  readonly default_resources: string | null;
  readonly resource_unit: string;
};

export type JdlFault = { readonly path: string; readonly line: number; readonly column: number; readonly text: string };
export type JdlResult = { readonly jdl: Jdl } | { readonly faults: readonly JdlFault[] };

export type Jdl = {
  readonly name: string;
  readonly kind: CampaignKind;
  readonly source: ParameterSource;
  /** in the order of the file */
  readonly clusters: ReadonlyMap<string, JdlCluster>;
  readonly duplication: Duplication;
  readonly canary: boolean;
  /** a campaign pauses on a cluster after this many failures there, if they are also more than this share of its ended jobs there */
  readonly error_budget: { readonly count: number; readonly percent: number };
  /** how often a task runs again on its own; null: as often as the grid lets it */
  readonly resubmissions_max: number | null;
  readonly inputs: readonly InputTemplate[];
};

/** file: the parameters are the lines of a file, which the command reads. */
export type ParameterSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "given"; readonly parameters: Parameters };

/**
 * When second copies of jobs start. at_end: the last jobs are copied when no task is left to submit and resources are free. late_factor: a job is copied when it runs
 * longer than this multiple of the median; null: never. copies_max: the largest number of jobs that a task has at a time. If the file does not have the key, no job is
 * copied.
 */
export type Duplication = { readonly at_end: boolean; readonly late_factor: number | null; readonly copies_max: number };

/** A file that each job needs. {1}, {2}, ... in file and to are words of the job's parameter. bytes null: unknown. */
export type InputTemplate = { readonly file: string; readonly to: string | null; readonly bytes: number | null };

export type JdlCluster = {
  /** the words of exec_file; ~ and macros are as they were written (macros.ts) */
  readonly exec: readonly string[];
  readonly directory: string;
  readonly walltime_s: number;
  readonly request: ClusterRequest;
  readonly best_effort: boolean;
  readonly project: string | null;
  readonly queue: string | null;
  /** a job type of OAR */
  readonly job_type: string | null;
  /** a condition of OAR on properties; null on other clusters, where it is a part of the request */
  readonly properties: string | null;
  readonly max_jobs: number | null;
  readonly prologue: readonly (readonly string[])[];
  readonly epilogue: readonly (readonly string[])[];
  readonly prologue_walltime_s: number;
  readonly epilogue_walltime_s: number;
  readonly checkpointing: Checkpointing | null;
};

/** cost_s and mtbf_s, or period_s, say how often the signal is sent (plan/checkpoints.ts). data: where a checkpoint can be read. */
export type Checkpointing = {
  readonly signal: string;
  readonly pace: CheckpointPace;
  readonly data: "cluster" | "everywhere";
};

export type JdlLimits = ParameterLimits & { readonly jdl_characters_max: number; readonly faults_max: number };
export const JDL_LIMITS: JdlLimits = {
  parameters_max: 10_000_000,
  characters_max: 400_000_000,
  jdl_characters_max: 64_000_000,
  faults_max: 50,
};

/** kind: the type that gridsub -t names, which has precedence over the file. */
export type JdlOptions = { readonly kind?: CampaignKind; readonly limits?: Partial<JdlLimits> };

/** Reads the text of a campaign file. Returns the campaign or everything that is wrong with the file; throws nothing for bad input. */
export function parseJdl(text: string, clusters: ReadonlyMap<string, ClusterFacts>, options: JdlOptions = {}): JdlResult {
  const limits = { ...JDL_LIMITS, ...options.limits };
  const placed = (faults: readonly ShapeFault[]): JdlResult => ({
    faults: faults.slice(0, limits.faults_max).map(({ path, at, text: says }) => ({ path, ...placeOf(text, at), text: says })),
  });
  if (text.length > limits.jdl_characters_max)
    return placed([
      { path: "", at: 0, text: `the file has more than ${limits.jdl_characters_max} characters; put parameters into a param_file` },
    ]);
  let node: JsonNode;
  try {
    node = parseLocatedJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return placed([{ path: "", at: error.at, text: error.message }]);
    throw error;
  }
  const wrong = shapeFaults(node, JDL_SHAPE);
  if (wrong.length > 0) return placed(wrong);
  const top = new Section(node, null, "");
  const jdl = read(top, clusters, options.kind ?? null, limits);
  return top.faults.length > 0 ? placed(top.faults) : { jdl };
}

/** Returns a fault as one line: `campaign.json:3:7: clusters.c1.walltime: ...`. file: the name that the user gave. */
export function jdlFaultText({ path, line, column, text }: JdlFault, file: string): string {
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${text}`;
}

/** Returns a campaign as the planner sees it. */
export function campaignOf(id: number, user: string, { kind, clusters, canary, duplication }: Jdl): Campaign {
  const on = ({ request, walltime_s, max_jobs }: JdlCluster) => ({ resources: request.cpus, walltime_s, jobs_max: max_jobs });
  const { at_end, late_factor } = duplication;
  return {
    id,
    user,
    kind,
    clusters: new Map([...clusters].map(([name, cluster]) => [name, on(cluster)])),
    wishes: { at_end, late_factor, canary },
  };
}

function read(top: Section, clusters: ReadonlyMap<string, ClusterFacts>, kind: CampaignKind | null, limits: JdlLimits): Jdl {
  const sections = top.sections("clusters");
  const isTest = top.text("campaign_type") === "test" || [...sections.values()].some((section) => section.flag("test_mode") === true);
  if (top.text("campaign_type") === "default" && isTest) top.fault("campaign_type", "default contradicts test_mode");
  const budget = top.part("error_budget");
  return {
    name: top.text("name") ?? "",
    kind: kind ?? (isTest ? "test" : "default"),
    source: sourceOf(top, limits),
    clusters: new Map([...sections].map(([name, section]) => [name, clusterOf(section, name, clusters)])),
    duplication: duplicationOf(top),
    canary: top.flag("canary") ?? true,
    error_budget: { count: budget.number("count") ?? 5, percent: budget.number("percent") ?? 0 },
    resubmissions_max: top.number("resubmissions_max"),
    inputs: top.parts("inputs").map((input) => ({ file: input.text("file") ?? "", to: input.text("to"), bytes: input.number("bytes") })),
  };
}

function duplicationOf(top: Section): Duplication {
  if (!top.has("duplication")) return { at_end: false, late_factor: null, copies_max: 1 };
  const part = top.part("duplication");
  return { at_end: part.flag("at_end") ?? true, late_factor: part.number("late_factor") ?? 3, copies_max: part.number("copies_max") ?? 2 };
}

const SOURCES = ["param_file", "params", "nb_jobs"] as const;

function sourceOf(top: Section, limits: ParameterLimits): ParameterSource {
  const given = SOURCES.filter((key) => top.has(key));
  const nothing: ParameterSource = { kind: "given", parameters: countedParameters(0) };
  if (given.length === 0) return top.fault("", "the parameters are missing: give param_file, params or nb_jobs", nothing);
  const second = given[1];
  if (second !== undefined) return top.fault(second, `${given.join(" and ")} are given; only one of them may be`, nothing);
  const path = top.text("param_file");
  if (path !== null) return { kind: "file", path };
  const count = top.number("nb_jobs");
  if (count !== null) {
    if (count > limits.parameters_max) return top.fault("nb_jobs", `more than ${limits.parameters_max} parameters`, nothing);
    return { kind: "given", parameters: countedParameters(count) };
  }
  const parameters = parametersOf(top.texts("params").join("\n"), limits);
  // Each element of the list is one line that is not empty, so the number of the line gives the index of the element.
  if ("line" in parameters) return top.fault(`params.${parameters.line - 1}`, parameters.text, nothing);
  return { kind: "given", parameters };
}

function clusterOf(section: Section, name: string, clusters: ReadonlyMap<string, ClusterFacts>): JdlCluster {
  const facts = clusters.get(name) ?? section.fault("", `there is no cluster ${name} in the grid`, null);
  const exec = section.words("exec_file");
  if (exec === null) section.fault("", "exec_file is missing, here and at the top");
  else if (exec.length === 0) section.fault("exec_file", "a command line without a word");
  const walltime_s = periodOf(section, "walltime") ?? 3600;
  const properties = section.text("properties");
  const type = facts?.type ?? "partita";
  return {
    exec: exec ?? [],
    directory: section.text("exec_directory") ?? "{HOME}",
    walltime_s,
    request: facts === null ? { kind: "select", select: "1", place: null, cpus: 1 } : requestOf(section, facts, properties),
    best_effort: section.text("type") !== "normal",
    project: section.text("project"),
    queue: section.text("queue"),
    job_type: section.text("cluster_job_type"),
    properties: type === "oar" ? properties : null,
    max_jobs: section.number("max_jobs"),
    prologue: section.commands("prologue"),
    epilogue: section.commands("epilogue"),
    prologue_walltime_s: periodOf(section, "prologue_walltime") ?? walltime_s,
    epilogue_walltime_s: periodOf(section, "epilogue_walltime") ?? walltime_s,
    checkpointing: checkpointingOf(section),
  };
}

function periodOf(section: Section, key: string): number | null {
  const period_s = section.duration(key);
  return period_s === 0 ? section.fault(key, "a duration of at least a second is expected", null) : period_s;
}

function requestOf(section: Section, facts: ClusterFacts, properties: string | null): ClusterRequest {
  const nothing: ClusterRequest = { kind: "select", select: "1", place: null, cpus: 1 };
  const names = ["resources", "select"];
  const own = names.filter((name) => section.hasOwn(name));
  const given = own.length > 0 ? own : names.filter((name) => section.has(name));
  if (given.length > 1)
    return section.fault("select", "resources and select are two names of one key; only one of them may be given", nothing);
  const key = given[0] ?? "resources";
  const place = section.text("place");
  const resources = readResources(section.text(key) ?? facts.default_resources ?? "1:ncpus=1", place);
  if (typeof resources === "string") return section.fault(section.has(key) ? key : "", resources, nothing);
  const mapped = mapResources(resources, facts, properties);
  if (typeof mapped === "string")
    return section.fault(section.has(key) ? key : "", `cannot be asked for on ${facts.name} (${facts.type}): ${mapped}`, nothing);
  return mapped;
}

function checkpointingOf(section: Section): Checkpointing | null {
  if (!section.has("checkpointing")) return null;
  const part = section.part("checkpointing");
  const [period_s, cost_s, mtbf_s] = [periodOf(part, "period"), periodOf(part, "cost"), periodOf(part, "mtbf")];
  const common = { signal: part.text("signal") ?? "SIGUSR2", data: part.text("data") === "everywhere" ? "everywhere" : "cluster" } as const;
  if (period_s !== null && cost_s === null && mtbf_s === null) return { ...common, pace: { period_s } };
  if (period_s === null && cost_s !== null && mtbf_s !== null) return { ...common, pace: { cost_s, mtbf_s } };
  return section.fault("checkpointing", "either period or both cost and mtbf are expected", null);
}
