// Schemas of the frames between daemons: one zod schema for each frame type of sched-link.ts and mom-link.ts. The server checks
// every frame of a scheduler or mom. Schedulers and moms check the server's frames too, but not the attribute records in them,
// which src/model reads. Members that are unknown are left out, because a newer release may send them (wire/versions.ts V3).
//
// S1. parseFrame never throws.  S2. Each schema accepts exactly the type whose name it has (checked by the compiler below).

import * as z from "zod";
import { isPrintableText, printableText } from "#model/attribute-checks.ts";
import { isRecord } from "#support/guards.ts";
import { CHANNEL_DIGITS, KEY_BYTES } from "./datagram/packet.ts";
import { LEADER_CHARS_MAX, parseLeader } from "./failover/leader.ts";
import type { MomToServer, ServerToMom } from "./mom-link.ts";
import { MEMBERS_MAX } from "./multicast/command-packet.ts";
import { GROUP_TYPES } from "./multicast/stream.ts";
import type { RunnersToServer, ServerToRunners } from "./runner-link.ts";
import type { Change, Decision, SchedCommand, SchedToServer, ServerToSched, Verdict, Why } from "./sched-link.ts";
import { SCHED_COMMAND } from "./sched-link.ts";
import { firstIssue } from "./schema.ts";
import { RUNNERS_TO_SERVER, SERVER_TO_RUNNERS } from "./schema-runners.ts";
import type { MomToTask, TaskToMom } from "./task-link.ts";
import { LIMITS } from "./wire/limits.ts";

const name = z.string().max(LIMITS.name_chars_max);
const text = z.string().max(LIMITS.attr_value_chars_max);
/**
 * Text for people: comments, mails, answers. It may quote what a user chose (such as a file name). Control characters in it could control the reader's
 * terminal, so all of them except newline and tab are replaced.
 */
const told = text.transform((words) => (isPrintableText(words) ? words : printableText(words)));
const whole = z.number().int();
const count = whole.nonnegative();
const seconds = z.number().finite();
const pid = whole.positive();
const items = <T extends z.ZodType>(item: T) => z.array(item).max(1_000_000);
const nothing = z.object({}) as z.ZodType<Record<string, never>>;

const record = z.custom<{ readonly [name: string]: unknown }>(isRecord, "must be an object");
const scalarRecord = <T>(isValue: (value: unknown) => boolean) =>
  z.custom<{ readonly [name: string]: T }>(
    (value) => isRecord(value) && Object.values(value).every(isValue),
    "must be an object of plain values",
  );
const usage = scalarRecord<string | number>((value) => typeof value === "string" || typeof value === "number");
const amounts = scalarRecord<number>((value) => typeof value === "number");

// --- frames from a scheduler to the server

const why = z.object({
  code: name,
  module: name.exactOptional(),
  resource: name.exactOptional(),
  want: text.exactOptional(),
  have: text.exactOptional(),
  total: text.exactOptional(),
  where: text.exactOptional(),
  entity: text.exactOptional(),
  never: z.boolean().exactOptional(),
}) satisfies z.ZodType<Why>;

const occurrence = z.object({ start_s: whole, end_s: whole, place: count });

const decision = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("run"), job: name, exec_vnode: text, walltime_s: seconds.exactOptional() }),
  z.object({ kind: z.literal("comment"), job: name, comment: told, why }),
  z.object({ kind: z.literal("estimate"), job: name, start_s: seconds.nullable(), exec_vnode: text.nullable(), topjob: z.boolean() }),
  z.object({ kind: z.literal("extend"), job: name, soft_walltime_s: seconds }),
  z.object({ kind: z.literal("preempt"), job: name, methods: name, for: name }),
  z.object({ kind: z.literal("confirm-resv"), resv: name, partition: name, occurrences: items(occurrence), places: items(text) }),
  z.object({ kind: z.literal("deny-resv"), resv: name, why }),
  z.object({ kind: z.literal("qrun-refused"), job: name, text: told }),
]) satisfies z.ZodType<Decision>;

const SCHED_TO_SERVER = {
  "sched-hello": z.object({ name, pid, version: name, pongs: z.literal(true).exactOptional(), user: name.exactOptional() }),
  "sched-decisions": z.object({ cycle: count, decisions: items(decision), more: z.literal(true).exactOptional() }),
  "sched-cycle-end": z.object({
    cycle: count,
    jobs_considered: count,
    cycle_ms: z.number().nonnegative(),
    hand_outs: items(z.object({ bucket: text, jobs: items(name) })).exactOptional(),
  }),
  "sched-fault": z.object({ fault: told.nullable() }),
  "sched-leaving": z.object({}),
  "sched-problem": z.object({ problem: told.nullable() }),
  "sched-wake": z.object({}),
  "sched-pong": z.object({ number: count }),
  "sched-answer": z.object({
    token: count,
    value: z.custom<unknown>((value) => value === null || isRecord(value), "must be an object or null"),
  }),
} satisfies { readonly [K in keyof SchedToServer]: z.ZodType<SchedToServer[K]> };

