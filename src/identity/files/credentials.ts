// The identity of this host on its disk: PBS_HOME/identity. Texts are PEM.
//
// F1. Key and certificate are one file that is replaced in one step, so that they always belong together.
// F2. A key that group or others may read is not used.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import { removeIfThere, syncDirectory, writeWholeFile } from "#support/whole-file.ts";

export type Credentials = {
  readonly key: string;
  readonly certificate: string;
  /** certificates of the authorities that this host trusts: one, or two while a new authority replaces the present one */
  readonly authority: string;
};

/** The error for files that cannot be used. Its message names the file. */
export class CredentialsError extends Error {
  override readonly name = "CredentialsError";
}

const HOST_FILE = "host.pem";
export const AUTHORITY_FILE = "ca.crt";
const JOIN_KEY = "join.key";
const PEM_BLOCK = /-----BEGIN (CERTIFICATE|PRIVATE KEY)-----[\s\S]*?-----END \1-----\n?/g;
const OTHERS_READ = 0o077;

export const directoryOf = (home: string): string => join(home, "identity");

/** Reads the identity of this host. home: PBS_HOME. Returns null if this host has none. Throws CredentialsError. */
export function readCredentials(home: string): Credentials | null {
  const path = join(directoryOf(home), HOST_FILE);
  const text = readSecret(path);
  if (text === null) return null;
  const { certificates, key } = splitPem(text);
  const [certificate] = certificates;
  if (certificate === undefined || key === null) throw new CredentialsError(`${path} holds no certificate with its key`);
  try {
    const authority = readFileSync(join(directoryOf(home), AUTHORITY_FILE), "utf8");
    check({ key, certificate, authority });
    return { key, certificate, authority };
  } catch (error) {
    throw new CredentialsError(`${directoryOf(home)}: ${messageOf(error)}`, { cause: error });
  }
}

/** Splits a PEM text into its certificates and its key. */
export function splitPem(text: string): { readonly certificates: readonly string[]; readonly key: string | null } {
  const blocks = [...text.matchAll(PEM_BLOCK)];
  const of = (label: string): readonly string[] => blocks.filter((each) => each[1] === label).map(([block]) => block);
  return { certificates: of("CERTIFICATE"), key: of("PRIVATE KEY")[0] ?? null };
}

function check({ key, certificate, authority }: Credentials): void {
  const own = new X509Certificate(certificate);
  if (!own.checkPrivateKey(createPrivateKey(key))) throw new Error("the key is not that of the certificate");
  const isSigned = splitPem(authority).certificates.some((each) => own.verify(new X509Certificate(each).publicKey));
  if (!isSigned) throw new Error("the certificate is not signed by the authority in ca.crt");
}

/** Throws the file system's error. */
export function writeCredentials(home: string, { key, certificate, authority }: Credentials): void {
  makeDirectory(home);
  writeWholeFile(join(directoryOf(home), AUTHORITY_FILE), authority);
  writeWholeFile(join(directoryOf(home), HOST_FILE), `${certificate}${key}`, 0o600);
  removeIfThere(join(directoryOf(home), JOIN_KEY));
}

/** Reads the key with which this host has asked to join and has got no answer yet. Returns null if there is none. Throws CredentialsError. */
export const readJoinKey = (home: string): string | null => readSecret(join(directoryOf(home), JOIN_KEY));

/** Throws the file system's error. */
export function writeJoinKey(home: string, key: string): void {
  makeDirectory(home);
  writeWholeFile(join(directoryOf(home), JOIN_KEY), key, 0o600);
}

function makeDirectory(home: string): void {
  // The key must survive a crash of the host, because a token can be used with one key only. So all directories made here are synced (PBS_HOME may be one).
  const first = mkdirSync(directoryOf(home), { recursive: true, mode: 0o755 });
  chmodSync(directoryOf(home), 0o755);
  if (first === undefined) return;
  for (let made = directoryOf(home); made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made));
}

function readSecret(path: string): string | null {
  try {
    if ((statSync(path).mode & OTHERS_READ) !== 0) throw new CredentialsError(`${path} can be read by group or others: it is not used`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error instanceof CredentialsError ? error : new CredentialsError(messageOf(error), { cause: error });
  }
}
