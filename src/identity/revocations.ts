// Certificates that hosts must refuse although the authority's key has signed them and their dates are good. The server looks certificates up in its ledger; the
// other hosts have this list, which their server sends them (docs/identity.md). Pure: times are epoch seconds.
//
// V1. A host forgets an entry only when the certificate is over by its dates. A server that lists less than before takes nothing back.

import * as z from "zod";
import { messageOf } from "#support/caught.ts";
import type { Ledger } from "./ledger.ts";

/** serial: 32 hexadecimal digits; until_s: the end of the certificate by its dates */
export type Revocation = { readonly serial: string; readonly until_s: number };

/** Entries that a server sends; those that last longest come first. */
const LISTED_MAX = 10_000;

const revocation = z.strictObject({
  serial: z.string().regex(/^[0-9a-f]{32}$/),
  until_s: z.number().int().nonnegative(),
}) satisfies z.ZodType<Revocation>;

export const revocationList = z.array(revocation).max(LISTED_MAX);

const file = z.strictObject({ version: z.literal(1), certificates: z.array(revocation) });

/** What hosts must refuse. */
export function revocationsIn({ certificates }: Ledger, now_s: number): readonly Revocation[] {
  return certificates
    .filter(({ end, until_s }) => end !== null && now_s < until_s)
    .map(({ serial, until_s }) => ({ serial, until_s }))
    .sort((a, b) => b.until_s - a.until_s || (a.serial < b.serial ? -1 : 1))
    .slice(0, LISTED_MAX);
}

/** V1. Returns `known` itself if nothing changes. */
export function withRevocations(known: readonly Revocation[], told: readonly Revocation[], now_s: number): readonly Revocation[] {
  const serials = new Set(known.map(({ serial }) => serial));
  const fresh = told.filter(({ serial, until_s }) => !serials.has(serial) && now_s < until_s);
  const left = known.filter(({ until_s }) => now_s < until_s);
  return fresh.length === 0 && left.length === known.length ? known : [...left, ...fresh];
}

export const writeRevocations = (certificates: readonly Revocation[]): string =>
  `${JSON.stringify({ version: 1, certificates }, null, 1)}\n`;

/** fault: what is wrong, in words. */
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
