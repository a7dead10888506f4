// The grid's state as rows of a store (src/store). The store's tables have the names of the server's objects; a grid has a store of its own, in which the tables hold
// the grid's objects, so that backup, migration, the mark and PostgreSQL work for it as they are. Pure.
//
// | table    | row                                                                            |
// |----------|--------------------------------------------------------------------------------|
// | backends | a cluster                                                                      |
// | queues   | a campaign, without its texts                                                  |
// | runners  | an order with its live jobs                                                    |
// | resvs    | an event                                                                       |
// | hooks    | a subscription                                                                 |
// | scripts  | C.jdl and C.parameters: the texts of the campaign C                            |
// | history  | an ended job: queue is the campaign                                            |
//
// W1. The counters hold the last numbers that were given to campaigns, orders, jobs and events. They are written together with the rows that use these numbers, so that no
//     number is given twice.

import { z } from "zod";
import type { Batch, Data, HistoryRow, Loaded } from "#store/store.ts";
import { WHOLE_JOB } from "#store/store.ts";
import { parseJdl, campaignOf as planOf } from "../jdl/jdl.ts";
import { countedParameters, type Parameters, parametersOf } from "../jdl/parameters.ts";
import { TaskBag } from "../plan/task-bag.ts";
import type { EventRecord, Subscription } from "../shapes/event-record.ts";
import { addJob, type Dirty, newPair } from "./event.ts";
import { type CampaignRecord, type ClusterRecord, emptyState, type GridOrder, type GridState } from "./grid-state.ts";

const CLUSTER_TABLE = "backends";
const CAMPAIGN_TABLE = "queues";
const ORDER_TABLE = "runners";
const EVENT_TABLE = "resvs";
const SUBSCRIPTION_TABLE = "hooks";

type Table = "backends" | "queues" | "runners" | "resvs" | "hooks";

const jdlKey = (campaign: number): string => `${campaign}.jdl`;
const parametersKey = (campaign: number): string => `${campaign}.parameters`;

/** Returns the rows of everything that has changed. */
export function batchOf(state: GridState, dirty: Dirty): Batch {
  const put: { table: Table; name: string; data: Data }[] = [];
  const drop: { table: Table; name: string }[] = [];
  const row = <Key>(table: Table, key: Key, data: Data | undefined): void => {
    if (data === undefined) drop.push({ table, name: String(key) });
    else put.push({ table, name: String(key), data });
  };
  for (const name of dirty.clusters) row(CLUSTER_TABLE, name, state.clusters.get(name));
  for (const id of dirty.campaigns) row(CAMPAIGN_TABLE, id, mapped(state.campaigns.get(id), campaignData));
  for (const serial of dirty.orders) row(ORDER_TABLE, serial, mapped(state.orders.get(serial), orderData));
  for (const id of dirty.events) row(EVENT_TABLE, id, state.events.get(id));
  for (const key of dirty.subscriptions) row(SUBSCRIPTION_TABLE, key, state.subscriptions.get(key));
  for (const id of dirty.forgotten) row(CAMPAIGN_TABLE, id, undefined);
  const scripts: { id: string; text: string }[] = [];
  for (const id of dirty.texts) {
    const campaign = state.campaigns.get(id);
    if (campaign === undefined) continue;
    scripts.push({ id: jdlKey(id), text: campaign.jdl_text });
    if (campaign.jdl.source.kind === "file" || campaign.parameters !== campaign.jdl.source.parameters)
      scripts.push({ id: parametersKey(id), text: campaign.parameters.text ?? String(campaign.parameters.count) });
  }
  const { campaign, job, order, event } = state.counters;
  return {
    put,
    drop,
    ...(scripts.length === 0 ? {} : { scripts }),
    jobs_gone: [...dirty.forgotten].flatMap((id) => [jdlKey(id), parametersKey(id)]),
    history: dirty.ended.map((ended) => historyRow(state, ended)),
    counters: { next_campaign: campaign, next_job: job, next_order: order, next_event: event },
  };
}

const mapped = <T>(value: T | undefined, of: (value: T) => Data): Data | undefined => (value === undefined ? undefined : of(value));

