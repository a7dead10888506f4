// The files of the certificate authority: PBS_HOME/server_priv/ca (docs/identity.md).
//
// F1. Each change is one rename: after a crash there are the former files or the new ones.
// F2. A file to which others have access, or that cannot be read completely, is refused.

import { mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { splitPem } from "#identity/files/credentials.ts";
import { EMPTY_LEDGER, type Ledger } from "#identity/ledger.ts";
import { readLedger, writeLedger } from "#identity/ledger-text.ts";
import type { Authority } from "#identity/x509/authority.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { codeOf } from "#support/caught.ts";
import { syncDirectory, writeWholeFile } from "#support/whole-file.ts";

/** An authority that signs. fingerprint: the fingerprint of its certificate; until_s: the end of its certificate, epoch seconds */
export type Signer = Authority & { readonly fingerprint: string; readonly until_s: number };

/** A refusal, with a text for the caller. */
export class AuthorityError extends Error {
  override readonly name = "AuthorityError";
}

/** Key and certificate of an authority, which always belong together. */
const CURRENT = "ca.pem";
/** Key and certificate of the authority that is to replace the current one (docs/identity.md: a new authority). */
const NEXT = "next.pem";
const LEDGER = "ledger.json";
/** Permission bits that must not be set on these files. */
const OTHERS = 0o077;

const directoryOf = (home: string): string => join(home, "server_priv", "ca");
const textOf = ({ certificate, key }: Authority): string => `${certificate}${key}`;

/** Creates the files of a first authority: all of them, or nothing. Throws the file system's error. */
export function createFiles(home: string, first: Authority): void {
  const beside = `${directoryOf(home)}.new`;
  rmSync(beside, { recursive: true, force: true });
  mkdirSync(beside, { mode: 0o700 });
  writeWholeFile(join(beside, CURRENT), textOf(first), 0o600);
  writeWholeFile(join(beside, LEDGER), writeLedger(EMPTY_LEDGER), 0o600);
  renameSync(beside, directoryOf(home));
  syncDirectory(join(home, "server_priv"));
}

/** The files of one complex. home: PBS_HOME. */
export class AuthorityFiles {
  readonly #directory: string;

  constructor(home: string) {
    this.#directory = directoryOf(home);
  }

  /** Throws AuthorityError. */
  current(): Signer {
    const found = this.#signer(CURRENT);
    if (found === null) throw new AuthorityError(`${this.#path(CURRENT)} is missing`);
    return found;
  }

  /** The authority that is to replace the current one; null: there is none. Throws AuthorityError. */
  next(): Signer | null {
    return this.#signer(NEXT);
  }

  /** Throws AuthorityError. */
  ledger(): Ledger {
    const text = this.#read(LEDGER);
    if (text === null) throw new AuthorityError(`${this.#path(LEDGER)} is missing`);
    const read = readLedger(text);
    if (!read.ok) throw new AuthorityError(`${this.#path(LEDGER)} cannot be used: ${read.fault}`);
    return read.ledger;
  }

  writeLedger(ledger: Ledger): void {
    writeWholeFile(this.#path(LEDGER), writeLedger(ledger), 0o600);
  }

  writeNext(authority: Authority): void {
    writeWholeFile(this.#path(NEXT), textOf(authority), 0o600);
  }

  /** Makes the next authority the current one. This deletes the key of the former one. */
  promoteNext(): void {
    renameSync(this.#path(NEXT), this.#path(CURRENT));
    syncDirectory(this.#directory);
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  #signer(name: string): Signer | null {
    const text = this.#read(name);
    if (text === null) return null;
    const { certificates, key } = splitPem(text);
    const [certificate] = certificates;
    const facts = certificate === undefined ? null : readCertificate(certificate);
    if (certificate === undefined || facts === null || key === null || !facts.is_authority)
      throw new AuthorityError(`${this.#path(name)} holds no authority with its key`);
    return { name: facts.common_name, key, certificate, fingerprint: facts.fingerprint, until_s: facts.until_s };
  }

  #read(name: string): string | null {
    const path = this.#path(name);
    let text: string;
    let mode: number;
    try {
      text = readFileSync(path, "utf8");
      mode = statSync(path).mode;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw new AuthorityError(`${path} cannot be read`, { cause: error });
    }
    if ((mode & OTHERS) !== 0) throw new AuthorityError(`${path} is open to group or others: it is not used`);
    return text;
  }
}
