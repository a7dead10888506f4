// The ledger as the text of a file. Pure.
//
// A file that cannot be read completely is refused, because an authority that has lost a revocation would accept a stolen
// key.

import * as z from "zod";
import { messageOf } from "#support/caught.ts";
import { type Certificate, type Ledger, ledgerFaults, type Token } from "./ledger.ts";

const VERSION = 1;

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));
const time = z.number().int().nonnegative();
const host = z.string().min(1).max(63);
const user = z.string().min(1).max(32);

const token = z.strictObject({
  id: hex(16),
  secret_sha256: hex(64),
  host: host.nullable(),
  user: user.nullable(),
  created_s: time,
  expires_s: time,
  used: z.strictObject({ at_s: time, host, key_sha256: hex(64) }).nullable(),
  withdrawn_s: time.nullable(),
}) satisfies z.ZodType<Token>;

const certificate = z.strictObject({
  serial: hex(32),
  host,
  role: z.enum(["host", "server", "login", "user"]),
  user: user.nullable(),
  key_sha256: hex(64),
  authority: hex(64),
  from_s: time,
  until_s: time,
  end: z.strictObject({ at_s: time, why: z.enum(["revoked", "replaced"]) }).nullable(),
}) satisfies z.ZodType<Certificate>;

const file = z.strictObject({ version: z.literal(VERSION), tokens: z.array(token), certificates: z.array(certificate) });

export type ReadLedger = { readonly ok: true; readonly ledger: Ledger } | { readonly ok: false; readonly fault: string };

export function writeLedger({ tokens, certificates }: Ledger): string {
  return `${JSON.stringify({ version: VERSION, tokens, certificates }, null, 1)}\n`;
}

/** Reads a ledger from its text. fault: says what is wrong with the text. */
export function readLedger(text: string): ReadLedger {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, fault: messageOf(error) };
  }
  const parsed = file.safeParse(value);
  if (!parsed.success) return { ok: false, fault: z.prettifyError(parsed.error).replaceAll("\n", " ") };
  const { tokens, certificates } = parsed.data;
  const [fault] = ledgerFaults({ tokens, certificates });
  return fault === undefined ? { ok: true, ledger: { tokens, certificates } } : { ok: false, fault };
}
