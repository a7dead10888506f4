// zod schemas of the frames between the server and pbs_runners (runner-link.ts).

import { z } from "zod";
import { isPrintableText, printableText } from "#model/attribute-checks.ts";
import type { Bucket } from "#model/request/bucket.ts";
import { isRecord } from "#support/guards.ts";
import type { BackendWork, Demand, RunnersToServer, RunnerWork, ServerToRunners } from "./runner-link.ts";
import { LIMITS } from "./wire/limits.ts";

const name = z.string().max(LIMITS.name_chars_max);
/** A text of another program, which is shown to users. */
const told = z
  .string()
  .max(LIMITS.attr_value_chars_max)
  .transform((words) => (isPrintableText(words) ? words : printableText(words)));
const count = z.number().int().nonnegative();
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const RUNNERS_MAX = 100_000;
const names = z.array(name).max(RUNNERS_MAX);

export const RUNNERS_TO_SERVER = {
  "runners-hello": z.object({ pid: z.number().int().positive(), pongs: z.literal(true).exactOptional() }),
  "runners-pong": z.object({ number: count }),
  "runners-ask": z.object({
    token: count,
    backend: name,
    bucket: z.string().max(LIMITS.attr_value_chars_max),
    life_s: z.number().positive(),
    digests: z.array(digest).min(1).max(RUNNERS_MAX),
  }),
  "runners-seen": z.object({ remotes: z.record(name, told), reasons: z.record(name, told).exactOptional() }),
  "runners-gone": z.object({
    runners: z.array(z.object({ name, why: told, preempted: z.literal(true).exactOptional() })).max(RUNNERS_MAX),
  }),
  "runners-drain": z.object({ names }),
  "runners-state": z.object({ backend: name, error: told.nullable() }),
  "runners-impossible": z.object({ bucket: z.string().max(LIMITS.attr_value_chars_max), why: told }),
} satisfies { readonly [K in keyof RunnersToServer]: z.ZodType<RunnersToServer[K]> };

/** Objects that the server made from its own typed state: only the presence of one key is checked. */
const of = <T>(key: string) => z.custom<T>((value) => isRecord(value) && value[key] !== undefined, `must be an object with ${key}`);

export const SERVER_TO_RUNNERS = {
  "runners-ping": z.object({ number: count }),
  "runners-refused": z.object({ text: z.string() }),
  "runners-work": z.object({
    backends: z.array(of<BackendWork>("name")),
    demands: z.array(of<Demand & { readonly bucket: Bucket }>("bucket")),
    runners: z.array(of<RunnerWork>("name")),
  }),
  "runners-asked": z.object({ token: count, serial: count.nullable() }),
  "runners-quit": z.object({}) as z.ZodType<Record<string, never>>,
} satisfies { readonly [K in keyof ServerToRunners]: z.ZodType<ServerToRunners[K]> };
