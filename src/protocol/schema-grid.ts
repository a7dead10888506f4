// The schemas of the requests of the grid's commands (grid-messages.ts).

import { z } from "zod";
import type { GridRequest } from "./grid-messages.ts";
import { firstIssue } from "./schema.ts";

/** The longest text of a JDL, and of a parameter file. */
export const GRID_LIMITS = {
  jdl_chars_max: 4 * 1024 * 1024,
  parameters_chars_max: 256 * 1024 * 1024,
  campaigns_max: 10_000,
  page_max: 10_000,
} as const;

const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const name = z.string().min(1).max(64);
const page = { limit: z.int().min(1).max(GRID_LIMITS.page_max).exactOptional(), offset: z.int().min(0).exactOptional() };
const texts = z
  .record(z.string().min(1).max(64), z.string().max(4096))
  .refine((record) => Object.keys(record).length <= 10_000, "too many");

const address = { method: z.enum(["mail", "webhook"]), address: z.string().min(1).max(2048) };

const schema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("grid-submit"),
    jdl: z.string().max(GRID_LIMITS.jdl_chars_max),
    type: z.enum(["test", "default"]).exactOptional(),
    parameters: z.string().max(GRID_LIMITS.parameters_chars_max).exactOptional(),
  }),
  z.strictObject({ kind: z.literal("grid-add-jobs"), campaign: id, parameters: z.string().max(GRID_LIMITS.parameters_chars_max) }),
  z.strictObject({
    kind: z.literal("grid-campaigns"),
    campaigns: z.array(id).max(GRID_LIMITS.campaigns_max).exactOptional(),
    user: z.string().max(256).exactOptional(),
    ...page,
  }),
  z.strictObject({ kind: z.literal("grid-jobs"), campaign: id, ...page }),
  z.strictObject({ kind: z.literal("grid-jdl"), campaign: id }),
  z.strictObject({
    kind: z.literal("grid-change"),
    campaigns: z.array(id).min(1).max(GRID_LIMITS.campaigns_max),
    action: z.enum(["hold", "release", "delete"]),
  }),
  z.strictObject({ kind: z.literal("grid-events"), campaign: id.exactOptional(), closed: z.boolean().exactOptional(), ...page }),
  z.strictObject({ kind: z.literal("grid-fix"), event: id.exactOptional(), campaign: id.exactOptional(), resubmit: z.boolean() }),
  z.strictObject({ kind: z.literal("grid-clusters") }),
  z.strictObject({
    kind: z.literal("grid-cluster-add"),
    name,
    type: name,
    options: texts,
    users: z.array(z.string().min(1).max(256)).max(10_000),
    mapping: texts,
    resources: z.string().max(4096).exactOptional(),
  }),
  z.strictObject({ kind: z.literal("grid-cluster-change"), name, action: z.enum(["remove", "enable", "disable"]) }),
  z.strictObject({ kind: z.literal("grid-subscriptions") }),
  z.strictObject({ kind: z.literal("grid-subscribe"), ...address, severity: z.enum(["low", "medium", "high"]) }),
  z.strictObject({ kind: z.literal("grid-unsubscribe"), ...address }),
]);

/** Reads a request. Returns the request, or what is wrong with it. */
export function parseGridRequest(data: unknown): { readonly request: GridRequest } | { readonly fault: string } {
  const parsed = schema.safeParse(data);
  return parsed.success ? { request: parsed.data } : { fault: firstIssue(parsed.error) };
}
