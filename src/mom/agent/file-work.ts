// The work of the file agent: it makes a job's files before the job starts, and delivers or removes them after the job has ended.
//
// W1. In directories where users may write (spool, the parent of TMPDIR, homes, targets), files are touched only with the owner's rights, and no link out of
//     spool is followed. The mom's own rights are used only to remove or rename entries of spool and undelivered, and to remove an empty TMPDIR by its name;
//     that follows no link.
// W2. Every request may be repeated.
// W3. The process' umask is 0: every mode is given in full.
// W4. If a file of another owner has the name of a job's file, it is replaced, so that nobody can plant one. If a foreign entry has the name of a job's
//     directory (where all users may write), that entry stays, and the job's directory gets a random part in its name.
// W5. A fault of this host (no space, no free inodes or descriptors, a disk that cannot be written) is not a fault of the job: the job is requeued. No
//     incomplete file is left at a destination.

import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { JOB_EXEC } from "#model/exit-status.ts";
import { scriptCharacters, scriptEncoding } from "#model/script-text.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { placeIn } from "../files/place-in.ts";
import { actAs, asIdentity } from "../host/posix.ts";
import { isPseudoTerminal } from "../host/pseudo-terminal.ts";
import type { FilePlan, Finished, FinishRequest, OutputPlan, Prepared, PrepareRequest } from "../job/agent-link.ts";
import type { Place, StageItem } from "../job/stage-list.ts";
import { FarCopies } from "./far-copy.ts";
import { copyFile, copyRemote, exists, writeAll } from "./file-copy.ts";
import { asOwner, makeDirectories, ownUid, placesOf, putInPlace, removeQuietly, replaceForeign } from "./open-directories.ts";
import { removeStagedIn, type SentItems, stageIn, stageInFar, stageOut, stageOutFar } from "./stage-work.ts";
import { isBigTree, removeTree } from "./tree-removal.ts";

const { O_APPEND, O_CREAT, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;

class PrepareFailure extends Error {
  readonly exit_status: number;
  readonly stagein: boolean;
  constructor(exit_status: number, message: string, stagein = false) {
    super(message);
    this.exit_status = exit_status;
    this.stagein = stagein;
  }
}

// ---- before the job ----

/** Makes the files of several jobs: first those that the mom owns, then those that the jobs' owners own. */
export function prepareJobs(requests: readonly PrepareRequest[]): Prepared[] {
  const ready = requests.map((request): { readonly request: PrepareRequest; failure: PrepareFailure | null } => ({
    request,
    failure: attempt(() => makeOwnFiles(request)),
  }));
  return ready.map(({ request, failure }) => {
    const { plan } = request;
    let made: FilePlan = plan;
    let paths = { stdout: "", stderr: "" };
    const problem =
      failure ??
      attempt(() => {
        made = makeDirectories(plan);
        paths = makeOwnersFiles(made);
      });
    return preparedAs(request, { made, paths, problem });
  });
}

/** Whether files of stagein come from other hosts of the complex. */
export const hasFarInput = ({ plan }: PrepareRequest): boolean =>
  plan.far !== undefined && plan.stagein.some(({ remote }) => remote.host !== null);

/** Makes the files of a job with files that come from other hosts of the complex. */
export async function prepareWithFar(request: PrepareRequest): Promise<Prepared> {
  const { plan } = request;
  let made: FilePlan = plan;
  let paths = { stdout: "", stderr: "" };
  let problem =
    attempt(() => makeOwnFiles(request)) ??
    attempt(() => {
      made = makeDirectories(plan);
    });
  const copies = new FarCopies(made);
  try {
    if (problem === null) {
      const done = await stageInFar(made, copies);
      problem = attempt(() => {
        paths = makeOwnersFiles(made, done);
      });
    }
  } catch (error) {
    problem = new PrepareFailure(JOB_EXEC.RETRY, messageOf(error), true);
  }
  copies.close();
  // Requests for other owners may have come meanwhile. They are served next, and must not begin with this owner's rights.
  actAs(null);
  return preparedAs(request, { made, paths, problem });
}

type Making = {
  readonly made: FilePlan;
  readonly paths: { readonly stdout: string; readonly stderr: string };
  readonly problem: PrepareFailure | null;
};

function preparedAs({ plan, kept }: PrepareRequest, { made, paths, problem }: Making): Prepared {
  const key = { job: plan.job, run_count: plan.run_count };
  if (problem === null) return { ...key, ok: true, ...paths, ...(made === plan ? {} : { places: placesOf(made) }) };
  attempt(() => finishJob({ plan: made, success: false, output: kept === true ? "keep" : "drop" }));
  const { exit_status, message, stagein } = problem;
  return { ...key, ok: false, exit_status, text: message, ...(stagein ? { stagein } : {}) };
}

function attempt(work: () => void): PrepareFailure | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof PrepareFailure) return error;
    return new PrepareFailure(HOST_FAULTS.has(codeOf(error)) ? JOB_EXEC.RETRY : JOB_EXEC.FAIL1, messageOf(error));
  }
}

