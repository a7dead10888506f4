// Tokens of the REST interface: their text, scopes and end, and whether a request may use one.
//
// T1. A secret is never stored: a record has only the SHA-256 of the secret. A secret has 256 random bits, so a plain hash suffices.
// T2. Scopes do not include one another: a token with the scope `submit` alone may not read.

import { isRecord, isTextList } from "#support/guards.ts";

/** read: look at objects. submit: submit jobs, and delete the user's own. manage: administer; no operation needs this scope yet. */
const SCOPES = ["read", "submit", "manage"] as const;
export type Scope = (typeof SCOPES)[number];

/** A token as it is stored. hash: the SHA-256 of the secret in hexadecimal. */
export type TokenRecord = {
  readonly id: string;
  readonly user: string;
  readonly scopes: readonly Scope[];
  readonly created_s: number;
  readonly end_s: number;
  readonly hash: string;
};

const TEXT = /^partita_([0-9a-f]{8})_([A-Za-z0-9_-]{43})$/;

/** The text that a client sends. secret: 32 random bytes in base64url. */
export const tokenText = (id: string, secret: string): string => `partita_${id}_${secret}`;

/** Takes the text of a token apart. Returns null if the text is not one. */
function parseToken(text: string): { readonly id: string; readonly secret: string } | null {
  const [, id, secret] = TEXT.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** Parses the value of `--scope`. Returns null if a word is not a scope. */
export function parseScopes(text: string): readonly Scope[] | null {
  const words = text.split(",").map((word) => word.trim());
  const scopes = SCOPES.filter((scope) => words.includes(scope));
  return words.every((word) => SCOPES.some((scope) => scope === word)) ? scopes : null;
}

/** Returns the token that a client may use; otherwise why not. hashOf: SHA-256 in hexadecimal. */
export function admit(
  records: readonly TokenRecord[],
  text: string,
  hashOf: (secret: string) => string,
  now_s: number,
): { readonly token: TokenRecord } | { readonly fault: "malformed" | "unknown" | "expired" } {
  const parts = parseToken(text);
  if (parts === null) return { fault: "malformed" };
  const token = records.find(({ id }) => id === parts.id);
  // Only hashes are compared, so the time of the comparison says nothing about the secret.
  if (token === undefined || token.hash !== hashOf(parts.secret)) return { fault: "unknown" };
  return token.end_s <= now_s ? { fault: "expired" } : { token };
}

/** Reads the records of a file's text. Returns null if the text has another form. */
export function readRecords(text: string): readonly TokenRecord[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = isRecord(parsed) ? parsed["tokens"] : undefined;
  if (!Array.isArray(tokens)) return null;
  const records = tokens.map(recordOf);
  return records.every((record) => record !== null) ? records : null;
}

/** The text of a file with these records. */
export const recordsText = (tokens: readonly TokenRecord[]): string => `${JSON.stringify({ tokens }, null, 2)}\n`;

function recordOf(value: unknown): TokenRecord | null {
  if (!isRecord(value)) return null;
  const { id, user, scopes, created_s, end_s, hash } = value;
  if (typeof id !== "string" || typeof user !== "string" || typeof hash !== "string" || !isTextList(scopes)) return null;
  if (typeof created_s !== "number" || typeof end_s !== "number") return null;
  const known = parseScopes(scopes.join(","));
  return known === null ? null : { id, user, scopes: known, created_s, end_s, hash };
}