// --- frames from the server to a scheduler

const commands = new Set<number>(Object.values(SCHED_COMMAND));
const command = z.custom<SchedCommand>((value) => typeof value === "number" && commands.has(value), "must be a scheduler command");
const verdict = z.union([
  z.object({ ok: z.literal(true), method: z.enum(["S", "C", "R", "D"]).exactOptional() }),
  z.object({ ok: z.literal(false), code: whole, text }),
]) satisfies z.ZodType<Verdict>;

/** Objects of a snapshot. Only their names are checked, because the server made them from its own typed state. */
const named = <T>() => z.custom<T>((value) => isRecord(value) && typeof value["name"] === "string", "must be an object with a name");
const withId = <T>() => z.custom<T>((value) => isRecord(value) && typeof value["id"] === "string", "must be an object with an id");
const server = z.object({ name, attrs: record, assigned: amounts });
const sched = z.object({ name, attrs: record });

const putOrDrop = z.custom<Change>((value) => {
  if (!isRecord(value)) return false;
  if (typeof value["drop"] === "string") return typeof value["id"] === "string";
  return typeof value["put"] === "string" && isRecord(value["value"]);
}, "must be a put or a drop");

const SERVER_TO_SCHED = {
  "sched-refused": z.object({ code: whole, text }),
  "sched-snapshot": z.object({
    revision: count,
    server,
    sched,
    resources: items(named()),
    queues: items(named()),
    nodes: items(named()),
    jobs: items(withId()),
    resvs: items(withId()),
    clocks: items(withId()).exactOptional(),
  }),
  "sched-delta": z.object({ revision: count, changes: items(putOrDrop) }),
  "sched-cycle": z.object({ cycle: count, command, job: name.exactOptional() }),
  "sched-configure": nothing,
  "sched-verdicts": z.object({ cycle: count, verdicts: items(verdict) }),
  "sched-quit": nothing,
  "sched-ask": z.object({
    token: count,
    question: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("explain"), job: name, sees_others: z.boolean() }),
      z.object({ kind: z.literal("view"), sees_others: z.boolean() }),
    ]),
  }),
  "sched-ping": z.object({ number: count }),
} as unknown as { readonly [K in keyof ServerToSched]: z.ZodType<ServerToSched[K]> };

// --- frames from a mom to the server

const vnodes = z.array(z.object({ name, attrs: record })).max(LIMITS.mom_vnodes_max);
const run = { job: name, run_count: count };
const usages = items(z.object({ ...run, used: usage }));
const texts = scalarRecord<string>((value) => typeof value === "string");
const patience = z
  .object({ join_s: seconds.exactOptional(), launch_s: seconds.exactOptional(), downtime_s: seconds.exactOptional() })
  .exactOptional();

const grace = z.object({ number: count, requeue_s: seconds.nonnegative(), sister_s: seconds.positive() });

const MOM_TO_SERVER = {
  "mom-hello": z.object({
    host: name,
    tasks: name.exactOptional(),
    port: count,
    pid,
    version: name,
    release: name.exactOptional(),
    vnodes,
    patience,
    jobs: items(z.object({ ...run, state: z.enum(["starting", "running", "suspended", "ended"]), session_id: whole.exactOptional() })),
    hooks: name.exactOptional(),
    checkpoints: items(name).exactOptional(),
    outputs: items(name).exactOptional(),
    pongs: z.literal(true).exactOptional(),
    runner: z.object({ token: name, age_s: seconds.nonnegative() }).exactOptional(),
    reports: z.object({ every_s: count.min(1).max(LIMITS.status_interval_s_max) }).exactOptional(),
    grace: grace.nullable().exactOptional(),
    multicast: z.literal(true).exactOptional(),
  }),
  "mom-hook": z.object({
    hook: name,
    event: name,
    actions: items(name),
    restart_cycle: z.boolean(),
    vnodes: record,
    job: z.object({ ...run, changes: record }).exactOptional(),
  }),
  "mom-staging-out": z.object(run),
  "mom-kept": z.object({ ...run, why: z.literal("checkpoint").exactOptional(), text: told }),
  "mom-vnodes": z.object({ vnodes, patience }),
  "mom-joined": z.object(run),
  "mom-started": z.object({ ...run, session_id: whole, jobdir: text, restarted: z.literal(true).exactOptional() }),
  "mom-site": z.object({ resources: texts }),
  "mom-busy": z.object({ busy: z.boolean() }),
  "mom-idled": z.object({ ...run, idled: z.boolean() }),
  "mom-usage": z.object({ jobs: usages }),
  "mom-report": z.object({
    number: count,
    grace: count.exactOptional(),
    clock_ms: whole.exactOptional(),
    unheard: count.exactOptional(),
    ill: told.exactOptional(),
    jobs: usages.exactOptional(),
    site: texts.exactOptional(),
  }),
  "mom-obit": z.object({
    ...run,
    exit_status: whole,
    used: usage,
    stageout_status: z.union([z.literal(0), z.literal(1)]).exactOptional(),
    stagein_failed: z.literal(true).exactOptional(),
    kept: z.literal(true).exactOptional(),
    message: told.exactOptional(),
  }),
  "mom-accepted": z.object({ runs: items(z.object(run)) }),
  "mom-got": z.object({ position: count }),
  "mom-pong": z.object({ number: whole, clock_ms: whole.exactOptional(), ill: told.exactOptional() }),
  "mom-result": z.object({ token: whole, ok: z.boolean(), code: whole.exactOptional(), text: told.exactOptional() }),
} satisfies { readonly [K in keyof MomToServer]: z.ZodType<MomToServer[K]> };