function campaignData(campaign: CampaignRecord): Data {
  const { user, kind_given, facts, submitted_s, ended_s, state, tasks, done, failed } = campaign;
  const pairs = Object.fromEntries([...campaign.pairs].map(([name, { started, ends, ...pair }]) => [name, pair]));
  return {
    user,
    kind_given,
    facts,
    submitted_s,
    ended_s,
    state,
    tasks,
    done,
    failed,
    bag: campaign.bag.rest,
    pairs,
    resubmissions: [...campaign.resubmissions],
  };
}

function orderData({ jobs, is_begun, ...order }: GridOrder): Data {
  return {
    ...order,
    jobs: [...jobs.values()].map(({ id, task, index, remote_id, kill, is_copy }) => [id, task, index, remote_id, kill, is_copy]),
  };
}

function historyRow(state: GridState, { job, state: how, at_s, exit_code, run_s, mem_kb, reason }: Dirty["ended"][number]): HistoryRow {
  const { campaign, cluster, ordered_s } = job.order;
  return {
    id: String(job.id),
    seq: job.id,
    idx: WHOLE_JOB,
    owner: state.campaigns.get(campaign)?.user ?? "",
    queue: String(campaign),
    state: how,
    ended_s: Math.floor(at_s),
    data: { task: job.task, cluster, ordered_s, started_s: job.started_s, remote_id: job.remote_id, exit_code, run_s, mem_kb, reason },
  };
}

// --- reading

const time = z.number();
const facts = z.object({
  name: z.string(),
  type: z.enum(["partita", "pbs", "slurm", "gridengine", "oar"]),
  default_resources: z.string().nullable(),
  resource_unit: z.string(),
});
const texts = z.record(z.string(), z.string());
const cluster = facts.extend({ options: texts, users: z.array(z.string()), mapping: texts, is_enabled: z.boolean() });
const pair = z.object({
  ratio: z.number(),
  tap: z.object({ rate: z.number(), closed_s: time.nullable(), submitted: z.number() }),
  batch: z.object({ submitted: z.number(), free: z.number() }).nullable(),
  last_order: z.number(),
  results: z.number(),
  results_run_s: z.number(),
  errors: z.number(),
  paused: z.string().nullable(),
  // Rows of earlier versions have none.
  runs: z.array(z.number()).default([]),
});
const returned = z
  .object({
    task: z.number(),
    priority: z.number(),
    place: z.union([z.object({ only: z.string() }), z.object({ avoid: z.string() })]).optional(),
  })
  .transform(({ place, ...rest }) => (place === undefined ? rest : { ...rest, place }));
const campaign = z.object({
  user: z.string(),
  kind_given: z.enum(["test", "default"]).nullable(),
  facts: z.array(facts),
  submitted_s: time,
  ended_s: time.nullable(),
  state: z.enum(["in_treatment", "paused", "cancelled", "terminated"]),
  tasks: z.number(),
  done: z.number(),
  failed: z.number(),
  bag: z.object({ next: z.number(), returned: z.array(returned) }),
  pairs: z.record(z.string(), pair),
  resubmissions: z.array(z.tuple([z.number(), z.number()])).default([]),
});
const order = z.object({
  serial: z.number(),
  tag: z.string(),
  campaign: z.number(),
  cluster: z.string(),
  remote_user: z.string(),
  ordered_s: time,
  size: z.number(),
  state: z.enum(["recorded", "acknowledged", "released"]),
  jobs: z.array(
    z.tuple([z.number(), z.number(), z.number(), z.string().nullable(), z.enum(["excess", "copy", "deleted"]).nullable(), z.boolean()]),
  ),
});
const event = z.object({
  id: z.number(),
  class: z.enum(["cluster", "job", "campaign", "notify", "log"]),
  code: z.string(),
  campaign: z.number().nullable(),
  cluster: z.string().nullable(),
  job: z.number().nullable(),
  task: z.number().nullable(),
  at_s: time,
  message: z.string(),
  state: z.enum(["open", "closed"]),
});

const subscription = z.object({
  user: z.string(),
  is_manager: z.boolean(),
  method: z.enum(["mail", "webhook"]),
  address: z.string(),
  severity: z.enum(["low", "medium", "high"]),
  next_event: z.number(),
});

