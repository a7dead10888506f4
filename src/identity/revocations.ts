// Certificates that hosts must refuse although the authority has signed them and they have not expired. The server looks
// certificates up in its ledger; the other hosts have this list, which their server sends them (docs/identity.md). Pure:
// times are epoch seconds.
//
// V1. A host removes an entry only when the certificate has expired. If the server sends a shorter list than before, the
//     host keeps its entries.

import * as z from "zod";
import { messageOf } from "#support/caught.ts";
import type { Ledger } from "./ledger.ts";

/** serial: 32 hexadecimal digits; until_s: the time at which the certificate expires */
export type Revocation = { readonly serial: string; readonly until_s: number };

/** Largest number of entries that a server sends. Those that expire last come first. */
const LISTED_MAX = 10_000;

const revocation = z.strictObject({
  serial: z.string().regex(/^[0-9a-f]{32}$/),
  until_s: z.number().int().nonnegative(),
}) satisfies z.ZodType<Revocation>;

export const revocationList = z.array(revocation).max(LISTED_MAX);

const file = z.strictObject({ version: z.literal(1), certificates: z.array(revocation) });

/** The certificates that hosts must refuse, from the ledger. */
export function revocationsIn({ certificates }: Ledger, now_s: number): readonly Revocation[] {
  return certificates
    .filter(({ end, until_s }) => end !== null && now_s < until_s)
    .map(({ serial, until_s }) => ({ serial, until_s }))
    .sort((a, b) => b.until_s - a.until_s || (a.serial < b.serial ? -1 : 1))
    .slice(0, LISTED_MAX);
}

/** Adds the server's entries to the known ones and removes expired ones (V1). Returns `known` itself if nothing changes. */
export function withRevocations(known: readonly Revocation[], told: readonly Revocation[], now_s: number): readonly Revocation[] {
  const serials = new Set(known.map(({ serial }) => serial));
  const fresh = told.filter(({ serial, until_s }) => !serials.has(serial) && now_s < until_s);
  const left = known.filter(({ until_s }) => now_s < until_s);
  return fresh.length === 0 && left.length === known.length ? known : [...left, ...fresh];
}

export const writeRevocations = (certificates: readonly Revocation[]): string =>
  `${JSON.stringify({ version: 1, certificates }, null, 1)}\n`;

/** Reads a list from its text. fault: says what is wrong with the text. */
export function readRevocations(
  text: string,
): { readonly ok: true; readonly list: readonly Revocation[] } | { readonly ok: false; readonly fault: string } {
  try {
    const parsed = file.safeParse(JSON.parse(text));
    return parsed.success
      ? { ok: true, list: parsed.data.certificates }
      : { ok: false, fault: z.prettifyError(parsed.error).replaceAll("\n", " ") };
  } catch (error) {
    return { ok: false, fault: messageOf(error) };
  }
}
