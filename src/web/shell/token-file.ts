// The file of tokens, PBS_HOME/web_priv/tokens.json, which only the owner of PBS_HOME may read. `partita token` writes it, pbs_web reads it.

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "#support/caught.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import { readRecords, recordsText, type Scope, type TokenRecord, tokenText } from "../access/token.ts";

/** The directory of pbs_web below PBS_HOME. */
const webDirectory = (home: string): string => join(home, "web_priv");

export const hashOf = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** More tokens than this are refused, so that the file stays small. */
export const TOKENS_MAX = 1000;

/** How often another writer of the file is waited for, and how long each time. */
const LOCK_TRIES = 200;
const LOCK_MS = 50;

const pathOf = (home: string): string => join(webDirectory(home), "tokens.json");

/** Reads the tokens of a complex. Throws if the file is damaged. */
export function readTokens(home: string): readonly TokenRecord[] {
  let text: string;
  try {
    text = readFileSync(pathOf(home), "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  const records = readRecords(text);
  if (records === null) throw new Error(`${pathOf(home)} is damaged`);
  return records;
}

/** Changes the file under its lock. change: returns the new records. */
export async function changeTokens(home: string, change: (records: readonly TokenRecord[]) => readonly TokenRecord[]): Promise<void> {
  mkdirSync(webDirectory(home), { recursive: true, mode: 0o700 });
  for (let tries = 1; ; tries++) {
    const lock = takeLock(join(webDirectory(home), "tokens.lock"));
    if ("held" in lock) {
      try {
        return writeWholeFile(pathOf(home), recordsText(change(readTokens(home))), 0o600);
      } finally {
        lock.held.release();
      }
    }
    if (tries === LOCK_TRIES) throw new Error(`${pathOf(home)} is being changed by process ${lock.owner_pid ?? "unknown"}`);
    await sleep(LOCK_MS);
  }
}

/** Makes a token. text: what the client sends; it is not stored. */
export function newToken(facts: {
  readonly user: string;
  readonly scopes: readonly Scope[];
  readonly now_s: number;
  readonly end_s: number;
}): {
  readonly text: string;
  readonly record: TokenRecord;
} {
  const [id, secret] = [randomBytes(4).toString("hex"), randomBytes(32).toString("base64url")];
  const { user, scopes, now_s, end_s } = facts;
  return { text: tokenText(id, secret), record: { id, user, scopes, created_s: now_s, end_s, hash: hashOf(secret) } };
}

/** Returns a function that reads the tokens again whenever the file has changed, so that a revoked token stops working at once. */
export function watchedTokens(home: string): () => readonly TokenRecord[] {
  let seen = "";
  let records: readonly TokenRecord[] = [];
  return () => {
    const stat = statSync(pathOf(home), { throwIfNoEntry: false, bigint: true });
    const now = stat === undefined ? "" : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
    if (now !== seen) {
      records = readTokens(home);
      seen = now;
    }
    return records;
  };
}