/** Errors that are faults of this host, not of the job (W5). */
const HOST_FAULTS: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM"]);

function makeOwnFiles({ plan, script_text, nodefile_text }: PrepareRequest): void {
  actAs(null);
  makeShared(NODEFILES, plan.nodefile, nodefile_text);
  makeShared(JOB_FILES, jobFile(plan), JOB_FILE_TEXT);
  if (plan.script !== null && script_text !== null) writeOwnFile(plan.script, scriptBytes(script_text), 0o700, plan.owner);
}

const scriptBytes = (script: string): Buffer => Buffer.from(scriptCharacters(script), scriptEncoding(script));

/** Writes a file in a directory that only the mom may write. owner: the user who may then read the file. */
function writeOwnFile(path: string, text: string | Buffer, mode: number, owner: FilePlan["owner"] = null): void {
  const fd = openFresh(path, mode);
  try {
    writeAll(fd, typeof text === "string" ? Buffer.from(text) : text);
    if (owner !== null) fchownSync(fd, owner.uid, owner.gid);
    if (owner !== null) fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

/**
 * A kind of file whose text is often the same for many jobs. Files with equal texts are hard links to one file, because a link costs a fraction of making and
 * removing a file.
 */
type SharedText = { readonly name: string; readonly mode: number; made: { readonly path: string; readonly text: string } | null };
const NODEFILES: SharedText = { name: ".same", mode: 0o444, made: null };
const JOB_FILES: SharedText = { name: ".job-file", mode: 0o600, made: null };

function makeShared(kind: SharedText, path: string, text: string): void {
  const shared = `${dirname(path)}/${kind.name}`;
  try {
    if (kind.made?.path !== shared || kind.made.text !== text) {
      writeOwnFile(shared, text, kind.mode);
      kind.made = { path: shared, text };
    }
    linkFresh(shared, path);
  } catch {
    // The file cannot have more links, or the file system has no links: a separate file is made.
    kind.made = null;
    writeOwnFile(path, text, kind.mode);
  }
}

/** Path of the file mom_priv/jobs/JOBID.JB. Its existence shows site tools that the mom has the job. They pass it to printjob. */
const jobFile = ({ staged }: FilePlan): string => staged.replace(/\.SI$/, ".JB");
const JOB_FILE_TEXT = "The mom has this job. Its attributes are kept by pbs_server: printjob with the path of this file shows them.\n";

function linkFresh(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    unlinkSync(to);
    linkSync(from, to);
  }
}

function openFresh(path: string, mode: number): number {
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  try {
    return openSync(path, flags, mode);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    unlinkSync(path);
    return openSync(path, flags, mode);
  }
}

function makeOwnersFiles(plan: FilePlan, staged?: ReadonlySet<StageItem>): { stdout: string; stderr: string } {
  actAs(plan.owner);
  try {
    stageIn(plan, staged);
  } catch (error) {
    throw new PrepareFailure(JOB_EXEC.RETRY, messageOf(error), true);
  }
  const stdout = plan.stdout.how === "joined" ? null : makeOutput(plan, plan.stdout);
  const stderr = plan.stderr.how === "joined" ? null : makeOutput(plan, plan.stderr);
  const either = stdout ?? stderr ?? "/dev/null";
  return { stdout: stdout ?? either, stderr: stderr ?? either };
}

/** Makes a file for the job's output and returns its path. The caller has taken on the owner's identity. */
function makeOutput(plan: FilePlan, output: OutputPlan): string {
  if (output.how === "null") return "/dev/null";
  const mode = 0o666 & ~plan.umask;
  if (output.how === "direct") {
    const path = placeIn(output.path, output.name);
    const fd = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, mode);
    try {
      if (plan.run_count <= 1 && fstatSync(fd).isFile()) ftruncateSync(fd);
    } finally {
      closeSync(fd);
    }
    return path;
  }
  closeSync(openSpoolFile(plan, output.path, mode));
  return output.path;
}