const endedJob = z.object({
  task: z.number(),
  cluster: z.string(),
  ordered_s: time,
  started_s: time.nullable(),
  remote_id: z.string().nullable(),
  exit_code: z.number().nullable(),
  run_s: z.number().nullable(),
  mem_kb: z.number().nullable(),
  reason: z.string(),
});

/** Reads the data of a history row. */
export const readEndedJob = (data: Data): z.infer<typeof endedJob> => endedJob.parse(data);

/** Returns the names of the texts that readState needs. */
export const textsNeeded = (loaded: Loaded): readonly string[] =>
  loaded.objects[CAMPAIGN_TABLE].flatMap(({ name }) => [jdlKey(Number(name)), parametersKey(Number(name))]);

/** Builds the state from rows. Throws if the rows are not those of a grid. */
export function readState(loaded: Loaded, scripts: ReadonlyMap<string, string>): GridState {
  const state = emptyState();
  const { counters } = loaded;
  Object.assign(state.counters, {
    campaign: counters["next_campaign"] ?? 1,
    job: counters["next_job"] ?? 1,
    order: counters["next_order"] ?? 1,
    event: counters["next_event"] ?? 1,
  });
  for (const { name, data } of loaded.objects[CLUSTER_TABLE]) state.clusters.set(name, cluster.parse(data) satisfies ClusterRecord);
  const campaigns = [...loaded.objects[CAMPAIGN_TABLE]].sort((a, b) => Number(a.name) - Number(b.name));
  for (const { name, data } of campaigns) state.campaigns.set(Number(name), readCampaign(Number(name), data, scripts));
  for (const { data } of loaded.objects[ORDER_TABLE]) readOrder(state, data);
  for (const { name, data } of loaded.objects[EVENT_TABLE]) state.events.set(Number(name), event.parse(data) satisfies EventRecord);
  for (const { name, data } of loaded.objects[SUBSCRIPTION_TABLE])
    state.subscriptions.set(name, subscription.parse(data) satisfies Subscription);
  return state;
}

function readCampaign(id: number, data: Data, scripts: ReadonlyMap<string, string>): CampaignRecord {
  const { bag, pairs, resubmissions, ...row } = campaign.parse(data);
  const jdl_text = scripts.get(jdlKey(id)) ?? "";
  const read = parseJdl(
    jdl_text,
    new Map(row.facts.map((each) => [each.name, each])),
    row.kind_given === null ? {} : { kind: row.kind_given },
  );
  if ("faults" in read) throw new Error(`campaign ${id}: its text cannot be read any more: ${read.faults[0]?.text ?? ""}`);
  const { jdl } = read;
  const parameters = readParameters(id, jdl.source, scripts.get(parametersKey(id)));
  return {
    ...row,
    id,
    jdl,
    jdl_text,
    parameters,
    plan: planOf(id, row.user, jdl),
    bag: new TaskBag(row.tasks, bag),
    pairs: new Map(Object.entries(pairs).map(([name, each]) => [name, { ...newPair(each.ratio), ...each }])),
    resubmissions: new Map(resubmissions),
    lives: new Map(),
  };
}

function readParameters(id: number, source: CampaignRecord["jdl"]["source"], text: string | undefined): Parameters {
  if (text === undefined) return source.kind === "given" ? source.parameters : countedParameters(0);
  if (source.kind === "given" && source.parameters.text === null) return countedParameters(Number(text));
  const read = parametersOf(text, { parameters_max: Number.MAX_SAFE_INTEGER, characters_max: Number.MAX_SAFE_INTEGER });
  if ("line" in read) throw new Error(`campaign ${id}: its parameters cannot be read any more: ${read.text}`);
  return read;
}

function readOrder(state: GridState, data: Data): void {
  const { jobs, ...row } = order.parse(data);
  const of = state.campaigns.get(row.campaign);
  if (of === undefined) return;
  const made: GridOrder = { ...row, is_begun: true, jobs: new Map() };
  for (const [id, task, index, remote_id, kill, is_copy] of jobs) {
    const job = addJob(of, made, { id, task, index, is_copy });
    job.remote_id = remote_id;
    job.kill = kill;
  }
  state.orders.set(row.serial, made);
}
