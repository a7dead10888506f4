// Secrets of runs on several hosts (src/protocol/task-link.ts K3). The moms of a run get the same secret, even if the server
// is restarted between the frames that it sends to them: each secret is computed from the run and from a key on the server's
// disk.

import { createHmac, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";

const KEY_BYTES = 32;
const OTHERS_READ = 0o077;

/**
 * Returns the function that gives the secret of a run: 64 hexadecimal digits. home: PBS_HOME. The key is made when it is
 * first needed. If its file cannot be used, complain is called once, and the key lasts until the server ends.
 */
export function runSecrets(home: string, complain: (text: string) => void): (job: string, run_count: number) => string {
  const path = join(home, "server_priv", "run.key");
  let key: Buffer | null = null;
  const load = (): Buffer => {
    try {
      return readKey(path) ?? makeKey(path);
    } catch (error) {
      complain(`${path}: ${messageOf(error)}: another key is used until the server ends`);
      return randomBytes(KEY_BYTES);
    }
  };
  return (job, run_count) => {
    key ??= load();
    return createHmac("sha256", key).update(`${job} ${run_count}`).digest("hex");
  };
}

/** Makes the key unless there is one. Throws an error for people. */
export function makeRunKey(home: string): void {
  const path = join(home, "server_priv", "run.key");
  if (readKey(path) === null) makeKey(path);
}

function readKey(path: string): Buffer | null {
  try {
    if ((statSync(path).mode & OTHERS_READ) !== 0) throw new Error("it can be read by group or others");
    const key = Buffer.from(readFileSync(path, "utf8").trim(), "hex");
    if (key.length !== KEY_BYTES) throw new Error("it holds no key");
    return key;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

function makeKey(path: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  writeWholeFile(path, `${key.toString("hex")}\n`, 0o600);
  return key;
}
