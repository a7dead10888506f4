// Files that the two servers of a complex share: the certificate authority with its ledger, and the key for the secrets of
// runs. Their place is server_priv on the host of the active server; copies are in the database of the state, where the other
// server finds them when it takes over.
//
// F1. A change counts when it is in the database: keep() resolves then, and what follows from the change (a certificate, the
//     answer to a revocation) leaves afterwards. Only the leader can write there, in a transaction that checks its term.
// F2. The database holds the files sealed (AES-256-GCM, with the name of the file). The key is server_priv/pair.key on the
//     two hosts, and nowhere else: someone who reads the database, or a backup of it, cannot sign certificates.
// F3. When a server begins to lead, the files of the database replace its own. If the database has no files (the complex has
//     just got its second server), the server puts its own files there.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SharedStore } from "#store/store.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { removeIfThere, writeWholeFile } from "#support/whole-file.ts";
import { makeRunKey } from "./run-secrets.ts";

/** The files, relative to server_priv. */
const NAMES: readonly string[] = ["ca/ca.pem", "ca/next.pem", "ca/ledger.json", "run.key"];
const KEY_FILE = "pair.key";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OTHERS_READ = 0o077;
const ALGORITHM = "aes-256-gcm";

/** Reads the key of the two servers (F2), 64 hexadecimal digits. Returns null if there is none. Throws an error for people. */
export function readPairKey(home: string): string | null {
  const path = join(home, "server_priv", KEY_FILE);
  const text = readOwn(path)?.trim();
  if (text === undefined) return null;
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} holds no key`);
  return text;
}

/** Throws the file system's error. */
export const writePairKey = (home: string, key: string): void => writeWholeFile(join(home, "server_priv", KEY_FILE), `${key}\n`, 0o600);

export class SharedFiles {
  readonly #home: string;
  readonly #store: Pick<SharedStore, "files" | "putFiles">;
  #key: Buffer | null = null;
  /** the texts that the database has */
  #kept = new Map<string, string | null>();
  #tail: Promise<void> = Promise.resolve();

  constructor(home: string, store: Pick<SharedStore, "files" | "putFiles">) {
    this.#home = home;
    this.#store = store;
  }

  /** Must be called before any of the files is used (F3). Rejects with an error for people. */
  async fetch(): Promise<void> {
    const found = await this.#store.files();
    if (found.size === 0) {
      this.#key = Buffer.from(readPairKey(this.#home) ?? this.#newKey(), "hex");
      makeRunKey(this.#home);
      return this.keep();
    }
    const key = readPairKey(this.#home);
    if (key === null) throw new Error(`${this.#path(KEY_FILE)} is missing: copy it from the other server of the complex`);
    this.#key = Buffer.from(key, "hex");
    for (const name of NAMES) {
      const sealed = found.get(name);
      const text = sealed === undefined ? null : this.#open(name, sealed);
      this.#write(name, text);
      this.#kept.set(name, text);
    }
  }

  /** Resolves when the database has the files as they are now (F1). */
  keep(): Promise<void> {
    this.#tail = this.#tail.catch(() => undefined).then(() => this.#keepNow());
    return this.#tail;
  }

  async #keepNow(): Promise<void> {
    const key = this.#key;
    if (key === null) return;
    const texts = new Map(NAMES.map((name) => [name, readOwn(this.#path(name))]));
    const changed = [...texts].filter(([name, text]) => text !== (this.#kept.get(name) ?? null));
    if (changed.length === 0) return;
    await this.#store.putFiles(new Map(changed.map(([name, text]) => [name, text === null ? null : seal(key, name, text)])));
    this.#kept = texts;
  }

  #newKey(): string {
    const key = randomBytes(KEY_BYTES).toString("hex");
    writePairKey(this.#home, key);
    return key;
  }

  #path(name: string): string {
    return join(this.#home, "server_priv", name);
  }

  #write(name: string, text: string | null): void {
    const path = this.#path(name);
    if (text === null) return void removeIfThere(path);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeWholeFile(path, text, 0o600);
  }

  #open(name: string, sealed: string): string {
    try {
      return unseal(this.#key ?? Buffer.alloc(0), name, sealed);
    } catch (error) {
      throw new Error(`${name} in the database cannot be opened with ${this.#path(KEY_FILE)}: ${messageOf(error)}`, { cause: error });
    }
  }
}

function seal(key: Buffer, name: string, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(name));
  const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64");
}

function unseal(key: Buffer, name: string, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(name))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
}

/** Reads a file that only its owner may read; null: there is none. */
function readOwn(path: string): string | null {
  try {
    if ((statSync(path).mode & OTHERS_READ) !== 0) throw new Error(`${path} can be read by group or others: it is not used`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
