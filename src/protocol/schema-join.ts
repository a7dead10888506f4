// Schemas of questions for certificates, of their answers, and of the list of revoked certificates. Both ends check what they use,
// because neither trusts the other yet. Members that are unknown are left out (wire/versions.ts V3).

import * as z from "zod";
import { revocationList } from "#identity/revocations.ts";
import { LEADER_CHARS_MAX, parseLeader } from "./failover/leader.ts";
import type { AuthorityToHost, HostToAuthority, Revoked } from "./join-link.ts";
import { firstIssue } from "./schema.ts";
import { LIMITS } from "./wire/limits.ts";

/** A certificate or a request takes about a thousand characters. */
const pem = z.string().max(16 * 1024);
const version = z.string().max(64);
const name = z.string().min(1).max(255);
const port = z.number().int().min(1).max(65535);

const with_token = z.object({
  version,
  token: z.string().regex(/^[0-9a-f]{16}$/),
  secret: z.string().regex(/^[0-9a-f]{40}$/),
  request: pem,
});

const QUESTIONS = {
  join: with_token.extend({ standby: z.literal(true).exactOptional() }),
  user: with_token,
  login: z.object({ version, request: pem }),
  renew: z.object({ version, request: pem }),
  check: z.object({ version }),
  scheds: z.object({ version }),
  leader: z.object({ version }),
  "files-offer": z.object({ version, port }),
  "files-place": z.object({ version, host: name }),
  "files-grant": z.object({
    version,
    job: z.string().max(LIMITS.name_chars_max),
    run_count: z.number().int().nonnegative(),
    from: name,
    from_server: z.boolean(),
  }),
} satisfies { readonly [K in keyof HostToAuthority]: z.ZodType<HostToAuthority[K]> };

const hostSched = z.object({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/),
  port: port.nullable(),
  user: name.exactOptional(),
});
const pair = z.object({ primary: name, secondary: name });
const settings = z.object({ server: name, port, mode: z.enum(["user", "system"]), pair: pair.exactOptional() });
const standby = z.object({ key: z.string().regex(/^[0-9a-f]{64}$/), database: z.string().max(16 * 1024) });
const leader = z
  .string()
  .max(LEADER_CHARS_MAX)
  .refine((value) => parseLeader(value) !== null);

const path = z.string().min(1).max(4096);
const ANSWERS = {
  joined: z.object({
    certificate: pem,
    authority: pem,
    now_s: z.number().int().nonnegative(),
    settings,
    standby: standby.exactOptional(),
  }),
  checked: z.object({
    now_s: z.number().int().nonnegative(),
    authorities: z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(4),
    revoked: revocationList,
    host: z
      .object({
        connected: z.boolean(),
        datagrams: z.enum(["both", "there", "none"]).nullable(),
        others: z.array(z.object({ host: name, address: name, port })).max(1000),
      })
      .exactOptional(),
  }),
  "user-signed": z.object({ certificate: pem, authority: pem, user: name }),
  renewed: z.object({ certificate: pem, authority: pem }),
  scheds: z.object({ scheds: z.array(hostSched).max(1000) }),
  leader: z.object({ leader: leader.nullable() }),
  "files-heard": z.object({}),
  "files-place": z.object({ known: z.boolean(), address: name.nullable(), port: port.nullable() }),
  "files-grant": z.object({
    user: name,
    group: z.string().max(255),
    put: z.array(path),
    names: z.array(z.array(path)).exactOptional(),
    get: z.array(path),
  }),
  "join-refused": z.object({ text: z.string().max(1024) }),
} satisfies { readonly [K in keyof AuthorityToHost]: z.ZodType<AuthorityToHost[K]> };

const REVOKED_LIST = z.object({ certificates: revocationList }) satisfies z.ZodType<Revoked>;

type Message<Map> = { readonly [K in keyof Map]: { readonly type: K; readonly data: Map[K] } }[keyof Map];
export type JoinQuestion = Message<HostToAuthority>;
export type JoinAnswer = Message<AuthorityToHost>;

type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly text: string };

export const JOIN_QUESTIONS: readonly string[] = Object.keys(QUESTIONS);
export const JOIN_ANSWERS: readonly string[] = Object.keys(ANSWERS);

export const parseQuestion = (type: string, data: unknown): Parsed<JoinQuestion> => parse(QUESTIONS, type, data);
export const parseAnswer = (type: string, data: unknown): Parsed<JoinAnswer> => parse(ANSWERS, type, data);

export function parseRevoked(data: unknown): Parsed<Revoked> {
  const parsed = REVOKED_LIST.safeParse(data);
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, text: `revoked: ${firstIssue(parsed.error)}` };
}

function parse<T>(schemas: Readonly<Record<string, z.ZodType>>, type: string, data: unknown): Parsed<T> {
  const schema = Object.hasOwn(schemas, type) ? schemas[type] : undefined;
  if (schema === undefined) return { ok: false, text: `${type.slice(0, 40)} is not known here` };
  const parsed = schema.safeParse(data);
  return parsed.success
    ? { ok: true, value: { type, data: parsed.data } as T }
    : { ok: false, text: `${type}: ${firstIssue(parsed.error)}` };
}
