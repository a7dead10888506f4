// Schemas of requests, checked before any code acts on a request: one strict zod schema for each kind, with the lengths of
// wire/limits.ts. The schemas check shapes only; the server checks the meaning of values.
//
// S1. parseRequest never throws: any input gives a request or a refusal with a PBS error.
// S2. Each schema accepts exactly the type of messages.ts (checked by the compiler below).

import * as z from "zod";
import type { IdentityAsk } from "./identity-link.ts";
import type { Request, RequestKind } from "./messages.ts";
import { PORT_MAX, TICKET_SECRET, TICKET_SOCKET } from "./terminal/link.ts";
import { LIMITS } from "./wire/limits.ts";

const name = z.string().max(LIMITS.name_chars_max);
const value = z.string().max(LIMITS.attr_value_chars_max);
const text = z.string().max(LIMITS.attr_value_chars_max);
const jobId = name.min(1);
const script = z.string().max(LIMITS.script_chars_max).nullable();
const history = z.enum(["with", "only"]).exactOptional();
const flag = z.boolean().exactOptional();
const object = z.enum(["server", "queue", "node", "resource", "sched", "hook", "pbshook", "backend"]);

const hookObject = z.enum(["hook", "pbshook"]);

const attrOp = z.strictObject({ name, resource: name.exactOptional(), op: z.enum(["=", "+=", "-=", "unset"]), value });
const attrOps = z.array(attrOp).max(LIMITS.attrs_max);
const attrValues = z.array(z.strictObject({ name, resource: name.exactOptional(), value })).max(LIMITS.attrs_max);
/** without the address, which only the server may add */
const terminal = z.strictObject({
  socket: z.string().regex(TICKET_SOCKET),
  secret: z.string().regex(TICKET_SECRET),
  port: z.number().int().min(1).max(PORT_MAX).exactOptional(),
});
const submission = { destination: name, attrs: attrValues, script, terminal: terminal.exactOptional() };
/** checks only lengths; the server checks names and times */
const identityAsk = z.discriminatedUnion("verb", [
  z.strictObject({ verb: z.literal("list") }),
  z.strictObject({ verb: z.literal("make-token"), host: name.nullable(), user: name.nullable(), life_s: z.number().int().positive() }),
  z.strictObject({ verb: z.literal("withdraw-token"), id: name }),
  z.strictObject({ verb: z.literal("revoke-host"), host: name }),
  z.strictObject({ verb: z.literal("revoke-user"), user: name }),
  z.strictObject({ verb: z.literal("renew-server") }),
  z.strictObject({ verb: z.literal("rotate") }),
  z.strictObject({ verb: z.literal("finish-rotation"), force: z.boolean() }),
]) satisfies z.ZodType<IdentityAsk>;
const criterion = z.strictObject({ name, resource: name.exactOptional(), op: z.enum(["eq", "ne", "ge", "gt", "le", "lt"]), value });

