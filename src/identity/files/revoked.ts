// PBS_HOME/identity/revoked.json: the certificates that this host refuses (revocations.ts).
//
// F1. A host that cannot read its list trusts nobody, because it could otherwise accept a peer that it should refuse.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import { type Revocation, readRevocations, withRevocations, writeRevocations } from "../revocations.ts";
import { CredentialsError } from "./credentials.ts";

const pathOf = (home: string): string => join(home, "identity", "revoked.json");

/** Reads the list. home: PBS_HOME. Throws CredentialsError (F1). */
export function readRevoked(home: string): readonly Revocation[] {
  const path = pathOf(home);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw new CredentialsError(messageOf(error), { cause: error });
  }
  const read = readRevocations(text);
  if (!read.ok) throw new CredentialsError(`${path} cannot be used: ${read.fault}`);
  return read.list;
}

/** Reads the serial numbers of the list. Throws CredentialsError. */
export const revokedSerials = (home: string): ReadonlySet<string> => new Set(readRevoked(home).map(({ serial }) => serial));

/**
 * Adds certificates that the server has sent, and writes the list to the disk. Returns the whole list. Throws
 * CredentialsError, or the file system's error.
 */
export function keepRevoked(home: string, told: readonly Revocation[], now_s: number): readonly Revocation[] {
  const known = readRevoked(home);
  const list = withRevocations(known, told, now_s);
  if (list !== known) writeWholeFile(pathOf(home), writeRevocations(list));
  return list;
}