// --- frames from the server to a mom

const momPlace = z.object({ address: name.nullable(), port: count });
const momJob = z.object({
  id: name,
  run_count: count,
  user: name,
  group: name,
  queue: name,
  exec_host: text,
  exec_vnode: text,
  attrs: record,
  script: z.string().max(LIMITS.script_chars_max).nullable(),
  kill_delay_s: seconds,
  cookie: name,
  tasks: scalarRecord<string>((value) => typeof value === "string").exactOptional(),
  sisters: z.object({ secret: name, hosts: z.record(name, momPlace) }).exactOptional(),
  restart: z.literal(true).exactOptional(),
});
const token = { token: whole, job: name };
const CHANNEL_NAME = new RegExp(`^[0-9a-f]{${CHANNEL_DIGITS}}$`);
/** A key in base64. */
const KEY_CHARS = 4 * Math.ceil(KEY_BYTES / 3);
const hookContent = z.string().max(LIMITS.hook_chars_max);

/** Longest public key in base64. */
const SIGNER_CHARS_MAX = 256;
/** The text of a leader. */
const leader = z
  .string()
  .max(LEADER_CHARS_MAX)
  .refine((value) => parseLeader(value) !== null);

const groupKeys = z.object({
  channel: z.string().regex(CHANNEL_NAME),
  key: z.base64().length(KEY_CHARS),
  boot: name,
  member: count.max(MEMBERS_MAX - 1),
  signer: z.base64().max(SIGNER_CHARS_MAX),
  address: name,
  port: count.max(65_535),
  spread_ms: count,
});

const SERVER_TO_MOM = {
  "mom-welcome": z.object({
    leader: leader.exactOptional(),
    keep: items(name),
    kill: items(name),
    acknowledged: items(z.object(run)),
    confirms: z.literal(true).exactOptional(),
    grace: grace.exactOptional(),
  }),
  "mom-confirmed": z.object({ runs: items(z.object(run)) }),
  "mom-keys": z.object({
    channel: z.string().regex(CHANNEL_NAME),
    key: z.base64().length(KEY_CHARS),
    boot: name,
  }),
  "mom-heard": z.object({ number: count, grace: grace.exactOptional() }),
  "mom-group": z.object({ keys: groupKeys.nullable() }),
  "mom-command": z.object({ position: count, type: z.enum(GROUP_TYPES), data: record }),
  "mom-refused": z.object({ code: whole, text }),
  "mom-start": z.object({ jobs: items(momJob) }),
  "mom-signal": z.object({ ...token, signal: name }),
  "mom-terminate": z.object({ ...run, why: z.enum(["delete", "rerun"]), kill_delay_s: seconds }),
  "mom-modify": z.object({ job: name, attrs: record }),
  "mom-sisters": z.object({ ...run, cput_s: seconds, mem_kb: seconds, vmem_kb: seconds }),
  "mom-message": z.object({ ...token, files: name, message: text }),
  "mom-obit-ack": z.object({ jobs: items(z.object(run)) }),
  "mom-discard": z.object({ job: name }),
  "mom-hooks": z.object({
    digest: name,
    resources: scalarRecord<string>((value) => typeof value === "string"),
    hooks: items(
      z.object({
        name,
        type: name,
        event: items(name),
        user: name,
        alarm: count,
        freq: count,
        order: whole,
        debug: z.boolean(),
        fail_action: items(name),
        script: z.object({ language: z.enum(["python", "javascript"]), content: hookContent }),
        config: z.object({ suffix: name, content: hookContent }).nullable(),
      }),
    ),
  }),
  "mom-ping": z.object({ number: whole, silence_s: seconds }),
  "mom-quit": nothing,
} satisfies { readonly [K in keyof ServerToMom]: z.ZodType<ServerToMom[K]> };