/** One schema for each `kind` of request in messages.ts. */
const SCHEMAS = {
  manager: z.strictObject({ kind: z.literal("manager"), verb: z.enum(["create", "delete", "set", "unset"]), object, name, attrs: attrOps }),
  "import-hook": z.strictObject({
    kind: z.literal("import-hook"),
    object: hookObject,
    hook: name,
    content_type: name,
    encoding: name,
    content: z.string().max(LIMITS.hook_chars_max),
    suffix: name,
  }),
  "export-hook": z.strictObject({ kind: z.literal("export-hook"), object: hookObject, hook: name, content_type: name }),
  status: z.strictObject({
    kind: z.literal("status"),
    object: z.enum([...object.options, "job", "resv"]),
    ids: z.array(name).max(LIMITS.ids_max),
    attrs: z.array(name).max(LIMITS.attrs_max).exactOptional(),
    queue: name.exactOptional(),
    history,
    subjobs: flag,
    brief: flag,
  }),
  "select-jobs": z.strictObject({
    kind: z.literal("select-jobs"),
    criteria: z.array(criterion).max(LIMITS.attrs_max),
    states: name.exactOptional(),
    destination: name.exactOptional(),
    history,
    subjobs: flag,
    arraysOnly: flag,
  }),
  "queue-job": z.strictObject({ kind: z.literal("queue-job"), ...submission }),
  "queue-jobs": z.strictObject({ kind: z.literal("queue-jobs"), jobs: z.array(z.strictObject(submission)).max(LIMITS.jobs_per_frame_max) }),
  "delete-job": z.strictObject({ kind: z.literal("delete-job"), job: jobId, force: flag, history: flag, suppressMail: flag }),
  "modify-job": z.strictObject({ kind: z.literal("modify-job"), job: jobId, attrs: attrOps }),
  "hold-job": z.strictObject({ kind: z.literal("hold-job"), job: jobId, holds: name }),
  "release-job": z.strictObject({ kind: z.literal("release-job"), job: jobId, holds: name }),
  "move-job": z.strictObject({ kind: z.literal("move-job"), job: jobId, destination: name }),
  "order-job": z.strictObject({ kind: z.literal("order-job"), job: jobId, other: jobId }),
  "message-job": z.strictObject({ kind: z.literal("message-job"), job: jobId, files: name, message: text }),
  "signal-job": z.strictObject({ kind: z.literal("signal-job"), job: jobId, signal: name }),
  "release-nodes": z.strictObject({
    kind: z.literal("release-nodes"),
    job: jobId,
    nodes: z.array(name).max(LIMITS.ids_max),
    all: flag,
    keep: value.exactOptional(),
  }),
  "rerun-job": z.strictObject({ kind: z.literal("rerun-job"), job: jobId, force: flag }),
  "run-job": z.strictObject({ kind: z.literal("run-job"), job: jobId, exec_vnode: value.exactOptional(), async: flag }),
  "locate-job": z.strictObject({ kind: z.literal("locate-job"), job: jobId }),
  "wait-job": z.strictObject({ kind: z.literal("wait-job"), job: jobId }),
  "explain-job": z.strictObject({ kind: z.literal("explain-job"), job: jobId }),
  "view-sched": z.strictObject({ kind: z.literal("view-sched"), sched: name.min(1) }),
  "view-unserved": z.strictObject({ kind: z.literal("view-unserved") }),
  "view-hosts": z.strictObject({ kind: z.literal("view-hosts") }),
  "view-runners": z.strictObject({ kind: z.literal("view-runners") }),
  "confirm-dead": z.strictObject({
    kind: z.literal("confirm-dead"),
    names: z.array(name).max(LIMITS.attrs_max),
    age_s: z.number().int().nonnegative(),
  }),
  shutdown: z.strictObject({
    kind: z.literal("shutdown"),
    manner: z.enum(["immediate", "delay", "quick"]),
    scheds: z.boolean(),
    moms: z.boolean(),
    other: z.enum(["stop", "idle"]).exactOptional(),
    secondary_only: z.literal(true).exactOptional(),
  }),
  backup: z.strictObject({ kind: z.literal("backup"), file: z.string().min(1).max(4096) }),
  identity: z.strictObject({ kind: z.literal("identity"), ask: identityAsk }),
  "submit-resv": z.strictObject({
    kind: z.literal("submit-resv"),
    attrs: attrValues,
    hosts: z.array(name).max(LIMITS.ids_max).exactOptional(),
  }),
  "delete-resv": z.strictObject({ kind: z.literal("delete-resv"), resv: jobId }),
  "modify-resv": z.strictObject({ kind: z.literal("modify-resv"), resv: jobId, attrs: attrValues, force: flag }),
} as const satisfies { readonly [K in RequestKind]: z.ZodType<Extract<Request, { kind: K }>> };

export type ParsedRequest =
  | { readonly ok: true; readonly id: number; readonly request: Request }
  /** id null: the frame has no valid id to which a reply could refer, and the connection should end */
  | { readonly ok: false; readonly id: number | null; readonly code: number; readonly text: string };

const PBSE_UNKREQ = 15005;
const PBSE_PROTOCOL = 15031;

/** Checks the data of a `request` frame. */
export function parseRequest(data: unknown): ParsedRequest {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return refused(null, PBSE_PROTOCOL, "Batch protocol error");
  const { id, ...rest } = data as { readonly id?: unknown; readonly kind?: unknown };
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0) return refused(null, PBSE_PROTOCOL, "Batch protocol error");
  const { kind } = rest;
  if (typeof kind !== "string" || !Object.hasOwn(SCHEMAS, kind)) return refused(id, PBSE_UNKREQ, "Unknown request");
  const outcome = SCHEMAS[kind as RequestKind].safeParse(rest);
  if (!outcome.success) return refused(id, PBSE_PROTOCOL, `Batch protocol error: ${firstIssue(outcome.error)}`);
  return { ok: true, id, request: outcome.data as Request };
}

const refused = (id: number | null, code: number, reason: string): ParsedRequest => ({ ok: false, id, code, text: reason });

/** Returns the first issue in few words: `jobs[3].attrs[0].value: Too big ...`. */
export function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return "malformed";
  const path = issue.path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .replace(/^\./, "");
  return `${path === "" ? "request" : path}: ${issue.message}`.slice(0, 200);
}

export type { Request, RequestKind } from "./messages.ts";
