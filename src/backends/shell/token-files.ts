// The files through which runners get their tokens: DIRECTORY/TAG/INDEX, mode 0600, each the property of the user of its runner.
//
// K1. Only the controller's user can write the directory, so that no user can put a link in the place of a file.
// K2. A token is never in a name, a log or an error.

import { closeSync, constants, existsSync, fchownSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#support/caught.ts";
import { trustedDirectory } from "#support/trusted-file.ts";
import { removeIfThere } from "#support/whole-file.ts";
import type { Owner, RunnerOrder } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";

export type TokenFiles = {
  /** the directory of the files of a tag: the file of a runner is named after its index */
  directoryOf(tag: string): string;
  write(order: Pick<RunnerOrder, "tag" | "tokens" | "owner">): void;
  /** removes the files of a tag */
  remove(tag: string): void;
  /** the tags whose files are there */
  tags(): readonly string[];
};

/** directory: made if it is missing; its parent must exist. */
export function tokenFiles(directory: string): TokenFiles {
  const of = (tag: string): string => join(directory, tag);
  return {
    directoryOf: of,
    write({ tag, tokens, owner }) {
      try {
        prepare(directory);
        mkdirSync(of(tag), { recursive: true, mode: 0o711 });
        for (const [index, token] of tokens.entries()) writeToken(join(of(tag), String(index)), token, owner);
      } catch (error) {
        throw new BackendError({ kind: "configuration", text: `tokens of runners cannot be written: ${messageOf(error)}` });
      }
    },
    tags: () => (existsSync(directory) ? readdirSync(directory) : []),
    remove: (tag) => rmSync(of(tag), { recursive: true, force: true }),
  };
}

/** Users must be able to reach their files in the directory, but neither to list nor to change it. */
function prepare(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false }) === undefined) mkdirSync(directory, { mode: 0o711 });
  const uid = process.geteuid?.() ?? 0;
  trustedDirectory(directory, uid === 0 ? [0] : [0, uid]);
}

function writeToken(path: string, token: string, owner: Owner | null): void {
  removeIfThere(path);
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeSync(fd, token);
    if (owner !== null) fchownSync(fd, owner.uid, owner.gid);
  } finally {
    closeSync(fd);
  }
}