// --- requests to a mom from tasks of a job and from other moms

const task_run = { job: name, run_count: count.nullable(), cookie: name.nullable() };

const TASK_TO_MOM = {
  "task-nodes": z.object(task_run),
  "task-spawn": z.object({
    ...task_run,
    token: count,
    host: name,
    argv: items(z.string().max(LIMITS.script_chars_max)).min(1),
    env: items(z.string().max(LIMITS.script_chars_max)),
    shell: z.boolean(),
    name: name.exactOptional(),
    again: z.literal(true).exactOptional(),
  }),
  "task-signal": z.object({ token: count, signal: count }),
  "task-attach": z.object({ ...task_run, token: count, pid }),
  "task-output": z.object({
    ...task_run,
    token: count,
    letter: z.enum(["o", "e"]),
    from: name,
    offset: count,
    content: z.string().max(LIMITS.hook_chars_max),
  }),
} satisfies { readonly [K in keyof TaskToMom]: z.ZodType<TaskToMom[K]> };

const MOM_TO_TASK = {
  "task-hosts": z.object({ lines: items(name), hosts: items(name) }),
  "task-started": z.object({ token: count, task: count }),
  "task-exited": z.object({ token: count, status: whole }),
  "task-done": z.object({ token: count }),
  "task-refused": z.object({ token: count.nullable(), text }),
} satisfies { readonly [K in keyof MomToTask]: z.ZodType<MomToTask[K]> };

type Tables = {
  "runners-to-server": RunnersToServer;
  "server-to-runners": ServerToRunners;
  "task-to-mom": TaskToMom;
  "mom-to-task": MomToTask;
  "sched-to-server": SchedToServer;
  "server-to-sched": ServerToSched;
  "mom-to-server": MomToServer;
  "server-to-mom": ServerToMom;
};
const TABLES: { readonly [D in keyof Tables]: { readonly [type: string]: z.ZodType } } = {
  "runners-to-server": RUNNERS_TO_SERVER,
  "server-to-runners": SERVER_TO_RUNNERS,
  "sched-to-server": SCHED_TO_SERVER,
  "server-to-sched": SERVER_TO_SCHED,
  "mom-to-server": MOM_TO_SERVER,
  "task-to-mom": TASK_TO_MOM,
  "mom-to-task": MOM_TO_TASK,
  "server-to-mom": SERVER_TO_MOM,
};

/** A frame of one direction: a union of type and data, so that `switch` on the type gives the type of the data. */
export type FrameOf<D extends keyof Tables> = {
  [K in keyof Tables[D]]: { readonly type: K; readonly data: Tables[D][K] };
}[keyof Tables[D]];
export type ParsedFrame<D extends keyof Tables> =
  | { readonly ok: true; readonly frame: FrameOf<D> }
  | { readonly ok: false; readonly text: string };

/** Returns the frame types of a direction, for the options of listenLinks and connectLink. */
export const frameTypes = (direction: keyof Tables): readonly string[] => Object.keys(TABLES[direction]);

/** Checks a frame that arrived on a link. If it returns a refusal, the peer is broken, and the caller should end the link. */
export function parseFrame<D extends keyof Tables>(direction: D, type: string, data: unknown): ParsedFrame<D> {
  const table = TABLES[direction];
  const schema = Object.hasOwn(table, type) ? table[type] : undefined;
  if (schema === undefined) return { ok: false, text: `unknown frame type ${type.slice(0, 64)}` };
  const outcome = schema.safeParse(data);
  if (!outcome.success) return { ok: false, text: `${type}: ${firstIssue(outcome.error)}` };
  return { ok: true, frame: { type, data: outcome.data } as FrameOf<D> };
}

/** Checks a reason that a site's module returned. Returns a text that describes the fault if it is malformed. */
export function parseWhy(value: unknown): Why | string {
  const outcome = why.safeParse(value);
  return outcome.success ? (outcome.data as Why) : firstIssue(outcome.error);
}

/** Checks a decision that a site's module made. Returns a text that describes the fault if it is malformed. */
export function parseDecision(value: unknown): Decision | string {
  const outcome = decision.safeParse(value);
  return outcome.success ? (outcome.data as Decision) : firstIssue(outcome.error);
}