function openSpoolFile(plan: FilePlan, path: string, mode: number): number {
  try {
    return openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    // Output of an earlier run is continued. Any other entry is replaced; in a sticky directory only the mom may do that.
    const stat = lstatSync(path);
    if (stat.isFile() && stat.uid === ownUid(plan) && stat.nlink === 1)
      return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    return replaceForeign(plan, path, mode);
  }
}

// ---- after the job ----

/** What became of output and stageout that went to other hosts of the complex. outputs: by letter; null: it was copied, else the reason why not. */
export type Sent = { readonly outputs: ReadonlyMap<string, string | null>; readonly items: SentItems };
const NOTHING_SENT: Sent = { outputs: new Map(), items: new Map() };

/** Whether files of the job go to other hosts of the complex. */
export const hasFarOutput = ({ plan, output }: FinishRequest): boolean =>
  plan.far !== undefined &&
  output === "deliver" &&
  ([plan.stdout, plan.stderr].some(({ target }) => typeof target?.host === "string") ||
    plan.stageout.some(({ remote }) => remote.host !== null));

/** Copies output and stageout to other hosts of the complex. Everything else, and what the site's program must copy, is left to finishJob. */
export async function sendFar({ plan, success }: FinishRequest): Promise<Sent> {
  const copies = new FarCopies(plan);
  const outputs = new Map<string, string | null>();
  try {
    for (const { how, target, path, name, letter, remove } of [plan.stdout, plan.stderr]) {
      if (how !== "spool" || target === null || target.host === null || (remove && success)) continue;
      try {
        if (asIdentity(plan.owner, () => exists(path)) && (await copies.put(target.host, path, target.path, name)))
          outputs.set(letter, null);
      } catch (error) {
        outputs.set(letter, messageOf(error));
      }
    }
    return { outputs, items: await stageOutFar(plan, copies) };
  } finally {
    copies.close();
  }
}

/**
 * Delivers or drops a job's output and removes its other files. sent: what was copied to other hosts of the complex already. tmpdir `later`: TMPDIR stays, for
 * removeTmpdirs.
 */
export function finishJob(request: FinishRequest, sent: Sent = NOTHING_SENT, tmpdir: "now" | "later" = "now"): Finished {
  const { plan } = request;
  const failures: string[] = [];
  let total = 0;
  const key = { job: plan.job, run_count: plan.run_count };
  if (request.output !== "keep") {
    for (const output of [plan.stdout, plan.stderr]) {
      if (output.how === "joined") continue;
      if (request.output === "drop") {
        if (output.how === "spool") removeQuietly(null, output.path);
        continue;
      }
      total++;
      const failure = deliver(plan, output, request.success, sent.outputs.get(output.letter));
      if (failure !== null) failures.push(failure);
    }
  }
  if (request.output === "deliver" && plan.stageout.length > 0) {
    const left = stageOut(plan, sent.items);
    total += plan.stageout.length;
    failures.push(...left);
  }
  const keeps = request.output === "keep" || (plan.stageout.length > 0 && failures.length > 0);
  if (!keeps) removeStagedIn(plan);
  // After a failed copy the sandbox is kept: it has the only copy of those files.
  if (plan.sandbox !== null && !keeps) removeTree(plan, plan.sandbox);
  if (tmpdir === "now") removeTree(plan, plan.tmpdir);
  actAs(null);
  removeQuietly(null, plan.nodefile);
  removeQuietly(null, jobFile(plan));
  if (plan.script !== null) removeQuietly(null, plan.script);
  return { ...key, delivered: total - failures.length, total, failures };
}

/** From this size on, copying a file delays other jobs noticeably. */
const BULKY_BYTES = 8 * 1024 * 1024;

/** Whether finishing the job means to copy a big file, or to remove many files. (A file that is only renamed may have any size.) */
export function isBulky({ plan, output }: FinishRequest): boolean {
  const copies =
    output === "deliver" &&
    [plan.stdout, plan.stderr].some(({ how, target, ...rest }) => how === "spool" && target !== null && mustCopy(plan, rest, target));
  return copies || isBigTree(plan, plan.tmpdir) || (plan.sandbox !== null && isBigTree(plan, plan.sandbox));
}

function mustCopy(plan: FilePlan, output: Pick<OutputPlan, "path" | "name">, target: Place): boolean {
  if (target.host !== null) return true;
  const source = lstatSync(output.path, { throwIfNoEntry: false });
  if (source === undefined || source.size < BULKY_BYTES) return false;
  try {
    actAs(plan.owner);
    const to = placeIn(target.path, output.name);
    return exists(to) || statSync(dirname(to)).dev !== source.dev;
  } catch {
    return false;
  }
}

