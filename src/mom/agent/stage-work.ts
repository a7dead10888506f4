// The file agent's work for stage lists (qsub -W stagein=, stageout=): copies before the job and after it, with the owner's rights.
//
// S1. If everything could be copied, staged-in files are removed after the job, and staged-out files are removed from their source. Otherwise all of them stay.
// S2. A file that is already in its place is neither copied nor removed. A staged-in copy that overwrote an existing file is not removed.
// S3. Each copy is listed in a file of the mom before it is made, so that an agent that was killed meanwhile leaves nothing of which the next one does not know.

import { appendFileSync, lstatSync, readFileSync, rmSync, unlinkSync } from "node:fs";
import { basename } from "node:path";
import { messageOf } from "#support/caught.ts";
import { isTextList } from "#support/guards.ts";
import { matching } from "../files/pattern.ts";
import { placeIn } from "../files/place-in.ts";
import { actAs, asIdentity } from "../host/posix.ts";
import type { FilePlan } from "../job/agent-link.ts";
import type { StageItem } from "../job/stage-list.ts";
import type { FarCopies } from "./far-copy.ts";
import { copyRemote, copyTree, exists, isSameFile } from "./file-copy.ts";

/**
 * Copies the files that the job needs from other hosts of the complex. Returns the items that were copied. If one cannot be copied, removes the earlier copies
 * and throws.
 */
export async function stageInFar(plan: FilePlan, copies: FarCopies): Promise<ReadonlySet<StageItem>> {
  const done = new Set<StageItem>();
  const made = new MadeCopies(plan);
  for (const item of plan.stagein) {
    const { local, remote } = item;
    if (remote.host === null) continue;
    try {
      if (await copies.get(remote.host, remote.path, local, (target) => made.before(target))) done.add(item);
    } catch (error) {
      removeStagedIn(plan);
      throw new Error(`Unable to stage in ${local} from ${whereOf(item)}: ${messageOf(error)}`);
    }
  }
  return done;
}

/** Copies the files that the job needs. done: the items that were copied already. If one cannot be copied, removes the earlier copies and throws. */
export function stageIn(plan: FilePlan, done: ReadonlySet<StageItem> = NOTHING): void {
  if (plan.stagein.length === 0) return;
  const made = new MadeCopies(plan);
  for (const item of plan.stagein) {
    if (done.has(item)) continue;
    actAs(plan.owner);
    try {
      copyIn(plan, item, made);
    } catch (error) {
      removeStagedIn(plan);
      throw new Error(`Unable to stage in ${item.local} from ${whereOf(item)}: ${messageOf(error)}`);
    }
  }
  actAs(plan.owner);
}

const NOTHING: ReadonlySet<StageItem> = new Set();

function copyIn(plan: FilePlan, { local, remote }: StageItem, made: MadeCopies): void {
  if (remote.host !== null) {
    // This host does not know which files a pattern on the other host matches, so copies that a pattern has brought are never removed.
    const target = placeIn(local, basename(remote.path));
    if (!/[*?[]/.test(remote.path)) made.before(target);
    copyRemote(plan, remote, { host: null, path: local });
    return;
  }
  for (const source of matching(remote.path)) {
    const target = placeIn(local, basename(source));
    if (isSameFile(source, target)) continue;
    made.before(target);
    copyTree(source, target);
  }
}

/** The list of the copies that were made here. */
class MadeCopies {
  readonly #plan: FilePlan;
  readonly #paths: Set<string>;

  constructor(plan: FilePlan) {
    this.#plan = plan;
    this.#paths = new Set(recorded(plan));
  }

  /** Records the path of a copy before the copy is made (S3), unless a file exists at this path (S2). The caller has the owner's rights, and has them again afterwards. */
  before(target: string): void {
    if (this.#paths.has(target) || exists(target)) return;
    this.#paths.add(target);
    actAs(null);
    try {
      appendFileSync(this.#plan.staged, `\n${JSON.stringify([target])}`, { mode: 0o600 });
    } finally {
      actAs(this.#plan.owner);
    }
  }
}

/** Reads the list: an array of paths in each line. */
function recorded(plan: FilePlan): string[] {
  actAs(null);
  try {
    return readFileSync(plan.staged, "utf8").split("\n").flatMap(pathsIn);
  } catch {
    return [];
  }
}

function pathsIn(line: string): readonly string[] {
  try {
    const read: unknown = JSON.parse(line);
    return isTextList(read) ? read : [];
  } catch {
    // The line is empty, or it was not complete when the host went down.
    return [];
  }
}

/** Removes the files that stageIn has listed. */
export function removeStagedIn(plan: FilePlan): void {
  if (plan.stagein.length === 0) return;
  const made = recorded(plan);
  actAs(plan.owner);
  for (const path of made) removeStaged(path);
  actAs(null);
  try {
    unlinkSync(plan.staged);
  } catch {
    // There was no such file.
  }
}

function removeStaged(path: string): void {
  try {
    rmSync(path, { recursive: lstatSync(path).isDirectory(), force: true });
  } catch {
    // The job has removed the file, or the owner of its directory has taken away the right to remove it.
  }
}

/** What became of items of stageout that went to other hosts of the complex: the files that were copied, and the reason if one was not. */
export type SentItems = ReadonlyMap<StageItem, { readonly copied: readonly string[]; readonly error: string | null }>;

/** Copies the files that the job leaves to other hosts of the complex. Their sources stay. Items that the site's program must copy are not in the result. */
export async function stageOutFar(plan: FilePlan, copies: FarCopies): Promise<SentItems> {
  const sent = new Map<StageItem, { copied: string[]; error: string | null }>();
  for (const item of plan.stageout) {
    const { host, path } = item.remote;
    if (host === null) continue;
    const outcome: { readonly copied: string[]; error: string | null } = { copied: [], error: null };
    try {
      let is_ours = true;
      for (const source of asIdentity(plan.owner, () => matching(item.local))) {
        is_ours &&= await copies.put(host, source, path, basename(source));
        if (is_ours) outcome.copied.push(source);
      }
      if (!is_ours) continue;
    } catch (error) {
      outcome.error = messageOf(error);
    }
    sent.set(item, outcome);
  }
  return sent;
}

/** Copies the files that the job leaves. sent: what was copied already. Returns a sentence for each item that could not be copied. */
export function stageOut(plan: FilePlan, sent: SentItems = new Map()): string[] {
  const failures: string[] = [];
  const copied: string[] = [];
  actAs(plan.owner);
  for (const item of plan.stageout) {
    try {
      const known = sent.get(item);
      copied.push(...(known?.copied ?? []));
      if (known !== undefined && known.error !== null) throw new Error(known.error);
      if (known !== undefined) continue;
      for (const source of matching(item.local)) if (copyOut(plan, source, item)) copied.push(source);
    } catch (error) {
      failures.push(`Unable to stage out ${item.local} to ${whereOf(item)}: ${messageOf(error)}`);
    }
  }
  if (failures.length === 0) for (const path of copied) removeStaged(path);
  return failures;
}

/** Copies one file of stageout. Returns false if the file is already in its place. */
function copyOut(plan: FilePlan, source: string, { remote }: StageItem): boolean {
  if (remote.host !== null) {
    copyRemote(plan, { host: null, path: source }, remote);
    return true;
  }
  const target = placeIn(remote.path, basename(source));
  if (isSameFile(source, target)) return false;
  copyTree(source, target);
  return true;
}

const whereOf = ({ remote }: StageItem): string => (remote.host === null ? remote.path : `${remote.host}:${remote.path}`);