/**
 * Delivers one output. sent: what became of it if it went to another host of the complex; undefined: it did not. Returns null if it was delivered (or removed,
 * with -R), otherwise the reason why not; the file is then in undelivered.
 */
function deliver(plan: FilePlan, output: OutputPlan, success: boolean, sent?: string | null): string | null {
  if (output.how === "null") return null;
  if (output.remove && success) {
    removeQuietly(plan.owner, output.how === "direct" ? asOwner(plan, () => placeIn(output.path, output.name)) : output.path);
    return null;
  }
  if (output.how === "direct") return null;
  const { target } = output;
  if (target === null && lstatSync(output.path, { throwIfNoEntry: false })?.size === 0) {
    removeQuietly(null, output.path);
    return null;
  }
  let reason = "there is no place for it";
  if (target !== null) {
    try {
      actAs(plan.owner);
      if (target.host === null) moveFile(output.path, placeIn(target.path, output.name));
      else if (sent === undefined) sendFile(plan, output.path, target);
      else if (sent === null) unlinkSync(output.path);
      else throw new Error(sent);
      return null;
    } catch (error) {
      if (codeOf(error) === "ENOENT" && !exists(output.path)) return deliveredBefore(plan, output);
      reason = messageOf(error);
    }
  }
  const where = target === null ? "its destination" : target.host === null ? target.path : `${target.host}:${target.path}`;
  return `Unable to copy file ${output.path} to ${where}: ${reason}; ${putAside(plan, output)}`;
}

/** Sends a file to its place on another host. A target that ends in / is a directory: the file keeps its name there, as with scp. */
function sendFile(plan: FilePlan, path: string, target: Place): void {
  lstatSync(path);
  copyRemote(plan, { host: null, path }, target);
  unlinkSync(path);
}

/**
 * Called when the file is no longer in spool: an earlier request has handled it. Returns null if that delivered the file, otherwise the message that it is in
 * undelivered.
 */
function deliveredBefore(plan: FilePlan, output: OutputPlan): string | null {
  return exists(`${plan.undelivered}/${output.name}`) ? `${output.name} is in ${plan.undelivered}` : null;
}

function putAside(plan: FilePlan, output: OutputPlan): string {
  const place = `${plan.undelivered}/${output.name}`;
  try {
    actAs(null);
    try {
      putInPlace(output.path, place);
    } catch (error) {
      if (codeOf(error) !== "EXDEV") throw error;
      copyAside(plan, output.path, place);
    }
    return `it is in ${place}`;
  } catch (error) {
    return `it stays in ${output.path}: ${messageOf(error)}`;
  }
}

/** Copies a file to undelivered if spool is on another disk. It is read and written with the owner's rights. A foreign entry with its name is removed. */
function copyAside(plan: FilePlan, from: string, to: string): void {
  removeQuietly(null, to);
  actAs(plan.owner);
  closeSync(openSync(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
  try {
    copyFile(from, to);
  } catch (error) {
    unlinkSync(to);
    throw error;
  }
  unlinkSync(from);
}

/**
 * Moves a file by renaming it if nothing is at the target. Otherwise its contents are written into the existing target, which keeps its owner, mode and links,
 * as with cp. The caller has taken on the owner's identity.
 */
function moveFile(from: string, to: string): void {
  if (!lstatSync(from).isFile()) throw new Error(`${from} is not a file`);
  const isNew = !exists(to);
  if (isNew) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      if (codeOf(error) !== "EXDEV") throw error;
    }
  }
  try {
    copyFile(from, to);
  } catch (error) {
    if (isNew && codeOf(error) === "ENOSPC") unlinkSync(to);
    throw error;
  }
  unlinkSync(from);
}

// ---- other requests ----

/** Adds text at the end of a file of the owner. A file that no longer exists is not made again. */
export function appendText(owner: FilePlan["owner"], path: string, bytes: Buffer): void {
  actAs(owner);
  const fd = openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    if (fstatSync(fd).isFile()) writeAll(fd, bytes);
    // If the user has stopped the terminal, it may not accept the text. The text is then lost.
    else if (isPseudoTerminal(path)) writeSync(fd, bytes);
  } finally {
    closeSync(fd);
  }
}

/** Removes a file from spool. */
export function dropFile(path: string): void {
  removeQuietly(null, path);
}
